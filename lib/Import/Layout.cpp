//===- Layout.cpp - Padding, cropping and blocks --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that surround, crop and rearrange. All sizes are known at import.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/IndexMath.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

using Dims = SmallVector<int64_t>;

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

namespace {
/// Elements before and after each dimension; negative ones are cut off.
struct Padding {
  Dims low, high;
};
} // namespace

/// Fails where a padded size is negative or cannot be counted.
static LogicalResult checkPadding(NodeContext &c, ArrayRef<int64_t> shape,
                                  const Padding &pads) {
  constexpr int64_t limit = int64_t(1) << 31;
  Dims padded;
  for (auto [size, low, high] : llvm::zip_equal(shape, pads.low, pads.high)) {
    if (low < -limit || high < -limit || low > limit || high > limit)
      return c.fail("has a very large pad");
    padded.push_back(size + low + high);
    if (size + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0) < 0)
      return c.fail("its pads cut off more than there is");
  }
  if (!countElements(padded))
    return c.fail("makes more elements than can be counted");
  return success();
}

/// Begins and ends are listed for all or the named axes.
static FailureOr<Padding> readPadding(NodeContext &c, int64_t rank) {
  auto pads = c.ints(1, "pads");
  if (!pads)
    return failure();
  Dims axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (c.has(3)) {
    auto named = c.ints(3, "axes");
    if (!named)
      return failure();
    axes = c.node.axes(*named, rank);
  }
  if (!c.node.failed() && pads->size() != 2 * axes.size())
    (void)c.fail("needs two pads per axis");
  if (c.node.failed())
    return failure();
  Padding padding{Dims(rank, 0), Dims(rank, 0)};
  for (auto [i, axis] : llvm::enumerate(axes)) {
    padding.low[axis] = (*pads)[i];
    padding.high[axis] = (*pads)[axes.size() + i];
  }
  return padding;
}

/// Cuts off what negative pads say; they are 0 then.
static Value crop(NodeContext &c, Value value, Padding &pads) {
  for (auto [axis, low, high] : llvm::enumerate(pads.low, pads.high)) {
    if (!value || (low >= 0 && high >= 0))
      continue;
    int64_t before = std::max<int64_t>(-low, 0);
    int64_t after = std::max<int64_t>(-high, 0);
    value = slicePiece(c, value, axis, before,
                       shapeOf(value)[axis] - before - after);
    low = std::max<int64_t>(low, 0);
    high = std::max<int64_t>(high, 0);
  }
  return value;
}

static Value padWithZeros(NodeContext &c, Value value, const Padding &pads) {
  return c.emit<train::PadOp>(
      value, {c.list("low", pads.low), c.list("high", pads.high),
              c.list("interior", Dims(pads.low.size(), 0))});
}

/// Pads with `fill`, a rank-0 value: zeros first, which a mask along each
/// padded axis then replaces.
static Value padWithFill(NodeContext &c, Value value, const Padding &pads,
                         Value fill) {
  Dims sizes(shapeOf(value));
  value = padWithZeros(c, value, pads);
  for (int64_t axis = 0, rank = sizes.size(); axis < rank && value; ++axis) {
    int64_t low = pads.low[axis], total = shapeOf(value)[axis];
    if (low == 0 && pads.high[axis] == 0)
      continue;
    Dims shape(rank, 1);
    shape[axis] = total;
    HostTensor inside(DType::Bool, shape);
    for (int64_t i = 0; i < sizes[axis]; ++i)
      inside.setInt(low + i, 1);
    value = c.emit<train::WhereOp>({c.constant(inside), value, fill});
  }
  return value;
}

/// The element of a dimension of `size` that stands at `place`, which may be
/// outside: the nearest, the mirrored one or that of the repeated dimension.
static int64_t sourceOf(StringRef mode, int64_t place, int64_t size) {
  if (mode == "edge")
    return std::clamp<int64_t>(place, 0, size - 1);
  int64_t period = mode == "wrap" ? size : std::max<int64_t>(2 * size - 2, 1);
  int64_t at = (place % period + period) % period;
  return at < size ? at : period - at;
}

static LogicalResult padWithElements(NodeContext &c, Value value,
                                     const Padding &pads, StringRef mode) {
  if (mode != "edge" && mode != "reflect" && mode != "wrap")
    return c.fail("its mode is '" + mode +
                  "', expected constant, edge, reflect or wrap");
  for (auto [axis, low, high] : llvm::enumerate(pads.low, pads.high)) {
    int64_t size = shapeOf(value)[axis];
    if (low == 0 && high == 0)
      continue;
    if (size == 0)
      return c.fail("has no elements to pad with");
    if (low + size + high > c.hostBudget().room())
      return c.fail("has a very large pad");
    Dims places;
    for (int64_t i = -low; i < size + high; ++i)
      places.push_back(sourceOf(mode, i, size));
    value = takeAlong(c, value, axis, places);
    if (!value)
      return failure();
  }
  return c.result(value);
}

