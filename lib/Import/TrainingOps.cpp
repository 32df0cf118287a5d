//===- TrainingOps.cpp - Gradients that a model computes itself -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators of onnxruntime's training graphs: most are what the VJPs of the
// train dialect are made of. Their definitions are in onnxruntime's
// orttraining/core/graph/training_op_defs.cc and gradient_builder.cc.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"
#include "lib/Import/IndexMath.h"
#include "lib/Import/Window.h"

#include "zero/Autodiff/Autodiff.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

static int64_t rankOf(Value value) { return typeOf(value).getRank(); }

/// All inputs as values; nothing after an error.
static std::optional<SmallVector<Value>> allValues(NodeContext &c,
                                                   unsigned count) {
  SmallVector<Value> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(c.value(i));
  if (llvm::is_contained(values, Value()))
    return std::nullopt;
  return values;
}

static NamedAttribute text(NodeContext &c, StringRef name, StringRef value) {
  return c.b.getNamedAttr(name, c.b.getStringAttr(value));
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// An activation's gradient from two values, the gradient and what is saved.
template <typename OpTy>
static LogicalResult importActivationGrad(NodeContext &c) {
  auto values = allValues(c, 2);
  return values ? c.result(c.emit<OpTy>(*values)) : failure();
}

/// dY * (1 - Y * Y).
static LogicalResult importTanhGrad(NodeContext &c) {
  Formula f{c};
  auto v = allValues(c, 2);
  if (!v)
    return failure();
  Value y = (*v)[1];
  return c.result(f.mul((*v)[0], f.sub(c.scalar(y, 1), f.mul(y, y))));
}

/// dY * Y * (1 - Y).
static LogicalResult importSigmoidGrad(NodeContext &c) {
  Formula f{c};
  auto v = allValues(c, 2);
  if (!v)
    return failure();
  Value y = (*v)[1];
  return c.result(f.mul((*v)[0], f.mul(y, f.sub(c.scalar(y, 1), y))));
}

/// dY where Y is positive, else alpha * dY.
static LogicalResult importLeakyReluGrad(NodeContext &c) {
  Formula f{c};
  auto v = allValues(c, 2);
  if (!v)
    return failure();
  Value grad = (*v)[0], y = (*v)[1];
  Value positive = c.emit<train::GreaterOp>({y, c.scalar(y, 0)});
  double alpha = c.node.floatAttr("alpha", 0.01f);
  return c.result(f.where(positive, grad, f.mul(grad, alpha)));
}

/// Gelu of onnxruntime's domain: `approximate` says which; an optional bias is
/// added first.
static LogicalResult importGelu(NodeContext &c, StringRef approximate) {
  Value x = c.value(0);
  if (x && c.has(1))
    x = Formula{c}.add(x, c.value(1));
  return c.result(
      c.emit<train::GeluOp>(x, text(c, "approximate", approximate)));
}

static LogicalResult importGeluGrad(NodeContext &c, StringRef approximate) {
  Value grad = c.value(0), x = c.value(1);
  if (grad && x && c.has(2))
    x = Formula{c}.add(x, c.value(2));
  return c.result(c.emit<train::GeluGradOp>(
      {grad, x}, text(c, "approximate", approximate)));
}

/// x * sigmoid(alpha * x).
static LogicalResult importQuickGelu(NodeContext &c) {
  Formula f{c};
  Value x = c.value(0);
  double alpha = c.node.floatAttr("alpha", 1.702f);
  if (!x)
    return failure();
  return c.result(f.mul(x, c.emit<train::SigmoidOp>(f.mul(x, alpha))));
}

static LogicalResult importQuickGeluGrad(NodeContext &c) {
  Formula f{c};
  auto v = allValues(c, 2);
  if (!v)
    return failure();
  Value x = (*v)[1];
  Value scaled = f.mul(x, c.node.floatAttr("alpha", 1.702f));
  Value s = c.emit<train::SigmoidOp>(scaled);
  if (!s)
    return failure();
  // s + alpha x s (1 - s)
  Value slope = f.add(s, f.mul(scaled, f.mul(s, f.sub(c.scalar(s, 1), s))));
  return c.result(f.mul((*v)[0], slope));
}

/// Softmax's gradient. Before the version of ONNX's opset 13, `_13` in the
/// name, all dimensions from the axis on are one.
template <typename OpTy>
static LogicalResult importSoftmaxGrad(NodeContext &c) {
  auto v = allValues(c, 2);
  if (!v)
    return failure();
  bool flat = !c.node.op().ends_with("_13");
  int64_t rank = rankOf((*v)[0]);
  int64_t axis = c.node.axis(c.node.intAttr("axis", flat ? 1 : -1), rank);
  if (c.node.failed() || shapeOf((*v)[0]) != shapeOf((*v)[1]))
    return c.node.failed() ? failure()
                           : c.fail("expects operands of one shape");
  SmallVector<int64_t> shape(shapeOf((*v)[0])), rows(shape);
  if (flat) {
    rows.resize(axis);
    rows.push_back(*countElements(ArrayRef(shape).drop_front(axis)));
  }
  Value result =
      c.emit<OpTy>({c.reshape((*v)[0], rows), c.reshape((*v)[1], rows)},
                   c.integer("axis", axis));
  return c.result(c.reshape(result, shape));
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// The logarithms of the probabilities are logits, too, those whose sum of
/// exponentials is 1.
static LogicalResult importCrossEntropyGrad(NodeContext &c) {
  auto v = allValues(c, 3);
  if (!v)
    return failure();
  Value logProb = (*v)[1], labels = (*v)[2];
  std::string reduction = c.node.stringAttr("reduction", "mean");
  int64_t ignored = c.node.intAttr("ignore_index", -100);
  if (c.has(4)) {
    auto given = c.ints(4, "ignore_index");
    if (!given || given->size() != 1)
      return given ? c.fail("expects one ignore_index") : failure();
    ignored = given->front();
  }
  if (rankOf(logProb) < 2)
    return c.fail("expects logarithms of probabilities of rank 2 or more");
  Type element = typeOf(logProb).getElementType();
  Type compute = element.isF64() ? element : Type(c.b.getF32Type());
  Formula f{c};
  Value lse =
      f.filled(c.scalar(f.cast((*v)[0], compute), 0), shapeOf(labels), 0);
  SmallVector<Value> operands{f.cast((*v)[0], compute), logProb, labels, lse};
  if (reduction != "none" && operands[0])
    operands[0] = c.reshape(operands[0], {});
  if (c.has(3))
    operands.push_back(c.value(3));
  return c.result(c.emit<train::CrossEntropyGradOp>(
      operands, {c.integer("axis", 1), c.integer("ignore_index", ignored),
                 text(c, "reduction", reduction)}));
}

//===----------------------------------------------------------------------===//
// Normalizations
//===----------------------------------------------------------------------===//

static int64_t normalizedAxis(NodeContext &c, Value input) {
  int64_t axis = c.node.axis(c.node.intAttr("axis", -1), rankOf(input));
  return c.node.failed() ? -1 : axis;
}

/// Sets the results of `op` that the node has.
static LogicalResult setResults(NodeContext &c, Operation *op) {
  if (!op)
    return failure();
  for (unsigned i = 0; i < std::min(op->getNumResults(), c.numResults()); ++i)
    c.set(i, Value(op->getResult(i)));
  return success();
}

/// A gradient of operands (dY, X, scale, statistics), with an axis.
template <typename OpTy>
static LogicalResult importRowNormGrad(NodeContext &c) {
  auto v = allValues(c, std::is_same_v<OpTy, train::RmsNormGradOp> ? 4 : 5);
  if (!v)
    return failure();
  int64_t axis = normalizedAxis(c, (*v)[1]);
  return axis < 0 ? failure()
                  : setResults(c, c.op<OpTy>(*v, c.integer("axis", axis)));
}

/// RMSNormalization, which onnxruntime had under another name first.
static LogicalResult importSimplifiedNorm(NodeContext &c) {
  auto v = allValues(c, 2);
  int64_t axis = v ? normalizedAxis(c, (*v)[0]) : -1;
  if (axis < 0)
    return failure();
  return setResults(
      c, c.op<train::RmsNormOp>(
             *v, {c.integer("axis", axis),
                  c.number("epsilon", c.node.floatAttr("epsilon", 1e-5f))}));
}

/// BatchNormalization in training that also gives what its gradient needs. It
/// replaces its running statistics in place.
static LogicalResult importBatchNormInternal(NodeContext &c) {
  auto v = allValues(c, 5);
  if (!v)
    return failure();
  auto op = c.op<train::BatchNormOp>(
      *v, {c.number("epsilon", c.node.floatAttr("epsilon", 1e-5f)),
           c.number("momentum", c.node.floatAttr("momentum", 0.9f))});
  if (!op)
    return failure();
  for (unsigned i : {3u, 4u}) {
    Param *param = c.binding(i).param;
    if (param && param->role == Role::Buffer)
      zero::AssignOp::create(c.b, c.loc(), param->name, op->getResult(i - 2));
  }
  return setResults(c, op);
}

static LogicalResult importBatchNormGrad(NodeContext &c) {
  auto v = allValues(c, 5);
  return v ? setResults(c, c.op<train::BatchNormGradOp>(*v)) : failure();
}

//===----------------------------------------------------------------------===//
// Products and windows
//===----------------------------------------------------------------------===//

/// Moves dimension 0 behind the other batch dimensions.
static Value transposeBatch(NodeContext &c, Value value) {
  int64_t rank = rankOf(value);
  SmallVector<int64_t> permutation;
  for (int64_t i = 1; i < rank - 1; ++i)
    permutation.push_back(i);
  permutation.push_back(0);
  permutation.push_back(rank - 1);
  return c.transpose(value, permutation);
}

/// alpha * A x B, each maybe transposed.
static LogicalResult importFusedMatMul(NodeContext &c) {
  auto v = allValues(c, 2);
  if (!v)
    return failure();
  Value a = (*v)[0], b = (*v)[1];
  if (rankOf(a) < 2 || rankOf(b) < 2)
    return c.fail("expects operands of rank 2 or more");
  if (c.node.intAttr("transBatchA", 0))
    a = transposeBatch(c, a);
  if (c.node.intAttr("transBatchB", 0))
    b = transposeBatch(c, b);
  double alpha = c.node.floatAttr("alpha", 1);
  bool transposeA = c.node.intAttr("transA", 0);
  SmallVector<NamedAttribute> flags;
  if (transposeA)
    flags.push_back(c.flag("transpose_a"));
  if (c.node.intAttr("transB", 0))
    flags.push_back(c.flag("transpose_b"));
  if (!a || !b || c.node.failed())
    return failure();
  // Rows of a stack are rows.
  SmallVector<int64_t> shape(shapeOf(a));
  bool stacked = rankOf(a) > 2 && rankOf(b) == 2 && !transposeA;
  if (stacked)
    a = c.reshape(a,
                  {*countElements(ArrayRef(shape).drop_back()), shape.back()});
  Value result = c.emit<train::MatmulOp>({a, b}, flags);
  if (!result)
    return failure();
  if (stacked) {
    shape.back() = shapeOf(result).back();
    result = c.reshape(result, shape);
  }
  return c.result(Formula{c}.mul(result, alpha));
}

/// (dY, X, W) -> (dX, dW, dB).
static LogicalResult importConvGrad(NodeContext &c) {
  auto v = allValues(c, 3);
  if (!v)
    return failure();
  Value grad = (*v)[0], input = (*v)[1], weight = (*v)[2];
  if (rankOf(input) < 3 || rankOf(weight) != rankOf(input))
    return c.fail("expects an input and a weight of one rank, 3 or more");
  auto window = readPaddedWindow(c, shapeOf(input).drop_front(2),
                                 shapeOf(weight).drop_front(2));
  if (failed(window))
    return failure();
  SmallVector<NamedAttribute> attributes{
      c.list("strides", window->strides), c.list("pads", window->pads),
      c.list("dilations", window->dilations),
      c.integer("group", c.node.intAttr("group", 1))};
  auto with = [&](StringRef name, Value like) {
    SmallVector<NamedAttribute> all(attributes);
    all.push_back(c.list(name, shapeOf(like)));
    return all;
  };
  if (c.isUsed(0))
    c.set(0, c.emit<train::ConvGradInputOp>({grad, weight},
                                            with("input_shape", input)));
  if (c.isUsed(1))
    c.set(1, c.emit<train::ConvGradWeightOp>({grad, input},
                                             with("weight_shape", weight)));
  if (!c.isUsed(2))
    return success();
  SmallVector<int64_t> axes{0};
  for (int64_t d = 2; d < rankOf(grad); ++d)
    axes.push_back(d);
  c.set(2, Formula{c}.sum(grad, axes, /*keepDims=*/false));
  return success();
}

/// (dY, indices): the indices name the pooling whose gradient this is, and so
/// the shape of its input.
static LogicalResult importMaxPoolGrad(NodeContext &c) {
  auto v = allValues(c, 2);
  if (!v)
    return failure();
  auto indices = (*v)[1].getDefiningOp<train::MaxPoolIndicesOp>();
  if (!indices)
    return c.fail("its indices are not those of a MaxPool");
  SmallVector<NamedAttribute> attributes{
      c.list("kernel", indices.getKernel()),
      c.list("strides", indices.getStrides()),
      c.list("pads", indices.getPads()),
      c.list("dilations", indices.getDilations())};
  return c.result(
      c.emit<train::MaxPoolGradOp>({(*v)[0], indices.getInput()}, attributes));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Runs the evaluator of `op` where all inputs are known at import; `done` says
/// whether they were.
static LogicalResult evaluateAs(NodeContext &c, StringRef op, bool &done) {
  SmallVector<const HostTensor *> tensors;
  for (unsigned i = 0; i < c.numInputs(); ++i)
    tensors.push_back(c.host(i));
  done = !llvm::is_contained(tensors, nullptr);
  if (!done)
    return success();
  SmallVector<HostTensor> results;
  Evaluation evaluation{c.node, tensors, results, c.hostBudget()};
  if (failed(evaluate(findEvaluator(op), evaluation)))
    return failure();
  for (unsigned i = 0; i < std::min<size_t>(results.size(), c.numResults());
       ++i)
    c.set(i, Binding(std::move(results[i])));
  return success();
}

/// Concat that also gives the lengths of its inputs.
static LogicalResult importConcatTraining(NodeContext &c) {
  SmallVector<int64_t> shape, lengths;
  bool done = false;
  if (failed(evaluateAs(c, "Concat", done)))
    return failure();
  SmallVector<Value> values;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    auto inputShape = c.has(i) ? c.shape(i) : std::nullopt;
    if (!inputShape)
      return c.fail("expects tensors");
    int64_t axis =
        c.node.axis(c.node.intAttr("axis", 0), int64_t(inputShape->size()));
    if (c.node.failed())
      return failure();
    lengths.push_back((*inputShape)[axis]);
    if (!done)
      values.push_back(c.value(i));
  }
  if (c.numResults() > 1)
    c.set(1, Binding(HostTensor::fromInts(lengths)));
  if (done)
    return success();
  int64_t axis =
      values.empty() || !values[0]
          ? 0
          : c.node.axis(c.node.intAttr("axis", 0), rankOf(values[0]));
  return c.result(c.emit<train::ConcatOp>(values, c.integer("axis", axis)));
}

/// Cuts input 0 along the axis into pieces of the sizes of input 1.
static LogicalResult importSplitTraining(NodeContext &c) {
  Value value = c.value(0);
  auto sizes = c.ints(1, "sizes");
  if (!value || !sizes)
    return failure();
  int64_t axis = c.node.axis(c.node.intAttr("axis", 0), rankOf(value));
  if (c.node.failed())
    return failure();
  int64_t start = 0;
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    if (size < 0 || size > shapeOf(value)[axis] - start)
      return c.fail("its sizes do not fit the dimension");
    if (i < c.numResults())
      c.set(i, slicePiece(c, value, axis, start, size));
    start += size;
  }
  return success();
}

/// (data shape, indices, dY).
static LogicalResult importGatherGrad(NodeContext &c) {
  auto shape = c.ints(0, "shape");
  Value indices = c.value(1), grad = c.value(2);
  if (!shape || !indices || !grad)
    return failure();
  int64_t axis = c.node.axis(c.node.intAttr("axis", 0), int64_t(shape->size()));
  return c.result(c.emit<train::GatherGradOp>(
      {grad, indices},
      {c.integer("axis", axis), c.list("data_shape", *shape)}));
}

/// Sum along the axes of input 1.
static LogicalResult importReduceSumTraining(NodeContext &c) {
  Value value = c.value(0);
  auto given = c.ints(1, "axes");
  if (!value || !given)
    return failure();
  bool keepDims = c.node.intAttr("keepdims", 1);
  if (given->empty() && c.node.intAttr("noop_with_empty_axes", 0))
    return c.result(value);
  SmallVector<int64_t> axes = c.node.axes(*given, rankOf(value));
  if (given->empty())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(value)));
  llvm::sort(axes);
  return c.node.failed() ? failure()
                         : c.result(Formula{c}.sum(value, axes, keepDims));
}

