//===- Plugin.cpp - the MLIR plugin ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets a stock mlir-opt load the zero and train dialects and the ZeRO passes:
//   mlir-opt --load-dialect-plugin=libZeroPlugin.so
//            --load-pass-plugin=libZeroPlugin.so --pass-pipeline=...
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "zero/Pipelines.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

static constexpr const char *kName = "Zero";
static constexpr const char *kVersion = ZERO_VERSION;

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {
      MLIR_PLUGIN_API_VERSION, kName, kVersion,
      [](mlir::DialectRegistry *registry) {
        registry->insert<mlir::train::TrainDialect, mlir::zero::ZeroDialect>();
      }};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, kName, kVersion, [] {
            mlir::zero::registerZeroTransformsPasses();
            mlir::zero::registerZeroSchedulePasses();
            mlir::zero::registerZeroPipelines();
          }};
}
