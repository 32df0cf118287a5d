//===- ShapeOps.cpp - Operators that move elements ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes, axes and indices that ONNX passes as tensors must be known at import
// and become attributes.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/IndexMath.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

static LogicalResult reshaped(NodeContext &c, Value value,
                              FailureOr<SmallVector<int64_t>> shape) {
  return failed(shape) ? failure() : c.result(c.reshape(value, *shape));
}

static LogicalResult importReshape(NodeContext &c) {
  Value value = c.value(0);
  auto target = c.ints(1, "shape");
  if (!value || !target)
    return failure();
  return reshaped(c, value, reshapeTarget(c.node, shapeOf(value), *target));
}

static LogicalResult importFlatten(NodeContext &c) {
  Value value = c.value(0);
  return value ? reshaped(c, value, flattenedShape(c.node, shapeOf(value)))
               : failure();
}

static LogicalResult importSqueeze(NodeContext &c) {
  Value value = c.value(0);
  if (!value || (c.has(1) && !c.ints(1, "axes")))
    return failure();
  return reshaped(
      c, value,
      squeezedShape(c.node, shapeOf(value), c.has(1) ? c.host(1) : nullptr));
}

static LogicalResult importUnsqueeze(NodeContext &c) {
  Value value = c.value(0);
  if (!value || !c.ints(1, "axes"))
    return failure();
  return reshaped(c, value,
                  unsqueezedShape(c.node, shapeOf(value), *c.host(1)));
}

static LogicalResult importExpand(NodeContext &c) {
  Value value = c.value(0);
  auto target = c.ints(1, "shape");
  if (!value || !target)
    return failure();
  auto shape = broadcastShapes(shapeOf(value), *target);
  if (!shape)
    return c.fail("its input cannot be expanded to the given shape");
  for (int64_t dim : *shape)
    if (dim < 0)
      return c.fail("has the negative dimension " + Twine(dim));
  if (!countElements(*shape))
    return c.fail("makes more elements than can be counted");
  return c.result(c.broadcast(value, *shape));
}

/// Tile: every dimension is preceded by one of size 1 that is repeated.
static LogicalResult importTile(NodeContext &c) {
  Value value = c.value(0);
  auto repeats = c.ints(1, "repeat counts");
  if (!value || !repeats)
    return failure();
  ArrayRef<int64_t> shape = shapeOf(value);
  if (repeats->size() != shape.size())
    return c.fail("needs one repeat count per dimension");
  SmallVector<int64_t> split, repeated, result;
  for (auto [dim, repeat] : llvm::zip(shape, *repeats)) {
    int64_t total;
    if (repeat < 0 || __builtin_mul_overflow(dim, repeat, &total))
      return c.fail("has the bad repeat count " + Twine(repeat));
    split.append({1, dim});
    repeated.append({repeat, dim});
    result.push_back(total);
  }
  if (!countElements(result))
    return c.fail("makes more elements than can be counted");
  return c.result(
      c.reshape(c.broadcast(c.reshape(value, split), repeated), result));
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

static LogicalResult importTranspose(NodeContext &c) {
  Value value = c.value(0);
  if (!value)
    return failure();
  auto perm = permutation(c.node, typeOf(value).getRank());
  return failed(perm) ? failure() : c.result(c.transpose(value, *perm));
}

/// Axes that are walked backwards are gathered, the others sliced at once.
static Value sliceValue(NodeContext &c, Value value,
                        ArrayRef<SliceRange> ranges) {
  SmallVector<int64_t> first, limits, strides;
  for (auto [axis, range] : llvm::enumerate(ranges)) {
    // A step matters only where a second element is read.
    int64_t step = range.count > 1 ? range.step : 1;
    if (step < 0) {
      SmallVector<int64_t> places;
      for (int64_t i = 0; i < range.count; ++i)
        places.push_back(range.start + i * step);
      value = takeAlong(c, value, axis, places);
      if (!value)
        return {};
    }
    int64_t size = shapeOf(value)[axis];
    bool isTaken = step < 0;
    int64_t start = isTaken || !range.count ? 0 : range.start;
    first.push_back(start);
    strides.push_back(isTaken ? 1 : step);
    limits.push_back(!range.count ? 0
                     : isTaken    ? size
                                  : start + (range.count - 1) * step + 1);
  }
  if (ArrayRef(limits) == shapeOf(value) &&
      llvm::all_of(first, [](int64_t v) { return v == 0; }) &&
      llvm::all_of(strides, [](int64_t v) { return v == 1; }))
    return value;
  return c.emit<train::SliceOp>(value, {c.list("starts", first),
                                        c.list("limits", limits),
                                        c.list("strides", strides)});
}

static LogicalResult importSlice(NodeContext &c) {
  Value value = c.value(0);
  auto starts = c.ints(1, "starts"), ends = c.ints(2, "ends");
  if (!value || !starts || !ends)
    return failure();
  auto axes = starts, steps = starts;
  for (size_t i = 0; i < starts->size(); ++i) {
    (*axes)[i] = i;
    (*steps)[i] = 1;
  }
  if ((c.has(3) && !(axes = c.ints(3, "axes"))) ||
      (c.has(4) && !(steps = c.ints(4, "steps"))))
    return failure();
  auto ranges =
      sliceRanges(c.node, shapeOf(value), *starts, *ends, *axes, *steps);
  if (failed(ranges))
    return failure();
  return c.result(sliceValue(c, value, *ranges));
}

static LogicalResult importConcat(NodeContext &c) {
  SmallVector<Value> values;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    Value value = c.value(i);
    if (!value)
      return failure();
    values.push_back(value);
  }
  int64_t axis = c.node.axis(c.node.intAttr("axis", c.node.version() < 4),
                             typeOf(values[0]).getRank());
  if (c.node.failed())
    return failure();
  if (values.size() == 1)
    return c.result(values[0]);
  return c.result(c.emit<train::ConcatOp>(values, c.integer("axis", axis)));
}

