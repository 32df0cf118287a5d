//===- ScheduleExhaustive.h - All schedules of a small step -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Searches all orders of starts and waits, and all sets of dropped gathers, of
// a step of at most 64 tasks. Shares no code with the scheduler.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_SCHEDULE_SCHEDULEEXHAUSTIVE_H
#define ZERO_TEST_UNIT_SCHEDULE_SCHEDULEEXHAUSTIVE_H

#include "zero/Cost/StepGraph.h"

namespace mlir::zero {

/// What the search found.
struct ExhaustiveResult {
  bool complete = true; ///< false: more than `maxStates` states
  bool found = false;
  Schedule schedule;
};

/// Looks for a schedule within `memoryBytes` that takes less than `seconds`.
/// Compute keeps the order of the graph unless `reorder`.
ExhaustiveResult searchFaster(const StepGraph &graph, int64_t memoryBytes,
                              double seconds, bool reorder, bool keepGathered,
                              int64_t maxStates);

} // namespace mlir::zero

#endif // ZERO_TEST_UNIT_SCHEDULE_SCHEDULEEXHAUSTIVE_H
