//===- Poolings.cpp - Poolings --------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Poolings, and what is composed of them: norms of windows and normalization
// over neighbouring channels.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"
#include "lib/Import/InputBounds.h"
#include "lib/Import/Window.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

/// The window of a pooling of `input`.
static FailureOr<Window> readPool(NodeContext &c, Value input) {
  if (!input || typeOf(input).getRank() < 3) {
    if (input)
      (void)c.fail("expects an input of rank 3 or more");
    return failure();
  }
  if (!c.node.hasAttr("kernel_shape")) {
    (void)c.fail("has no kernel_shape");
    return failure();
  }
  return readPaddedWindow(c, shapeOf(input).drop_front(2), {});
}

static SmallVector<NamedAttribute> poolAttributes(NodeContext &c,
                                                  const Window &window) {
  SmallVector<NamedAttribute> attributes{
      c.list("kernel", window.kernel), c.list("strides", window.strides),
      c.list("pads", window.pads), c.list("dilations", window.dilations)};
  if (c.node.intAttr("ceil_mode", 0))
    attributes.push_back(c.flag("ceil_mode"));
  return attributes;
}

//===----------------------------------------------------------------------===//
// Largest element
//===----------------------------------------------------------------------===//

static LogicalResult importMaxPool(NodeContext &c) {
  Value input = c.value(0);
  auto window = readPool(c, input);
  if (failed(window))
    return failure();
  SmallVector<NamedAttribute> attributes = poolAttributes(c, *window);
  if (c.isUsed(1)) {
    SmallVector<NamedAttribute> indices = attributes;
    if (c.node.intAttr("storage_order", 0))
      indices.push_back(c.flag("column_major"));
    c.set(1, c.emit<train::MaxPoolIndicesOp>(input, indices));
  }
  return c.result(c.emit<train::MaxPoolOp>(input, attributes));
}

/// What MaxPool's windows cover of the tensor that it was applied to.
static SmallVector<int64_t> unpooledShape(NodeContext &c, Value input,
                                          const Window &window) {
  SmallVector<int64_t> shape(shapeOf(input).take_front(2));
  size_t rank = window.kernel.size();
  for (size_t d = 0; d < rank; ++d) {
    shape.push_back((shapeOf(input)[d + 2] - 1) * window.strides[d] -
                    window.pads[d] - window.pads[rank + d] + window.kernel[d]);
    if (shape.back() < 1) {
      (void)c.fail("its pads leave nothing of spatial dimension " + Twine(d));
      return {};
    }
  }
  return shape;
}

/// Puts elements back where MaxPool found them: a scatter by flat indices.
static LogicalResult importMaxUnpool(NodeContext &c) {
  Value input = c.value(0), indices = c.value(1);
  auto window = readPool(c, input);
  if (failed(window) || !indices)
    return failure();
  if (shapeOf(indices) != shapeOf(input))
    return c.fail("expects indices of the input's shape");
  SmallVector<int64_t> shape = unpooledShape(c, input, *window);
  auto elements = countElements(shape);
  if (shape.empty() || !elements)
    return shape.empty() ? failure() : c.fail("its result is too large");
  int64_t count = *countElements(shapeOf(input));
  boundInput(indices, 0, *elements - 1);
  Formula f{c};
  Value flat = c.emit<train::ScatterOp>(
      {f.filled(input, *elements, 0), c.reshape(indices, count),
       c.reshape(input, count)},
      {c.integer("axis", 0),
       c.b.getNamedAttr("reduction", c.b.getStringAttr("none"))});
  Value result = c.reshape(flat, shape);
  if (!c.has(2) || !result)
    return c.result(result);
  auto whole = c.ints(2, "output_shape");
  if (!whole)
    return failure();
  if (whole->size() != shape.size())
    return c.fail("expects an output_shape of the input's rank");
  SmallVector<int64_t> none(shape.size(), 0), high;
  for (auto [size, own] : llvm::zip_equal(*whole, shape)) {
    if (size < own)
      return c.fail("its output_shape is smaller than what its windows cover");
    high.push_back(size - own);
  }
  return c.result(
      c.emit<train::PadOp>(result, {c.list("low", none), c.list("high", high),
                                    c.list("interior", none)}));
}

//===----------------------------------------------------------------------===//
// Means and norms
//===----------------------------------------------------------------------===//

