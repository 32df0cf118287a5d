//===- TrainingOptimizers.cpp - ai.onnx.preview.training ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operators by which ONNX writes a training step: the gradient of a value,
// and the updates of several tensors at once. T, the number of updates before
// this one, counts from 0 there and from 1 in the train dialect.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"
#include "lib/Import/TrainingForms.h"

#include "dialects/Zero/Gradient.h"
#include "zero/Autodiff/Autodiff.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

Value NodeContext::valueNamed(StringRef name) {
  Binding *binding = importer.scope->find(name);
  if (binding && binding->exists())
    return importer.valueOf(*binding, loc());
  node.error() << "names the value '" << printable(name)
               << "', which nothing before it makes";
  return {};
}

/// In a step, one that can be divided among micro-batches.
Value NodeContext::lossSeed(Value loss) {
  const TrainingForm *form = importer.model.training.get();
  if (!form || form->kind != TrainingForm::Step)
    return {};
  return train::LossSeedOp::create(b, this->loc(), loss.getType(),
                                   /*loss_scale=*/Value(), /*micro_batches=*/1);
}

namespace {
/// The values that a node Gradient names, and those that it gives for them.
struct GradientNames {
  std::string y;
  SmallVector<StringRef> xs, zs;
};
} // namespace

static FailureOr<GradientNames> readNames(NodeContext &c) {
  GradientNames names;
  names.y = c.node.stringAttr("y", "");
  for (const auto &attribute : c.node.message().attribute()) {
    auto &list = attribute.name() == "xs" ? names.xs : names.zs;
    if (attribute.name() == "xs" || attribute.name() == "zs")
      for (const std::string &name : attribute.strings())
        list.push_back(name);
  }
  size_t count = names.xs.size() + names.zs.size();
  if (names.xs.empty() || count != c.numInputs() ||
      names.xs.size() != c.numResults()) {
    (void)c.fail("expects an input for each of xs and zs and an output for "
                 "each of xs");
    return failure();
  }
  return names;
}

/// The operations between `from` and `y`, in order.
static SmallVector<Operation *> between(ArrayRef<Value> from, Value y) {
  llvm::SetVector<Operation *> found;
  llvm::SmallDenseSet<Value> stops(from.begin(), from.end());
  SmallVector<Value> open{y};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && !stops.contains(value) && found.insert(op))
      llvm::append_range(open, op->getOperands());
  }
  SmallVector<Operation *> ops(found.begin(), found.end());
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

/// y as a function of other values than those that it was computed from.
static Value recompute(NodeContext &c, ArrayRef<Value> named,
                       ArrayRef<Value> given, Value y) {
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(named, given))
    mapping.map(from, to);
  for (Operation *op : between(named, y))
    c.b.clone(*op, mapping);
  return mapping.lookupOrDefault(y);
}

