//===- TrainVjpsTensor.cpp - Derivatives of products and norms ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derivatives of contractions, poolings, normalizations, softmax and the loss.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/VjpBuilder.h"

using namespace mlir;
using namespace mlir::train;

using Dims = SmallVector<int64_t>;

#define VJP(OP)                                                                \
  LogicalResult OP::buildVjp(OpBuilder &builder, ValueRange resultGrads,       \
                             Grads &operandGrads)

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

static Value product(VjpBuilder b, Value lhs, Value rhs, bool transposeA,
                     bool transposeB) {
  return b.make<MatmulOp>(lhs, rhs, transposeA, transposeB);
}

/// The gradients of `op(lhs) * op(rhs)`, before the reverse of batch
/// broadcasting: `dy * op(rhs)^T` and `op(lhs)^T * dy`, transposed where the
/// operand was.
static std::pair<Value, Value> productGrads(VjpBuilder b, Value dy, Value lhs,
                                            Value rhs, bool transposeA,
                                            bool transposeB) {
  Value lhsGrad = transposeA ? product(b, rhs, dy, transposeB, true)
                             : product(b, dy, rhs, false, !transposeB);
  Value rhsGrad = transposeB ? product(b, dy, lhs, true, transposeA)
                             : product(b, lhs, dy, !transposeA, false);
  return {lhsGrad, rhsGrad};
}

/// [d0, ..., rows, columns] as one matrix [d0 * ... * rows, columns].
static Value flattenBatch(VjpBuilder b, Value value) {
  ArrayRef<int64_t> shape = b.shapeOf(value);
  int64_t rows = 1;
  for (int64_t dim : shape.drop_back())
    rows *= dim;
  return b.reshape(value, {rows, shape.back()});
}

VJP(MatmulOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0], lhs = getLhs(), rhs = getRhs();
  // A batch times one matrix is one product of matrices: the gradient by the
  // matrix then needs no sum over the batch.
  bool flat = b.shapeOf(rhs).size() == 2 && !getTransposeA();
  if (flat) {
    dy = flattenBatch(b, dy);
    lhs = flattenBatch(b, lhs);
  }
  auto [lhsGrad, rhsGrad] =
      productGrads(b, dy, lhs, rhs, getTransposeA(), getTransposeB());
  operandGrads.push_back(flat ? b.reshape(lhsGrad, b.shapeOf(getLhs()))
                              : b.unbroadcast(lhsGrad, lhs));
  operandGrads.push_back(b.unbroadcast(rhsGrad, rhs));
  return success();
}

VJP(GemmOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0];
  auto [aGrad, bGrad] =
      productGrads(b, dy, getA(), getB(), getTransposeA(), getTransposeB());
  operandGrads.append({aGrad, bGrad, b.unbroadcast(dy, getC())});
  return success();
}

//===----------------------------------------------------------------------===//
// Convolutions and poolings
//===----------------------------------------------------------------------===//

/// All dimensions but the channels.
static Dims nonChannelAxes(int64_t rank) {
  Dims axes{0};
  llvm::append_range(axes, llvm::seq<int64_t>(2, rank));
  return axes;
}

VJP(ConvOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0], input = getInput(), weight = getWeight();
  operandGrads.push_back(b.make<ConvGradInputOp>(dy, weight, b.shapeOf(input),
                                                 getStrides(), getPads(),
                                                 getDilations(), getGroup()));
  operandGrads.push_back(b.make<ConvGradWeightOp>(dy, input, b.shapeOf(weight),
                                                  getStrides(), getPads(),
                                                  getDilations(), getGroup()));
  if (getBias())
    operandGrads.push_back(b.sum(dy, nonChannelAxes(getType().getRank())));
  return success();
}

// A convolution is linear in input and weight, and so are its gradients: the
// derivatives of all three are each other.

VJP(ConvGradInputOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0];
  operandGrads.push_back(b.make<ConvOp>(dy, getWeight(), /*bias=*/Value(),
                                        getStrides(), getPads(), getDilations(),
                                        getGroup()));
  operandGrads.push_back(b.make<ConvGradWeightOp>(
      getGrad(), dy, b.shapeOf(getWeight()), getStrides(), getPads(),
      getDilations(), getGroup()));
  return success();
}

VJP(ConvGradWeightOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0];
  operandGrads.push_back(b.make<ConvOp>(getInput(), dy, /*bias=*/Value(),
                                        getStrides(), getPads(), getDilations(),
                                        getGroup()));
  operandGrads.push_back(b.make<ConvGradInputOp>(
      getGrad(), dy, b.shapeOf(getInput()), getStrides(), getPads(),
      getDilations(), getGroup()));
  return success();
}

