//===- StepFunction.h - A step function as a graph --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a partitioned step function to the graph that the scheduler sees, and
// from a schedule back to the function.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_STEPFUNCTION_H
#define ZERO_SCHEDULE_STEPFUNCTION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "zero/Cost/CostModel.h"

namespace mlir::zero {

/// A step function of one block, and its graph.
///
/// Storage is what the plan will make of it: state at rest is resident, views
/// share, updates happen in place, and elementwise ops that only one kernel
/// uses are part of that kernel. Bytes are rounded up to 64.
struct StepFunction {
  FunctionOpInterface func;
  StepGraph graph;
  /// By task: its ops in order; the last one is its root. A collective is one.
  std::vector<SmallVector<Operation *, 1>> ops;
  /// By task, of collectives: its results in the order of the task's `writes`,
  /// which may have more entries.
  std::vector<SmallVector<Value, 2>> results;
  /// By buffer, for people.
  std::vector<std::string> bufferNames;
};

/// Joins each `_start` with its `zero.wait` into the form that is done when it
/// returns, where the wait stood.
void makeSynchronous(Block &body);

/// The graph of `func`, whose collectives are synchronous. Fails, with an error
/// that has been emitted, where a collective is over an unknown grid.
FailureOr<StepFunction> buildStepGraph(FunctionOpInterface func,
                                       SymbolTable &symbols,
                                       const CostModel &cost);

/// Rewrites the function to be `schedule`: compute in its order, collectives
/// begun by a `_start` and awaited by a `zero.wait` unless these would be
/// neighbours, members of a bucket in one op, values of dropped gathers taken
/// from the earlier ones, releases after the last uses. `step` is used up.
void applySchedule(StepFunction &step, const Schedule &schedule);

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_STEPFUNCTION_H
