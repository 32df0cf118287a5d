//===- KernelGroups.h - Which ops of a step form a kernel -------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups the compute of a step into kernels. Only compute ops decide, never the
// collectives between them, so that all ZeRO stages run the same kernels.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_KERNELGROUPS_H
#define ZERO_LIB_LOWERING_KERNELGROUPS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::zero {

/// Ops that become one kernel, in the order of the step. The last one is the
/// root: the others are its producers, and the kernel takes its place.
struct KernelGroup {
  SmallVector<Operation *> ops;
  Operation *root() const { return ops.back(); }
};

/// Whether `op` is copied into every kernel that uses it instead of being an
/// operand: constants of one value, empty tensors, scalar arithmetic.
bool isRematerialized(Operation *op);

/// Whether `op` computes what a kernel can: everything but library calls,
/// changes of layout, collectives and what is rematerialized.
bool isKernelOp(Operation *op);

/// Whether element i of the result of `op` depends on the elements of the
/// operands that broadcast to i.
bool isElementwise(Operation *op);

/// Groups the kernel ops of `block`, in the order of their roots. Ops that are
/// elementwise (or move elements) join the consumer that makes one pass over
/// their result anyway.
SmallVector<KernelGroup> findKernelGroups(Block &block);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_KERNELGROUPS_H