static LogicalResult importGradient(NodeContext &c) {
  FailureOr<GradientNames> names = readNames(c);
  if (failed(names))
    return failure();
  Value y = c.valueNamed(names->y);
  SmallVector<Value> named, given;
  SmallVector<StringRef> all(names->xs);
  all.append(names->zs);
  for (auto [i, name] : llvm::enumerate(all)) {
    named.push_back(c.valueNamed(name));
    given.push_back(c.value(i));
    if (!named.back() || !given.back())
      return failure();
    if (named.back().getType() != given.back().getType())
      return c.fail("input " + Twine(i) + " has another type than '" +
                    printable(name) + "', for which it stands");
  }
  if (!y)
    return failure();
  if (named != given)
    y = recompute(c, named, given, y);
  Formula f{c};
  if (typeOf(y).getRank())
    y = f.sum(y, llvm::to_vector(llvm::seq<int64_t>(0, typeOf(y).getRank())),
              /*keepDims=*/false);
  if (!y)
    return failure();
  SmallVector<train::Variable> variables;
  for (size_t i = 0; i < names->xs.size(); ++i)
    variables.push_back({given[i]});
  FailureOr<SmallVector<Value>> grads =
      train::buildGradients(c.b, y, variables, c.lossSeed(y));
  if (failed(grads))
    return failure();
  for (auto [i, grad] : llvm::enumerate(*grads)) {
    if (Operation *op = grad ? grad.getDefiningOp() : nullptr)
      op->setAttr(zero::kGradientMark, c.b.getUnitAttr());
    c.set(i, grad ? grad : f.filled(given[i], shapeOf(given[i]), 0));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

namespace {
/// The inputs of an update of several tensors: R, T, then each kind of tensor.
struct Updates {
  explicit Updates(NodeContext &c) : c(c) {}

  NodeContext &c;
  Value rate, count;
  size_t tensors = 0;

  /// `kinds`: of tensors: parameter, gradient and states.
  LogicalResult read(unsigned kinds);
  SmallVector<Value> operands(size_t tensor, unsigned kinds);
  /// T + 1, if `afterwards`, else T.
  Value step(bool afterwards);
  void set(size_t tensor, ValueRange results);
  NamedAttribute number(StringRef name, StringRef attribute, double fallback) {
    return c.number(name, c.node.floatAttr(attribute, fallback));
  }
};
} // namespace

LogicalResult Updates::read(unsigned kinds) {
  rate = c.value(0);
  count = c.value(1);
  if (!rate || !count)
    return failure();
  tensors = (c.numInputs() - 2) / kinds;
  if (!tensors || c.numInputs() != 2 + kinds * tensors)
    return c.fail("expects " + Twine(kinds) + " inputs for each tensor");
  if (typeOf(rate).getNumElements() != 1 || typeOf(count).getNumElements() != 1)
    return c.fail("expects a learning rate and a count of one element");
  rate = c.reshape(rate, {});
  count = Formula{c}.cast(c.reshape(count, {}), c.b.getI64Type());
  return success(rate && count);
}

SmallVector<Value> Updates::operands(size_t tensor, unsigned kinds) {
  SmallVector<Value> values;
  for (unsigned kind = 0; kind < kinds; ++kind)
    values.push_back(c.value(unsigned(2 + kind * tensors + tensor)));
  return values;
}

Value Updates::step(bool afterwards) {
  return afterwards ? Formula{c}.add(count, 1.0) : count;
}

void Updates::set(size_t tensor, ValueRange results) {
  for (auto [kind, result] : llvm::enumerate(results))
    if (kind * tensors + tensor < c.numResults())
      c.set(unsigned(kind * tensors + tensor), Value(result));
}

/// Operands and their optional ones as the updates of the train dialect count
/// them.
static NamedAttribute segments(NodeContext &c, ArrayRef<int32_t> sizes) {
  return c.b.getNamedAttr("operandSegmentSizes",
                          c.b.getDenseI32ArrayAttr(sizes));
}

static LogicalResult importAdam(NodeContext &c) {
  Updates u(c);
  if (failed(u.read(4)))
    return failure();
  for (size_t i = 0; i < u.tensors; ++i) {
    SmallVector<Value> operands = u.operands(i, 4);
    operands.push_back(u.rate);
    operands.push_back(u.step(/*afterwards=*/false));
    auto op = c.op<train::AdamHatOp>(
        operands,
        {u.number("beta1", "alpha", 0.9f), u.number("beta2", "beta", 0.999f),
         u.number("epsilon", "epsilon", 1e-6f),
         u.number("weight_decay", "norm_coefficient", 0),
         u.number("final_decay", "norm_coefficient_post", 0),
         segments(c, {1, 1, 1, 1, 1, 1, 0, 0, 0})});
    if (!op)
      return failure();
    u.set(i, op->getResults());
  }
  return success();
}

static LogicalResult importAdagrad(NodeContext &c) {
  Updates u(c);
  if (failed(u.read(3)))
    return failure();
  for (size_t i = 0; i < u.tensors; ++i) {
    SmallVector<Value> operands = u.operands(i, 3);
    operands.push_back(u.rate);
    operands.push_back(u.step(/*afterwards=*/true));
    auto op = c.op<train::AdagradOp>(
        operands, {u.number("epsilon", "epsilon", 1e-6f),
                   u.number("lr_decay", "decay_factor", 0),
                   u.number("weight_decay", "norm_coefficient", 0),
                   segments(c, {1, 1, 1, 1, 1, 0, 0, 0})});
    if (!op)
      return failure();
    u.set(i, op->getResults());
  }
  return success();
}

/// Momentum in forms that train.sgd does not have: without momentum, and
/// Nesterov's with a weight of the gradient other than 1.
static LogicalResult composeMomentum(Updates &u, size_t tensor,
                                     ArrayRef<Value> operands, bool nesterov) {
  NodeContext &c = u.c;
  Formula f{c};
  double alpha = c.node.floatAttr("alpha", 0),
         beta = c.node.floatAttr("beta", 1);
  double decay = c.node.floatAttr("norm_coefficient", 0);
  Value x = operands[0], grad = operands[1];
  if (!x || !grad)
    return failure();
  if (decay != 0)
    grad = f.add(grad, f.mul(x, decay));
  Type element = typeOf(x).getElementType();
  Value later = c.emit<train::GreaterOp>({u.count, c.scalar(u.count, 0)});
  Value weight = f.where(later, c.scalar(x, beta), c.scalar(x, 1));
  Value velocity = f.add(f.mul(operands[2], alpha), f.mul(grad, weight));
  Value direction = nesterov ? f.add(grad, f.mul(velocity, alpha)) : velocity;
  Value moved = f.sub(x, f.mul(direction, f.cast(u.rate, element)));
  if (!moved)
    return failure();
  u.set(tensor, {moved, velocity});
  return success();
}

static LogicalResult importMomentum(NodeContext &c) {
  Updates u(c);
  std::string mode = c.node.stringAttr("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return c.fail("expects the mode standard or nesterov");
  bool nesterov = mode == "nesterov";
  double alpha = c.node.floatAttr("alpha", 0),
         beta = c.node.floatAttr("beta", 1);
  if (c.node.failed() || failed(u.read(3)))
    return failure();
  for (size_t i = 0; i < u.tensors; ++i) {
    SmallVector<Value> operands = u.operands(i, 3);
    if (alpha == 0 || (nesterov && beta != 1)) {
      if (failed(composeMomentum(u, i, operands, nesterov)))
        return failure();
      continue;
    }
    operands.push_back(u.rate);
    if (beta != 1)
      operands.push_back(u.step(/*afterwards=*/true));
    SmallVector<NamedAttribute> attributes{
        c.number("momentum", alpha), c.number("dampening", 1 - beta),
        u.number("weight_decay", "norm_coefficient", 0),
        segments(c, {1, 1, 1, 1, beta != 1, 0, 0, 0})};
    if (nesterov)
      attributes.push_back(c.flag("nesterov"));
    auto op = c.op<train::SgdOp>(operands, attributes);
    if (!op)
      return failure();
    u.set(i, op->getResults());
  }
  return success();
}

void zero::onnx_import::addTrainingOptimizerHandlers(HandlerTable &table) {
  auto add = [&](StringRef name, HandlerFn fn, unsigned inputs) {
    table[("ai.onnx.preview.training:" + name).str()] = {std::move(fn), inputs};
  };
  add("Gradient", importGradient, 1);
  add("Adam", importAdam, 6);
  add("Adagrad", importAdagrad, 5);
  add("Momentum", importMomentum, 5);
}
