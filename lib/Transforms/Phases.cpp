//===- Phases.cpp - forward, backward, update -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of a step function, for passes that stand before the partition.
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

using namespace mlir;
using namespace mlir::zero;

FailureOr<SmallVector<StepPhases>> zero::findPhases(ModuleOp module,
                                                    SymbolTable &symbols) {
  FailureOr<SmallVector<StepInfo>> steps = analyzeSteps(module, symbols);
  if (failed(steps))
    return failure();
  SmallVector<StepPhases> result;
  for (StepInfo &info : *steps) {
    StepPhases &phases = result.emplace_back();
    phases.func = info.func;
    phases.forward = findForward(info);
    for (ParamUpdate &update : info.updates) {
      phases.updates.insert(update.ops.begin(), update.ops.end());
      if (update.gradient)
        phases.gradients.insert(update.gradient);
    }
    for (GradientSum &sum : info.sums) {
      phases.updates.insert(sum.add);
      phases.gradients.insert(sum.gradient);
    }
  }
  return result;
}
