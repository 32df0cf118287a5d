//===- TrainAttention.cpp - Attention and its gradients -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Result types, costs and derivatives of `attention` and `attention_grad`.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Attention.h"
#include "dialects/Train/InferError.h"
#include "dialects/Train/VjpBuilder.h"

using namespace mlir;
using namespace mlir::train;
using zero::Work;

//===----------------------------------------------------------------------===//
// Result types
//===----------------------------------------------------------------------===//

/// Checks the shapes of the operands that attention and its gradient share.
template <typename Adaptor>
static LogicalResult verifyAttention(InferError error, Adaptor adaptor) {
  ArrayRef<int64_t> query = shapeOf(adaptor.getQuery()),
                    key = shapeOf(adaptor.getKey()),
                    value = shapeOf(adaptor.getValue());
  if (query.size() != 4 || key.size() != 4 || value.size() != 4)
    return error("query, key and value have the shapes ", formatShape(query),
                 ", ", formatShape(key), " and ", formatShape(value),
                 ", expected four dimensions: batch, heads, length, size");
  if (llvm::is_contained(query, 0) || llvm::is_contained(key, 0) ||
      llvm::is_contained(value, 0))
    return error("has an empty operand");
  if (key[0] != query[0] || key[3] != query[3])
    return error("key has shape ", formatShape(key), ", expected the batch ",
                 query[0], " and the size ", query[3], " of the query");
  if (value.take_front(3) != key.take_front(3))
    return error("value has shape ", formatShape(value),
                 ", expected batch, heads and length of the key, ",
                 formatShape(key.take_front(3)));
  if (query[1] % key[1] != 0)
    return error("has ", query[1], " query heads, no multiple of ", key[1],
                 " key heads");
  Type element = getTensorType(adaptor.getQuery()).getElementType();
  for (Value operand : {adaptor.getKey(), adaptor.getValue()})
    if (getTensorType(operand).getElementType() != element)
      return error("query, key and value do not have the same element type");
  Value mask = adaptor.getMask();
  if (!mask)
    return success();
  SmallVector<int64_t> scores = {query[0], query[1], query[2], key[2]};
  FailureOr<SmallVector<int64_t>> wide = broadcastShapes(scores, shapeOf(mask));
  if (failed(wide) || *wide != scores)
    return error("mask of shape ", formatShape(shapeOf(mask)),
                 " does not broadcast to the scores' ", formatShape(scores));
  return success();
}

static RankedTensorType withShape(Value like, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getTensorType(like).getElementType());
}

/// The type of the attention's result.
template <typename Adaptor>
static RankedTensorType resultType(Adaptor adaptor) {
  SmallVector<int64_t> shape(shapeOf(adaptor.getQuery()));
  shape.back() = shapeOf(adaptor.getValue()).back();
  return withShape(adaptor.getQuery(), shape);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  if (failed(verifyAttention({loc, getOperationName()}, adaptor)))
    return failure();
  RankedTensorType result = resultType(adaptor);
  types.append({result, RankedTensorType::get(
                            result.getShape().drop_back(),
                            getStatisticsType(result.getElementType()))});
  return success();
}

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *,
                                                std::optional<Location> loc,
                                                Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  InferError error(loc, getOperationName());
  if (failed(verifyAttention(error, adaptor)))
    return failure();
  ArrayRef<int64_t> result = resultType(adaptor).getShape();
  if (failed(requireShape(error, "grad", adaptor.getGrad(), result)) ||
      failed(requireShape(error, "result", adaptor.getResult(), result)) ||
      failed(requireShape(error, "logsumexp", adaptor.getLogsumexp(),
                          result.drop_back())))
    return failure();
  types.append({adaptor.getQuery().getType(), adaptor.getKey().getType(),
                adaptor.getValue().getType()});
  return success();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// Checks the dropout of the probabilities.
template <typename Op>
static LogicalResult verifyDropout(Op op) {
  bool drops = bool(op.getDropoutKey());
  if (drops != bool(op.getFirstSample()) || drops != bool(op.getRatioAttr()))
    return op.emitOpError(
        "has some of 'dropout_key', 'first_sample' and 'ratio', not all");
  if (!drops)
    return op.getSamples() ? op.emitOpError("has 'samples' without dropout")
                           : success();
  double ratio = op.getRatio()->convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return op.emitOpError("ratio is ") << ratio << ", expected one in [0, 1)";
  int64_t batch = shapeOf(op.getQuery())[0];
  if (auto samples = op.getSamplesAttr();
      samples && (samples.getInt() <= 0 || batch % samples.getInt() != 0))
    return op.emitOpError("has ")
           << samples.getInt() << " samples in a batch of " << batch;
  return success();
}

LogicalResult AttentionOp::verify() { return verifyDropout(*this); }
LogicalResult AttentionGradOp::verify() { return verifyDropout(*this); }

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// Pairs of a query and a key that it sees, of all heads.
template <typename Op>
static double countPairs(Op op) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery());
  double queries = query[2], keys = shapeOf(op.getKey())[2];
  double pairs = queries * keys;
  if (op.getCausal()) {
    double rising = std::min(queries, keys);
    pairs = rising * (rising + 1) / 2 + (queries - rising) * keys;
  }
  return pairs * query[0] * query[1];
}

/// Operations of a number that is drawn, as `dropout` has them.
static constexpr double kDrawFlops = 100;

/// Of an attention as a product of queries and keys with `size` multiply-adds
/// a pair.
template <typename Op>
static Work getAttentionWork(Op op, int64_t size) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery());
  double pairs = countPairs(op);
  Work work = zero::getProductWork(op, query[0] * query[1], query[2],
                                   shapeOf(op.getKey())[2], size);
  work.flops = pairs * (2 * size + (op.getDropoutKey() ? kDrawFlops : 0));
  work.transcendentals = pairs;
  return work;
}

/// The scores, and their product with the values.
Work AttentionOp::getWork() {
  return getAttentionWork(*this, shapeOf(getQuery()).back() +
                                     shapeOf(getValue()).back());
}

/// The scores again, then the gradients by values, probabilities, queries and
/// keys.
Work AttentionGradOp::getWork() {
  return getAttentionWork(*this, 3 * shapeOf(getQuery()).back() +
                                     2 * shapeOf(getValue()).back());
}

//===----------------------------------------------------------------------===//
// Derivative
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                    Grads &operandGrads) {
  if (failed(requireOnlyFirstGrad(*this, resultGrads)))
    return failure();
  auto grads = AttentionGradOp::create(
      builder, getLoc(), resultGrads[0], getQuery(), getKey(), getValue(),
      getResult(), getLogsumexp(), getMask(), getDropoutKey(), getFirstSample(),
      getScale(), getCausal(), getRatioAttr(), getSamplesAttr());
  llvm::append_range(operandGrads, grads->getResults());
  // Masks rarely have one: then nobody uses it, and it is erased.
  if (getMask())
    operandGrads.push_back(buildMaskGrad(builder, *this, resultGrads[0]));
  if (getDropoutKey())
    operandGrads.append(2, Value());
  return success();
}
