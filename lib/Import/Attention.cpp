//===- Attention.cpp - Attention ------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention of operator sets 23 to 25: one operation where it is that, and
// otherwise (a soft cap, scores as an output) its products and softmax. A mask
// is the sum of all that hides keys: a condition or an additive mask, causality,
// a window, and the end of a padded cache.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::zero::onnx_import;

static constexpr double hidden = -std::numeric_limits<double>::infinity();

namespace {
/// What an Attention node is.
struct Attention {
  Value query, key, value; // [batch, heads, length, size]
  double scale, cap;
  int64_t mode; // of the scores that are an output
  bool causal, joined;
  int64_t left, right; // of the window; -1: none
  int64_t past = 0;    // keys before the first query
  Value padded;        // [batch, 1, 1, 1]: keys that are there; or null

  int64_t queries() const { return shapeOf(query)[2]; }
  int64_t keys() const { return shapeOf(key)[2]; }
  Type element() const { return typeOf(query).getElementType(); }
  /// Whether query i sees keys 0 to i and `causal` says it all.
  bool isPlainCausal() const { return causal && past == 0 && !padded; }
};
} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Brings an operand to [batch, heads, length, size]. Null after an error.
static Value splitHeads(NodeContext &c, unsigned i, StringRef headsAttr) {
  Value value = c.value(i);
  if (!value)
    return {};
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape.size() == 4)
    return value;
  int64_t heads = c.node.intAttr(headsAttr, 0);
  if (shape.size() != 3 || heads <= 0 || shape[2] % heads) {
    c.node.error() << "input " << i << " must have rank 4, or rank 3 and '"
                   << headsAttr << "' that divides its last dimension";
    return {};
  }
  Value split = c.reshape(value, {shape[0], shape[1], heads, shape[2] / heads});
  return split ? c.transpose(split, {0, 2, 1, 3}) : Value();
}

/// Keys or values behind those of the cache that is input `i`.
static Value addPast(NodeContext &c, unsigned i, Value value) {
  if (!value || !c.has(i))
    return value;
  return c.emit<train::ConcatOp>({c.value(i), value}, c.integer("axis", 2));
}

