//===- LossOps.cpp - Losses -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SoftmaxCrossEntropyLoss is one operation. NegativeLogLikelihoodLoss, whose
// input may be anything, reads one element per label.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"
#include "lib/Import/InputBounds.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

/// The reduction, which is one of three; empty after an error.
static std::string readReduction(NodeContext &c) {
  std::string reduction = c.node.stringAttr("reduction", "mean");
  if (reduction == "mean" || reduction == "sum" || reduction == "none")
    return reduction;
  (void)c.fail("reduction '" + reduction +
               "' is not supported; use 'mean', 'sum' or 'none'");
  return {};
}

static LogicalResult importCrossEntropy(NodeContext &c) {
  Value logits = c.value(0), labels = c.value(1);
  std::string reduction = readReduction(c);
  if (!logits || !labels || reduction.empty())
    return failure();
  if (typeOf(logits).getRank() < 2)
    return c.fail("expects logits of rank 2 or more");
  SmallVector<Value> operands{logits, labels};
  if (c.has(2))
    operands.push_back(c.value(2));
  if (c.isUsed(1))
    c.set(1, c.emit<train::LogSoftmaxOp>(logits, c.integer("axis", 1)));
  Value loss = c.emit<train::CrossEntropyOp>(
      operands,
      {c.integer("axis", 1),
       c.integer("ignore_index", c.node.intAttr("ignore_index", -100)),
       c.b.getNamedAttr("reduction", c.b.getStringAttr(reduction))});
  return c.result(Formula{c}.cast(loss, typeOf(logits).getElementType()));
}

//===----------------------------------------------------------------------===//
// Negative log-likelihood
//===----------------------------------------------------------------------===//

namespace {
/// The loss of an input [N, C, ...] with labels [N, ...], seen as [N, C, rest]
/// and [N, rest].
struct Likelihood {
  explicit Likelihood(NodeContext &c) : c(c), f{c} {}

  NodeContext &c;
  Formula f;
  Value input, labels; ///< labels in i64, 0 where they are ignored
  Value counts;        ///< i1: the label is not ignored; null: all count
  int64_t batch = 0, classes = 0, rest = 0;
  Type compute;

  LogicalResult read();
  Value emitLosses();
  Value emitWeights();
};
} // namespace

/// 0, step, 2 * step, ... as a column or a row.
static Value emitSteps(NodeContext &c, ArrayRef<int64_t> shape, int64_t count,
                       int64_t step) {
  HostTensor steps(DType::I64, shape);
  for (int64_t i = 0; i < count; ++i)
    steps.setInt(i, i * step);
  return c.constant(steps);
}

LogicalResult Likelihood::read() {
  input = c.value(0);
  Value given = c.value(1);
  if (!input || !given)
    return failure();
  ArrayRef<int64_t> shape = shapeOf(input);
  SmallVector<int64_t> expected(shape);
  if (shape.size() < 2)
    return c.fail("expects an input of rank 2 or more");
  expected.erase(expected.begin() + 1);
  if (shapeOf(given) != ArrayRef(expected))
    return c.fail("expects labels of the input's shape without its classes");
  batch = shape[0];
  classes = shape[1];
  rest = *countElements(shape.drop_front(2));
  Type element = typeOf(input).getElementType();
  compute = element.isF64() ? element : Type(c.b.getF32Type());
  std::optional<int64_t> ignoredLabel;
  if (c.node.hasAttr("ignore_index"))
    ignoredLabel = c.node.intAttr("ignore_index", 0);
  boundInput(given, 0, classes - 1, ignoredLabel);
  labels = f.cast(c.reshape(given, {batch, rest}), c.b.getI64Type());
  if (!labels || !ignoredLabel)
    return success(bool(labels));
  HostTensor ignored(DType::I64, {});
  ignored.setInt(0, *ignoredLabel);
  counts = c.emit<train::NotOp>(
      c.emit<train::EqualOp>({labels, c.constant(ignored)}));
  labels = f.where(counts, labels, c.scalar(labels, 0));
  return success(bool(labels));
}

/// -input[n, label, r] for each label.
Value Likelihood::emitLosses() {
  int64_t elements = batch * classes * rest;
  Value position = f.mul(labels, double(rest));
  if (batch > 1)
    position = f.add(position, emitSteps(c, {batch, 1}, batch, classes * rest));
  if (rest > 1)
    position = f.add(position, emitSteps(c, {1, rest}, rest, 1));
  Value picked = c.emit<train::GatherOp>({c.reshape(input, elements), position},
                                         c.integer("axis", 0));
  return f.neg(f.cast(picked, compute));
}

/// What each label counts, 0 where it is ignored; null without an error where
/// all count 1.
Value Likelihood::emitWeights() {
  Value weights;
  if (c.has(2))
    weights = f.cast(
        c.emit<train::GatherOp>({c.value(2), labels}, c.integer("axis", 0)),
        compute);
  else if (counts)
    return f.cast(counts, compute);
  if (counts && weights)
    weights = f.where(counts, weights, c.scalar(weights, 0));
  return weights;
}

static LogicalResult importLikelihood(NodeContext &c) {
  Likelihood l(c);
  std::string reduction = readReduction(c);
  if (reduction.empty() || failed(l.read()))
    return failure();
  Value given = c.has(2) ? c.value(2) : Value();
  if (given && shapeOf(given) != ArrayRef<int64_t>(l.classes))
    return c.fail("expects a weight for each of " + Twine(l.classes) +
                  " classes");
  Value losses = l.emitLosses(), weights = l.emitWeights();
  bool weighted = c.has(2) || l.counts;
  if (c.node.failed() || !losses || (weighted && !weights))
    return failure();
  Formula f{c};
  if (weights)
    losses = f.mul(losses, weights);
  if (l.counts)
    losses = f.where(l.counts, losses, c.scalar(losses, 0));
  Value loss;
  if (reduction == "none")
    loss = c.reshape(losses, *c.shape(1));
  else if (reduction == "mean" && !weights)
    loss = f.reduce<train::ReduceMeanOp>(losses, {0, 1}, false);
  else
    loss = f.sum(losses, {0, 1}, false);
  if (reduction == "mean" && weights)
    loss = f.div(loss, f.sum(weights, {0, 1}, false));
  return c.result(f.cast(loss, typeOf(l.input).getElementType()));
}

void zero::onnx_import::addLossHandlers(HandlerTable &table) {
  table["NegativeLogLikelihoodLoss"] = {importLikelihood, 2, 12};
  table["SoftmaxCrossEntropyLoss"] = {importCrossEntropy, 2, 12};
}
