//===- AttentionRelatives.cpp - FlexAttention, LinearAttention ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators beside attention: one whose scores a graph of the file changes, one
// with a state instead of a softmax, and the convolution that models with such a
// state have in front of it.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero::onnx_import;

// The most positions that a recurrence is unrolled for.
static constexpr int64_t maxPositions = int64_t(1) << 12;

static Value castTo(NodeContext &c, Value x, Type element) {
  if (!x || typeOf(x).getElementType() == element)
    return x;
  return c.emit<train::CastOp>(
      x, c.b.getNamedAttr("to", TypeAttr::get(element)));
}

static Value mul(NodeContext &c, Value a, Value b) {
  return c.emit<train::MulOp>({a, b});
}

/// A head of keys or values for each head of queries.
static Value repeatHeads(NodeContext &c, Value x, int64_t heads) {
  if (!x || shapeOf(x)[1] == heads)
    return x;
  SmallVector<int64_t> one(shapeOf(x)), all = one;
  one.insert(one.begin() + 2, 1);
  Value grouped = c.reshape(x, one);
  one[2] = heads / all[1];
  all[1] = heads;
  return c.reshape(c.broadcast(grouped, one), all);
}

/// Queries come in groups of as many heads as keys and values have.
static LogicalResult checkHeads(NodeContext &c, int64_t queries, int64_t keys) {
  if (keys > 0 && queries % keys == 0)
    return success();
  return c.fail("has " + std::to_string(queries) +
                " query heads, no multiple of " + std::to_string(keys) +
                " key heads");
}

//===----------------------------------------------------------------------===//
// FlexAttention
//===----------------------------------------------------------------------===//

/// What the graph attribute `name` makes of `x`; `x` without it.
static Value modify(NodeContext &c, StringRef name, Value x) {
  if (!x || !c.node.hasAttr(name))
    return x;
  const onnx::GraphProto *graph = c.node.graphAttr(name);
  if (!graph)
    return {};
  FailureOr<SmallVector<Binding>> results = c.importGraph(*graph, Binding(x));
  if (failed(results))
    return {};
  if (results->size() != 1) {
    c.node.error() << name << " has " << results->size()
                   << " outputs, expected one";
    return {};
  }
  return castTo(c, c.valueOf(results->front()), typeOf(x).getElementType());
}

static LogicalResult importFlexAttention(NodeContext &c) {
  Value q = c.value(0), k = c.value(1), v = c.value(2);
  if (!q || !k || !v)
    return failure();
  for (Value operand : {q, k, v})
    if (shapeOf(operand).size() != 4 ||
        !isa<FloatType>(typeOf(operand).getElementType()))
      return c.fail("expects floats of rank 4: batch, heads, length, size");
  int64_t heads = shapeOf(q)[1];
  if (failed(checkHeads(c, heads, shapeOf(k)[1])) ||
      failed(checkHeads(c, heads, shapeOf(v)[1])))
    return failure();
  double scale = c.node.floatAttr(
      "scale", float(1 / std::sqrt(double(shapeOf(q).back()))));
  float root = std::sqrt(float(scale));
  Value scaled = mul(c, k, c.scalar(k, root));
  Value scores = c.emit<train::MatmulOp>(
      {mul(c, q, c.scalar(q, root)), repeatHeads(c, scaled, heads)},
      c.flag("transpose_b"));
  if (!scores)
    return failure();
  int64_t number = c.node.intAttr("softmax_precision", 0);
  std::optional<DType> asked =
      number ? dtypeFromOnnx(int32_t(number)) : std::nullopt;
  Type own = typeOf(q).getElementType();
  Type wide = asked                              ? toType(*asked, c.b.getContext())
              : own.getIntOrFloatBitWidth() < 32 ? c.b.getF32Type()
                                                 : own;
  if (!isa<FloatType>(wide))
    return c.fail("softmax_precision is no float type");
  scores = modify(c, "score_mod", castTo(c, scores, wide));
  if (!scores)
    return failure();
  Value weights = modify(
      c, "prob_mod",
      c.emit<train::SoftmaxOp>(
          scores, c.integer("axis", int64_t(shapeOf(scores).size()) - 1)));
  Value values = repeatHeads(c, castTo(c, v, wide), heads);
  Value result = c.emit<train::MatmulOp>({weights, values});
  return c.result(castTo(c, result, typeOf(v).getElementType()));
}

//===----------------------------------------------------------------------===//
// LinearAttention
//===----------------------------------------------------------------------===//