static LogicalResult readOperands(NodeContext &c, Attention &a) {
  if (c.has(4) != c.has(5))
    return c.fail("past keys and past values go together");
  if (c.has(4) && c.has(6))
    return c.fail("has past keys and a padded length; one of them is expected");
  a.joined = c.shape(0) && c.shape(0)->size() == 3;
  a.query = splitHeads(c, 0, "q_num_heads");
  a.key = a.query ? splitHeads(c, 1, "kv_num_heads") : Value();
  a.value = a.key ? splitHeads(c, 2, "kv_num_heads") : Value();
  if (!a.value)
    return failure();
  if (!isa<FloatType>(a.element()))
    return c.fail("expects float inputs");
  if (c.has(4) && c.shape(4))
    a.past = c.shape(4)->size() == 4 ? (*c.shape(4))[2] : 0;
  a.key = addPast(c, 4, a.key);
  a.value = addPast(c, 5, a.value);
  if (!a.value)
    return failure();
  ArrayRef<int64_t> query = shapeOf(a.query), key = shapeOf(a.key);
  if (key[1] <= 0 || query[1] % key[1])
    return c.fail("has " + std::to_string(query[1]) +
                  " query heads, no multiple of " + std::to_string(key[1]) +
                  " key heads");
  a.scale = c.node.floatAttr("scale",
                             float(1 / std::sqrt(double(query.back()))));
  a.cap = c.node.floatAttr("softcap", 0);
  a.mode = c.node.intAttr("qk_matmul_output_mode", 0);
  a.causal = c.node.intAttr("is_causal", 0) != 0;
  a.left = c.node.intAttr("left_window_size", -1);
  a.right = c.node.intAttr("right_window_size", -1);
  return success();
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// 0 where `condition` holds, -infinity elsewhere; in the scores' type.
static Value hideUnless(NodeContext &c, Value condition, Value like) {
  if (!condition)
    return {};
  return c.emit<train::WhereOp>(
      {condition, c.scalar(like, 0), c.scalar(like, hidden)});
}

/// The additive mask that `known` is: booleans say what may be looked at.
static HostTensor additive(const HostTensor &known, DType type) {
  HostTensor mask(type, known.shape);
  for (int64_t i = 0; i < mask.size(); ++i)
    mask.setFloat(i, known.type != DType::Bool ? known.number(i)
                     : known.ints[i]           ? 0
                                               : hidden);
  return mask;
}

/// The mask that is input 3, without what is missing at the end of its rows.
static Value givenMask(NodeContext &c, const Attention &a) {
  DType type = *dtypeFromType(a.element());
  if (const HostTensor *known = c.host(3)) {
    SmallVector<int64_t> shape(shapeOf(a.query));
    shape.back() = a.keys();
    HostTensor mask = additive(*known, type);
    return c.constant(broadcastShapes(mask.shape, shape) ? compactFor(mask, shape)
                                                         : mask);
  }
  Value mask = c.value(3);
  if (mask && c.dtype(3) == DType::Bool)
    return hideUnless(c, mask, a.query);
  if (mask && typeOf(mask).getElementType() != a.element())
    mask = c.emit<train::CastOp>(
        mask, c.b.getNamedAttr("to", TypeAttr::get(a.element())));
  return mask;
}

/// Input 3 as an additive mask of full rows: keys that it does not reach are
/// hidden.
static Value readMask(NodeContext &c, const Attention &a) {
  Value mask = givenMask(c, a);
  if (!mask || typeOf(mask).getRank() == 0)
    return mask;
  SmallVector<int64_t> shape(shapeOf(mask));
  if (shape.back() >= a.keys() || shape.back() == 1)
    return mask;
  SmallVector<int64_t> rest = shape;
  rest.back() = a.keys() - shape.back();
  Value tail = c.broadcast(c.scalar(mask, hidden), rest);
  return c.emit<train::ConcatOp>({mask, tail},
                                 c.integer("axis", int64_t(shape.size()) - 1));
}

/// For each query and key the number of the key less that of the query, as
/// integers [queries, keys]; null after an error.
static Value distances(NodeContext &c, const Attention &a) {
  int64_t queries = a.queries(), keys = a.keys();
  if (queries > maxHostElements / std::max<int64_t>(keys, 1)) {
    c.node.error() << "its mask is too large to import";
    return {};
  }
  HostTensor result(DType::I64, {queries, keys});
  for (int64_t i = 0; i < result.size(); ++i)
    result.ints[i] = i % keys - i / keys - a.past;
  return c.constant(result);
}

/// Causality, a window and padding as conditions; null where there is none.
static LogicalResult findConditions(NodeContext &c, const Attention &a,
                                    SmallVectorImpl<Value> &conditions) {
  bool causal = a.causal && !a.isPlainCausal();
  if (causal || a.left >= 0 || a.right >= 0) {
    Value distance = distances(c, a);
    // With a padded cache the last query is the last key that is there.
    if (distance && a.padded)
      distance = c.emit<train::SubOp>(
          {distance, c.emit<train::SubOp>(
                         {a.padded, c.scalar(a.padded, a.queries())})});
    if (!distance)
      return failure();
    auto most = [&](int64_t bound) {
      return c.emit<train::LessEqualOp>({distance, c.scalar(distance, bound)});
    };
    if (causal)
      conditions.push_back(most(0));
    if (a.right >= 0)
      conditions.push_back(most(a.right));
    if (a.left >= 0)
      conditions.push_back(c.emit<train::GreaterEqualOp>(
          {distance, c.scalar(distance, -a.left)}));
  }
  if (a.padded) {
    HostTensor numbers(DType::I64, {a.keys()});
    for (int64_t i = 0; i < numbers.size(); ++i)
      numbers.ints[i] = i;
    conditions.push_back(
        c.emit<train::LessOp>({c.constant(numbers), a.padded}));
  }
  return success(!llvm::is_contained(conditions, Value()));
}

/// All that hides keys but plain causality, four dimensions; null: nothing.
static LogicalResult buildMask(NodeContext &c, const Attention &a,
                               Value &mask) {
  SmallVector<Value> conditions;
  if (failed(findConditions(c, a, conditions)))
    return failure();
  if (c.has(3) && !(mask = readMask(c, a)))
    return failure();
  for (Value condition : conditions) {
    Value hides = hideUnless(c, condition, a.query);
    mask = mask ? c.emit<train::AddOp>({mask, hides}) : hides;
    if (!mask)
      return failure();
  }
  if (!mask || typeOf(mask).getRank() > 4)
    return success();
  SmallVector<int64_t> shape(shapeOf(mask));
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  mask = c.reshape(mask, shape);
  return success(mask != nullptr);
}

//===----------------------------------------------------------------------===//
// As products and a softmax
//===----------------------------------------------------------------------===//

/// Repeats each key or value head for its group of query heads.
static Value repeatHeads(NodeContext &c, Value value, int64_t heads) {
  SmallVector<int64_t> shape(shapeOf(value));
  if (shape[1] == heads)
    return value;
  Value grouped = c.reshape(value, {shape[0], shape[1], 1, shape[2], shape[3]});
  grouped = c.broadcast(
      grouped, {shape[0], shape[1], heads / shape[1], shape[2], shape[3]});
  return c.reshape(grouped, {shape[0], heads, shape[2], shape[3]});
}

/// Zero in place of what is no number: the probabilities of a query that sees
/// no key.
static Value zeroUnlessNumber(NodeContext &c, Value x) {
  return c.emit<train::WhereOp>(
      {c.emit<train::IsNanOp>(x), c.scalar(x, 0), x});
}

static Value castTo(NodeContext &c, Value x, Type element) {
  if (!x || typeOf(x).getElementType() == element)
    return x;
  return c.emit<train::CastOp>(
      x, c.b.getNamedAttr("to", TypeAttr::get(element)));
}

static Value capScores(NodeContext &c, Value scores, double cap) {
  Value capped = c.emit<train::TanhOp>(
      c.emit<train::MulOp>({scores, c.scalar(scores, 1 / cap)}));
  return c.emit<train::MulOp>({capped, c.scalar(scores, cap)});
}

/// The type of the softmax: at least the scores'.
static Type softmaxType(NodeContext &c, Type element) {
  int64_t number = c.node.intAttr("softmax_precision", 0);
  std::optional<DType> type =
      number ? dtypeFromOnnx(int32_t(number)) : std::nullopt;
  Type asked = type ? toType(*type, c.b.getContext()) : element;
  bool wider = isa<FloatType>(asked) && asked.getIntOrFloatBitWidth() >
                                            element.getIntOrFloatBitWidth();
  return wider ? asked : element;
}

static Value plainCausalMask(NodeContext &c, const Attention &a) {
  Value distance = distances(c, a);
  if (!distance)
    return {};
  return hideUnless(
      c, c.emit<train::LessEqualOp>({distance, c.scalar(distance, 0)}),
      a.query);
}

/// The result; output 3 is set to the scores that the node asks for.
static Value buildProducts(NodeContext &c, const Attention &a, Value mask) {
  // The root of the scale on both sides, for the precision of small floats.
  float root = std::sqrt(float(a.scale));
  int64_t heads = shapeOf(a.query)[1];
  Value q = c.emit<train::MulOp>({a.query, c.scalar(a.query, root)});
  Value k = c.emit<train::MulOp>({a.key, c.scalar(a.key, root)});
  if (!q || !k)
    return {};
  Value v = repeatHeads(c, a.value, heads);
  Value scores = c.emit<train::MatmulOp>({q, repeatHeads(c, k, heads)},
                                         c.flag("transpose_b"));
  Value shown = scores;
  if (a.cap > 0 && scores)
    scores = capScores(c, scores, a.cap);
  if (a.mode == 1)
    shown = scores;
  if (a.isPlainCausal())
    scores = c.emit<train::AddOp>({scores, plainCausalMask(c, a)});
  if (mask)
    scores = c.emit<train::AddOp>({scores, mask});
  if (a.mode == 2)
    shown = scores;
  if (!scores)
    return {};
  Value weights =
      c.emit<train::SoftmaxOp>(castTo(c, scores, softmaxType(c, a.element())),
                               c.integer("axis", 3));
  if (weights && (mask || a.causal))
    weights = zeroUnlessNumber(c, weights);
  weights = castTo(c, weights, a.element());
  if (a.mode == 3)
    shown = weights;
  if (c.isUsed(3) && shown)
    c.set(3, shown);
  return weights ? c.emit<train::MatmulOp>({weights, v}) : Value();
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

static Value buildOne(NodeContext &c, const Attention &a, Value mask) {
  SmallVector<Value> operands = {a.query, a.key, a.value};
  if (mask)
    operands.push_back(mask);
  SmallVector<NamedAttribute> attributes = {c.number("scale", a.scale)};
  if (a.isPlainCausal())
    attributes.push_back(c.flag("causal"));
  return c.emit<train::AttentionOp>(operands, attributes);
}

static LogicalResult importAttention(NodeContext &c) {
  Attention a;
  if (failed(readOperands(c, a)))
    return failure();
  if (c.has(6)) {
    Value lengths = c.value(6);
    if (!lengths)
      return failure();
    a.padded = c.reshape(castTo(c, lengths, c.b.getI64Type()),
                         {shapeOf(a.query)[0], 1, 1, 1});
    if (!a.padded)
      return failure();
  }
  Value mask;
  if (failed(buildMask(c, a, mask)))
    return failure();
  bool one = a.cap <= 0 && !c.isUsed(3) &&
             softmaxType(c, a.element()).getIntOrFloatBitWidth() <= 32;
  Value result = one ? buildOne(c, a, mask) : buildProducts(c, a, mask);
  if (!result)
    return failure();
  if (c.numResults() > 1)
    c.set(1, a.key);
  if (c.numResults() > 2)
    c.set(2, a.value);
  if (!a.joined)
    return c.result(result);
  SmallVector<int64_t> shape(shapeOf(result));
  result = c.transpose(result, {0, 2, 1, 3});
  return c.result(c.reshape(result, {shape[0], shape[2], shape[1] * shape[3]}));
}

void zero::onnx_import::addAttentionHandlers(HandlerTable &table) {
  table["Attention"] = {importAttention, 3, 23};
}
