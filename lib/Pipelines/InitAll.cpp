//===- InitAll.cpp - everything a tool registers -*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one list of the project's dialects and passes.
//
//===----------------------------------------------------------------------===//

#include "zero/InitAll.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Zero/Zero.h"
#ifdef ZERO_HAVE_TRAIN
#include "dialects/Train/Train.h"
#endif
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"

using namespace mlir;

void zero::registerAllDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, shard::ShardDialect,
                  zero::ZeroDialect, plan::PlanDialect>();
#ifdef ZERO_HAVE_TRAIN
  registry.insert<train::TrainDialect>();
#endif
}

void zero::registerAllPasses() {}
