//===- Norms.cpp - Normalizations and softmax -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Normalizations of rows, channels and groups of channels, and softmax.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"

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

/// `traced` nodes are in the training form in the file; what they make of
/// statistics that are no parameters is only their result.
static LogicalResult importTrainingBatchNorm(NodeContext &c,
                                             ArrayRef<Value> operands,
                                             NamedAttribute epsilon,
                                             bool traced) {
  SmallVector<NamedAttribute> attributes{
      epsilon, c.number("momentum", c.node.floatAttr("momentum", 0.9f))};
  if (c.isFromPyTorch())
    attributes.push_back(c.flag("unbiased"));
  auto op = c.op<train::BatchNormOp>(operands, attributes);
  if (!op)
    return failure();
  bool stores = !traced || c.binding(3).param || c.binding(4).param;
  if (stores && (failed(assignBuffer(c, 3, op.getNewRunningMean())) ||
                 failed(assignBuffer(c, 4, op.getNewRunningVar()))))
    return failure();
  for (unsigned i = 0; i < std::min(3u, c.numResults()); ++i)
    c.set(i, Value(op->getResult(i)));
  return success();
}

/// Whether the node is in its training form: an attribute from version 14 on,
/// before that the number of outputs, before 7 another attribute too.
static bool isTrainingForm(NodeContext &c) {
  if (c.node.version() >= 14)
    return c.node.intAttr("training_mode", 0);
  if (c.node.version() < 7 && c.node.intAttr("is_test", 0))
    return false;
  return c.numResults() > 1;
}

static LogicalResult importBatchNorm(NodeContext &c) {
  SmallVector<Value> operands;
  for (unsigned i = 0; i < 5; ++i)
    operands.push_back(c.value(i));
  if (llvm::is_contained(operands, Value()))
    return failure();
  if (c.node.version() < 9 && !c.node.intAttr("spatial", 1))
    return c.fail("statistics per element (spatial = 0) are not supported; "
                  "export with opset 9 or later");
  NamedAttribute epsilon =
      c.number("epsilon", c.node.floatAttr("epsilon", 1e-5f));
  if (isTrainingForm(c)) {
    c.noteTracedNorm();
    return importTrainingBatchNorm(c, operands, epsilon, /*traced=*/true);
  }
  if (c.isTraining()) {
    c.noteTrainedNorm();
    return importTrainingBatchNorm(c, operands, epsilon, /*traced=*/false);
  }
  return c.result(c.emit<train::BatchNormInferenceOp>(operands, epsilon));
}

/// `input` [N, C, ...] with each of `groups` groups of its channels brought to
/// mean 0 and variance 1, shaped [N, groups, the rest].
static Value normalizeGroups(NodeContext &c, Value input, int64_t groups) {
  ArrayRef<int64_t> shape = shapeOf(input);
  auto size = countElements(shape.drop_front());
  if (groups < 1 || shape[1] % groups != 0 || !size) {
    c.node.error() << "cannot split " << shape[1] << " channels into " << groups
                   << " groups";
    return {};
  }
  return c.emit<train::NormalizeOp>(
      c.reshape(input, {shape[0], groups, *size / groups}),
      {c.integer("axis", 2),
       c.number("epsilon", c.node.floatAttr("epsilon", 1e-5f))});
}

/// Group normalization of `groups` groups; scale and bias have one element per
/// channel, or with `perGroup` per group.
static LogicalResult importGroups(NodeContext &c, Value input, int64_t groups,
                                  bool perGroup) {
  Formula f{c};
  ArrayRef<int64_t> shape = shapeOf(input);
  Value unit = normalizeGroups(c, input, groups);
  if (!unit)
    return failure();
  if (!perGroup)
    unit = c.reshape(unit, shape);
  int64_t rank = perGroup ? 3 : shape.size();
  Value scaled = f.mul(unit, f.perChannel(c.value(1), rank));
  return c.result(
      c.reshape(f.add(scaled, f.perChannel(c.value(2), rank)), shape));
}

