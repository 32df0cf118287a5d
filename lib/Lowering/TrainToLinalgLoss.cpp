//===- TrainToLinalgLoss.cpp - Cross-entropy ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cross-entropy over rows of logits. The loss adds up in f64. A label that is
// no class makes the loss not a number; it never reads outside of its row.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::zero;

namespace {
/// What a row's label says.
struct Label {
  Value ignored; ///< i1: the row does not count
  Value valid;   ///< i1: it is a class
  Value index;   ///< a class even if it is not valid
};
} // namespace

static Value isIgnored(OpBuilder &b, Location loc, Value label,
                       int64_t ignoreIndex) {
  Value ignore = arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(label.getType(), ignoreIndex));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, label, ignore);
}

static Label readLabel(OpBuilder &b, Location loc, Value labels, ValueRange at,
                       int64_t classes, int64_t ignoreIndex) {
  Value label = extractElement(b, loc, labels, at);
  Value ignored = isIgnored(b, loc, label, ignoreIndex);
  Value wide = convertScalar(b, loc, label, b.getI64Type());
  Value low = constantScalar(b, loc, b.getI64Type(), 0);
  Value high = constantScalar(b, loc, b.getI64Type(), classes - 1);
  Value clamped = arith::MaxSIOp::create(
      b, loc, arith::MinSIOp::create(b, loc, wide, high), low);
  Value valid =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, wide, clamped);
  Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), clamped);
  return {ignored, valid, index};
}

/// log(sum(exp(row))) without overflow.
static Value logSumExp(OpBuilder &b, Location loc, Value row, Type compute) {
  Value low =
      constantScalar(b, loc, compute, -std::numeric_limits<double>::infinity());
  Value max = reduceElements(
      b, loc, row, low, [&](OpBuilder &n, Location at, ValueRange args) {
        Value x = convertScalar(n, at, args[0], compute);
        return SmallVector<Value>{maxScalar(n, at, x, args[1])};
      })[0];
  Value sum = sumElements(
      b, loc, row, compute, [&](OpBuilder &n, Location at, ValueRange args) {
        Value x = convertScalar(n, at, args[0], compute);
        Value shifted = arith::SubFOp::create(n, at, x, max);
        return SmallVector<Value>{math::ExpOp::create(n, at, shifted)};
      });
  return arith::AddFOp::create(b, loc, max, math::LogOp::create(b, loc, sum));
}

/// What the label's loss counts: its weight, 1 without weights, 0 if it is
/// ignored.
static Value getWeight(OpBuilder &b, Location loc, Label label, Value weights,
                       Type type) {
  Value weight = constantScalar(b, loc, type, 1);
  if (weights)
    weight = convertScalar(b, loc, extractElement(b, loc, weights, label.index),
                           type);
  return arith::SelectOp::create(b, loc, label.ignored,
                                 constantScalar(b, loc, type, 0), weight);
}

/// lse - logit in f64, times `weight` where there is one, and 0 where the label
/// is ignored.
static Value getLoss(OpBuilder &b, Location loc, Label label, Value lse,
                     Value logit, Value weight) {
  Type f64 = b.getF64Type();
  Value loss =
      convertScalar(b, loc, arith::SubFOp::create(b, loc, lse, logit), f64);
  if (weight)
    loss = arith::MulFOp::create(b, loc, loss, weight);
  Value nan =
      constantScalar(b, loc, f64, std::numeric_limits<double>::quiet_NaN());
  loss = arith::SelectOp::create(b, loc, label.valid, loss, nan);
  return arith::SelectOp::create(b, loc, label.ignored,
                                 constantScalar(b, loc, f64, 0), loss);
}

static SmallVector<Value> lowerCrossEntropy(OpBuilder &b,
                                            train::CrossEntropyOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = getTensorType(op.getLogits());
  Type compute = getTensorType(op.getLse()).getElementType();
  Type f64 = b.getF64Type();
  int64_t classes = type.getDimSize(op.getAxis());
  bool isWhole = op.getReduction() != "none";
  Rows rows(type.getShape(), op.getAxis());
  auto body = [&](OpBuilder &n, Location at, ValueRange indices,
                  ValueRange carried) -> SmallVector<Value> {
    Value row = rows.extract(n, at, op.getLogits(), indices);
    Value lse = logSumExp(n, at, row, compute);
    Label label =
        readLabel(n, at, op.getLabels(), indices, classes, op.getIgnoreIndex());
    Value logit =
        convertScalar(n, at, extractElement(n, at, row, label.index), compute);
    Value weight = getWeight(n, at, label, op.getWeights(), f64);
    Value loss =
        getLoss(n, at, label, lse, logit, op.getWeights() ? weight : Value());
    lse = insertElement(n, at, lse, carried[0], indices);
    if (!isWhole)
      return {lse, insertElement(n, at, convertScalar(n, at, loss, compute),
                                 carried[1], indices)};
    return {lse, arith::AddFOp::create(n, at, carried[1], loss),
            arith::AddFOp::create(n, at, carried[2], weight)};
  };
  SmallVector<Value> inits = {emptyTensor(b, loc, op.getLse().getType())};
  if (isWhole)
    inits.append(2, constantScalar(b, loc, f64, 0));
  else
    inits.push_back(emptyTensor(b, loc, op.getLoss().getType()));
  SmallVector<Value> results =
      buildLoops(b, loc, rows.getExtents(), inits, body);
  if (!isWhole)
    return {results[1], results[0]};
  Value loss = results[1];
  if (op.getReduction() == "mean")
    loss = arith::DivFOp::create(b, loc, loss, results[2]);
  loss = convertScalar(b, loc, loss, compute);
  return {scalarTensor(b, loc, loss, op.getLoss().getType()), results[0]};
}

