//===- Scheduler.h - Placing collectives under a memory budget --*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses, together, the order of compute among equals, which collectives share
// a bucket, where each starts and is awaited, and which gathered parameters
// stay for the backward pass: the fastest schedule whose memory stays within a
// budget. Needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_SCHEDULER_H
#define ZERO_SCHEDULE_SCHEDULER_H

#include "zero/Cost/StepGraph.h"

namespace mlir::zero {

/// What the scheduler may decide, and under which limits.
struct SchedulerOptions {
  /// Most bytes alive at one time; negative for no limit.
  int64_t memoryBytes = -1;
  /// The same of host memory.
  int64_t hostMemoryBytes = -1;
  bool prefetch = true;     ///< start collectives before they are needed
  bool keepGathered = true; ///< drop repeated gathers
  bool reorder = true;      ///< move compute among equals
  bool bucket = true;       ///< issue collectives together
  /// Largest bucket in bytes written (gathers) or read (reductions). Buckets
  /// are only as large as pays.
  int64_t bucketBytes = int64_t(16) << 30;
};

/// One of the best trades of time against memory.
struct ParetoPoint {
  double seconds;
  int64_t peakBytes;
  int64_t hostPeakBytes;
};

/// A schedule and what is known about it.
struct ScheduleResult {
  bool feasible = false; ///< within both budgets
  Schedule schedule;     ///< the least memory found, if not feasible
  SimulatedStep simulated;
  /// No schedule is faster: the longest channel, or compute plus what cannot
  /// overlap.
  double lowerBoundSeconds = 0;
  /// By how much the least memory found exceeds the budgets.
  int64_t missingBytes = 0, missingHostBytes = 0;
  /// Buffers alive at the peak, largest first, and at the peak of host memory.
  std::vector<int32_t> peakBuffers, hostPeakBuffers;
  /// Trades found, fastest first. It depends on the graph and the decisions
  /// allowed, not on the budgets: so time never rises as one grows.
  std::vector<ParetoPoint> front;
};

/// The fastest schedule found within the budgets; of equally fast ones, the one
/// with the lowest peak. Without a budget of the device's memory, a step that
/// brings back what it took to the host (activations, gradients) gets the
/// fastest of those with little memory, since it moves them for that.
/// Deterministic.
ScheduleResult scheduleStep(const StepGraph &graph,
                            const SchedulerOptions &options);

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_SCHEDULER_H
