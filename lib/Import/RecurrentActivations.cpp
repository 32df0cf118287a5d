//===- RecurrentActivations.cpp - Activations of recurrent layers ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a function grows too large on the side that is not taken, its argument
// is bounded there: otherwise the gradient would be 0 times infinity.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/RecurrentActivations.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {
struct Known {
  StringRef name;
  /// The defaults of those that it takes.
  std::optional<double> alpha, beta;
};
} // namespace

static const Known known[] = {
    {"affine", 1.0, 0.0},      {"elu", 1.0, {}},
    {"hardsigmoid", 0.2, 0.5}, {"leakyrelu", 0.01, {}},
    {"relu", {}, {}},          {"scaledtanh", 1.0, 1.0},
    {"sigmoid", {}, {}},       {"softplus", {}, {}},
    {"softsign", {}, {}},      {"tanh", {}, {}},
    {"thresholdedrelu", 1.0, {}}};

static const Known *findKnown(StringRef name) {
  for (const Known &each : known)
    if (each.name == name)
      return &each;
  return nullptr;
}

/// The strings of the attribute 'activations', in lower case, or `fallback`.
static SmallVector<std::string> names(NodeContext &c,
                                      ArrayRef<StringRef> fallback,
                                      int64_t directions) {
  SmallVector<std::string> result;
  const onnx::AttributeProto *attr = c.node.find("activations");
  if (attr && attr->strings_size()) {
    for (const std::string &name : attr->strings())
      result.push_back(StringRef(name).lower());
    return result;
  }
  for (int64_t i = 0; i < directions; ++i)
    for (StringRef name : fallback)
      result.push_back(name.lower());
  return result;
}

FailureOr<SmallVector<Activation>>
zero::onnx_import::readActivations(NodeContext &c, ArrayRef<StringRef> defaults,
                                   int64_t directions) {
  SmallVector<std::string> given = names(c, defaults, directions);
  if (given.size() != defaults.size() * directions) {
    (void)c.fail("has " + Twine(given.size()) + " activations, expected " +
                 Twine(defaults.size() * directions));
    return failure();
  }
  // Functions without numbers take none from the lists.
  SmallVector<double> alphas = c.node.floatsAttr("activation_alpha");
  SmallVector<double> betas = c.node.floatsAttr("activation_beta");
  size_t nextAlpha = 0, nextBeta = 0;
  SmallVector<Activation> result;
  for (const std::string &name : given) {
    const Known *found = findKnown(name);
    if (!found) {
      (void)c.fail("the activation '" + printable(name) + "' is not known");
      return failure();
    }
    Activation activation{name, found->alpha.value_or(0),
                          found->beta.value_or(0)};
    if (found->alpha && nextAlpha < alphas.size())
      activation.alpha = alphas[nextAlpha++];
    if (found->beta && nextBeta < betas.size())
      activation.beta = betas[nextBeta++];
    result.push_back(activation);
  }
  return result;
}

namespace {
/// Short forms for the formulas below; null operands give null.
struct Formula {
  NodeContext &c;
  Value x;

  Value num(double value) { return c.scalar(x, value); }
  Value add(Value a, Value b) { return c.emit<train::AddOp>({a, b}); }
  Value sub(Value a, Value b) { return c.emit<train::SubOp>({a, b}); }
  Value mul(Value a, Value b) { return c.emit<train::MulOp>({a, b}); }
  Value min(Value a, Value b) { return c.emit<train::MinOp>({a, b}); }
  Value max(Value a, Value b) { return c.emit<train::MaxOp>({a, b}); }
  Value exp(Value a) { return c.emit<train::ExpOp>(a); }
  Value abs(Value a) { return c.emit<train::AbsOp>(a); }
  Value where(Value condition, Value a, Value b) {
    return c.emit<train::WhereOp>({condition, a, b});
  }
  Value greater(Value a, double b) {
    return c.emit<train::GreaterOp>({a, num(b)});
  }
};
} // namespace

Value zero::onnx_import::applyActivation(NodeContext &c,
                                         const Activation &activation,
                                         Value x) {
  if (!x)
    return {};
  Formula f{c, x};
  StringRef name = activation.name;
  double alpha = activation.alpha, beta = activation.beta;
  if (name == "sigmoid")
    return c.emit<train::SigmoidOp>(x);
  if (name == "tanh")
    return c.emit<train::TanhOp>(x);
  if (name == "relu")
    return c.emit<train::ReluOp>(x);
  if (name == "affine")
    return f.add(f.mul(x, f.num(alpha)), f.num(beta));
  if (name == "leakyrelu")
    return f.where(f.greater(x, 0), x, f.mul(x, f.num(alpha)));
  if (name == "thresholdedrelu")
    return f.where(f.greater(x, alpha), x, f.num(0));
  if (name == "scaledtanh")
    return f.mul(c.emit<train::TanhOp>(f.mul(x, f.num(beta))), f.num(alpha));
  if (name == "hardsigmoid")
    return f.max(f.min(f.add(f.mul(x, f.num(alpha)), f.num(beta)), f.num(1)),
                 f.num(0));
  if (name == "elu")
    return f.where(
        f.greater(x, 0), x,
        f.mul(f.sub(f.exp(f.min(x, f.num(0))), f.num(1)), f.num(alpha)));
  if (name == "softsign")
    return c.emit<train::DivOp>({x, f.add(f.abs(x), f.num(1))});
  return c.emit<train::SoftplusOp>(x);
}
