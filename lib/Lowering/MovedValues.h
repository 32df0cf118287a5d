//===- MovedValues.h - Values across memories and host bodies ---*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows a value through what changes where it is and not what it is: a
// zero.transfer, with or without a future, the operands and results of a
// zero.on_host, and a zero.local.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_MOVEDVALUES_H
#define ZERO_LIB_LOWERING_MOVEDVALUES_H

#include "dialects/Zero/Zero.h"

namespace mlir::zero {

/// The results of `op`; of a start, those of the one wait for it. Fails with a
/// message where there is not exactly one.
FailureOr<ResultRange> getFinalResults(Operation *op);

/// What `value` was at first.
Value getUnmoved(Value value);

/// What the operand `use` becomes; null where its owner computes something.
Value getMoved(OpOperand &use);

/// The symbol that `value` is assigned to, as it is or moved; empty if none.
StringRef getAssignedSymbol(Value value);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_MOVEDVALUES_H
