//===- Norms.cpp - Normalizations, softmax, losses, reductions ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that combine elements along axes.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Normalizations
//===----------------------------------------------------------------------===//

/// The normalized axis, counted from the front; -1 after an error.
static int64_t normalizedAxis(NodeContext &c, Value input) {
  int64_t axis =
      c.node.axis(c.node.intAttr("axis", -1), typeOf(input).getRank());
  return c.node.failed() ? -1 : axis;
}

/// The scale or bias `i` of a normalization from `axis` on, brought to the
/// normalized shape: ONNX lets it broadcast.
static Value affineOperand(NodeContext &c, unsigned i, Value input,
                           int64_t axis) {
  Value value = c.value(i);
  if (!value)
    return {};
  ArrayRef<int64_t> shape = shapeOf(input).drop_front(axis);
  ArrayRef<int64_t> own = shapeOf(value);
  if (own.size() <= shape.size() && broadcastShapes(own, shape))
    return c.broadcast(value, shape);
  c.node.error() << "input " << i
                 << " does not have the shape of the normalized dimensions";
  return {};
}

static LogicalResult importLayerNorm(NodeContext &c) {
  Value input = c.value(0);
  int64_t axis = input ? normalizedAxis(c, input) : -1;
  if (axis < 0)
    return failure();
  SmallVector<Value> operands{input, affineOperand(c, 1, input, axis)};
  if (c.has(2))
    operands.push_back(affineOperand(c, 2, input, axis));
  auto op = c.op<train::LayerNormOp>(
      operands, {c.integer("axis", axis),
                 c.number("epsilon", c.node.floatAttr("epsilon", 1e-5f))});
  if (!op)
    return failure();
  for (unsigned i = 0; i < std::min(3u, c.numResults()); ++i)
    c.set(i, Value(op->getResult(i)));
  return success();
}

static LogicalResult importRmsNorm(NodeContext &c) {
  Value input = c.value(0);
  int64_t axis = input ? normalizedAxis(c, input) : -1;
  if (axis < 0)
    return failure();
  Value scale = affineOperand(c, 1, input, axis);
  return c.result(c.emit<train::RmsNormOp>(
      {input, scale},
      {c.integer("axis", axis),
       c.number("epsilon", c.node.floatAttr("epsilon", 1e-5f))}));
}

/// Stores an updated running statistic where it was read from.
static LogicalResult assignBuffer(NodeContext &c, unsigned input, Value value) {
  Param *param = c.binding(input).param;
  if (!param || param->role != Role::Buffer)
    return c.fail("its running statistics must be initializers");
  zero::AssignOp::create(c.b, c.loc(), param->name, value);
  return success();
}

static LogicalResult importTrainingBatchNorm(NodeContext &c,
                                             ArrayRef<Value> operands,
                                             NamedAttribute epsilon) {
  SmallVector<NamedAttribute> attributes{
      epsilon, c.number("momentum", c.node.floatAttr("momentum", 0.9f))};
  if (c.isFromPyTorch())
    attributes.push_back(c.flag("unbiased"));
  auto op = c.op<train::BatchNormOp>(operands, attributes);
  if (!op || failed(assignBuffer(c, 3, op.getNewRunningMean())) ||
      failed(assignBuffer(c, 4, op.getNewRunningVar())))
    return failure();
  for (unsigned i = 0; i < std::min(3u, c.numResults()); ++i)
    c.set(i, Value(op->getResult(i)));
  return success();
}