/// Cuts input 0 along the axis; the pieces are values.
static FailureOr<SmallVector<Value>>
splitValue(NodeContext &c, ArrayRef<int64_t> sizes, int64_t axis, Value value) {
  SmallVector<Value> pieces;
  int64_t start = 0;
  for (int64_t size : sizes) {
    Value piece = slicePiece(c, value, axis, start, size);
    if (!piece)
      return failure();
    pieces.push_back(piece);
    start += size;
  }
  return pieces;
}

static LogicalResult importSplit(NodeContext &c) {
  Value value = c.value(0);
  if (!value || (c.has(1) && !c.ints(1, "sizes")))
    return failure();
  int64_t axis =
      c.node.axis(c.node.intAttr("axis", 0), typeOf(value).getRank());
  if (c.node.failed())
    return failure();
  auto sizes = splitSizes(c.node, shapeOf(value)[axis],
                          c.has(1) ? c.host(1) : nullptr, c.numResults());
  if (failed(sizes))
    return failure();
  if (sizes->size() != c.numResults())
    return c.fail("its outputs and sizes differ in number");
  auto pieces = splitValue(c, *sizes, axis, value);
  if (failed(pieces))
    return failure();
  for (auto [i, piece] : llvm::enumerate(*pieces))
    c.set(i, Binding(piece));
  return success();
}

//===----------------------------------------------------------------------===//
// Triangles
//===----------------------------------------------------------------------===//

/// Keeps a triangle: multiplies the rest away by selecting zero.
static LogicalResult importTrilu(NodeContext &c) {
  Value value = c.value(0);
  if (!value)
    return failure();
  int64_t rank = typeOf(value).getRank(), k = 0;
  if (rank < 2)
    return c.fail("needs an input of rank 2 or more");
  if (c.has(1)) {
    auto diagonal = c.ints(1, "diagonal");
    if (!diagonal || diagonal->size() != 1)
      return diagonal ? c.fail("its diagonal is not one integer") : failure();
    k = diagonal->front();
  }
  bool upper = c.node.intAttr("upper", 1);
  HostTensor keep(DType::Bool, shapeOf(value).take_back(2));
  int64_t rows = keep.shape[0], cols = keep.shape[1];
  k = std::clamp(k, -rows, cols);
  for (int64_t i = 0; i < keep.size(); ++i) {
    int64_t distance = i % cols - i / cols;
    keep.setInt(i, upper ? distance >= k : distance <= k);
  }
  return c.result(
      c.emit<train::WhereOp>({c.constant(keep), value, c.scalar(value, 0)}));
}

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

void zero::onnx_import::addShapeHandlers(HandlerTable &table) {
  table["Concat"] = {importConcat, 1};
  table["Expand"] = {importExpand, 2};
  table["Flatten"] = {importFlatten, 1};
  table["Reshape"] = {importReshape, 2};
  table["Slice"] = {importSlice, 3};
  table["Split"] = {importSplit, 1};
  table["Squeeze"] = {importSqueeze, 1};
  table["Tile"] = {importTile, 2};
  table["Transpose"] = {importTranspose, 1};
  table["Trilu"] = {importTrilu, 1, 14};
  table["Unsqueeze"] = {importUnsqueeze, 2};
}
