//===- PlanPipeline.cpp - From a partitioned step to a plan ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of the passes that end in an allocated program.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/Plan.h"
#include "zero/Autodiff/Passes.h"
#include "zero/Lowering/Passes.h"
#include "zero/Lowering/Plan.h"
#include "zero/Transforms/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::zero;

void mlir::zero::buildPlanPipeline(OpPassManager &pm, bool fuseEpilogues) {
  // A kernel of the host runs a loop, one of a GPU does not.
  pm.addNestedPass<func::FuncOp>(
      train::createTrainUnrollScansPass({/*keepKernels=*/!fuseEpilogues}));
  // Sees which inputs are indices, so it runs before kernels hide their uses.
  pm.addNestedPass<func::FuncOp>(createPlanBoundInputs());
  pm.addPass(createPlanOutlineKernels());
  pm.addPass(createPlanLower());
  if (fuseEpilogues)
    pm.addPass(createPlanFuseEpilogues());
  // Every command asked for its own view of a buffer; equal ones are merged.
  pm.addNestedPass<plan::ProgramOp>(createCSEPass());
  pm.addNestedPass<plan::ProgramOp>(createPlanAllocate());
  pm.addPass(createZeroVerifyPass());
}

void mlir::zero::registerPlanPipeline() {
  PassPipelineRegistration<>("plan-pipeline",
                             "from a partitioned step to an allocated plan",
                             [](OpPassManager &pm) { buildPlanPipeline(pm); });
}