/// What padded elements are; null where they are zeros.
static FailureOr<Value> readFill(NodeContext &c, Value value) {
  if (!c.has(2))
    return Value();
  if (const HostTensor *known = c.host(2)) {
    bool isZero = known->size() == 1 && known->number(0) == 0;
    if (known->size() == 0 || isZero)
      return Value();
  }
  Value fill = c.value(2);
  if (fill && typeOf(fill).getNumElements() != 1)
    (void)c.fail("its value is not a scalar");
  fill = c.node.failed() ? Value() : c.reshape(fill, {});
  if (!fill)
    return failure();
  return castTo(c, fill, typeOf(value).getElementType());
}

static LogicalResult importPad(NodeContext &c) {
  Value value = c.value(0);
  if (!value)
    return failure();
  FailureOr<Padding> pads = readPadding(c, typeOf(value).getRank());
  std::string mode = c.node.stringAttr("mode", "constant");
  if (failed(pads) || c.node.failed() ||
      failed(checkPadding(c, shapeOf(value), *pads)))
    return failure();
  value = crop(c, value, *pads);
  if (!value)
    return failure();
  if (mode != "constant")
    return padWithElements(c, value, *pads, mode);
  FailureOr<Value> fill = readFill(c, value);
  if (failed(fill))
    return failure();
  if (llvm::all_of(llvm::concat<int64_t>(pads->low, pads->high),
                   [](int64_t pad) { return pad == 0; }))
    return c.result(value);
  return c.result(*fill ? padWithFill(c, value, *pads, *fill)
                        : padWithZeros(c, value, *pads));
}

/// CenterCropPad: what is odd goes to the end.
static LogicalResult importCenterCropPad(NodeContext &c) {
  Value value = c.value(0);
  auto target = c.ints(1, "shape");
  if (!value || !target)
    return failure();
  int64_t rank = typeOf(value).getRank();
  Dims axes = c.node.axes(
      c.node.intsAttr("axes", llvm::to_vector(llvm::seq<int64_t>(0, rank))),
      rank);
  if (c.node.failed() || axes.size() != target->size())
    return c.node.failed() ? failure() : c.fail("needs a size for each axis");
  Padding pads{Dims(rank, 0), Dims(rank, 0)};
  for (auto [axis, size] : llvm::zip(axes, *target)) {
    if (size < 0)
      return c.fail("has the bad size " + Twine(size));
    int64_t missing = size - shapeOf(value)[axis];
    pads.low[axis] = missing / 2;
    pads.high[axis] = missing - pads.low[axis];
  }
  if (failed(checkPadding(c, shapeOf(value), pads)))
    return failure();
  value = crop(c, value, pads);
  return c.result(value ? padWithZeros(c, value, pads) : Value());
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Splits, transposes and joins dimensions.
static LogicalResult rearrange(NodeContext &c, Value value,
                               ArrayRef<int64_t> split,
                               ArrayRef<int64_t> permutation,
                               ArrayRef<int64_t> result) {
  value = c.reshape(value, split);
  value = value ? c.transpose(value, permutation) : Value();
  return c.result(c.reshape(value, result));
}

/// The size of a block and whether channels come before the block's places in
/// the depth; 0 after an error.
static std::pair<int64_t, bool> readBlock(NodeContext &c, Value value,
                                          StringRef defaultMode) {
  int64_t block = c.node.intAttr("blocksize", 0);
  std::string mode = c.node.stringAttr("mode", defaultMode);
  if (!value || c.node.failed())
    return {0, false};
  constexpr int64_t limit = 1 << 15;
  if (typeOf(value).getRank() != 4)
    (void)c.fail("needs an input of rank 4");
  else if (block < 1 || block > limit)
    (void)c.fail("its block size is " + Twine(block) + ", expected 1 to " +
                 Twine(limit));
  else if (mode != "DCR" && mode != "CRD")
    (void)c.fail("its mode is '" + mode + "', expected DCR or CRD");
  return {c.node.failed() ? 0 : block, mode == "CRD"};
}

static LogicalResult importDepthToSpace(NodeContext &c) {
  Value value = c.value(0);
  auto [s, columnsFirst] = readBlock(c, value, "DCR");
  if (!s)
    return failure();
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape[1] % (s * s) != 0)
    return c.fail("its channels are no multiple of the block's elements");
  int64_t n = shape[0], depth = shape[1] / (s * s), h = shape[2], w = shape[3];
  Dims result = {n, depth, h * s, w * s};
  if (columnsFirst)
    return rearrange(c, value, {n, depth, s, s, h, w}, {0, 1, 4, 2, 5, 3},
                     result);
  return rearrange(c, value, {n, s, s, depth, h, w}, {0, 3, 4, 1, 5, 2},
                   result);
}

