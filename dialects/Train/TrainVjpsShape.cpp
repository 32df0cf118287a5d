//===- TrainVjpsShape.cpp - Derivatives of shapes and reductions ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derivatives of operations that rearrange, select or reduce elements.
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
// Shape operations
//===----------------------------------------------------------------------===//

VJP(ReshapeOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(b.reshape(resultGrads[0], b.shapeOf(getInput())));
  return success();
}

VJP(BroadcastOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(b.unbroadcast(resultGrads[0], getInput()));
  return success();
}

VJP(TransposeOp) {
  VjpBuilder b(builder, *this);
  Dims inverse(getPermutation().size());
  for (auto [i, dim] : llvm::enumerate(getPermutation()))
    inverse[dim] = i;
  operandGrads.push_back(b.make<TransposeOp>(resultGrads[0], inverse));
  return success();
}

VJP(SliceOp) {
  VjpBuilder b(builder, *this);
  Dims high, interior;
  for (auto [size, taken, start, stride] :
       llvm::zip_equal(b.shapeOf(getInput()), b.shapeOf(getResult()),
                       getStarts(), getStrides())) {
    int64_t span = taken == 0 ? 0 : (taken - 1) * stride + 1;
    high.push_back(size - start - span);
    interior.push_back(stride - 1);
  }
  operandGrads.push_back(
      b.make<PadOp>(resultGrads[0], getStarts(), high, interior));
  return success();
}

VJP(PadOp) {
  VjpBuilder b(builder, *this);
  Dims limits, strides;
  for (auto [size, low, interior] :
       llvm::zip_equal(b.shapeOf(getInput()), getLow(), getInterior())) {
    int64_t span = size == 0 ? 0 : (size - 1) * (interior + 1) + 1;
    limits.push_back(low + span);
    strides.push_back(interior + 1);
  }
  operandGrads.push_back(
      b.make<SliceOp>(resultGrads[0], getLow(), limits, strides));
  return success();
}

VJP(ConcatOp) {
  VjpBuilder b(builder, *this);
  ArrayRef<int64_t> shape = b.shapeOf(getResult());
  Dims starts(shape.size(), 0), limits(shape), strides(shape.size(), 1);
  for (Value input : getInputs()) {
    limits[getAxis()] = starts[getAxis()] + b.shapeOf(input)[getAxis()];
    operandGrads.push_back(
        b.make<SliceOp>(resultGrads[0], starts, limits, strides));
    starts[getAxis()] = limits[getAxis()];
  }
  return success();
}

VJP(GatherOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(b.make<GatherGradOp>(resultGrads[0], getIndices(),
                                              getAxis(), b.shapeOf(getData())));
  operandGrads.push_back(Value());
  return success();
}

VJP(GatherGradOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(
      b.make<GatherOp>(resultGrads[0], getIndices(), getAxis()));
  operandGrads.push_back(Value());
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// `shape` with 1 for the reduced dimensions.
static Dims keptShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes) {
  Dims kept(shape);
  for (int64_t axis : axes)
    kept[axis] = 1;
  return kept;
}

VJP(ReduceSumOp) {
  VjpBuilder b(builder, *this);
  ArrayRef<int64_t> shape = b.shapeOf(getInput());
  Value kept = b.reshape(resultGrads[0], keptShape(shape, getAxes()));
  operandGrads.push_back(b.broadcast(kept, shape));
  return success();
}

VJP(ReduceMeanOp) {
  VjpBuilder b(builder, *this);
  ArrayRef<int64_t> shape = b.shapeOf(getInput());
  int64_t count = 1;
  for (int64_t axis : getAxes())
    count *= shape[axis];
  Value dy = resultGrads[0];
  Value kept =
      b.reshape(b.div(dy, b.scalar(dy, count)), keptShape(shape, getAxes()));
  operandGrads.push_back(b.broadcast(kept, shape));
  return success();
}

/// Equal extreme elements share the gradient evenly.
template <typename Op>
static LogicalResult buildReduceExtremumVjp(Op op, VjpBuilder b, Value dy,
                                            Grads &operandGrads) {
  Value input = op.getInput();
  Dims kept = keptShape(b.shapeOf(input), op.getAxes());
  Value extremum = b.reshape(op.getResult(), kept);
  Value winners = b.castLike(b.make<EqualOp>(input, extremum), dy);
  Value count = b.sum(winners, op.getAxes(), /*keepDims=*/true);
  operandGrads.push_back(b.mul(winners, b.div(b.reshape(dy, kept), count)));
  return success();
}

VJP(ReduceMaxOp) {
  return buildReduceExtremumVjp(*this, {builder, *this}, resultGrads[0],
                                operandGrads);
}

VJP(ReduceMinOp) {
  return buildReduceExtremumVjp(*this, {builder, *this}, resultGrads[0],
                                operandGrads);
}
