//===- PlanOutput.h - Plans as a table and as JSON --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_PLAN_PLANOUTPUT_H
#define ZERO_TOOLS_ZERO_PLAN_PLANOUTPUT_H

#include "zero/Planner/Search.h"

#include "llvm/Support/JSON.h"

namespace mlir::zero {

/// A plan and what is said about it.
struct PlanRow {
  StepConfig config;
  StepEstimate estimate;
  bool fits = false;
  std::vector<std::string> notes; ///< limits, or what would make it fit
};

/// All that one question is answered with.
struct PlanAnswer {
  const StepPlanner *planner = nullptr;
  int64_t memoryBytes = 0;
  std::vector<PlanRow> rows;
  int64_t best = -1; ///< row; -1 if none fits
  std::vector<std::string> notes;
};

/// Three conventions of the same number: model flops of a rank over its peak.
struct Utilization {
  double palm = 0, torchtitan = 0, megatron = 0;
};
Utilization utilization(const StepPlanner &planner, const StepConfig &config,
                        const TimeParts &time);

void printTable(const PlanAnswer &answer, llvm::raw_ostream &os);
void printJson(const PlanAnswer &answer, llvm::raw_ostream &os);

} // namespace mlir::zero

#endif // ZERO_TOOLS_ZERO_PLAN_PLANOUTPUT_H
