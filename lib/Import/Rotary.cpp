//===- Rotary.cpp - RotaryEmbedding ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pairs of a head's elements, turned by the angle of their position.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"
#include "lib/Import/InputBounds.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

/// Elements `start`, `start` + `stride`, … of the last dimension, up to
/// `limit`.
static Value sliceLast(NodeContext &c, Value x, int64_t start, int64_t limit,
                       int64_t stride = 1) {
  SmallVector<int64_t> starts(shapeOf(x).size(), 0), strides(starts.size(), 1);
  SmallVector<int64_t> limits(shapeOf(x));
  if (start == 0 && limit == limits.back() && stride == 1)
    return x;
  starts.back() = start;
  limits.back() = limit;
  strides.back() = stride;
  return c.emit<train::SliceOp>(x, {c.list("starts", starts),
                                    c.list("limits", limits),
                                    c.list("strides", strides)});
}

static Value concatLast(NodeContext &c, Value a, Value b) {
  if (!a || !b)
    return {};
  return c.emit<train::ConcatOp>(
      {a, b}, c.integer("axis", int64_t(shapeOf(a).size()) - 1));
}

/// Input `i`, cosines or sines, of the positions: [batch, length, half] with a
/// dimension of 1 for the heads at `headDim`.
static Value readAngles(NodeContext &c, unsigned i, int64_t headDim) {
  Value cache = c.value(i);
  if (cache && c.has(3)) {
    Value positions = c.value(3);
    cache = c.emit<train::GatherOp>({cache, positions}, c.integer("axis", 0));
    if (cache)
      boundInput(positions, 0, shapeOf(c.value(i))[0] - 1);
  }
  if (!cache)
    return {};
  SmallVector<int64_t> shape(shapeOf(cache));
  if (shape.size() != 3) {
    c.node.error() << "its cosines and sines must have the dimensions batch, "
                      "length and half of a head";
    return {};
  }
  shape.insert(shape.begin() + headDim, 1);
  return c.reshape(cache, shape);
}

namespace {
struct Halves {
  Value first, second;
};
} // namespace

static Halves split(NodeContext &c, Value x, int64_t size, bool interleaved) {
  if (interleaved)
    return {sliceLast(c, x, 0, size, 2), sliceLast(c, x, 1, size, 2)};
  return {sliceLast(c, x, 0, size / 2), sliceLast(c, x, size / 2, size)};
}

static Value join(NodeContext &c, Halves halves, bool interleaved) {
  if (!interleaved)
    return concatLast(c, halves.first, halves.second);
  SmallVector<int64_t> shape(shapeOf(halves.first)), pairs = shape;
  pairs.push_back(1);
  shape.back() *= 2;
  Value joined = concatLast(c, c.reshape(halves.first, pairs),
                            c.reshape(halves.second, pairs));
  return joined ? c.reshape(joined, shape) : Value();
}

/// `x` [batch, heads, length, size], or heads behind length, turned.
static Value rotate(NodeContext &c, Value x, int64_t headDim, int64_t size) {
  bool interleaved = c.node.intAttr("interleaved", 0) != 0;
  Value cosine = readAngles(c, 1, headDim);
  Value sine = cosine ? readAngles(c, 2, headDim) : Value();
  if (!sine)
    return {};
  Halves x2 = split(c, x, size, interleaved);
  auto mul = [&](Value a, Value b) { return c.emit<train::MulOp>({a, b}); };
  Value real1 = mul(cosine, x2.first), real2 = mul(sine, x2.second);
  Value imaginary1 = mul(sine, x2.first), imaginary2 = mul(cosine, x2.second);
  Value real = c.emit<train::SubOp>({real1, real2});
  Value imaginary = c.emit<train::AddOp>({imaginary1, imaginary2});
  if (!real || !imaginary)
    return {};
  Value turned = join(c, {real, imaginary}, interleaved);
  int64_t all = shapeOf(x).back();
  return size == all ? turned : concatLast(c, turned, sliceLast(c, x, size, all));
}

static LogicalResult importRotary(NodeContext &c) {
  Value x = c.value(0);
  if (!x)
    return failure();
  SmallVector<int64_t> shape(shapeOf(x)), split = shape;
  if (shape.size() == 3) {
    int64_t heads = c.node.intAttr("num_heads", 0);
    if (heads <= 0 || shape[2] % heads)
      return c.fail("num_heads must divide the last dimension, " +
                    std::to_string(shape[2]));
    split = {shape[0], shape[1], heads, shape[2] / heads};
  } else if (shape.size() != 4) {
    return c.fail("input 0 must have rank 3 or 4");
  }
  int64_t size = c.node.intAttr("rotary_embedding_dim", 0);
  size = size == 0 ? split.back() : size;
  if (size < 0 || size > split.back() || size % 2)
    return c.fail("turns " + std::to_string(size) + " of " +
                  std::to_string(split.back()) +
                  " elements; an even number of at most these is expected");
  Value turned =
      rotate(c, c.reshape(x, split), shape.size() == 3 ? 2 : 1, size);
  return turned ? c.result(c.reshape(turned, shape)) : failure();
}

void zero::onnx_import::addRotaryHandlers(HandlerTable &table) {
  table["RotaryEmbedding"] = {importRotary, 3, 23};
}