static LogicalResult importSpaceToDepth(NodeContext &c) {
  Value value = c.value(0);
  auto [s, columnsFirst] = readBlock(c, value, "DCR");
  if (!s)
    return failure();
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape[2] % s != 0 || shape[3] % s != 0)
    return c.fail("its height and width are no multiples of the block size");
  int64_t n = shape[0], depth = shape[1], h = shape[2] / s, w = shape[3] / s;
  Dims order = columnsFirst ? Dims{0, 1, 3, 5, 2, 4} : Dims{0, 3, 5, 1, 2, 4};
  return rearrange(c, value, {n, depth, h, s, w, s}, order,
                   {n, depth * s * s, h, w});
}

//===----------------------------------------------------------------------===//
// Col2Im
//===----------------------------------------------------------------------===//

namespace {
/// Blocks of an image.
struct Blocks {
  Dims image, block, dilations, pads, strides;
  Dims padded, counts; ///< the image with its padding; blocks per dimension
};
} // namespace

static LogicalResult countBlocks(NodeContext &c, Blocks &s) {
  size_t n = s.image.size();
  if (n == 0 || s.block.size() != n || s.dilations.size() != n ||
      s.strides.size() != n || s.pads.size() != 2 * n)
    return c.fail("its sizes differ in number");
  for (size_t d = 0; d < n; ++d) {
    constexpr int64_t limit = int64_t(1) << 24;
    for (int64_t size : {s.image[d], s.block[d], s.dilations[d], s.strides[d]})
      if (size < 1 || size > limit)
        return c.fail("has the bad size " + Twine(size));
    for (int64_t pad : {s.pads[d], s.pads[d + n]})
      if (pad < 0 || pad > limit)
        return c.fail("has the bad pad " + Twine(pad));
    s.padded.push_back(s.image[d] + s.pads[d] + s.pads[d + n]);
    int64_t free = s.padded[d] - s.dilations[d] * (s.block[d] - 1) - 1;
    if (free < 0)
      return c.fail("its block is larger than the padded image");
    s.counts.push_back(free / s.strides[d] + 1);
  }
  if (!countElements(s.padded) || !countElements(s.counts) ||
      !countElements(s.block))
    return c.fail("makes more elements than can be counted");
  return success();
}

/// For each element of the block at each place the element of the padded image.
static Dims blockElements(const Blocks &s) {
  Dims elements, imageStrides = stridesOf(s.padded);
  Dims blockStrides = stridesOf(s.block), placeStrides = stridesOf(s.counts);
  for (int64_t e = 0, n = product(s.block); e < n; ++e)
    for (int64_t p = 0, places = product(s.counts); p < places; ++p) {
      int64_t at = 0;
      for (size_t d = 0; d < s.image.size(); ++d) {
        int64_t offset = e / blockStrides[d] % s.block[d] * s.dilations[d];
        int64_t start = p / placeStrides[d] % s.counts[d] * s.strides[d];
        at += (start + offset) * imageStrides[d];
      }
      elements.push_back(at);
    }
  return elements;
}

/// Adds up the columns of an image in its padded form, which is then cropped.
static LogicalResult importCol2Im(NodeContext &c) {
  Value value = c.value(0);
  auto image = c.ints(1, "image shape"), block = c.ints(2, "block shape");
  if (!value || !image || !block)
    return failure();
  size_t n = image->size();
  Dims ones(n, 1);
  Blocks s{*image,
           *block,
           c.node.intsAttr("dilations", ones),
           c.node.intsAttr("pads", Dims(2 * n, 0)),
           c.node.intsAttr("strides", ones),
           {},
           {}};
  if (c.node.failed() || failed(countBlocks(c, s)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(value);
  int64_t size = product(s.block), places = product(s.counts);
  if (shape.size() != 3 || shape[1] % size != 0 || shape[2] != places)
    return c.fail("its input does not have the columns of such blocks");
  if (int64_t room = c.hostBudget().room(); size > room / places)
    return c.fail("has more than " + Twine(room) + " elements of blocks");
  int64_t batch = shape[0], channels = shape[1] / size;
  Value elements = int64Constant(c, blockElements(s), size * places);
  Value columns = c.reshape(value, {batch, channels, size * places});
  Value sum = c.emit<train::GatherGradOp>(
      {columns, elements},
      {c.integer("axis", 2),
       c.list("data_shape", {batch, channels, product(s.padded)})});
  Dims result = {batch, channels};
  llvm::append_range(result, s.padded);
  sum = c.reshape(sum, result);
  for (size_t d = 0; d < n && sum; ++d)
    sum = slicePiece(c, sum, d + 2, s.pads[d], s.image[d]);
  return c.result(sum);
}

void zero::onnx_import::addLayoutHandlers(HandlerTable &table) {
  table["CenterCropPad"] = {importCenterCropPad, 2};
  table["Col2Im"] = {importCol2Im, 3};
  table["DepthToSpace"] = {importDepthToSpace, 1};
  table["Pad"] = {importPad, 2};
  table["SpaceToDepth"] = {importSpaceToDepth, 1};
}
