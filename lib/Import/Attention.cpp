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
  double usual = 1 / std::sqrt(double(query.back()));
  a.scale = c.node.hasAttr("scale") ? c.node.floatAttr("scale", 1) : usual;
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

/// The number of the key less that of the query, behind those of the past.
static int64_t distance(const Attention &a, int64_t i) {
  return i % a.keys() - i / a.keys() - a.past;
}

static bool isTooLarge(NodeContext &c, const Attention &a) {
  if (a.queries() <= maxHostElements / std::max<int64_t>(a.keys(), 1))
    return false;
  c.node.error() << "its mask is too large to import";
  return true;
}

/// The additive mask [queries, keys] of a window, and of causality with
/// `causal`; null after an error.
static Value constantMask(NodeContext &c, const Attention &a, bool causal) {
  if (isTooLarge(c, a))
    return {};
  HostTensor mask(*dtypeFromType(a.element()), {a.queries(), a.keys()});
  for (int64_t i = 0; i < mask.size(); ++i) {
    int64_t far = distance(a, i);
    bool seen = !(causal && far > 0) && !(a.right >= 0 && far > a.right) &&
                !(a.left >= 0 && far < -a.left);
    mask.setFloat(i, seen ? 0 : hidden);
  }
  return c.constant(mask);
}

/// Distances that depend on how many keys of a padded cache there are: the last
/// query belongs to the last of them.
static Value paddedDistances(NodeContext &c, const Attention &a) {
  if (isTooLarge(c, a))
    return {};
  HostTensor fixed(DType::I64, {a.queries(), a.keys()});
  for (int64_t i = 0; i < fixed.size(); ++i)
    fixed.ints[i] = distance(a, i);
  Value before = c.emit<train::SubOp>(
      {a.padded, c.scalar(a.padded, double(a.queries()))});
  return c.emit<train::SubOp>({c.constant(fixed), before});
}

/// Padding, and causality and a window beside it, as conditions.
static LogicalResult findConditions(NodeContext &c, const Attention &a,
                                    SmallVectorImpl<Value> &conditions) {
  if (a.causal || a.left >= 0 || a.right >= 0) {
    Value far = paddedDistances(c, a);
    if (!far)
      return failure();
    auto most = [&](int64_t bound) {
      return c.emit<train::LessEqualOp>({far, c.scalar(far, double(bound))});
    };
    if (a.causal)
      conditions.push_back(most(0));
    if (a.right >= 0)
      conditions.push_back(most(a.right));
    if (a.left >= 0)
      conditions.push_back(c.emit<train::GreaterEqualOp>(
          {far, c.scalar(far, double(-a.left))}));
  }
  HostTensor numbers(DType::I64, {a.keys()});
  for (int64_t i = 0; i < numbers.size(); ++i)
    numbers.ints[i] = i;
  conditions.push_back(c.emit<train::LessOp>({c.constant(numbers), a.padded}));
  return success(!llvm::is_contained(conditions, Value()));
}

/// All that hides keys beside input 3 and plain causality, as additive masks.
static LogicalResult findMasks(NodeContext &c, const Attention &a,
                               SmallVectorImpl<Value> &masks) {
  SmallVector<Value> conditions;
  if (a.padded && failed(findConditions(c, a, conditions)))
    return failure();
  for (Value condition : conditions)
    masks.push_back(hideUnless(c, condition, a.query));
  bool causal = a.causal && !a.isPlainCausal();
  if (!a.padded && (causal || a.left >= 0 || a.right >= 0))
    masks.push_back(constantMask(c, a, causal));
  return success(!llvm::is_contained(masks, Value()));
}

/// All that hides keys but plain causality, four dimensions; null: nothing.
static LogicalResult buildMask(NodeContext &c, const Attention &a,
                               Value &mask) {
  SmallVector<Value> masks;
  if (failed(findMasks(c, a, masks)))
    return failure();
  if (c.has(3) && !(mask = readMask(c, a)))
    return failure();
  for (Value more : masks) {
    mask = mask ? c.emit<train::AddOp>({mask, more}) : more;
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
  if (a.isPlainCausal()) {
    Attention only = a;
    only.left = only.right = -1; // the window is in the mask
    scores = c.emit<train::AddOp>({scores, constantMask(c, only, true)});
  }
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
  // No dropout: ONNX's operator has none.
  SmallVector<NamedAttribute> attributes = {
      c.number("scale", a.scale),
      c.b.getNamedAttr("operandSegmentSizes",
                       c.b.getDenseI32ArrayAttr({1, 1, 1, bool(mask), 0, 0}))};
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
