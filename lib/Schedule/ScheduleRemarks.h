//===- ScheduleRemarks.h - Why a schedule is as it is -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the scheduling passes tell people: remarks, and the error when nothing
// fits.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_SCHEDULEREMARKS_H
#define ZERO_LIB_SCHEDULE_SCHEDULEREMARKS_H

#include "zero/Schedule/Scheduler.h"
#include "zero/Schedule/StepFunction.h"

namespace mlir::zero {

/// "12.5 MiB", "512 bytes".
std::string describeBytes(int64_t bytes);

/// "1.25 ms".
std::string describeSeconds(double seconds);

/// Emits, under the name of the pass as category: the times and the peak of the
/// step, which gathers were dropped, and why a collective is exposed. To be
/// called before the schedule is applied.
void emitRemarks(const StepFunction &step, const ScheduleResult &result,
                 const SchedulerOptions &options, StringRef pass);

/// The error for a step that fits no schedule within the budgets of `options`.
/// `stage` is its ZeRO stage.
LogicalResult emitDoesNotFit(const StepFunction &step,
                             const ScheduleResult &result,
                             const SchedulerOptions &options, int64_t stage);

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_SCHEDULEREMARKS_H
