//===- KernelExpandMath.cpp - Math functions as polynomials ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces calls of math functions in f32 by arithmetic that LLVM vectorizes
// and that gives the same bits in the vector body and the tail of a loop.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELEXPANDMATH
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

namespace {
struct KernelExpandMath : zero::impl::KernelExpandMathBase<KernelExpandMath> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    auto approximated = [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.log", "math.tanh",
                                 "math.erf", "math.expm1", "math.log1p"},
                                name);
    };
    RewritePatternSet patterns(&getContext());
    // Not all that arith can expand: minimum and maximum are instructions.
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    // Powers of constant exponents are products and roots.
    populateMathAlgebraicSimplificationPatterns(patterns);
    populateMathF32ExpansionPatterns(patterns, approximated);
    populateMathPolynomialApproximationPatterns(patterns, approximated);
    if (failed(applyPatternsGreedily(func, std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
