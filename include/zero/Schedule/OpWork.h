//===- OpWork.h - What an operation has to do -------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From an operation of any dialect to the facts that the cost model needs.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_OPWORK_H
#define ZERO_SCHEDULE_OPWORK_H

#include "mlir/IR/Operation.h"
#include "zero/Cost/CostModel.h"
#include "zero/Cost/Machine.h"

namespace mlir::zero {

/// What `op` has to do on one rank: what its interface `Cost` says; of linalg
/// ops the loop ranges times the scalar operations in the body, contractions
/// with their sizes; of reshapes and slices of tensors nothing; of others the
/// bytes of their operands and results.
OpWork getOpWork(Operation *op);

/// The machine that work is costed on: a preset or a .json file by name,
/// `this-cpu` where that is empty. Fails with an error at `loc`.
FailureOr<Machine> findMachine(Location loc, llvm::StringRef name);

/// Whether the results of `op` are the storage of its first operand: it has no
/// effect and moves no byte; or it spreads that operand, a scalar, where it is
/// used.
bool isView(Operation *op);

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_OPWORK_H
