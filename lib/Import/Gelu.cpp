//===- Gelu.cpp - Recognizing GELU ----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Below opset 20 exporters write GELU as a chain of elementwise operators:
//
//   exact   x * (1 + erf(x / sqrt(2))) * 0.5
//   tanh    x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
//
// The factors may stand in any order.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero::onnx_import;

/// Whether `value` is a constant of one value, near `expected`.
static bool isNear(Value value, double expected) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)) ||
      !isa<FloatType>(splat.getElementType()))
    return false;
  double number = splat.getSplatValue<APFloat>().convertToDouble();
  return std::fabs(number - expected) < 1e-5 * std::fabs(expected);
}

/// The other operand where `value` is OpTy of it and `constant`; else null.
template <typename OpTy>
static Value besideConstant(Value value, double constant) {
  auto op = value.getDefiningOp<OpTy>();
  if (!op)
    return {};
  if (isNear(op.getRhs(), constant))
    return op.getLhs();
  return isNear(op.getLhs(), constant) ? op.getRhs() : Value();
}

/// x where `value` is x / sqrt(2).
static Value beforeRoot(Value value) {
  if (auto div = value.getDefiningOp<train::DivOp>())
    return isNear(div.getRhs(), std::sqrt(2.0)) ? div.getLhs() : Value();
  return besideConstant<train::MulOp>(value, std::sqrt(0.5));
}

/// Whether `value` is x^3.
static bool isCube(Value value, Value x) {
  auto cube = value.getDefiningOp<train::MulOp>();
  if (!cube)
    return false;
  auto isSquare = [&](Value v) {
    auto square = v.getDefiningOp<train::MulOp>();
    return square && square.getLhs() == x && square.getRhs() == x;
  };
  return (cube.getRhs() == x && isSquare(cube.getLhs())) ||
         (cube.getLhs() == x && isSquare(cube.getRhs()));
}

/// x where `value` is sqrt(2 / pi) * (x + 0.044715 * x^3).
static Value beforeTanh(Value value) {
  Value sum = besideConstant<train::MulOp>(value, std::sqrt(2 / M_PI));
  auto add = sum ? sum.getDefiningOp<train::AddOp>() : train::AddOp();
  if (!add)
    return {};
  for (auto [x, term] : {std::pair(add.getLhs(), add.getRhs()),
                         std::pair(add.getRhs(), add.getLhs())}) {
    Value cube = besideConstant<train::MulOp>(term, 0.044715);
    if (cube && isCube(cube, x))
      return x;
  }
  return {};
}

/// x where `value` is 1 + erf(...) or 1 + tanh(...) of GELU; null if neither.
static Value beforeGate(Value value, bool &isTanh) {
  Value inner = besideConstant<train::AddOp>(value, 1.0);
  if (!inner)
    return {};
  auto erf = inner.getDefiningOp<train::ErfOp>();
  auto tanh = inner.getDefiningOp<train::TanhOp>();
  isTanh = bool(tanh);
  if (erf)
    return beforeRoot(erf.getInput());
  return tanh ? beforeTanh(tanh.getInput()) : Value();
}

/// Collects the factors of a product, the constant 0.5 apart.
static void factorsOf(Value value, SmallVectorImpl<Value> &factors, int &halves,
                      int depth) {
  auto mul = value.getDefiningOp<train::MulOp>();
  if (isNear(value, 0.5))
    ++halves;
  else if (!mul || depth == 0)
    factors.push_back(value);
  else
    for (Value operand : {mul.getLhs(), mul.getRhs()})
      factorsOf(operand, factors, halves, depth - 1);
}

Value zero::onnx_import::matchGelu(NodeContext &c, Value value) {
  SmallVector<Value> factors;
  int halves = 0;
  factorsOf(value, factors, halves, /*depth=*/2);
  if (halves != 1 || factors.size() != 2)
    return {};
  for (auto [gate, x] :
       {std::pair(factors[0], factors[1]), std::pair(factors[1], factors[0])}) {
    bool isTanh = false;
    if (beforeGate(gate, isTanh) == x && x.getType() == value.getType())
      return c.emit<train::GeluOp>(
          x, c.b.getNamedAttr("approximate",
                              c.b.getStringAttr(isTanh ? "tanh" : "none")));
  }
  return {};
}
