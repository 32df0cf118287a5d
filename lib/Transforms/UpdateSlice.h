//===- UpdateSlice.h - the update of one parameter --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the ops that compute a parameter's new value from its gradient, and
// remakes them on the shapes of a shard.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_TRANSFORMS_UPDATESLICE_H
#define ZERO_LIB_TRANSFORMS_UPDATESLICE_H

#include "Partition.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::zero {

/// Fills `update.gradient` and `update.ops` from the assigned values.
LogicalResult findUpdateSlice(ParamUpdate &update, const StepInfo &info,
                              const RankVariance &variance);

/// This rank's chunk, of type `type`, of a whole tensor that is the same on all
/// ranks. Constants are made anew.
Value makeLocal(OpBuilder &builder, Value value, Type type,
                const Partition &cut);

/// Copies the ops of `update` at the builder's insertion point. `mapping`
/// holds the gradient and the reads; where `cut` is set, whole tensors become
/// chunks of it: constants are remade, other values are cut with zero.local.
void cloneUpdate(OpBuilder &builder, ParamUpdate &update, IRMapping &mapping,
                 const Partition *cut);

} // namespace mlir::zero

#endif // ZERO_LIB_TRANSFORMS_UPDATESLICE_H
