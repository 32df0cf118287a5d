//===- Sampling.cpp - Resampling at places that depend on data ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GridSample, AffineGrid and RoiAlign. Channels move to the end, so that an
// element of the image is a row; around each place some rows are gathered and
// added up with weights, which are products of one weight per dimension. The
// gradient reaches the image through the rows and the places through the
// weights.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/IndexMath.h"
#include "lib/Import/InputBounds.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

using Dims = SmallVector<int64_t>;

namespace {
/// Short forms of elementwise operations; null operands give null.
struct Math {
  NodeContext &c;

  template <typename OpTy>
  Value binary(Value a, Value b) const {
    return c.emit<OpTy>({a, b});
  }
  Value number(Value like, double x) const { return c.scalar(like, x); }
  Value add(Value a, Value b) const { return binary<train::AddOp>(a, b); }
  Value sub(Value a, Value b) const { return binary<train::SubOp>(a, b); }
  Value mul(Value a, Value b) const { return binary<train::MulOp>(a, b); }
  Value add(Value a, double b) const { return add(a, number(a, b)); }
  Value mul(Value a, double b) const { return mul(a, number(a, b)); }
  Value max(Value a, double b) const {
    return binary<train::MaxOp>(a, number(a, b));
  }
  Value min(Value a, double b) const {
    return binary<train::MinOp>(a, number(a, b));
  }
  Value clamp(Value a, double low, double high) const {
    return min(max(a, low), high);
  }
  Value less(Value a, double b) const {
    return binary<train::LessOp>(a, number(a, b));
  }
  Value greater(Value a, double b) const {
    return binary<train::GreaterOp>(a, number(a, b));
  }
  Value floor(Value a) const { return c.emit<train::FloorOp>(a); }
  Value where(Value condition, Value a, Value b) const {
    return c.emit<train::WhereOp>({condition, a, b});
  }
  /// 1 between `low` and `high`, both included, else 0.
  Value inside(Value a, double low, double high) const;
  Value roundToEven(Value a) const;
  Value reflect(Value a, double low, double high) const;
};

/// An element that takes part along one dimension: its place, a whole number as
/// a float, and its weight, null where that is 1.
struct Tap {
  Value place, weight;
};
} // namespace

Value Math::inside(Value a, double low, double high) const {
  Value below = less(a, low);
  Value outside = binary<train::OrOp>(below, greater(a, high));
  return where(outside, number(a, 0), number(a, 1));
}

/// The nearest whole number, of two the even one.
Value Math::roundToEven(Value a) const {
  Value moved = add(a, 0.5), up = floor(moved);
  Value half = floor(mul(up, 0.5));
  Value odd = sub(up, mul(half, 2));
  Value isTie = binary<train::EqualOp>(moved, up);
  return where(isTie, sub(up, odd), up);
}

/// Mirrored at `low` and `high` until it lies between them.
Value Math::reflect(Value a, double low, double high) const {
  double range = high - low;
  if (range <= 0)
    return add(mul(a, 0), low);
  Value from = add(a, -low);
  Value turns = floor(mul(from, 1 / (2 * range)));
  from = sub(from, mul(turns, 2 * range));
  Value back = mul(add(from, -2 * range), -1);
  return add(binary<train::MinOp>(from, back), low);
}

//===----------------------------------------------------------------------===//
// Rows around places
//===----------------------------------------------------------------------===//

/// [N, C, dims...] as [N * dims, C].
static Value channelsLast(NodeContext &c, Value image) {
  Dims shape(shapeOf(image)), order = {0};
  for (int64_t d = 2, rank = shape.size(); d < rank; ++d)
    order.push_back(d);
  order.push_back(1);
  int64_t channels = shape[1];
  int64_t rows = shape[0] * product(ArrayRef(shape).drop_front(2));
  return c.reshape(c.transpose(image, order), {rows, channels});
}

/// What is done with the rows around a place: added up, or the largest taken.
enum class Join { Sum, Largest };

