//===- InitAll.cpp - everything a tool registers --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one list of the project's dialects and passes.
//
//===----------------------------------------------------------------------===//

#include "zero/InitAll.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "zero/Autodiff/Passes.h"
#include "zero/Lowering/Passes.h"
#include "zero/Lowering/Plan.h"
#include "zero/Pipelines.h"

using namespace mlir;

void zero::registerAllDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, shard::ShardDialect,
                  train::TrainDialect, zero::ZeroDialect, plan::PlanDialect>();
}

void zero::registerAllPasses() {
  train::registerZeroAutodiffPasses();
  registerZeroTransformsPasses();
  registerZeroSchedulePasses();
  registerZeroLoweringPasses();
  registerZeroPipelines();
  registerPlanPipeline();
}
