//===- TrainToLinalg.cpp - The train dialect to linalg in kernels ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass; the lowerings are in TrainToLinalg*.cpp, a file per family.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::zero {
#define GEN_PASS_DEF_TRAINTOLINALG
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

namespace {
struct TrainToLinalg : zero::impl::TrainToLinalgBase<TrainToLinalg> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    makeSignless(func);
    lowerScans(func);
    RewritePatternSet patterns(&getContext());
    populateTrainCastToLinalg(patterns);
    populateTrainContractionToLinalg(patterns);
    populateTrainElementwiseToLinalg(patterns);
    populateTrainIndexToLinalg(patterns);
    populateTrainLossToLinalg(patterns);
    populateTrainNormToLinalg(patterns);
    populateTrainOptimizerToLinalg(patterns);
    populateTrainPoolToLinalg(patterns);
    populateTrainRandomToLinalg(patterns);
    populateTrainReductionToLinalg(patterns);
    populateTrainScatterToLinalg(patterns);
    populateTrainShapeToLinalg(patterns);
    populateTrainSoftmaxToLinalg(patterns);
    populateTrainStepToLinalg(patterns);
    walkAndApplyPatterns(func, std::move(patterns));

    WalkResult rest = func.walk([](Operation *op) {
      if (!isa_and_nonnull<train::TrainDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("cannot be part of a kernel: it is a library call");
      return WalkResult::interrupt();
    });
    if (rest.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