/// The rows of `image` around places, one combination of `taps` (a list for
/// each dimension of `dims`) after the other, times their weights. `base` is
/// the first row of the image that a place lies in.
static Value gatherTaps(NodeContext &c, Value rows, Indices base,
                        ArrayRef<int64_t> dims, ArrayRef<SmallVector<Tap>> taps,
                        Join join) {
  Math m{c};
  IndexMath index{c};
  Type i64 = c.b.getI64Type();
  int64_t combinations = 1;
  for (const SmallVector<Tap> &list : taps)
    combinations *= list.size();
  Dims strides = stridesOf(dims);
  Value result;
  for (int64_t k = 0; k < combinations; ++k) {
    Indices place = base;
    Value weight;
    int64_t rest = k;
    for (size_t d = 0; d < dims.size(); ++d) {
      const Tap &tap = taps[d][rest % taps[d].size()];
      rest /= taps[d].size();
      Value whole = castTo(c, m.clamp(tap.place, 0, double(dims[d] - 1)), i64);
      place = index.add(place, index.mul({nullptr, whole}, strides[d]));
      if (tap.weight)
        weight = weight ? m.mul(weight, tap.weight) : tap.weight;
    }
    Value part = gatherRows(c, rows, 1, place);
    if (!part)
      return {};
    if (weight) {
      Dims perRow(shapeOf(part));
      perRow.back() = 1;
      weight = castTo(c, weight, typeOf(part).getElementType());
      // Places along one dimension only are repeated along the others.
      weight = c.broadcast(weight, ArrayRef(perRow).drop_back());
      part = m.mul(part, c.reshape(weight, perRow));
    }
    if (!result)
      result = part;
    else
      result = join == Join::Sum ? m.add(result, part)
                                 : m.binary<train::MaxOp>(result, part);
  }
  return result;
}

/// [N, places..., C] as [N, C, places...].
static Value channelsSecond(NodeContext &c, Value value) {
  if (!value)
    return {};
  int64_t rank = typeOf(value).getRank();
  Dims order = {0, rank - 1};
  for (int64_t d = 1; d < rank - 1; ++d)
    order.push_back(d);
  return c.transpose(value, order);
}

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

namespace {
/// What a GridSample node says.
struct Grid {
  std::string mode, padding;
  bool alignCorners;
};

/// One dimension of the image.
struct Extent {
  double size, low, high; ///< where it begins and ends
};
} // namespace

/// Keys's cubic interpolation with a slope of -3/4: the weight of the element
/// at `distance`, which is at most 1 or between 1 and 2.
static Value cubicWeight(const Math &m, Value distance, bool isNear) {
  constexpr double a = -0.75;
  Value x = distance;
  if (isNear) {
    Value inner = m.add(m.mul(x, a + 2), -(a + 3));
    return m.add(m.mul(m.mul(inner, x), x), 1);
  }
  Value inner = m.add(m.mul(x, a), -5 * a);
  inner = m.add(m.mul(inner, x), 8 * a);
  return m.add(m.mul(inner, x), -4 * a);
}

/// The elements around `x`, which is a place along one dimension.
static SmallVector<Tap> tapsAt(const Math &m, const Grid &grid, Value x) {
  if (grid.mode == "nearest")
    return {{x, Value()}};
  Value low = m.floor(x), rest = m.sub(x, low);
  auto distance = [&](double offset) { // of an element behind `x`
    return m.add(m.mul(rest, -1), offset);
  };
  Value up = m.add(low, 1);
  if (grid.mode == "linear")
    return {{low, distance(1)}, {up, rest}};
  SmallVector<Tap> taps;
  taps.push_back({m.add(low, -1), cubicWeight(m, m.add(rest, 1), false)});
  taps.push_back({low, cubicWeight(m, rest, true)});
  taps.push_back({up, cubicWeight(m, distance(1), true)});
  taps.push_back({m.add(low, 2), cubicWeight(m, distance(2), false)});
  return taps;
}

