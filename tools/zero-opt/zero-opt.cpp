//===- zero-opt.cpp - the optimizer driver -*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An ordinary MLIR opt tool over all dialects and passes of the project and of
// MLIR itself, with short forms for the ZeRO pipeline.
//
//===----------------------------------------------------------------------===//

#include "zero/InitAll.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  mlir::zero::registerAllDialects(registry);
  mlir::zero::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "zero-opt: ZeRO partitioning of training steps\n", registry));
}