/// Along which axes the gradients of two broadcast operands are summed.
static LogicalResult importBroadcastGradientArgs(NodeContext &c) {
  auto a = c.ints(0, "shape"), b = c.ints(1, "shape");
  if (!a || !b)
    return failure();
  auto both = broadcastShapes(*a, *b);
  if (!both)
    return c.fail("its shapes do not broadcast");
  for (unsigned i = 0; i < std::min(2u, c.numResults()); ++i) {
    ArrayRef<int64_t> own = i ? *b : *a;
    SmallVector<int64_t> axes;
    size_t lead = both->size() - own.size();
    for (size_t d = 0; d < both->size(); ++d)
      if (d < lead || (own[d - lead] == 1 && (*both)[d] != 1))
        axes.push_back(int64_t(d));
    c.set(i, Binding(HostTensor::fromInts(axes)));
  }
  return success();
}

/// x * scale, or x / scale.
static LogicalResult importScale(NodeContext &c) {
  auto v = allValues(c, 2);
  if (!v)
    return failure();
  Formula f{c};
  Value x = (*v)[0], scale = (*v)[1];
  if (typeOf(scale).getNumElements() != 1)
    return c.fail("expects a scale of one element");
  scale = f.cast(c.reshape(scale, {}), typeOf(x).getElementType());
  return c.result(c.node.intAttr("scale_down", 0) ? f.div(x, scale)
                                                  : f.mul(x, scale));
}

