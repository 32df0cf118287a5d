//===- TrainCost.cpp - What operations have to do -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The zero dialect's `Cost` where it is no constant per element.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"

using namespace mlir;
using namespace mlir::train;
using zero::Work;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static int64_t product(ArrayRef<int64_t> sizes) {
  return ShapedType::getNumElements(sizes);
}

Work MatmulOp::getWork() {
  ArrayRef<int64_t> result = shapeOf(getResult()), lhs = shapeOf(getLhs());
  int64_t k = getTransposeA() ? lhs[lhs.size() - 2] : lhs.back();
  return zero::getProductWork(*this, product(result.drop_back(2)),
                              result[result.size() - 2], result.back(), k);
}

Work GemmOp::getWork() {
  ArrayRef<int64_t> result = shapeOf(getResult()), lhs = shapeOf(getA());
  return zero::getProductWork(*this, /*batch=*/1, result[0], result[1],
                              lhs[getTransposeA() ? 0 : 1]);
}

//===----------------------------------------------------------------------===//
// Convolutions, as products of unfolded inputs
//===----------------------------------------------------------------------===//

namespace {
/// Sizes that the convolution and its gradients share.
struct ConvSizes {
  ConvSizes(ArrayRef<int64_t> output, ArrayRef<int64_t> weight, int64_t group)
      : positions(output[0] * product(output.drop_front(2))),
        filters(weight[0] / group), window(product(weight.drop_front())) {}
  int64_t positions; ///< batch times output positions
  int64_t filters;   ///< of one group
  int64_t window;    ///< input elements that one output element sees
};
} // namespace

Work ConvOp::getWork() {
  ConvSizes sizes(shapeOf(getResult()), shapeOf(getWeight()), getGroup());
  return zero::getProductWork(*this, getGroup(), sizes.positions, sizes.filters,
                              sizes.window);
}

Work ConvGradInputOp::getWork() {
  ConvSizes sizes(shapeOf(getGrad()), shapeOf(getWeight()), getGroup());
  return zero::getProductWork(*this, getGroup(), sizes.positions, sizes.window,
                              sizes.filters);
}

Work ConvGradWeightOp::getWork() {
  ConvSizes sizes(shapeOf(getGrad()), getWeightShape(), getGroup());
  return zero::getProductWork(*this, getGroup(), sizes.filters, sizes.window,
                              sizes.positions);
}

//===----------------------------------------------------------------------===//
// Poolings
//===----------------------------------------------------------------------===//

/// One operation per element of each window; `output` has an element a window.
static Work getPoolWork(Operation *op, Value output, ArrayRef<int64_t> kernel) {
  Work work;
  work.flops = product(shapeOf(output)) * product(kernel);
  work.bytes = zero::getOperandAndResultBytes(op);
  return work;
}

Work MaxPoolOp::getWork() {
  return getPoolWork(*this, getResult(), getKernel());
}
Work MaxPoolIndicesOp::getWork() {
  return getPoolWork(*this, getResult(), getKernel());
}
Work MaxPoolGradOp::getWork() {
  return getPoolWork(*this, getGrad(), getKernel());
}
Work AvgPoolOp::getWork() {
  return getPoolWork(*this, getResult(), getKernel());
}
Work AvgPoolGradOp::getWork() {
  return getPoolWork(*this, getGrad(), getKernel());
}

//===----------------------------------------------------------------------===//
// Lookups and norms
//===----------------------------------------------------------------------===//

/// Only the rows that are looked up are read.
Work GatherOp::getWork() {
  Work work;
  work.bytes = zero::getTensorBytes(getIndices().getType()) +
               2 * zero::getTensorBytes(getType());
  return work;
}

/// Zeros everywhere, then each row read, added to and written.
Work GatherGradOp::getWork() {
  Work work;
  work.flops = product(shapeOf(getGrad()));
  work.bytes = zero::getOperandAndResultBytes(*this) +
               2 * zero::getTensorBytes(getGrad().getType());
  return work;
}

Work SumSquaresOp::getWork() {
  Work work;
  for (Value input : getInputs())
    work.flops += 2 * product(shapeOf(input));
  work.bytes = zero::getOperandAndResultBytes(*this);
  return work;
}
