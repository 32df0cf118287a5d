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

#include "lib/Import/GraphImporter.h"

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
  if (!shape || !countElements(*shape))
    return c.fail("its input cannot be expanded to the given shape");
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
    if (repeat <= 0 || __builtin_mul_overflow(dim, repeat, &total))
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

/// The elements [start, start + size) along `axis`.
static Value slicePiece(NodeContext &c, Value value, int64_t axis,
                        int64_t start, int64_t size) {
  SmallVector<int64_t> starts(typeOf(value).getRank(), 0);
  SmallVector<int64_t> limits(shapeOf(value)), strides(starts.size(), 1);
  starts[axis] = start;
  limits[axis] = start + size;
  return c.emit<train::SliceOp>(value, {c.list("starts", starts),
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
  SmallVector<int64_t> first, limits, strides;
  for (auto [range, dim] : llvm::zip(*ranges, shapeOf(value))) {
    if (range.step < 0 && range.count > 1)
      return c.fail("a negative step is supported for constants only");
    if (range.count == 0)
      return c.fail("makes a tensor without elements, which is not supported");
    first.push_back(range.start);
    // A step matters only where a second element is read.
    strides.push_back(range.count > 1 ? range.step : 1);
    limits.push_back(
        std::min(dim, range.start + (range.count - 1) * strides.back() + 1));
  }
  if (ArrayRef(limits) == shapeOf(value) &&
      llvm::all_of(first, [](int64_t v) { return v == 0; }) &&
      llvm::all_of(strides, [](int64_t v) { return v == 1; }))
    return c.result(value);
  return c.result(c.emit<train::SliceOp>(value, {c.list("starts", first),
                                                 c.list("limits", limits),
                                                 c.list("strides", strides)}));
}

static LogicalResult importConcat(NodeContext &c) {
  SmallVector<Value> values;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    Value value = c.value(i);
    if (!value)
      return failure();
    values.push_back(value);
  }
  int64_t axis =
      c.node.axis(c.node.intAttr("axis", 0), typeOf(values[0]).getRank());
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
    if (size == 0) {
      (void)c.fail("makes a tensor without elements, which is not supported");
      return failure();
    }
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
// Gathers
//===----------------------------------------------------------------------===//

static LogicalResult importGather(NodeContext &c) {
  Value data = c.value(0), indices = c.value(1);
  if (!data || !indices)
    return failure();
  int64_t axis = c.node.axis(c.node.intAttr("axis", 0), typeOf(data).getRank());
  if (c.node.failed())
    return failure();
  if (const HostTensor *known = c.host(1)) {
    int64_t dim = shapeOf(data)[axis];
    for (int64_t i = 0; i < known->size(); ++i)
      if (known->number(i) < -dim || known->number(i) >= dim)
        return c.fail("index " + Twine(int64_t(known->number(i))) +
                      " is out of range for size " + Twine(dim));
  }
  return c.result(
      c.emit<train::GatherOp>({data, indices}, c.integer("axis", axis)));
}

/// With known indices GatherND is a Gather of rows.
static LogicalResult importGatherND(NodeContext &c) {
  Value data = c.value(0);
  if (!data || !c.ints(1, "indices"))
    return failure();
  auto rows = gatherNDRows(c.node, shapeOf(data), *c.host(1));
  if (failed(rows))
    return failure();
  int64_t depth = c.host(1)->shape.back();
  SmallVector<int64_t> flat{*countElements(shapeOf(data).take_front(depth))};
  llvm::append_range(flat, shapeOf(data).drop_front(depth));
  HostTensor indices(DType::I64, rows->rowShape);
  indices.ints = rows->rows;
  Value index = c.constant(indices);
  return c.result(c.emit<train::GatherOp>({c.reshape(data, flat), index},
                                          c.integer("axis", 0)));
}

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

/// Padding with zeros; begins and ends are listed for all or the named axes.
static LogicalResult importPad(NodeContext &c) {
  Value value = c.value(0);
  auto pads = c.ints(1, "pads");
  if (!value || !pads)
    return failure();
  if (c.node.stringAttr("mode", "constant") != "constant")
    return c.fail("is supported in mode 'constant' only");
  if (c.has(2) &&
      (!c.host(2) || c.host(2)->size() != 1 || c.host(2)->number(0) != 0))
    return c.fail("is supported for the value 0 only");
  int64_t rank = typeOf(value).getRank();
  SmallVector<int64_t> axes, low(rank, 0), high(rank, 0), interior(rank, 0);
  for (int64_t i = 0; i < rank; ++i)
    axes.push_back(i);
  if (c.has(3)) {
    auto named = c.ints(3, "axes");
    if (!named)
      return failure();
    axes = c.node.axes(*named, rank);
  }
  if (c.node.failed() || pads->size() != 2 * axes.size())
    return c.node.failed() ? failure() : c.fail("needs two pads per axis");
  for (auto [i, axis] : llvm::enumerate(axes)) {
    low[axis] = (*pads)[i];
    high[axis] = (*pads)[axes.size() + i];
    constexpr int64_t limit = int64_t(1) << 31;
    if (low[axis] < 0 || high[axis] < 0 || low[axis] > limit ||
        high[axis] > limit)
      return c.fail("a negative or very large pad is not supported");
  }
  return c.result(
      c.emit<train::PadOp>(value, {c.list("low", low), c.list("high", high),
                                   c.list("interior", interior)}));
}

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

void zero::onnx_import::addShapeHandlers(HandlerTable &table) {
  table["Concat"] = {importConcat, 1};
  table["Expand"] = {importExpand, 2};
  table["Flatten"] = {importFlatten, 1};
  table["Gather"] = {importGather, 2};
  table["GatherND"] = {importGatherND, 2};
  table["Pad"] = {importPad, 2};
  table["Reshape"] = {importReshape, 2};
  table["Slice"] = {importSlice, 3};
  table["Split"] = {importSplit, 1};
  table["Squeeze"] = {importSqueeze, 1};
  table["Tile"] = {importTile, 2};
  table["Transpose"] = {importTranspose, 1};
  table["Trilu"] = {importTrilu, 1, 14};
  table["Unsqueeze"] = {importUnsqueeze, 2};
}
