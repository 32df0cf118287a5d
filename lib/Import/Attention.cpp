//===- Attention.cpp - Attention of opset 23 ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention is decomposed as its specification says: scaled product, soft cap,
// mask, softmax, product.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::zero::onnx_import;

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

/// Repeats each key or value head for its group of query heads.
static Value repeatHeads(NodeContext &c, Value value, int64_t heads) {
  if (!value)
    return {};
  SmallVector<int64_t> shape(shapeOf(value));
  if (shape[1] == heads)
    return value;
  if (shape[1] <= 0 || heads % shape[1]) {
    c.node.error() << "has " << heads << " query heads, no multiple of "
                   << shape[1] << " key heads";
    return {};
  }
  Value grouped = c.reshape(value, {shape[0], shape[1], 1, shape[2], shape[3]});
  grouped = c.broadcast(
      grouped, {shape[0], shape[1], heads / shape[1], shape[2], shape[3]});
  return c.reshape(grouped, {shape[0], heads, shape[2], shape[3]});
}

static constexpr double masked = std::numeric_limits<float>::lowest();

/// 0 where a query may look at a key, the lowest float elsewhere.
static HostTensor causalMask(int64_t queries, int64_t keys, DType type) {
  HostTensor mask(type, {queries, keys});
  for (int64_t i = 0; i < mask.size(); ++i)
    mask.setFloat(i, i % keys > i / keys ? masked : 0);
  return mask;
}

/// Adds the mask that is input 3: booleans say what may be looked at.
static Value addMask(NodeContext &c, Value scores) {
  std::optional<DType> type = c.dtype(3);
  DType scoreType = *dtypeFromType(typeOf(scores).getElementType());
  if (type != DType::Bool)
    return c.emit<train::AddOp>({scores, c.value(3)});
  if (const HostTensor *known = c.host(3)) {
    HostTensor mask(scoreType, known->shape);
    for (int64_t i = 0; i < mask.size(); ++i)
      mask.setFloat(i, known->ints[i] ? 0 : masked);
    return c.emit<train::AddOp>(
        {scores, c.constant(compactFor(mask, shapeOf(scores)))});
  }
  return c.emit<train::WhereOp>({c.value(3), scores, c.scalar(scores, masked)});
}

/// Scores between queries and keys, scaled, capped and masked.
static Value maskedScores(NodeContext &c, Value q, Value k) {
  double scale = c.node.floatAttr(
      "scale", float(1 / std::sqrt(double(shapeOf(q).back()))));
  double cap = c.node.floatAttr("softcap", 0);
  // The root of the scale on both sides, for the precision of small floats.
  float root = std::sqrt(float(scale));
  q = c.emit<train::MulOp>({q, c.scalar(q, root)});
  k = c.emit<train::MulOp>({k, c.scalar(k, root)});
  Value scores = c.emit<train::MatmulOp>({q, k}, c.flag("transpose_b"));
  if (cap != 0 && scores) {
    Value capped = c.emit<train::TanhOp>(
        c.emit<train::MulOp>({scores, c.scalar(scores, 1 / cap)}));
    scores = c.emit<train::MulOp>({capped, c.scalar(scores, cap)});
  }
  if (scores && c.node.intAttr("is_causal", 0)) {
    ArrayRef<int64_t> shape = shapeOf(scores);
    if (shape[2] > maxHostElements / std::max<int64_t>(shape[3], 1)) {
      c.node.error() << "its causal mask is too large to import";
      return {};
    }
    HostTensor mask = causalMask(
        shape[2], shape[3], *dtypeFromType(typeOf(scores).getElementType()));
    scores = c.emit<train::AddOp>({scores, c.constant(mask)});
  }
  return scores && c.has(3) ? addMask(c, scores) : scores;
}

static LogicalResult importAttention(NodeContext &c) {
  if (c.has(4) || c.has(5) || c.has(6))
    return c.fail("past keys, past values and padded lengths are not "
                  "supported in training");
  Value q = splitHeads(c, 0, "q_num_heads");
  Value k = q ? splitHeads(c, 1, "kv_num_heads") : Value();
  Value v = k ? splitHeads(c, 2, "kv_num_heads") : Value();
  if (!v)
    return failure();
  if (!isa<FloatType>(typeOf(q).getElementType()))
    return c.fail("expects float inputs");
  int64_t heads = shapeOf(q)[1];
  bool joined = c.shape(0)->size() == 3;
  k = repeatHeads(c, k, heads);
  v = k ? repeatHeads(c, v, heads) : Value();
  if (!v)
    return failure();
  Value scores = maskedScores(c, q, k);
  if (!scores)
    return failure();
  Value weights = c.emit<train::SoftmaxOp>(scores, c.integer("axis", 3));
  Value result = c.emit<train::MatmulOp>({weights, v});
  if (!result || !joined)
    return c.result(result);
  SmallVector<int64_t> shape(shapeOf(result));
  result = c.transpose(result, {0, 2, 1, 3});
  return c.result(c.reshape(result, {shape[0], shape[2], shape[1] * shape[3]}));
}

void zero::onnx_import::addAttentionHandlers(HandlerTable &table) {
  table["Attention"] = {importAttention, 3, 23};
}