//===----------------------------------------------------------------------===//
// Gradients by way of the operator
//===----------------------------------------------------------------------===//

Value NodeContext::call(StringRef op, MutableArrayRef<Binding> given) {
  auto handler = handlers().find(op);
  if (node.failed() || handler == handlers().end())
    return {};
  NodeReader reader(node.message(), loc(), importer.opsetOf(""));
  SmallVector<Binding *> pointers;
  for (Binding &binding : given)
    pointers.push_back(binding.exists() ? &binding : nullptr);
  SmallVector<Binding> made(1);
  NodeContext inner(importer, reader, pointers, made);
  if (failed(handler->second.fn(inner)) || reader.failed())
    return {};
  return made[0].value;
}

/// The gradients by `variables` of what was computed as `y`, where `grad` is
/// the gradient by `y`: those of the sum of y * grad.
static FailureOr<SmallVector<Value>>
gradientsOf(NodeContext &c, Value y, Value grad, ArrayRef<Value> variables) {
  if (!y || !grad)
    return failure();
  if (y.getType() != grad.getType())
    return c.fail("its gradient does not have the shape of the result");
  Formula f{c};
  Value sum =
      f.sum(f.mul(y, grad), llvm::to_vector(llvm::seq<int64_t>(0, rankOf(y))),
            /*keepDims=*/false);
  if (!sum)
    return failure();
  SmallVector<train::Variable> lists;
  for (Value variable : variables)
    lists.push_back({variable});
  return train::buildGradients(c.b, sum, lists);
}

