//===- JoinPads.h - Sums of padded tensors as concatenations ----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A simplification of the step before its compute becomes kernels.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_JOINPADS_H
#define ZERO_LIB_LOWERING_JOINPADS_H

#include "mlir/IR/Block.h"

namespace mlir::zero {

/// Replaces sums of `train.pad`s that lie side by side by one `train.concat`:
/// the gradient of a tensor that was split into slices (queries, keys and
/// values), which autodiff builds slice by slice.
void joinPads(Block &block);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_JOINPADS_H
