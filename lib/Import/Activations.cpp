//===- Activations.cpp - Activation functions -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Activations as compositions of core operations. Where a branch would overflow
// its operand is bounded before, so that the other branch's gradient is no
// product of 0 and infinity.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Elementwise.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

/// Input 0; null, with an error, if it is no float.
static Value floatInput(NodeContext &c) {
  Value x = c.value(0);
  if (x && !isa<FloatType>(typeOf(x).getElementType())) {
    (void)c.fail("expects a float input");
    return {};
  }
  return x;
}

static LogicalResult importGelu(NodeContext &c) {
  std::string approximate = c.node.stringAttr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return c.fail("approximate must be 'none' or 'tanh'");
  return c.result(c.emit<train::GeluOp>(
      c.value(0),
      c.b.getNamedAttr("approximate", c.b.getStringAttr(approximate))));
}

static LogicalResult importRelu(NodeContext &c) {
  Value x = c.value(0);
  if (x && !isa<FloatType>(typeOf(x).getElementType()))
    return c.result(c.emit<train::MaxOp>({x, c.scalar(x, 0)}));
  return c.result(c.emit<train::ReluOp>(x));
}

static LogicalResult importLeakyRelu(NodeContext &c) {
  Elements e{c};
  Value x = floatInput(c);
  Value scaled = e.mul(x, c.node.floatAttr("alpha", 0.01f));
  return c.result(e.where(e.isAbove(x, 0.0), x, scaled));
}

/// Before version 7 a vector of slopes had one for each channel.
static LogicalResult importPRelu(NodeContext &c) {
  Elements e{c};
  Value x = c.value(0), slope = c.value(1);
  if (!x || !slope)
    return failure();
  ArrayRef<int64_t> shape = shapeOf(x);
  if (c.node.version() < 7 && shapeOf(slope).size() == 1 &&
      shapeOf(slope)[0] != 1 && shape.size() > 2) {
    SmallVector<int64_t> channels(shape.size() - 1, 1);
    channels[0] = shapeOf(slope)[0];
    slope = c.reshape(slope, channels);
  }
  Value scaled = e.mul(x, slope);
  if (scaled && shapeOf(scaled) != shape)
    return c.fail("its slope does not broadcast to its input");
  return c.result(e.where(e.isBelow(x, 0.0), scaled, x));
}

static LogicalResult importThresholdedRelu(NodeContext &c) {
  Elements e{c};
  Value x = floatInput(c), zero = c.scalar(x, 0);
  Value passes = e.isAbove(x, c.node.floatAttr("alpha", 1));
  return c.result(e.where(passes, x, zero));
}

/// x where it is positive, else scale * (e^(x * slope) - 1).
static Value exponentialUnit(NodeContext &c, Value x, double scale,
                             double slope) {
  Elements e{c};
  Value zero = c.scalar(x, 0), positive = e.isAbove(x, zero);
  Value below = e.where(positive, zero, x);
  if (slope != 1)
    below = e.mul(below, slope);
  Value power = c.emit<train::Expm1Op>(below);
  if (scale != 1)
    power = e.mul(power, scale);
  return e.where(positive, x, power);
}

static LogicalResult importElu(NodeContext &c) {
  double alpha = c.node.floatAttr("alpha", 1);
  return c.result(exponentialUnit(c, floatInput(c), alpha, 1));
}

static LogicalResult importCelu(NodeContext &c) {
  double alpha = c.node.floatAttr("alpha", 1);
  if (alpha == 0)
    return c.fail("its alpha is 0");
  return c.result(exponentialUnit(c, floatInput(c), alpha, 1 / alpha));
}

static LogicalResult importSelu(NodeContext &c) {
  // The defaults differ in their last digits from version 1 to 6.
  bool first = c.node.version() < 6;
  double alpha = c.node.floatAttr("alpha", first ? 1.6732f : 1.67326319f);
  double gamma = c.node.floatAttr("gamma", first ? 1.0507f : 1.05070102f);
  Value unit = exponentialUnit(c, floatInput(c), alpha, 1);
  return c.result(Elements{c}.mul(unit, gamma));
}

static Value hardSigmoid(NodeContext &c, Value x, double alpha, double beta) {
  Elements e{c};
  Value line = e.mul(x, alpha);
  return e.clamp(e.add(line, beta), 0, 1);
}

static LogicalResult importHardSigmoid(NodeContext &c) {
  double alpha = c.node.floatAttr("alpha", 0.2f);
  double beta = c.node.floatAttr("beta", 0.5);
  return c.result(hardSigmoid(c, floatInput(c), alpha, beta));
}

static LogicalResult importHardSwish(NodeContext &c) {
  Value x = floatInput(c);
  return c.result(Elements{c}.mul(x, hardSigmoid(c, x, 1.0 / 6, 0.5)));
}

static LogicalResult importMish(NodeContext &c) {
  Value x = floatInput(c), soft = c.emit<train::SoftplusOp>(x);
  return c.result(Elements{c}.mul(x, c.emit<train::TanhOp>(soft)));
}

/// x * sigmoid(alpha * x)
static Value swish(NodeContext &c, Value x) {
  double alpha = c.node.floatAttr("alpha", 1);
  Value inner = alpha == 1 ? x : Elements{c}.mul(x, alpha);
  return Elements{c}.mul(x, c.emit<train::SigmoidOp>(inner));
}

static LogicalResult importSwish(NodeContext &c) {
  return c.result(swish(c, floatInput(c)));
}

static LogicalResult importSwiGlu(NodeContext &c) {
  Value gate = floatInput(c), linear = c.value(1);
  if (gate && linear && gate.getType() != linear.getType())
    return c.fail("its inputs differ in type");
  return c.result(Elements{c}.mul(swish(c, gate), linear));
}

static LogicalResult importSoftsign(NodeContext &c) {
  Elements e{c};
  Value x = floatInput(c);
  return c.result(e.div(x, e.add(c.emit<train::AbsOp>(x), 1.0)));
}

/// Integers are shrunk as f64: the bounds are floats.
static LogicalResult importShrink(NodeContext &c) {
  Elements e{c};
  Value x = c.value(0);
  if (!x)
    return failure();
  Type element = typeOf(x).getElementType();
  double lambd = c.node.floatAttr("lambd", 0.5);
  double bias = c.node.floatAttr("bias", 0);
  if (!isa<FloatType>(element))
    x = e.cast(x, c.b.getF64Type());
  Value below = e.isBelow(x, -lambd), above = e.isAbove(x, lambd);
  Value raised = e.add(x, bias), lowered = e.add(x, -bias);
  Value inner = e.where(above, lowered, c.scalar(x, 0));
  return c.result(e.cast(e.where(below, raised, inner), element));
}

void zero::onnx_import::addActivationHandlers(HandlerTable &table) {
  table["Celu"] = {importCelu, 1, 12};
  table["Elu"] = {importElu, 1};
  table["Gelu"] = {importGelu, 1, 20};
  table["HardSigmoid"] = {importHardSigmoid, 1};
  table["HardSwish"] = {importHardSwish, 1, 14};
  table["LeakyRelu"] = {importLeakyRelu, 1};
  table["Mish"] = {importMish, 1, 18};
  table["PRelu"] = {importPRelu, 2};
  table["Relu"] = {importRelu, 1};
  table["Selu"] = {importSelu, 1};
  table["Shrink"] = {importShrink, 1, 9};
  table["Softsign"] = {importSoftsign, 1};
  table["SwiGLU"] = {importSwiGlu, 2, 28};
  table["Swish"] = {importSwish, 1, 24};
  table["ThresholdedRelu"] = {importThresholdedRelu, 1};
}