/// An input [N, C, ...]; null after an error.
static Value channelInput(NodeContext &c) {
  Value input = c.value(0);
  if (input && typeOf(input).getRank() < 2) {
    (void)c.fail("expects an input of rank 2 or more");
    return {};
  }
  return input;
}

static LogicalResult importInstanceNorm(NodeContext &c) {
  Value input = channelInput(c);
  return input ? importGroups(c, input, shapeOf(input)[1], /*perGroup=*/false)
               : failure();
}

/// Scale and bias belong to the groups in version 18, to the channels from 21
/// on.
static LogicalResult importGroupNorm(NodeContext &c) {
  Value input = channelInput(c);
  if (!input)
    return failure();
  return importGroups(c, input, c.node.intAttr("num_groups", 0),
                      c.node.version() < 21);
}

/// (x - mean) / (deviation + 1e-9), as the operator's definition has it.
static LogicalResult importMeanVariance(NodeContext &c) {
  Value input = c.value(0);
  if (!input)
    return failure();
  SmallVector<int64_t> axes =
      c.node.axes(c.node.intsAttr("axes", {0, 2, 3}), typeOf(input).getRank());
  if (c.node.failed())
    return failure();
  llvm::sort(axes);
  Formula f{c};
  Value mean = f.reduce<train::ReduceMeanOp>(input, axes, /*keepDims=*/true);
  Value centered = f.sub(input, mean);
  Value variance = f.reduce<train::ReduceMeanOp>(f.mul(centered, centered),
                                                 axes, /*keepDims=*/true);
  return c.result(f.div(centered, f.add(f.root(variance, 2), 1e-9)));
}

/// x / norm(x) along an axis, 0 where the norm is.
static LogicalResult importLpNorm(NodeContext &c) {
  Value input = c.value(0);
  int64_t axis = input ? normalizedAxis(c, input) : -1;
  int64_t p = c.node.intAttr("p", 2);
  if (axis < 0 || c.node.failed())
    return failure();
  if (p != 1 && p != 2)
    return c.fail("expects p of 1 or 2");
  Formula f{c};
  Value norm = f.root(f.sum(f.power(input, p), axis, /*keepDims=*/true), p);
  Value isZero = f.equal(norm, 0);
  return c.result(f.div(input, f.where(isZero, c.scalar(input, 1), norm)));
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Before version 13 all dimensions from the axis on are one.
template <typename OpTy>
static LogicalResult importSoftmax(NodeContext &c) {
  Value input = c.value(0);
  if (!input)
    return failure();
  bool isFlat = c.node.version() < 13;
  int64_t rank = typeOf(input).getRank();
  int64_t axis = c.node.axis(c.node.intAttr("axis", isFlat ? 1 : -1), rank);
  if (c.node.failed())
    return failure();
  if (!isFlat || axis == rank - 1)
    return c.result(c.emit<OpTy>(input, c.integer("axis", axis)));
  SmallVector<int64_t> shape(shapeOf(input));
  SmallVector<int64_t> flat(shapeOf(input).take_front(axis));
  flat.push_back(*countElements(ArrayRef(shape).drop_front(axis)));
  Value rows = c.emit<OpTy>(c.reshape(input, flat), c.integer("axis", axis));
  return c.result(c.reshape(rows, shape));
}

void zero::onnx_import::addNormHandlers(HandlerTable &table) {
  table["BatchNormalization"] = {importBatchNorm, 5};
  table["GroupNormalization"] = {importGroupNorm, 3, 18};
  table["InstanceNormalization"] = {importInstanceNorm, 3};
  // ONNX has it from 17 on, onnxruntime's training graphs before.
  table["LayerNormalization"] = {importLayerNorm, 2};
  table["LogSoftmax"] = {importSoftmax<train::LogSoftmaxOp>, 1};
  table["LpNormalization"] = {importLpNorm, 1};
  table["MeanVarianceNormalization"] = {importMeanVariance, 1, 9};
  table["RMSNormalization"] = {importRmsNorm, 2, 23};
  table["Softmax"] = {importSoftmax<train::SoftmaxOp>, 1};
}
