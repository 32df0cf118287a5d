//===- StepInfo.h - what a step function does with the state ----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds, in a step function of any dialect, the reads of parameters, the update
// of each and its gradient, from use-def chains, traits and interfaces.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_TRANSFORMS_STEPINFO_H
#define ZERO_LIB_TRANSFORMS_STEPINFO_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "zero/Transforms/StepUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::zero {

/// How one parameter gets its new value in a step function.
struct ParamUpdate {
  ParamOp param;
  /// Assignments to the parameter and to its states, in program order.
  SmallVector<AssignOp> assigns;
  /// The value each rank computes from its own data; null where the update
  /// depends on no data.
  Value gradient;
  /// The elementwise ops from gradient and state to what is assigned.
  llvm::SetVector<Operation *> ops;
};

/// How a gradient is added to its accumulator, in the function of the
/// micro-batches before the last or in that of the last.
struct GradientSum {
  StateOp accumulator;
  ReadOp read;
  /// The elementwise op of the sum so far and the gradient, and that one.
  Operation *add = nullptr;
  Value gradient;
  /// Assigns the new sum, or what the accumulator is after the step.
  AssignOp assign;

  /// Whether the sum goes on to the next micro-batch.
  bool goesOn() const {
    return AssignOp(assign).getValue().getDefiningOp() == add;
  }
};

/// A function that reads or assigns state.
struct StepInfo {
  FunctionOpInterface func;
  Block *body = nullptr;
  /// Reads by symbol, in program order.
  llvm::MapVector<StringAttr, SmallVector<ReadOp>> reads;
  /// One per assigned parameter that is trained, in order of assignment.
  SmallVector<ParamUpdate, 0> updates;
  /// One per accumulator of gradients.
  SmallVector<GradientSum, 0> sums;
  /// What buffers, and sums that each rank has for itself, are assigned.
  SmallVector<Value, 0> ownValues;
};

/// Whether `state` is a sum over micro-batches that each rank has for itself.
inline bool isOwnSum(StateOp state) {
  return state && state.getAccumulator() && !state.getParam();
}

/// Which values of a step differ between ranks because they depend on data. A
/// sum over gradients does not: it means gradients that are reduced.
class RankVariance {
public:
  explicit RankVariance(Block &body, SymbolTable &symbols);
  bool differs(Value value) const { return differing.contains(value); }

private:
  llvm::DenseSet<Value> differing;
};

/// Whether `op` is elementwise on tensors of shape `shape`, so that it can be
/// remade on a chunk of dimension 0: every other operand is the same for all
/// rows.
bool isElementwiseOn(Operation *op, ArrayRef<int64_t> shape);

/// Describes all functions of `module` that touch state; fails with a message
/// where an update cannot be understood.
FailureOr<SmallVector<StepInfo>> analyzeSteps(ModuleOp module,
                                              SymbolTable &symbols);

} // namespace mlir::zero

#endif // ZERO_LIB_TRANSFORMS_STEPINFO_H