static LogicalResult importBatchNorm(NodeContext &c) {
  SmallVector<Value> operands;
  for (unsigned i = 0; i < 5; ++i)
    operands.push_back(c.value(i));
  if (llvm::is_contained(operands, Value()))
    return failure();
  // Before version 14 the number of outputs says which form it is.
  bool training = c.node.version() >= 14 ? c.node.intAttr("training_mode", 0)
                                         : c.numResults() > 1;
  NamedAttribute epsilon =
      c.number("epsilon", c.node.floatAttr("epsilon", 1e-5f));
  if (training) {
    c.noteTracedNorm();
    return importTrainingBatchNorm(c, operands, epsilon);
  }
  if (c.isTraining()) {
    c.noteTrainedNorm();
    return importTrainingBatchNorm(c, operands, epsilon);
  }
  return c.result(c.emit<train::BatchNormInferenceOp>(operands, epsilon));
}

//===----------------------------------------------------------------------===//
// Softmax and losses
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult importSoftmax(NodeContext &c) {
  Value input = c.value(0);
  int64_t axis = input ? normalizedAxis(c, input) : -1;
  if (axis < 0)
    return failure();
  return c.result(c.emit<OpTy>(input, c.integer("axis", axis)));
}

static LogicalResult importCrossEntropy(NodeContext &c) {
  Value logits = c.value(0), labels = c.value(1);
  if (!logits || !labels)
    return failure();
  if (c.has(2))
    return c.fail("class weights are not supported");
  std::string reduction = c.node.stringAttr("reduction", "mean");
  if (reduction != "mean")
    return c.fail("reduction '" + reduction + "' is not supported; use 'mean'");
  if (typeOf(logits).getRank() < 2)
    return c.fail("expects logits of rank 2 or more");
  if (c.isUsed(1))
    c.set(1, c.emit<train::LogSoftmaxOp>(logits, c.integer("axis", 1)));
  return c.result(c.emit<train::CrossEntropyOp>(
      {logits, labels},
      {c.integer("axis", 1),
       c.integer("ignore_index", c.node.intAttr("ignore_index", -100))}));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Axes are an attribute up to a version and an input from it on: 13 for
/// ReduceSum, 18 for the others.
static std::optional<SmallVector<int64_t>> reducedAxes(NodeContext &c,
                                                       int64_t rank) {
  SmallVector<int64_t> axes = c.node.intsAttr("axes");
  if (c.has(1)) {
    auto given = c.ints(1, "axes");
    if (!given)
      return std::nullopt;
    axes = *given;
  }
  if (axes.empty() && !c.node.intAttr("noop_with_empty_axes", 0))
    for (int64_t d = 0; d < rank; ++d)
      axes.push_back(d);
  axes = c.node.axes(axes, rank);
  llvm::sort(axes);
  return axes;
}

template <typename OpTy>
static LogicalResult importReduce(NodeContext &c) {
  Value input = c.value(0);
  if (!input)
    return failure();
  auto axes = reducedAxes(c, typeOf(input).getRank());
  if (!axes || c.node.failed())
    return failure();
  SmallVector<NamedAttribute> attributes{c.list("axes", *axes)};
  if (c.node.intAttr("keepdims", 1))
    attributes.push_back(c.flag("keepdims"));
  return c.result(c.emit<OpTy>(input, attributes));
}

void zero::onnx_import::addNormHandlers(HandlerTable &table) {
  table["BatchNormalization"] = {importBatchNorm, 5};
  table["LayerNormalization"] = {importLayerNorm, 2, 17};
  table["LogSoftmax"] = {importSoftmax<train::LogSoftmaxOp>, 1};
  table["RMSNormalization"] = {importRmsNorm, 2, 23};
  table["Softmax"] = {importSoftmax<train::SoftmaxOp>, 1};
  table["SoftmaxCrossEntropyLoss"] = {importCrossEntropy, 2};
}

void zero::onnx_import::addReductionHandlers(HandlerTable &table) {
  table["ReduceMax"] = {importReduce<train::ReduceMaxOp>, 1};
  table["ReduceMean"] = {importReduce<train::ReduceMeanOp>, 1};
  table["ReduceMin"] = {importReduce<train::ReduceMinOp>, 1};
  table["ReduceSum"] = {importReduce<train::ReduceSumOp>, 1};
}