/// The gradient by the data of an operator that only picks elements: its values
/// do not matter. The inputs that are neither the gradient nor the shape of the
/// data are the operator's own, behind the data.
static LogicalResult importPickGrad(NodeContext &c, StringRef op,
                                    unsigned gradInput, unsigned shapeInput) {
  Value grad = c.value(gradInput);
  auto shape = c.ints(shapeInput, "shape");
  if (!grad || !shape)
    return failure();
  if (!countElements(*shape))
    return c.fail("its shape has more elements than can be counted");
  Value data = Formula{c}.filled(c.scalar(grad, 0), *shape, 0);
  SmallVector<Binding> inputs{Binding(data)};
  for (unsigned i = 0; i < c.numInputs(); ++i)
    if (i != gradInput && i != shapeInput)
      inputs.push_back(c.has(i) ? c.binding(i) : Binding());
  auto grads = gradientsOf(c, c.call(op, inputs), grad, data);
  if (failed(grads))
    return failure();
  return c.result(grads->front() ? grads->front() : data);
}

/// (dY, X, W) -> (dX, dW, dB).
static LogicalResult importConvTransposeGrad(NodeContext &c) {
  auto v = allValues(c, 3);
  if (!v)
    return failure();
  SmallVector<Binding> inputs{Binding((*v)[1]), Binding((*v)[2])};
  auto grads = gradientsOf(c, c.call("ConvTranspose", inputs), (*v)[0],
                           {(*v)[1], (*v)[2]});
  if (failed(grads))
    return failure();
  for (unsigned i = 0; i < std::min(2u, c.numResults()); ++i)
    c.set(i, (*grads)[i]);
  SmallVector<int64_t> axes{0};
  for (int64_t d = 2; d < rankOf((*v)[0]); ++d)
    axes.push_back(d);
  if (c.isUsed(2))
    c.set(2, Formula{c}.sum((*v)[0], axes, /*keepDims=*/false));
  return success();
}

