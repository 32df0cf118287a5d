//===- TrainAttentionParts.cpp - What attention stands for ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Attention.h.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Attention.h"
#include "dialects/Train/VjpBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace mlir::train;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
/// Operands of an attention or of its gradients, and what both compute.
struct Parts {
  template <typename Op>
  Parts(OpBuilder &builder, Op op)
      : b(builder, op), query(op.getQuery()), key(op.getKey()),
        value(op.getValue()), mask(op.getMask()),
        dropoutKey(op.getDropoutKey()), firstSample(op.getFirstSample()),
        ratio(op.getRatioAttr()), samples(op.getSamplesAttr()),
        scale(op.getScale().convertToDouble()), causal(op.getCausal()) {}

  int64_t groups() const {
    return b.shapeOf(query)[1] / std::max<int64_t>(b.shapeOf(key)[1], 1);
  }
  Value repeatHeads(Value x) const;
  Value sumHeads(Value grad) const;
  Value causalMask(ArrayRef<int64_t> scores) const;
  Value scores() const;
  Value probabilities(Value logsumexp) const;
  Value dropOut(Value x) const;
  Value unlessEmpty(Value sizes, Value then) const;
  Value scoreGrad(Value grad, Value result, Value probabilities) const;

  VjpBuilder b;
  Value query, key, value, mask, dropoutKey, firstSample;
  FloatAttr ratio;
  IntegerAttr samples;
  double scale;
  bool causal;
};
} // namespace

/// A head of keys or values for each head of queries.
Value Parts::repeatHeads(Value x) const {
  if (groups() == 1)
    return x;
  SmallVector<int64_t> shape(b.shapeOf(x)), split = shape;
  split.insert(split.begin() + 2, 1);
  Value grouped = b.reshape(x, split);
  split[2] = groups();
  shape[1] *= groups();
  return b.reshape(b.broadcast(grouped, split), shape);
}

/// The reverse of `repeatHeads` for a gradient.
Value Parts::sumHeads(Value grad) const {
  if (groups() == 1)
    return grad;
  SmallVector<int64_t> split(b.shapeOf(grad));
  split[1] /= groups();
  split.insert(split.begin() + 2, groups());
  return b.sum(b.reshape(grad, split), {2});
}

/// True where a query sees a key.
Value Parts::causalMask(ArrayRef<int64_t> scores) const {
  int64_t queries = scores[2], keys = scores[3];
  SmallVector<bool> seen(queries * keys);
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j <= i && j < keys; ++j)
      seen[i * keys + j] = true;
  auto type = RankedTensorType::get({queries, keys}, b.builder.getI1Type());
  return b.make<arith::ConstantOp>(
      DenseElementsAttr::get(type, ArrayRef<bool>(seen)));
}

Value Parts::scores() const {
  Value repeated = repeatHeads(key);
  Value product =
      b.make<MatmulOp>(query, repeated, /*transpose_a=*/false, true);
  Value scores = b.scale(product, scale);
  if (mask) {
    Value cast = b.castLike(mask, scores);
    scores = b.add(scores, cast);
  }
  if (!causal)
    return scores;
  auto type = cast<FloatType>(getElementTypeOrSelf(scores));
  double lowest =
      APFloat::getLargest(type.getFloatSemantics(), /*Negative=*/true)
          .convertToDouble();
  // Behind a mask that hides all others it must not be the largest.
  Value hidden = b.scalar(scores, mask ? -kInfinity : lowest);
  Value seen = causalMask(b.shapeOf(scores));
  return b.where(seen, scores, hidden);
}

/// `then`, but 0 for a query that sees no key, which `sizes` say: largest
/// scores, or logarithms of sums. Only a mask can hide all keys.
Value Parts::unlessEmpty(Value sizes, Value then) const {
  if (!mask)
    return then;
  Value none = b.scalar(sizes, -kInfinity);
  return b.where(b.make<EqualOp>(sizes, none), b.scalar(then, 0), then);
}

