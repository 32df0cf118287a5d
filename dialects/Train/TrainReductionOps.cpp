//===- TrainReductionOps.cpp - Derivatives of products, log-sum-exp -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derivatives of the reductions of TrainOpsReduction.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/VjpBuilder.h"

using namespace mlir;
using namespace mlir::train;

using Dims = SmallVector<int64_t>;

#define VJP(OP)                                                                \
  LogicalResult OP::buildVjp(OpBuilder &builder, ValueRange resultGrads,       \
                             Grads &operandGrads)

/// `value` of the reduced shape with 1 for the reduced dimensions of `input`.
static Value keepDims(VjpBuilder b, Value value, Value input,
                      ArrayRef<int64_t> axes) {
  Dims kept(b.shapeOf(input));
  for (int64_t axis : axes)
    kept[axis] = 1;
  return b.reshape(value, kept);
}

/// The product of the other elements is y / x only where no element is 0. So
/// zeros are counted and left out: with one, only its own place has a
/// gradient, with more none has.
VJP(ReduceProdOp) {
  VjpBuilder b(builder, *this);
  Value x = getInput(), dy = keepDims(b, resultGrads[0], x, getAxes());
  Value zero = b.scalar(x, 0.0), one = b.scalar(x, 1.0);
  Value isZero = b.make<EqualOp>(x, zero);
  Value zeros = b.sum(b.castLike(isZero, x), getAxes(), /*keepDims=*/true);
  Value others = b.where(isZero, one, x);
  Value product = b.make<ReduceProdOp>(others, getAxes(), /*keepdims=*/true);
  Value slope = b.div(product, others);
  Value left = b.sub(zeros, b.castLike(isZero, x));
  operandGrads.push_back(
      b.where(b.make<EqualOp>(left, zero), b.mul(dy, slope), zero));
  return success();
}

VJP(ReduceLogSumExpOp) {
  VjpBuilder b(builder, *this);
  Value x = getInput();
  Value dy = keepDims(b, resultGrads[0], x, getAxes());
  Value y = keepDims(b, getResult(), x, getAxes());
  operandGrads.push_back(b.mul(dy, b.make<ExpOp>(b.sub(x, y))));
  return success();
}
