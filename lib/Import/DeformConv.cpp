//===- DeformConv.cpp - Convolutions at moved places ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DeformConv reads its input at places that another input moves, between
// elements too. What it reads is gathered into one matrix per group, and the
// rest is a product.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"
#include "lib/Import/IndexMath.h"
#include "lib/Import/Window.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {
/// Sizes of a deformed convolution of [N, C, H, W].
struct Deform {
  explicit Deform(NodeContext &c) : c(c), f{c} {}

  NodeContext &c;
  Formula f;
  Window window;
  int64_t batch = 0, channels = 0, filters = 0, groups = 1, offsetGroups = 1;
  SmallVector<int64_t> sizes, outputs;

  int64_t kernelSize() const { return window.kernel[0] * window.kernel[1]; }
  /// [N, offset groups, kernel places, output height, output width].
  SmallVector<int64_t> placesShape() const {
    return {batch, offsetGroups, kernelSize(), outputs[0], outputs[1]};
  }
  LogicalResult read(Value input, Value weight, Value offset);
  Value places(Value offset, int64_t dim);
  Value corner(Value rows, ArrayRef<Value> low, ArrayRef<Value> rest,
               unsigned which);
  Value columns(Value input, Value offset);
};
} // namespace

LogicalResult Deform::read(Value input, Value weight, Value offset) {
  if (typeOf(input).getRank() != 4 || typeOf(weight).getRank() != 4 ||
      typeOf(offset).getRank() != 4)
    return c.fail("expects input, weight and offset of rank 4");
  Type element = typeOf(input).getElementType();
  if (!isa<FloatType>(element) || typeOf(weight).getElementType() != element ||
      typeOf(offset).getElementType() != element)
    return c.fail("expects input, weight and offset of one float type");
  auto read = readWindow(c, 2, shapeOf(weight).drop_front(2));
  if (failed(read))
    return failure();
  window = *read;
  groups = c.node.intAttr("group", 1);
  offsetGroups = c.node.intAttr("offset_group", 1);
  batch = shapeOf(input)[0];
  channels = shapeOf(input)[1];
  filters = shapeOf(weight)[0];
  sizes.assign(shapeOf(input).drop_front(2).begin(), shapeOf(input).end());
  outputs.assign(shapeOf(offset).drop_front(2).begin(), shapeOf(offset).end());
  if (c.node.failed() ||
      ArrayRef(window.kernel) != shapeOf(weight).drop_front(2))
    return c.fail("its kernel_shape is not the weight's");
  if (groups < 1 || offsetGroups < 1 || channels % groups || filters % groups ||
      channels % offsetGroups || shapeOf(weight)[1] != channels / groups)
    return c.fail("its channels do not divide into its groups");
  if (!checkEntries(c, "sizes of the input", sizes, 2, 1))
    return failure();
  SmallVector<int64_t> expected{batch, offsetGroups * kernelSize() * 2};
  for (size_t d = 0; d < 2; ++d)
    expected.push_back(
        (sizes[d] + window.pads[d] + window.pads[d + 2] - window.extent(d)) /
            window.strides[d] +
        1);
  if (shapeOf(offset) != ArrayRef(expected))
    return c.fail("its offset does not have the shape that input, window and "
                  "offset_group give");
  return success();
}

/// The coordinates in dimension `dim` that are read.
Value Deform::places(Value offset, int64_t dim) {
  SmallVector<int64_t> shape = placesShape();
  SmallVector<int64_t> split{batch, offsetGroups * kernelSize(), 2, outputs[0],
                             outputs[1]};
  Value moved =
      c.reshape(slicePiece(c, c.reshape(offset, split), 2, dim, 1), shape);
  if (!moved)
    return {};
  SmallVector<int64_t> gridShape{kernelSize(), 1, 1};
  gridShape[dim + 1] = outputs[dim];
  HostTensor grid(*dtypeFromType(typeOf(moved).getElementType()), gridShape);
  for (int64_t i = 0; i < grid.size(); ++i) {
    int64_t place = i / outputs[dim], output = i % outputs[dim];
    int64_t tap =
        dim == 0 ? place / window.kernel[1] : place % window.kernel[1];
    grid.setNumber(i, double(output * window.strides[dim] - window.pads[dim] +
                             tap * window.dilations[dim]));
  }
  return f.add(moved, c.constant(grid));
}