/// dY where the mask is, scaled as the elements were; (dY, mask, ratio, mode).
static LogicalResult importDropoutGrad(NodeContext &c) {
  Value grad = c.value(0);
  if (!grad)
    return failure();
  double ratio = 0.5;
  for (unsigned i : {2u, 3u})
    if (c.has(i) && (!c.host(i) || c.host(i)->size() != 1))
      return c.fail("its ratio and mode must be known at import");
  if (c.has(2))
    ratio = c.host(2)->number(0);
  bool training = !c.has(3) || c.host(3)->number(0) != 0;
  if (!training || ratio == 0)
    return c.result(grad);
  if (!(ratio > 0 && ratio < 1))
    return c.fail("expects a ratio in [0, 1)");
  Formula f{c};
  Value mask = c.value(1);
  Value kept = mask ? f.where(mask, grad, c.scalar(grad, 0)) : Value();
  return c.result(f.mul(kept, 1 / (1 - ratio)));
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static void addGradients(HandlerTable &table, StringRef domain) {
  auto add = [&](StringRef name, HandlerFn fn, unsigned inputs) {
    table[(domain + name).str()] = {std::move(fn), inputs};
  };
  add("ReluGrad", importActivationGrad<train::ReluGradOp>, 2);
  add("TanhGrad", importTanhGrad, 2);
  add("SigmoidGrad", importSigmoidGrad, 2);
  add("LeakyReluGrad", importLeakyReluGrad, 2);
  for (const char *name : {"GeluGrad", "BiasGeluGrad_dX"})
    add(
        name, [](NodeContext &c) { return importGeluGrad(c, "none"); }, 2);
  for (const char *name : {"FastGeluGrad", "BiasFastGeluGrad_dX"})
    add(
        name, [](NodeContext &c) { return importGeluGrad(c, "tanh"); }, 2);
  add("QuickGeluGrad", importQuickGeluGrad, 2);
  for (const char *name : {"SoftmaxGrad", "SoftmaxGrad_13"})
    add(name, importSoftmaxGrad<train::SoftmaxGradOp>, 2);
  for (const char *name : {"LogSoftmaxGrad", "LogSoftmaxGrad_13"})
    add(name, importSoftmaxGrad<train::LogSoftmaxGradOp>, 2);
  add("SoftmaxCrossEntropyLossGrad", importCrossEntropyGrad, 3);
  add("LayerNormalizationGrad", importRowNormGrad<train::LayerNormGradOp>, 5);
  add("SimplifiedLayerNormalizationGrad",
      importRowNormGrad<train::RmsNormGradOp>, 4);
  add("BatchNormalizationGrad", importBatchNormGrad, 5);
  add("ConvGrad", importConvGrad, 3);
  add("MaxPoolGrad", importMaxPoolGrad, 2);
  add("GatherGrad", importGatherGrad, 3);
  add("ConvTransposeGrad", importConvTransposeGrad, 3);
  add("DropoutGrad", importDropoutGrad, 2);
  auto addPick = [&](StringRef name, StringRef op, unsigned grad,
                     unsigned shape) {
    add(
        name,
        [=](NodeContext &c) { return importPickGrad(c, op, grad, shape); }, 3);
  };
  addPick("GatherElementsGrad", "GatherElements", 0, 1);
  addPick("GatherNDGrad", "GatherND", 2, 0);
  addPick("SliceGrad", "Slice", 0, 1);
}

void zero::onnx_import::addTrainingHandlers(HandlerTable &table) {
  addGradients(table, "com.microsoft:");
  // onnxruntime has this one in the default domain, as it has normalizations.
  table["MaxPoolGrad"] = {importMaxPoolGrad, 2};
  table["SimplifiedLayerNormalization"] = {importSimplifiedNorm, 2};
  auto add = [&](StringRef name, HandlerFn fn, unsigned inputs) {
    table[("com.microsoft:" + name).str()] = {std::move(fn), inputs};
  };
  for (const char *name : {"Gelu", "BiasGelu"})
    add(
        name, [](NodeContext &c) { return importGelu(c, "none"); }, 1);
  add(
      "FastGelu", [](NodeContext &c) { return importGelu(c, "tanh"); }, 1);
  add("QuickGelu", importQuickGelu, 1);
  add("FusedMatMul", importFusedMatMul, 2);
  add("BatchNormInternal", importBatchNormInternal, 5);
  add("ConcatTraining", importConcatTraining, 1);
  add("SplitTraining", importSplitTraining, 2);
  add("ReduceSumTraining", importReduceSumTraining, 2);
  add("BroadcastGradientArgs", importBroadcastGradientArgs, 2);
  add("Scale", importScale, 2);
  addTrainingOptimizerHandlers(table);
}