/// [batch, length, heads * size] as [batch, heads, length, size]; null after an
/// error.
static Value splitHeads(NodeContext &c, Value x, int64_t heads) {
  if (!x)
    return {};
  ArrayRef<int64_t> shape = shapeOf(x);
  if (shape.size() != 3 || heads <= 0 || shape[2] % heads) {
    c.node.error() << "has an operand that is not batch, length and "
                   << heads << " heads";
    return {};
  }
  Value split = c.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  return split ? c.transpose(split, {0, 2, 1, 3}) : Value();
}

/// Position `i` of [batch, heads, length, size], which stays a dimension of 1.
static Value position(NodeContext &c, Value x, int64_t i) {
  SmallVector<int64_t> starts(4, 0), strides(4, 1), limits(shapeOf(x));
  starts[2] = i;
  limits[2] = i + 1;
  return c.emit<train::SliceOp>(x, {c.list("starts", starts),
                                    c.list("limits", limits),
                                    c.list("strides", strides)});
}

namespace {
/// Operands in f32, [batch, heads, length, size]; absent: null.
struct Linear {
  Value query, key, value, decay, beta, state;
  double scale;
};
} // namespace

static LogicalResult readLinear(NodeContext &c, Linear &l) {
  int64_t heads = c.node.intAttr("q_num_heads", 0);
  int64_t groups = c.node.intAttr("kv_num_heads", 0);
  std::string rule = c.node.stringAttr("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta";
  bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    return c.fail("has the unknown update_rule '" + printable(rule) + "'");
  if (gated != c.has(4) || delta != c.has(5))
    return c.fail("has a decay exactly where it is gated, and a beta exactly "
                  "where it corrects");
  if (failed(checkHeads(c, heads, groups)))
    return failure();
  Type wide = c.b.getF32Type();
  auto read = [&](unsigned i, int64_t count) {
    return splitHeads(c, castTo(c, c.value(i), wide), count);
  };
  l.query = read(0, heads);
  l.key = l.query ? read(1, groups) : Value();
  l.value = l.key ? read(2, groups) : Value();
  if (!l.value)
    return failure();
  if (shapeOf(l.query)[2] > maxPositions)
    return c.fail("has " + std::to_string(shapeOf(l.query)[2]) +
                  " positions, more than the " + std::to_string(maxPositions) +
                  " that are unrolled");
  if (gated && !(l.decay = read(4, groups)))
    return failure();
  if (delta) {
    Value beta = c.value(5);
    int64_t own = beta && shapeOf(beta).size() == 3 ? shapeOf(beta)[2] : groups;
    if (!(l.beta = splitHeads(c, castTo(c, beta, wide), own)))
      return failure();
  }
  int64_t size = shapeOf(l.key)[3];
  l.scale = c.node.floatAttr("scale", 0);
  l.scale = l.scale == 0 ? 1 / std::sqrt(double(size)) : l.scale;
  SmallVector<int64_t> shape = {shapeOf(l.key)[0], groups, size,
                                shapeOf(l.value)[3]};
  HostTensor zero(DType::F32, {});
  l.state = c.has(3) ? castTo(c, c.value(3), wide)
                     : c.broadcast(c.constant(zero), shape);
  if (l.state && shapeOf(l.state) != ArrayRef<int64_t>(shape))
    return c.fail("its state has not the shape batch, heads, size of keys, "
                  "size of values");
  return success(l.state != nullptr);
}

/// The state behind position `i`.
static Value updateState(NodeContext &c, const Linear &l, Value state,
                         int64_t i) {
  if (l.decay) {
    // [.., 1, size] decays rows of the state.
    Value decay = c.emit<train::ExpOp>(position(c, l.decay, i));
    state = mul(c, state, decay ? c.transpose(decay, {0, 1, 3, 2}) : Value());
  }
  Value key = position(c, l.key, i), value = position(c, l.value, i);
  if (l.beta) {
    Value known = c.emit<train::MatmulOp>({key, state});
    value = mul(c, position(c, l.beta, i),
                c.emit<train::SubOp>({value, known}));
  }
  Value written =
      c.emit<train::MatmulOp>({key, value}, c.flag("transpose_a"));
  return c.emit<train::AddOp>({state, written});
}

static LogicalResult importLinearAttention(NodeContext &c) {
  Linear l;
  if (failed(readLinear(c, l)))
    return failure();
  int64_t heads = shapeOf(l.query)[1], length = shapeOf(l.query)[2];
  SmallVector<Value> outputs;
  Value state = l.state;
  for (int64_t i = 0; i < length; ++i) {
    state = updateState(c, l, state, i);
    outputs.push_back(c.emit<train::MatmulOp>(
        {position(c, l.query, i), repeatHeads(c, state, heads)}));
    if (!outputs.back())
      return failure();
  }
  Value result = c.emit<train::ConcatOp>(outputs, c.integer("axis", 2));
  result = mul(c, result, c.scalar(result, l.scale));
  if (!result)
    return failure();
  Type own = toType(*c.dtype(0), c.b.getContext());
  if (c.numResults() > 1) {
    Value present =
        castTo(c, state, c.has(3) ? toType(*c.dtype(3), c.b.getContext()) : own);
    if (!present)
      return failure();
    c.set(1, present);
  }
  SmallVector<int64_t> shape(shapeOf(result));
  result = c.transpose(castTo(c, result, own), {0, 2, 1, 3});
  return c.result(c.reshape(result, {shape[0], shape[2], shape[1] * shape[3]}));
}

//===----------------------------------------------------------------------===//
// CausalConvWithState
//===----------------------------------------------------------------------===//

/// `x` [batch, channels, length] behind the state, or behind zeros.
static Value addState(NodeContext &c, Value x, int64_t window) {
  SmallVector<int64_t> shape(shapeOf(x));
  shape[2] = window - 1;
  Value before = c.has(3) ? c.value(3) : c.broadcast(c.scalar(x, 0), shape);
  if (!before || window == 1)
    return x;
  return c.emit<train::ConcatOp>({before, x}, c.integer("axis", 2));
}

/// The window as a sum of shifted inputs: one multiplication for each place,
/// not rounded to f16 or bf16 in between.
static Value slideWindow(NodeContext &c, Value padded, Value weight) {
  ArrayRef<int64_t> shape = shapeOf(weight), all = shapeOf(padded);
  Type own = typeOf(padded).getElementType();
  Type wide = own.getIntOrFloatBitWidth() < 32 ? c.b.getF32Type() : own;
  int64_t length = all[2] - shape[2] + 1, channels = shape[0];
  Value result;
  for (int64_t i = 0; i < shape[2]; ++i) {
    SmallVector<int64_t> starts = {0, 0, i}, ones = {1, 1, 1};
    SmallVector<int64_t> limits = {all[0], channels, i + length};
    Value part = c.emit<train::SliceOp>(padded, {c.list("starts", starts),
                                                 c.list("limits", limits),
                                                 c.list("strides", ones)});
    Value factor = c.emit<train::SliceOp>(
        weight, {c.list("starts", starts),
                 c.list("limits", {channels, 1, i + 1}),
                 c.list("strides", ones)});
    part = castTo(c, part, wide);
    factor = factor ? c.reshape(factor, {channels, 1}) : Value();
    factor = castTo(c, factor, wide);
    Value term = mul(c, part, factor);
    result = result ? c.emit<train::AddOp>({result, term}) : term;
    if (!result)
      return {};
  }
  if (!c.has(2))
    return result;
  Value bias = castTo(c, c.value(2), wide);
  return c.emit<train::AddOp>(
      {result, bias ? c.reshape(bias, {channels, 1}) : Value()});
}

static LogicalResult importCausalConv(NodeContext &c) {
  Value x = c.value(0), weight = c.value(1);
  if (!x || !weight)
    return failure();
  ArrayRef<int64_t> shape = shapeOf(weight);
  if (shapeOf(x).size() != 3 || shape.size() != 3 || shape[1] != 1 ||
      shape[0] != shapeOf(x)[1] || shape[2] < 1)
    return c.fail("expects an input of batch, channels and length, and a "
                  "window for each channel");
  std::string activation = c.node.stringAttr("activation", "none");
  bool swish = activation == "silu" || activation == "swish";
  if (!swish && activation != "none")
    return c.fail("has the unknown activation '" + printable(activation) + "'");
  Value padded = addState(c, x, shape[2]);
  if (!padded)
    return failure();
  Value result = slideWindow(c, padded, weight);
  if (swish && result)
    result = mul(c, result, c.emit<train::SigmoidOp>(result));
  result = castTo(c, result, typeOf(x).getElementType());
  if (c.numResults() > 1) {
    int64_t all = shapeOf(padded)[2];
    SmallVector<int64_t> starts = {0, 0, all - shape[2] + 1}, ones = {1, 1, 1};
    c.set(1, c.emit<train::SliceOp>(
                 padded, {c.list("starts", starts),
                          c.list("limits", shapeOf(padded)),
                          c.list("strides", ones)}));
  }
  return c.result(result);
}

void zero::onnx_import::addAttentionRelativeHandlers(HandlerTable &table) {
  table["CausalConvWithState"] = {importCausalConv, 2, 27};
  table["LinearAttention"] = {importLinearAttention, 3, 27};
  table["ai.onnx.preview:FlexAttention"] = {importFlexAttention, 3};
}
