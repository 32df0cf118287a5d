//===- Reshard.h - Chunks kept between forward and backward -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The third way with a gathered parameter between forward and backward, beside
// keeping it whole and gathering it again from all ranks: keep the chunk that
// the last axis of the grid cuts, and gather over that axis alone (ZeRO++'s
// hpZ, Wang et al. 2023; FSDP2's reshard_after_forward=N).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_RESHARD_H
#define ZERO_LIB_SCHEDULE_RESHARD_H

#include "zero/Schedule/Scheduler.h"
#include "zero/Schedule/StepFunction.h"

namespace mlir::zero {

/// A step, with chunks kept where that pays, and its schedule.
struct ReshardedStep {
  StepFunction step;
  ScheduleResult result;
};

/// Schedules `func`, whose collectives are synchronous, as it is and with
/// chunks kept for a quarter, a half, three quarters and all of the gathers
/// that may be: those that save the most time for the memory they hold first.
/// The function is left as the best of these, so it is never worse than
/// without. Which are tried does not depend on the budget: time never rises
/// with it.
FailureOr<ReshardedStep> scheduleResharded(FunctionOpInterface func,
                                           SymbolTable &symbols,
                                           const CostModel &cost,
                                           const SchedulerOptions &options);

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_RESHARD_H