/// The sum of the weights of the labels that count.
static Value sumWeights(OpBuilder &b, train::CrossEntropyGradOp op,
                        int64_t classes, Type type) {
  Location loc = op.getLoc();
  ArrayRef<int64_t> shape = getTensorType(op.getLabels()).getShape();
  return buildLoops(b, loc, shape, constantScalar(b, loc, type, 0),
                    [&](OpBuilder &n, Location at, ValueRange indices,
                        ValueRange carried) -> SmallVector<Value> {
                      Label label = readLabel(n, at, op.getLabels(), indices,
                                              classes, op.getIgnoreIndex());
                      Value weight =
                          getWeight(n, at, label, op.getWeights(), type);
                      return {arith::AddFOp::create(n, at, carried[0], weight)};
                    })[0];
}

/// The number of labels that count, as a float.
static Value countLabels(OpBuilder &b, Location loc, Value labels,
                         int64_t ignoreIndex, Type type) {
  Type i64 = b.getI64Type();
  Value count = sumElements(
      b, loc, labels, i64, [&](OpBuilder &n, Location at, ValueRange args) {
        Value ignored = isIgnored(n, at, args[0], ignoreIndex);
        return SmallVector<Value>{arith::SelectOp::create(
            n, at, ignored, constantScalar(n, at, i64, 0),
            constantScalar(n, at, i64, 1))};
      });
  return arith::SIToFPOp::create(b, loc, type, count);
}

/// The gradient by the loss of every label of weight 1; null where each label
/// has its own.
static Value getCommonShare(OpBuilder &b, train::CrossEntropyGradOp op,
                            int64_t classes, Type compute) {
  Location loc = op.getLoc();
  if (op.getReduction() == "none")
    return {};
  Value grad =
      convertScalar(b, loc, extractScalar(b, loc, op.getGrad()), compute);
  if (op.getReduction() == "sum")
    return grad;
  Value count = op.getWeights() ? sumWeights(b, op, classes, compute)
                                : countLabels(b, loc, op.getLabels(),
                                              op.getIgnoreIndex(), compute);
  return arith::DivFOp::create(b, loc, grad, count);
}

static SmallVector<Value> lowerCrossEntropyGrad(OpBuilder &b,
                                                train::CrossEntropyGradOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = getTensorType(op.getLogits());
  Type element = type.getElementType();
  Type compute = getTensorType(op.getLse()).getElementType();
  int64_t classes = type.getDimSize(op.getAxis());
  Value common = getCommonShare(b, op, classes, compute);
  Value zero = constantScalar(b, loc, compute, 0);
  Rows rows(type.getShape(), op.getAxis());
  auto body = [&](OpBuilder &n, Location at, ValueRange indices,
                  ValueRange carried) -> SmallVector<Value> {
    Value row = rows.extract(n, at, op.getLogits(), indices);
    Value lse = extractElement(n, at, op.getLse(), indices);
    Label label =
        readLabel(n, at, op.getLabels(), indices, classes, op.getIgnoreIndex());
    Value share =
        common
            ? common
            : convertScalar(n, at, extractElement(n, at, op.getGrad(), indices),
                            compute);
    if (op.getWeights())
      share = arith::MulFOp::create(
          n, at, share, getWeight(n, at, label, op.getWeights(), compute));
    Value out = emptyTensor(n, at, getTensorType(row).getShape(), element);
    auto getPart = [&](OpBuilder &nested, Location here, Value logit) -> Value {
      Value x = convertScalar(nested, here, logit, compute);
      Value shifted = arith::SubFOp::create(nested, here, x, lse);
      Value p = math::ExpOp::create(nested, here, shifted);
      Value part = arith::MulFOp::create(nested, here, p, share);
      return arith::SelectOp::create(nested, here, label.ignored, zero, part);
    };
    Value result = mapElements(
        n, at, out, row, [&](OpBuilder &nested, Location here, ValueRange e) {
          Value part = getPart(nested, here, e[0]);
          return SmallVector<Value>{convertScalar(nested, here, part, element)};
        })[0];
    // What was rounded when it was stored is computed again.
    Value own = element == compute
                    ? extractElement(n, at, result, label.index)
                    : getPart(n, at, extractElement(n, at, row, label.index));
    Value target = arith::SelectOp::create(n, at, label.ignored, zero, share);
    own = arith::SubFOp::create(n, at, own, target);
    result = insertElement(n, at, convertScalar(n, at, own, element), result,
                           label.index);
    return {rows.insert(n, at, result, carried[0], indices)};
  };
  return buildLoops(b, loc, rows.getExtents(), emptyTensor(b, loc, type), body);
}

void zero::populateTrainLossToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerCrossEntropy);
  addLowering(patterns, lowerCrossEntropyGrad);
}
