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

#include "mlir/IR/IRMapping.h"
#include "zero/Transforms/Offload.h"
#include "llvm/ADT/StringMap.h"

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
  /// The bucket that reduces the gradient; null where no gradient enters. Or
  /// what is reduced is added to a sum, which then enters: no buckets.
  Operation *reduction = nullptr;
  bool ofSum = false;
};

/// An addition to an accumulator, on every rank.
struct LocalSum {
  StateOp accumulator;
  Operation *add = nullptr;
  AssignOp assign; ///< of the sum, or of what the accumulator is afterwards
};

/// A value of the forward pass that the backward pass reads.
struct Activation {
  std::string name, unit;
  Value value;
  Operation *lastForward = nullptr;
  /// Uses by the backward pass, of the value or a layout of it, in order.
  SmallVector<OpOperand *> uses;
};

/// A function of a partitioned module that touches state.
struct OffloadStep {
  FunctionOpInterface func;
  Block *body = nullptr;
  llvm::MapVector<StringAttr, ReadOp> reads;
  SmallVector<LocalUpdate, 0> updates; ///< of tensors that have a dimension
  SmallVector<LocalSum, 0> sums;       ///< likewise
};

/// A partitioned module and what lives where.
struct OffloadModule {
  ModuleOp module;
  SymbolTable symbols;
  FlatSymbolRefAttr grid;
  SmallVector<OffloadStep, 0> steps;
  /// Parameters whose update runs on the host.
  llvm::DenseSet<Operation *> hosted;
  /// Where the gradients of a parameter are kept, if not on the device.
  llvm::DenseMap<Operation *, Memory> gradients;
  /// Where activations are kept between forward and backward, by name.
  llvm::StringMap<Memory> activations;

  explicit OffloadModule(ModuleOp module) : module(module), symbols(module) {}
};

/// Describes a module; fails, with a message, where it cannot be offloaded.
LogicalResult analyzeOffload(OffloadModule &info);

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// All candidates, in the order of the kinds, then of the step.
std::vector<OffloadCandidate> collectCandidates(OffloadModule &info);

/// Whether the pattern of a rule matches `name`.
bool matchesName(const OffloadRule &rule, StringRef name);

/// The memory of each candidate; fails where a rule matches none.
LogicalResult chooseMemories(ModuleOp module, ArrayRef<OffloadRule> rules,
                             ArrayRef<OffloadCandidate> candidates,
                             SmallVectorImpl<Memory> &chosen);

/// States of the optimizer that belong to a parameter, masters included.
SmallVector<StateOp> getOptimizerStates(OffloadModule &info, ParamOp param);

/// The accumulator of a parameter's gradients; null where there is none.
StateOp getAccumulator(OffloadModule &info, ParamOp param);

/// The ops of the forward pass: what leads to results of the step, to buffers
/// and to sums that each rank has for itself. Where there is none of these, all
/// ops before the first reduction.
llvm::DenseSet<Operation *> findForwardOps(OffloadStep &step,
                                           SymbolTable &symbols);

/// What the backward pass reads of the forward pass, in the order of the step.
std::vector<Activation> findActivations(OffloadStep &step,
                                        SymbolTable &symbols);

//===----------------------------------------------------------------------===//
// Rewriting, in this order
//===----------------------------------------------------------------------===//

/// Gives a parameter or state another memory; a whole tensor becomes a shard
/// cut over no axis, which its reads view whole.
void setSymbolMemory(OffloadModule &info, Operation *symbol, Memory memory);

/// Adds to accumulators of `info.gradients` on the host and keeps reduced
/// gradients there until something reads them.
void moveGradients(OffloadModule &info, OffloadStep &step);

/// Moves the updates of `info.hosted` to the host.
void moveUpdatesToHost(OffloadModule &info, OffloadStep &step);

/// Brings what lies elsewhere to the device for what computes there.
void bringToDevice(OffloadModule &info, OffloadStep &step);

/// Copies what symbols outside of the device are assigned to where they live.
void moveAssigned(OffloadModule &info, OffloadStep &step);

/// Copies activations out after the forward pass and back for the backward.
void moveActivations(OffloadModule &info, OffloadStep &step);

//===----------------------------------------------------------------------===//
// Building transfers
//===----------------------------------------------------------------------===//

/// Copies of `values` in memory `to`, by one transfer a hop; all lie in `from`.
SmallVector<Value> moveValues(OpBuilder &builder, Location loc,
                              ArrayRef<Value> values, Memory from, Memory to);

/// Copies of `values`, that lie anywhere, in memory `to`; what lies there is
/// itself. Reads of state are copied at rest and viewed again.
SmallVector<Value> moveAll(OpBuilder &builder, Location loc,
                           ArrayRef<Value> values, Memory to);

/// Sets the insertion point behind the last op that makes one of `values`.
void setBehind(OpBuilder &builder, Block *body, ArrayRef<Value> values);

/// Lets the views of state, and reads, among the producers of `value` stand
/// before the insertion point: they are the same from the beginning on.
void placeViews(OpBuilder &builder, Value value);

/// Moves the users of `op` that stand before it behind it.
void moveUsersBehind(Operation *op);

/// The read behind a view of state at rest; null where it is something else.
ReadOp getReadBehind(Value value);

/// Begins a zero.on_host at the insertion point whose body takes `operands`,
/// which `mapping` then holds.
OnHostOp createOnHost(OpBuilder &builder, Location loc,
                      ArrayRef<Value> originals, ArrayRef<Value> operands,
                      TypeRange results, IRMapping &mapping);

/// The memory a symbol lives in.
Memory getSymbolMemory(Operation *symbol);

/// Erases, from its end on, what of `ops` nothing uses any more, and the views,
/// reads and constants that only it used.
void eraseDead(Block &body, llvm::DenseSet<Operation *> ops);

} // namespace mlir::zero

#endif // ZERO_LIB_TRANSFORMS_OFFLOADSTEP_H
