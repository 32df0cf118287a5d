//===- KernelMapToGpu.cpp - Kernels as launches on a GPU ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuMapper.h"
#include "GpuMapping.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELMAPTOGPU
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

namespace {
struct KernelMapToGpu : zero::impl::KernelMapToGpuBase<KernelMapToGpu> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr) || !func.getBody().hasOneBlock())
      return;
    if (failed(GpuMapper(func).run()))
      signalPassFailure();
  }
};
} // namespace

void zero::addGpuMapping(OpPassManager &module) {
  OpPassManager &func = module.nest<func::FuncOp>();
  func.addPass(createKernelMapToGpu());
  func.addPass(createCanonicalizerPass());
  func.addPass(createCSEPass());
}