VJP(MaxPoolOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(b.make<MaxPoolGradOp>(
      resultGrads[0], getInput(), getKernel(), getStrides(), getPads(),
      getDilations(), getCeilMode()));
  return success();
}

VJP(AvgPoolOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(b.make<AvgPoolGradOp>(
      resultGrads[0], b.shapeOf(getInput()), getKernel(), getStrides(),
      getPads(), getDilations(), getCeilMode(), getCountIncludePad(),
      getDivisorAttr()));
  return success();
}

//===----------------------------------------------------------------------===//
// Normalizations
//===----------------------------------------------------------------------===//

VJP(LayerNormOp) {
  if (failed(requireOnlyFirstGrad(*this, resultGrads)))
    return failure();
  auto grads =
      LayerNormGradOp::create(builder, getLoc(), resultGrads[0], getInput(),
                              getScale(), getMean(), getRstd(), getAxis());
  llvm::append_range(operandGrads,
                     grads->getResults().take_front(getNumOperands()));
  return success();
}

VJP(RmsNormOp) {
  if (failed(requireOnlyFirstGrad(*this, resultGrads)))
    return failure();
  auto grads =
      RmsNormGradOp::create(builder, getLoc(), resultGrads[0], getInput(),
                            getScale(), getRstd(), getAxis());
  llvm::append_range(operandGrads, grads->getResults());
  return success();
}

VJP(NormalizeOp) {
  if (failed(requireOnlyFirstGrad(*this, resultGrads)))
    return failure();
  VjpBuilder b(builder, *this);
  operandGrads.push_back(b.make<NormalizeGradOp>(resultGrads[0], getResult(),
                                                 getRstd(), getAxis()));
  return success();
}

VJP(BatchNormOp) {
  if (failed(requireOnlyFirstGrad(*this, resultGrads)))
    return failure();
  auto grads =
      BatchNormGradOp::create(builder, getLoc(), resultGrads[0], getInput(),
                              getScale(), getSaveMean(), getSaveRstd());
  llvm::append_range(operandGrads, grads->getResults());
  operandGrads.append(2, Value());
  return success();
}

VJP(BatchNormInferenceOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0], input = getInput();
  Dims axes = nonChannelAxes(getType().getRank());
  // Per-channel vectors, shaped to broadcast against the input.
  Dims channels(getType().getRank(), 1);
  channels[1] = b.shapeOf(input)[1];
  auto perChannel = [&](Value vector) {
    return b.reshape(b.castLike(vector, input), channels);
  };
  auto sumLike = [&](Value grad, Value vector) {
    return b.castLike(b.sum(grad, axes), vector);
  };
  double epsilon = getEpsilon().convertToDouble();
  Value variance = perChannel(getVar());
  Value rstd = b.make<RsqrtOp>(b.add(variance, b.scalar(input, epsilon)));
  Value normalized = b.mul(b.sub(input, perChannel(getMean())), rstd);
  Value inputGrad = b.mul(dy, b.mul(perChannel(getScale()), rstd));
  Value varianceGrad = b.scale(b.mul(b.mul(inputGrad, normalized), rstd), -0.5);
  operandGrads.append({inputGrad, sumLike(b.mul(dy, normalized), getScale()),
                       sumLike(dy, getBias()),
                       sumLike(b.neg(inputGrad), getMean()),
                       sumLike(varianceGrad, getVar())});
  return success();
}

//===----------------------------------------------------------------------===//
// Softmax and loss
//===----------------------------------------------------------------------===//

VJP(SoftmaxOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(
      b.make<SoftmaxGradOp>(resultGrads[0], getResult(), getAxis()));
  return success();
}

VJP(LogSoftmaxOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(
      b.make<LogSoftmaxGradOp>(resultGrads[0], getResult(), getAxis()));
  return success();
}

VJP(CrossEntropyOp) {
  if (failed(requireOnlyFirstGrad(*this, resultGrads)))
    return failure();
  VjpBuilder b(builder, *this);
  operandGrads.push_back(b.make<CrossEntropyGradOp>(
      resultGrads[0], getLogits(), getLabels(), getLse(), getWeights(),
      getAxis(), getIgnoreIndex(), getReduction()));
  operandGrads.append(getNumOperands() - 1, Value());
  return success();
}