/// What the elements on one side of the places, above or below in each
/// dimension, add: their value times how close they are.
Value Deform::corner(Value rows, ArrayRef<Value> low, ArrayRef<Value> rest,
                     unsigned which) {
  IndexMath index{c};
  Value weight, valid;
  Indices row = index.counter(5, 0, batch, offsetGroups);
  row = index.add(row, index.counter(5, 1, offsetGroups));
  for (size_t d = 0; d < 2; ++d) {
    bool upper = which >> d & 1;
    Value place = upper ? f.add(low[d], 1) : low[d];
    if (!place)
      return {};
    Value share = upper ? rest[d] : f.sub(c.scalar(place, 1), rest[d]);
    weight = weight ? f.mul(weight, share) : share;
    Value last = c.scalar(place, double(sizes[d] - 1));
    Value clamped = c.emit<train::MinOp>(
        {c.emit<train::MaxOp>({place, c.scalar(place, 0)}), last});
    Value inside = c.emit<train::EqualOp>({place, clamped});
    valid = valid ? c.emit<train::AndOp>({valid, inside}) : inside;
    Indices own;
    own.value = castTo(c, clamped, c.b.getI64Type());
    if (!own)
      return {};
    row = index.add(index.mul(row, sizes[d]), own);
  }
  weight = f.where(valid, weight, c.scalar(weight, 0));
  Value read = gatherRows(c, rows, 4, row);
  SmallVector<int64_t> shape = placesShape();
  shape.push_back(1);
  return f.mul(read, c.reshape(weight, shape));
}

/// What each output reads: [N, C, kernel places, outputs].
Value Deform::columns(Value input, Value offset) {
  int64_t own = channels / offsetGroups;
  Value rows = c.transpose(
      c.reshape(input, {batch, offsetGroups, own, sizes[0], sizes[1]}),
      {0, 1, 3, 4, 2});
  SmallVector<Value> low, rest;
  for (int64_t d = 0; d < 2; ++d) {
    Value place = places(offset, d);
    low.push_back(c.emit<train::FloorOp>(place));
    rest.push_back(f.sub(place, low.back()));
  }
  Value sum;
  for (unsigned which = 0; which < 4; ++which) {
    Value part = corner(rows, low, rest, which);
    sum = sum ? f.add(sum, part) : part;
  }
  if (c.has(4)) {
    SmallVector<int64_t> shape = placesShape();
    shape.push_back(1);
    sum = f.mul(sum, c.reshape(c.value(4), shape));
  }
  return c.reshape(c.transpose(sum, {0, 1, 5, 2, 3, 4}),
                   {batch, groups, channels / groups * kernelSize(),
                    outputs[0] * outputs[1]});
}

static LogicalResult importDeformConv(NodeContext &c) {
  Value input = c.value(0), weight = c.value(1), offset = c.value(2);
  if (!input || !weight || !offset)
    return failure();
  Deform d(c);
  if (failed(d.read(input, weight, offset)))
    return failure();
  Value columns = d.columns(input, offset);
  if (!columns)
    return failure();
  Value matrix =
      c.reshape(weight, {d.groups, d.filters / d.groups, shapeOf(columns)[2]});
  Value result = c.reshape(c.emit<train::MatmulOp>({matrix, columns}),
                           {d.batch, d.filters, d.outputs[0], d.outputs[1]});
  if (c.has(3))
    result = d.f.add(result, d.f.perChannel(c.value(3), 4));
  return c.result(result);
}

void zero::onnx_import::addDeformConvHandlers(HandlerTable &table) {
  table["DeformConv"] = {importDeformConv, 3, 19};
}
