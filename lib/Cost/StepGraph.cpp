//===- StepGraph.cpp - Schedules and what they do ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See StepGraph.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/StepGraph.h"

using namespace mlir::zero;

Schedule mlir::zero::serialSchedule(const StepGraph &graph) {
  Schedule schedule;
  for (int32_t task = 0, e = graph.tasks.size(); task != e; ++task) {
    if (graph.tasks[task].channel == 0) {
      schedule.steps.push_back({ScheduleStep::Run, task});
      continue;
    }
    schedule.steps.push_back({ScheduleStep::Start, task});
    schedule.steps.push_back({ScheduleStep::Wait, task});
  }
  return schedule;
}
