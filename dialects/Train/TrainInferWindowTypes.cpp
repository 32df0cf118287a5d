//===- TrainInferWindowTypes.cpp - Windowed operations --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Result types of convolutions, poolings and their gradients.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/InferError.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::train;

using Dims = SmallVector<int64_t>;
using Types = SmallVectorImpl<Type>;
using MaybeLoc = std::optional<Location>;

#define INFER(OP)                                                              \
  LogicalResult OP::inferReturnTypes(MLIRContext *, MaybeLoc loc,              \
                                     Adaptor adaptor, Types &types)

namespace {
/// The attributes all windowed operations share.
struct Window {
  template <typename Adaptor>
  Window(ArrayRef<int64_t> kernel, Adaptor adaptor)
      : kernel(kernel), strides(adaptor.getStrides()), pads(adaptor.getPads()),
        dilations(adaptor.getDilations()) {}

  LogicalResult verify(InferError error, size_t spatialRank) const;

  /// Appends the sizes of the result for an input of these spatial sizes; with
  /// `ceilMode` their number is rounded up.
  LogicalResult infer(InferError error, ArrayRef<int64_t> input, bool ceilMode,
                      Dims &result) const;

  ArrayRef<int64_t> kernel, strides, pads, dilations;
};
} // namespace

LogicalResult Window::verify(InferError error, size_t spatialRank) const {
  auto check = [&](StringRef what, ArrayRef<int64_t> list, size_t length,
                   int64_t least) -> LogicalResult {
    if (list.size() != length)
      return error(what, " has ", list.size(), " numbers, expected ", length,
                   " for ", spatialRank, " spatial dimensions");
    for (int64_t number : list)
      if (number < least)
        return error(what, " ", formatShape(list), " has a number less than ",
                     least);
    return success();
  };
  return success(succeeded(check("kernel", kernel, spatialRank, 1)) &&
                 succeeded(check("strides", strides, spatialRank, 1)) &&
                 succeeded(check("dilations", dilations, spatialRank, 1)) &&
                 succeeded(check("pads", pads, 2 * spatialRank, 0)));
}

LogicalResult Window::infer(InferError error, ArrayRef<int64_t> input,
                            bool ceilMode, Dims &result) const {
  if (failed(verify(error, input.size())))
    return failure();
  for (size_t i = 0, rank = input.size(); i < rank; ++i) {
    int64_t window, padded;
    if (llvm::MulOverflow(dilations[i], kernel[i] - 1, window) ||
        llvm::AddOverflow<int64_t>(window, 1, window) ||
        llvm::AddOverflow(input[i], pads[i], padded) ||
        llvm::AddOverflow(padded, pads[rank + i], padded))
      return failTooLarge(error);
    if (padded < window)
      return error("window of size ", window, " exceeds spatial dimension ", i,
                   " of padded size ", padded);
    int64_t count = (padded - window) / strides[i] + 1;
    // A window may reach beyond the padding, but not start there.
    if (ceilMode && (padded - window) % strides[i] &&
        count * strides[i] < input[i] + pads[i])
      ++count;
    result.push_back(count);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// The shape of the convolution of these shapes.
template <typename Adaptor>
static LogicalResult inferConv(InferError error, ArrayRef<int64_t> input,
                               ArrayRef<int64_t> weight, Adaptor adaptor,
                               Dims &result) {
  if (input.size() < 3 || input.size() != weight.size())
    return error("input of shape ", formatShape(input), " and weight of shape ",
                 formatShape(weight),
                 " do not have the same rank of 3 or more");
  int64_t group = adaptor.getGroup();
  if (group < 1 || weight[0] % group != 0)
    return error("cannot split ", weight[0], " output channels into ", group,
                 " groups");
  int64_t channels;
  if (llvm::MulOverflow(weight[1], group, channels))
    return failTooLarge(error);
  if (input[1] != channels)
    return error("input has ", input[1], " channels, weight takes ", channels);
  result.append({input[0], weight[0]});
  return Window(weight.drop_front(2), adaptor)
      .infer(error, input.drop_front(2), /*ceilMode=*/false, result);
}

INFER(ConvOp) {
  InferError error(loc, getOperationName());
  Value weight = adaptor.getWeight(), bias = adaptor.getBias();
  Dims shape;
  if (failed(inferConv(error, shapeOf(adaptor.getInput()), shapeOf(weight),
                       adaptor, shape)) ||
      (bias && failed(requireShape(error, "bias", bias, shape[1]))))
    return failure();
  types.push_back(RankedTensorType::get(
      shape, getTensorType(adaptor.getInput()).getElementType()));
  return success();
}

INFER(ConvGradInputOp) {
  InferError error(loc, getOperationName());
  Dims shape;
  if (failed(inferConv(error, adaptor.getInputShape(),
                       shapeOf(adaptor.getWeight()), adaptor, shape)) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), shape)))
    return failure();
  types.push_back(
      RankedTensorType::get(adaptor.getInputShape(),
                            getTensorType(adaptor.getGrad()).getElementType()));
  return success();
}

