//===- OffloadStep.h - a step some of which lives elsewhere -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of zero-offload: what a partitioned step reads and updates, which
// rules mean what, and the rewriting of each kind.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_TRANSFORMS_OFFLOADSTEP_H
#define ZERO_LIB_TRANSFORMS_OFFLOADSTEP_H

#include "StepInfo.h"
#include "zero/Transforms/Offload.h"

namespace mlir::zero {

/// How one rank gets the new value of a parameter, or of its chunk.
struct LocalUpdate {
  ParamOp param;
  /// Assignments to the parameter and its states, and what the rank computes
  /// for each: before the gather of stages 1 and 2.
  SmallVector<AssignOp> assigns;
  SmallVector<Value> values;
  /// The ops from reduced gradient and state to these values, and what enters
  /// them.
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> inputs;
  /// The bucket that reduces the gradient; null where no gradient enters.
  Operation *reduction = nullptr;
};

/// A function of a partitioned module that touches state.
struct OffloadStep {
  FunctionOpInterface func;
  Block *body = nullptr;
  llvm::MapVector<StringAttr, ReadOp> reads;
  SmallVector<LocalUpdate, 0> updates; ///< of tensors that have a dimension
};

/// A partitioned module and what lives where.
struct OffloadModule {
  ModuleOp module;
  SymbolTable symbols;
  FlatSymbolRefAttr grid;
  SmallVector<OffloadStep, 0> steps;
  /// Parameters whose update runs on the host.
  llvm::DenseSet<Operation *> hosted;

  explicit OffloadModule(ModuleOp module) : module(module), symbols(module) {}
};

/// Describes a module; fails, with a message, where it cannot be offloaded.
LogicalResult analyzeOffload(OffloadModule &module);

/// The memory of each candidate; fails where a rule matches none.
LogicalResult chooseMemories(ModuleOp module, ArrayRef<OffloadRule> rules,
                             ArrayRef<OffloadCandidate> candidates,
                             SmallVectorImpl<Memory> &chosen);

/// Adds the candidates of a kind in the order of the step.
void findOptimizerCandidates(OffloadModule &module,
                             std::vector<OffloadCandidate> &candidates);

/// Gives a parameter or state another memory; a whole tensor becomes a shard
/// cut over no axis, which its reads view whole.
void setSymbolMemory(OffloadModule &module, Operation *symbol, Memory memory);

/// Moves the updates of `module.hosted` to the host.
void moveUpdatesToHost(OffloadModule &module, OffloadStep &step);

//===----------------------------------------------------------------------===//
// Building transfers
//===----------------------------------------------------------------------===//

/// Copies of `values` in memory `to`, by one transfer a hop; all lie in `from`.
SmallVector<Value> moveValues(OpBuilder &builder, Location loc,
                              ArrayRef<Value> values, Memory from, Memory to);

/// Moves the users of `op` that stand before it behind it.
void moveUsersBehind(Operation *op);

/// The read behind a view of state at rest; null where it is something else.
ReadOp getReadBehind(Value value);

} // namespace mlir::zero

#endif // ZERO_LIB_TRANSFORMS_OFFLOADSTEP_H