static LogicalResult importAveragePool(NodeContext &c) {
  Value input = c.value(0);
  auto window = readPool(c, input);
  if (failed(window))
    return failure();
  SmallVector<NamedAttribute> attributes = poolAttributes(c, *window);
  if (c.node.intAttr("count_include_pad", 0))
    attributes.push_back(c.flag("count_include_pad"));
  return c.result(c.emit<train::AvgPoolOp>(input, attributes));
}

/// The exponent of a norm, a float in the first version; 0 after an error.
static double readExponent(NodeContext &c) {
  double p = c.node.version() < 2 ? c.node.floatAttr("p", 2)
                                  : double(c.node.intAttr("p", 2));
  if (!c.node.failed() && p >= 1)
    return p;
  c.node.error() << "expects p of 1 or more";
  return 0;
}

static LogicalResult importLpPool(NodeContext &c) {
  Value input = c.value(0);
  auto window = readPool(c, input);
  double p = succeeded(window) ? readExponent(c) : 0;
  if (p == 0)
    return failure();
  SmallVector<NamedAttribute> attributes = poolAttributes(c, *window);
  attributes.push_back(c.integer("divisor", 1));
  Formula f{c};
  return c.result(
      f.root(c.emit<train::AvgPoolOp>(f.power(input, p), attributes), p));
}

/// All spatial dimensions of an input [N, C, spatial...]; none after an error.
static SmallVector<int64_t> spatialAxes(NodeContext &c, Value input) {
  if (!input)
    return {};
  if (typeOf(input).getRank() < 3)
    (void)c.fail("expects an input of rank 3 or more");
  SmallVector<int64_t> axes;
  for (int64_t d = 2; d < typeOf(input).getRank(); ++d)
    axes.push_back(d);
  return axes;
}

/// Global poolings are reductions over the spatial dimensions.
template <typename OpTy>
static LogicalResult importGlobalPool(NodeContext &c) {
  Value input = c.value(0);
  SmallVector<int64_t> axes = spatialAxes(c, input);
  if (axes.empty())
    return failure();
  return c.result(Formula{c}.reduce<OpTy>(input, axes, /*keepDims=*/true));
}

static LogicalResult importGlobalLpPool(NodeContext &c) {
  Value input = c.value(0);
  SmallVector<int64_t> axes = spatialAxes(c, input);
  double p = axes.empty() ? 0 : readExponent(c);
  if (p == 0)
    return failure();
  Formula f{c};
  return c.result(f.root(f.sum(f.power(input, p), axes, true), p));
}

/// x / (bias + alpha * mean of the squares of `size` neighbouring
/// channels)^beta: the mean is a pooling over the channels.
static LogicalResult importLrn(NodeContext &c) {
  Value input = c.value(0);
  SmallVector<int64_t> axes = spatialAxes(c, input);
  int64_t size = c.node.intAttr("size", 0);
  if (axes.empty() || c.node.failed())
    return failure();
  if (size < 1 || size > (int64_t(1) << 31))
    return c.fail("expects a positive size");
  ArrayRef<int64_t> shape = shapeOf(input);
  auto pixels = countElements(shape.drop_front(2));
  if (!pixels)
    return c.fail("its input is too large");
  Formula f{c};
  Value squares =
      c.reshape(f.mul(input, input), {shape[0], 1, shape[1], *pixels});
  Value mean = c.emit<train::AvgPoolOp>(
      squares, {c.list("kernel", {size, 1}), c.list("strides", {1, 1}),
                c.list("pads", {(size - 1) / 2, 0, size / 2, 0}),
                c.list("dilations", {1, 1}), c.integer("divisor", size)});
  Value base = f.add(f.mul(mean, c.node.floatAttr("alpha", 1e-4f)),
                     c.node.floatAttr("bias", 1));
  Value scale = f.pow(base, -c.node.floatAttr("beta", 0.75f));
  return c.result(f.mul(input, c.reshape(scale, shape)));
}

void zero::onnx_import::addPoolingHandlers(HandlerTable &table) {
  table["AveragePool"] = {importAveragePool, 1};
  table["GlobalAveragePool"] = {importGlobalPool<train::ReduceMeanOp>, 1};
  table["GlobalLpPool"] = {importGlobalLpPool, 1};
  table["GlobalMaxPool"] = {importGlobalPool<train::ReduceMaxOp>, 1};
  table["LRN"] = {importLrn, 1};
  table["LpPool"] = {importLpPool, 1};
  table["MaxPool"] = {importMaxPool, 1};
  table["MaxUnpool"] = {importMaxUnpool, 2};
}