INFER(ConvGradWeightOp) {
  InferError error(loc, getOperationName());
  Dims shape;
  if (failed(inferConv(error, shapeOf(adaptor.getInput()),
                       adaptor.getWeightShape(), adaptor, shape)) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), shape)))
    return failure();
  types.push_back(
      RankedTensorType::get(adaptor.getWeightShape(),
                            getTensorType(adaptor.getGrad()).getElementType()));
  return success();
}

//===----------------------------------------------------------------------===//
// Poolings
//===----------------------------------------------------------------------===//

template <typename Adaptor>
static LogicalResult inferPool(InferError error, ArrayRef<int64_t> input,
                               Adaptor adaptor, Dims &result) {
  if (input.size() < 3)
    return error("input of shape ", formatShape(input),
                 " has no spatial dimension");
  result.append({input[0], input[1]});
  return Window(adaptor.getKernel(), adaptor)
      .infer(error, input.drop_front(2), adaptor.getCeilMode(), result);
}

template <typename Adaptor>
static LogicalResult inferPoolOf(InferError error, Value input, Adaptor adaptor,
                                 Types &types) {
  Dims shape;
  if (failed(inferPool(error, shapeOf(input), adaptor, shape)))
    return failure();
  types.push_back(
      RankedTensorType::get(shape, getTensorType(input).getElementType()));
  return success();
}

INFER(MaxPoolOp) {
  return inferPoolOf({loc, getOperationName()}, adaptor.getInput(), adaptor,
                     types);
}

INFER(AvgPoolOp) {
  return inferPoolOf({loc, getOperationName()}, adaptor.getInput(), adaptor,
                     types);
}

LogicalResult MaxPoolIndicesOp::inferReturnTypes(MLIRContext *context,
                                                 MaybeLoc loc, Adaptor adaptor,
                                                 Types &types) {
  Dims shape;
  if (failed(inferPool({loc, getOperationName()}, shapeOf(adaptor.getInput()),
                       adaptor, shape)))
    return failure();
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

INFER(MaxPoolGradOp) {
  InferError error(loc, getOperationName());
  Dims shape;
  if (failed(inferPool(error, shapeOf(adaptor.getInput()), adaptor, shape)) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), shape)))
    return failure();
  types.push_back(adaptor.getInput().getType());
  return success();
}

INFER(AvgPoolGradOp) {
  InferError error(loc, getOperationName());
  Dims shape;
  if (failed(inferPool(error, adaptor.getInputShape(), adaptor, shape)) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), shape)))
    return failure();
  types.push_back(
      RankedTensorType::get(adaptor.getInputShape(),
                            getTensorType(adaptor.getGrad()).getElementType()));
  return success();
}

template <typename Op>
static LogicalResult verifyDivisor(Op op) {
  if (!op.getDivisor())
    return success();
  if (*op.getDivisor() < 1)
    return op.emitOpError()
           << "expects a positive divisor, got " << *op.getDivisor();
  if (op.getCountIncludePad())
    return op.emitOpError("has both a divisor and count_include_pad");
  return success();
}

LogicalResult AvgPoolOp::verify() { return verifyDivisor(*this); }
LogicalResult AvgPoolGradOp::verify() { return verifyDivisor(*this); }
