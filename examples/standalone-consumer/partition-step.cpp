//===- partition-step.cpp - The ZeRO pipeline inside another program ------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a training step, partitions it at ZeRO stage 3 over four ranks and
// prints it. Built against an installed zero-opt: find_package(Zero).
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "zero/InitAll.h"
#include "zero/Pipelines.h"

int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: partition-step STEP.mlir\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  mlir::zero::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  if (!module)
    return 1;

  mlir::zero::ZeroOptions options;
  options.stage = 3;
  options.ranks = 4;
  mlir::PassManager pm(&context);
  mlir::zero::buildZeroPipeline(pm, options);
  if (failed(pm.run(*module)))
    return 1;
  module->print(llvm::outs());
  return 0;
}