/// In the type of the operands, from the logarithms of their sums.
Value Parts::probabilities(Value logsumexp) const {
  SmallVector<int64_t> column(b.shapeOf(logsumexp));
  column.push_back(1);
  Value lse = b.reshape(unlessEmpty(logsumexp, logsumexp), column);
  Value wide = b.castLike(scores(), logsumexp);
  return b.castLike(b.make<ExpOp>(b.sub(wide, lse)), query);
}

/// The dropout of the probabilities on `x`, which has their shape: it is its
/// own derivative.
Value Parts::dropOut(Value x) const {
  if (!dropoutKey)
    return x;
  auto along = samples ? b.builder.getI64IntegerAttr(0) : IntegerAttr();
  return b.make<DropoutOp>(x, dropoutKey, firstSample, ratio, samples, along);
}

/// The gradient by the scores.
Value Parts::scoreGrad(Value grad, Value result, Value probabilities) const {
  Value values = repeatHeads(value);
  Value byProbability =
      dropOut(b.make<MatmulOp>(grad, values, /*transpose_a=*/false, true));
  Value mean = b.sum(b.mul(grad, result), {3}, /*keepDims=*/true);
  return b.mul(probabilities, b.sub(byProbability, mean));
}

SmallVector<Value> mlir::train::decomposeAttention(OpBuilder &builder,
                                                   AttentionOp op) {
  Parts parts(builder, op);
  VjpBuilder &b = parts.b;
  Value scores = parts.scores();
  Value softmax = b.make<SoftmaxOp>(scores, /*axis=*/3);
  Value largest;
  if (op.getMask() || !op.getLogsumexp().use_empty())
    largest = b.make<ReduceMaxOp>(scores, ArrayRef<int64_t>{3}, true);
  softmax = parts.dropOut(parts.unlessEmpty(largest, softmax));
  Value values = parts.repeatHeads(op.getValue());
  Value result = b.make<MatmulOp>(softmax, values, false, false);
  Value logsumexp;
  if (!op.getLogsumexp().use_empty()) {
    Value wide = b.castLike(scores, op.getLogsumexp());
    largest = b.castLike(parts.unlessEmpty(largest, largest), wide);
    Value sum = b.sum(b.make<ExpOp>(b.sub(wide, largest)), {3});
    Value log = b.make<LogOp>(sum);
    logsumexp = b.add(b.reshape(largest, b.shapeOf(sum)), log);
  }
  return {result, logsumexp};
}

SmallVector<Value> mlir::train::decomposeAttention(OpBuilder &builder,
                                                   AttentionGradOp op) {
  Parts parts(builder, op);
  VjpBuilder &b = parts.b;
  Value probabilities = parts.probabilities(op.getLogsumexp());
  Value dropped = parts.dropOut(probabilities);
  Value valueGrad = b.make<MatmulOp>(dropped, op.getGrad(),
                                     /*transpose_a=*/true, false);
  Value scoreGrad =
      parts.scoreGrad(op.getGrad(), op.getResult(), probabilities);
  Value scaled = b.scale(scoreGrad, parts.scale);
  Value keys = parts.repeatHeads(op.getKey());
  Value queryGrad = b.make<MatmulOp>(scaled, keys, false, false);
  Value keyGrad =
      b.make<MatmulOp>(scaled, op.getQuery(), /*transpose_a=*/true, false);
  keyGrad = parts.sumHeads(keyGrad);
  return {queryGrad, keyGrad, parts.sumHeads(valueGrad)};
}

Value mlir::train::buildMaskGrad(OpBuilder &builder, AttentionOp op,
                                 Value grad) {
  Parts parts(builder, op);
  Value probabilities = parts.probabilities(op.getLogsumexp());
  Value scoreGrad = parts.scoreGrad(grad, op.getResult(), probabilities);
  return parts.b.castLike(parts.b.unbroadcast(scoreGrad, op.getMask()),
                          op.getMask());
}