/// A place from -1 to 1 as one of the image's, moved inside as the node says.
static Value placeOf(const Math &m, const Grid &grid, const Extent &e,
                     Value coordinate) {
  Value x = m.add(coordinate, 1);
  x = grid.alignCorners ? m.mul(x, (e.size - 1) / 2)
                        : m.mul(m.add(m.mul(x, e.size), -1), 0.5);
  if (grid.mode == "nearest")
    x = m.roundToEven(x);
  if (grid.padding == "reflection")
    return m.reflect(x, e.low, e.high);
  if (grid.padding != "border")
    return x;
  // Elements outside are taken from the edge; places only where they are
  // beyond the edge's elements.
  Value below = m.less(x, e.low);
  Value outside = m.binary<train::OrOp>(below, m.greater(x, e.high));
  return m.where(outside, m.clamp(x, 0, e.size - 1), x);
}

/// The taps of one dimension, with those outside moved inside or without
/// weight.
static SmallVector<Tap> settleTaps(const Math &m, const Grid &grid,
                                   const Extent &e, SmallVector<Tap> taps) {
  for (Tap &tap : taps) {
    if (grid.padding == "reflection") {
      tap.place = m.reflect(tap.place, e.low, e.high);
    } else if (grid.padding == "zeros") {
      Value inside = m.inside(tap.place, 0, e.size - 1);
      tap.weight = tap.weight ? m.mul(tap.weight, inside) : inside;
    }
  }
  return taps;
}

static FailureOr<Grid> readGrid(NodeContext &c) {
  Grid grid;
  grid.mode = c.node.stringAttr("mode", "linear");
  grid.padding = c.node.stringAttr("padding_mode", "zeros");
  grid.alignCorners = c.node.intAttr("align_corners", 0);
  // Operator set 16 named them for images.
  if (grid.mode == "bilinear" || grid.mode == "bicubic")
    grid.mode = grid.mode.substr(2);
  static constexpr StringRef modes[] = {"linear", "nearest", "cubic"};
  static constexpr StringRef paddings[] = {"zeros", "border", "reflection"};
  if (!llvm::is_contained(modes, grid.mode) ||
      !llvm::is_contained(paddings, grid.padding))
    (void)c.fail("its mode '" + grid.mode + "' with padding '" + grid.padding +
                 "' is not supported");
  if (c.node.failed())
    return failure();
  return grid;
}

static LogicalResult importGridSample(NodeContext &c) {
  Value image = c.value(0), places = c.value(1);
  FailureOr<Grid> grid = readGrid(c);
  if (!image || !places || failed(grid))
    return failure();
  Dims shape(shapeOf(image)), target(shapeOf(places));
  int64_t rank = shape.size(), spatial = rank - 2;
  if (spatial < 1 || int64_t(target.size()) != rank || target[0] != shape[0] ||
      target.back() != spatial)
    return c.fail("its grid does not fit its input");
  if (product(shape) == 0 || spatial > 4)
    return c.fail("needs an input with elements, of at most 4 dimensions");
  Math m{c};
  ArrayRef<int64_t> dims = ArrayRef(shape).drop_front(2);
  Dims perPlace(target.begin(), target.end() - 1);
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t d = 0; d < spatial; ++d) {
    double size = dims[d], edge = grid->alignCorners ? 0 : 0.5;
    Extent extent{size, -edge, size - 1 + edge};
    // The grid names the last dimension first.
    Value along = slicePiece(c, places, rank - 1, spatial - 1 - d, 1);
    Value x = placeOf(m, *grid, extent, c.reshape(along, perPlace));
    taps.push_back(settleTaps(m, *grid, extent, tapsAt(m, *grid, x)));
  }
  IndexMath index{c};
  Indices base = index.counter(rank - 1, 0, shape[0], product(dims));
  Value result =
      gatherTaps(c, channelsLast(c, image), base, dims, taps, Join::Sum);
  return c.result(channelsSecond(c, result));
}

