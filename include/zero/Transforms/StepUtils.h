//===- StepUtils.h - Questions about ops of a step --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What partitioning and scheduling both ask about the ops of a step function.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TRANSFORMS_STEPUTILS_H
#define ZERO_TRANSFORMS_STEPUTILS_H

#include "dialects/Zero/Zero.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::zero {

/// Where `value` lies: a shard at rest where its type says; the result of a
/// transfer where that moves it to; what `zero.on_host` computes, and all
/// inside of it, in host memory; a view, or the chunk that `zero.local` names,
/// where its source is; what a wait yields where its start puts it. All else:
/// on the device.
Memory getMemory(Value value);

/// What `value` is a copy of, through transfers, awaited or not, and into and
/// out of the bodies of `zero.on_host`: the value of the op that computed it.
Value lookThrough(Value value);

/// Whether `op` begins something that a `zero.wait` ends: a collective, a
/// transfer or compute of the host.
bool isStart(Operation *op);

/// Values that `op` or ops nested in it use from outside of it.
SetVector<Value> getUsedValues(Operation *op);

/// The op of `block` that is, or contains, `op`; null where there is none.
Operation *getAncestorIn(Block *block, Operation *op);

/// Whether `op` gathers parameters at rest, or chunks of them that a
/// `zero.reshard` has kept, as opposed to updated chunks.
bool gathersState(Operation *op);

/// What a gathered or resharded value was gathered from at first.
Value getStateBehind(Value value);

/// Bytes of the whole tensors that a collective moves.
int64_t getWholeBytes(Operation *collective);

/// The unit of the parameter behind a collective: the one read, or the one
/// that is assigned what becomes of the result. Empty where there is none.
StringRef getUnitOf(Operation *collective, SymbolTable &symbols);

/// Attribute of an op of the backward pass that computes a value of the forward
/// pass again. It keeps the two apart where equal ops are merged. Of a module:
/// how many ops do, and the seconds they are expected to take.
constexpr StringLiteral kRecomputedAttr = "zero.recomputed";
constexpr StringLiteral kRecomputedSecondsAttr = "zero.recomputed_seconds";

/// The parts of a function that reads or assigns state.
struct StepPhases {
  FunctionOpInterface func;
  llvm::DenseSet<Operation *> forward;
  llvm::DenseSet<Value> gradients;     ///< of parameters
  llvm::DenseSet<Operation *> updates; ///< from state and gradients to state
};

/// The step functions of a module that is not partitioned. Fails with a message
/// where an update cannot be understood.
FailureOr<SmallVector<StepPhases>> findPhases(ModuleOp module,
                                              SymbolTable &symbols);

/// Whether `value` is a constant of zeros.
bool isZeroSplat(Value value);

/// The accumulator whose value, or this rank's chunk of it, `value` is; null
/// where it is something else.
StateOp getReadAccumulator(Value value, SymbolTable &symbols);

/// The accumulator that `op` adds something to; null where it is another op.
StateOp getSummedAccumulator(Operation *op, SymbolTable &symbols);

/// Adds `zero.release` after the last use of each parameter that is gathered in
/// `body` and not released yet. Returns the number of values released.
int64_t releaseGathered(Block &body);

} // namespace mlir::zero

#endif // ZERO_TRANSFORMS_STEPUTILS_H