//===----------------------------------------------------------------------===//
// AffineGrid
//===----------------------------------------------------------------------===//

/// The homogeneous coordinates of all places of an image, the last dimension's
/// first.
static HostTensor homogeneousGrid(ArrayRef<int64_t> dims, bool alignCorners) {
  int64_t depth = dims.size();
  HostTensor grid(DType::F32, {product(dims), depth + 1});
  Dims strides = stridesOf(dims);
  for (int64_t p = 0, n = product(dims); p < n; ++p) {
    for (int64_t d = 0; d < depth; ++d) {
      double i = p / strides[d] % dims[d], size = dims[d];
      double x = alignCorners ? (size == 1 ? 0 : 2 * i / (size - 1) - 1)
                              : (2 * i + 1) / size - 1;
      grid.setFloat(p * (depth + 1) + depth - 1 - d, x);
    }
    grid.setFloat(p * (depth + 1) + depth, 1);
  }
  return grid;
}

static LogicalResult importAffineGrid(NodeContext &c) {
  Value theta = c.value(0);
  auto size = c.ints(1, "size");
  bool alignCorners = c.node.intAttr("align_corners", 0);
  if (!theta || !size || c.node.failed())
    return failure();
  int64_t depth = int64_t(size->size()) - 2;
  if (depth != 2 && depth != 3)
    return c.fail("needs a size of 4 or 5 numbers");
  Dims dims(size->begin() + 2, size->end());
  for (int64_t dim : dims)
    if (dim < 1 || dim > maxHostElements)
      return c.fail("has the bad size " + Twine(dim));
  auto places = countElements(dims);
  if (int64_t most = c.hostBudget().room() / 4; !places || *places > most)
    return c.fail("makes a grid of more than " + Twine(most) + " places");
  int64_t batch = (*size)[0];
  if (shapeOf(theta) != ArrayRef<int64_t>({batch, depth, depth + 1}))
    return c.fail("its matrices do not fit its size");
  HostTensor grid = homogeneousGrid(dims, alignCorners);
  grid = castHost(grid, *dtypeFromType(typeOf(theta).getElementType()));
  grid.shape.insert(grid.shape.begin(), 1);
  Value base = c.constant(grid);
  Value result = c.emit<train::MatmulOp>({base, theta}, c.flag("transpose_b"));
  Dims shape = {batch};
  llvm::append_range(shape, dims);
  shape.push_back(depth);
  return c.result(c.reshape(result, shape));
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

namespace {
/// What a RoiAlign node says.
struct Rois {
  int64_t height, width, samples;
  double scale;
  bool halfPixel, largest;
};
} // namespace

static FailureOr<Rois> readRois(NodeContext &c) {
  Rois rois;
  rois.height = c.node.intAttr("output_height", 1);
  rois.width = c.node.intAttr("output_width", 1);
  rois.samples = c.node.intAttr("sampling_ratio", 0);
  rois.scale = c.node.floatAttr("spatial_scale", 1);
  std::string mode = c.node.stringAttr("mode", "avg");
  std::string coordinates = c.node.stringAttr(
      "coordinate_transformation_mode",
      c.node.version() < 16 ? "output_half_pixel" : "half_pixel");
  rois.largest = mode == "max";
  rois.halfPixel = coordinates == "half_pixel";
  constexpr int64_t limit = 1 << 12;
  if (rois.samples < 1 || rois.samples > limit)
    (void)c.fail("needs a sampling_ratio of 1 or more: what 0 means depends "
                 "on the data");
  else if (rois.height < 1 || rois.width < 1 || rois.height > limit ||
           rois.width > limit)
    (void)c.fail("has a bad output size");
  else if (mode != "avg" && mode != "max")
    (void)c.fail("its mode is '" + mode + "', expected avg or max");
  if (c.node.failed())
    return failure();
  return rois;
}

/// The elements along one dimension, with `bins` bins, of the regions [R] that
/// reach from `start` to `end`; places have the shape of `shape`.
static SmallVector<Tap> roiTaps(const Math &m, const Rois &rois, Value start,
                                Value end, int64_t bins, double size,
                                ArrayRef<int64_t> shape) {
  NodeContext &c = m.c;
  double offset = rois.halfPixel ? -0.5 : 0;
  start = m.add(m.mul(start, rois.scale), offset);
  end = m.add(m.mul(end, rois.scale), offset);
  Value length = m.sub(end, start);
  if (!rois.halfPixel)
    length = m.max(length, 1);
  if (!length)
    return {};
  int64_t count = bins * rois.samples;
  HostTensor steps(*dtypeFromType(typeOf(length).getElementType()), shape);
  for (int64_t i = 0; i < count; ++i)
    steps.setNumber(i, (double(i) + 0.5) / double(count));
  Dims perRegion(shape.size(), 1);
  perRegion[0] = shapeOf(length)[0];
  Value along = m.mul(c.reshape(length, perRegion), c.constant(steps));
  Value x = m.add(along, c.reshape(start, perRegion));
  Value valid = m.inside(x, -1, size);
  x = m.clamp(x, 0, size - 1);
  Value low = m.floor(x), rest = m.sub(x, low);
  Value near = m.mul(m.add(m.mul(rest, -1), 1), valid);
  return {{low, near}, {m.add(low, 1), m.mul(rest, valid)}};
}

static LogicalResult importRoiAlign(NodeContext &c) {
  Value image = c.value(0), regions = c.value(1);
  Indices batch = IndexMath{c}.input(2);
  FailureOr<Rois> rois = readRois(c);
  if (!image || !regions || !batch || failed(rois))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(image);
  int64_t count = shapeOf(regions).empty() ? -1 : shapeOf(regions)[0];
  if (shape.size() != 4 || product(shape) == 0 ||
      shapeOf(regions) != ArrayRef<int64_t>({count, 4}) ||
      batch.shape() != ArrayRef<int64_t>(count))
    return c.fail("its regions do not fit its input");
  boundInput(batch.value, 0, shape[0] - 1);
  Math m{c};
  auto column = [&](int64_t i) {
    return c.reshape(slicePiece(c, regions, 1, i, 1), count);
  };
  int64_t rows = rois->height * rois->samples;
  int64_t columns = rois->width * rois->samples;
  Value top = column(1), bottom = column(3);
  Value left = column(0), right = column(2);
  SmallVector<SmallVector<Tap>> taps(2);
  taps[0] =
      roiTaps(m, *rois, top, bottom, rois->height, shape[2], {1, rows, 1});
  taps[1] =
      roiTaps(m, *rois, left, right, rois->width, shape[3], {1, 1, columns});
  if (taps[0].empty() || taps[1].empty())
    return failure();
  IndexMath index{c};
  Indices base =
      index.mul(index.reshape(batch, {count, 1, 1}), shape[2] * shape[3]);
  Value all = gatherTaps(c, channelsLast(c, image), base, shape.drop_front(2),
                         taps, rois->largest ? Join::Largest : Join::Sum);
  Value binned = c.reshape(all, {count, rois->height, rois->samples,
                                 rois->width, rois->samples, shape[1]});
  NamedAttribute axes = c.list("axes", {2, 4});
  Value result = rois->largest ? c.emit<train::ReduceMaxOp>(binned, axes)
                               : c.emit<train::ReduceMeanOp>(binned, axes);
  return c.result(channelsSecond(c, result));
}

void zero::onnx_import::addSamplingHandlers(HandlerTable &table) {
  table["AffineGrid"] = {importAffineGrid, 2};
  table["GridSample"] = {importGridSample, 2};
  table["RoiAlign"] = {importRoiAlign, 3};
}
