//===- TrainVjps.cpp - Derivatives of elementwise operations --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derivatives of elementwise operations and what all derivatives share.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/VjpBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace mlir::train;

//===----------------------------------------------------------------------===//
// Shared helpers
//===----------------------------------------------------------------------===//

Value mlir::train::createScalar(OpBuilder &builder, Location loc,
                                Type elementType, double value) {
  TypedAttr element =
      isa<FloatType>(elementType)
          ? cast<TypedAttr>(builder.getFloatAttr(elementType, value))
          : cast<TypedAttr>(builder.getIntegerAttr(
                elementType, static_cast<int64_t>(value)));
  auto type = RankedTensorType::get({}, elementType);
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, element));
}

Value mlir::train::reduceToShape(OpBuilder &builder, Location loc, Value grad,
                                 ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = VjpBuilder::shapeOf(grad);
  if (from == shape)
    return grad;
  int64_t added = from.size() - shape.size();
  SmallVector<int64_t> axes;
  for (int64_t i = 0, rank = from.size(); i < rank; ++i)
    if (i < added || (shape[i - added] == 1 && from[i] != 1))
      axes.push_back(i);
  if (!axes.empty())
    grad = ReduceSumOp::create(builder, loc, grad, axes,
                               /*keepdims=*/added == 0);
  if (VjpBuilder::shapeOf(grad) != shape)
    grad = ReshapeOp::create(builder, loc, grad, shape);
  return grad;
}

LogicalResult mlir::train::requireOnlyFirstGrad(Operation *op,
                                                ValueRange resultGrads) {
  for (unsigned i = 1, e = resultGrads.size(); i < e; ++i)
    if (resultGrads[i])
      return op->emitOpError() << "has no derivative by its result " << i
                               << ", but the loss depends on it";
  return success();
}

Value VjpBuilder::broadcast(Value x, ArrayRef<int64_t> shape) const {
  return shapeOf(x) == shape ? x : make<BroadcastOp>(x, shape);
}

Value VjpBuilder::reshape(Value x, ArrayRef<int64_t> shape) const {
  return shapeOf(x) == shape ? x : make<ReshapeOp>(x, shape);
}

Value VjpBuilder::castLike(Value x, Value like) const {
  Type to = getElementTypeOrSelf(like);
  return getElementTypeOrSelf(x) == to ? x : make<CastOp>(x, to);
}

#define VJP(OP)                                                                \
  LogicalResult OP::buildVjp(OpBuilder &builder, ValueRange resultGrads,       \
                             Grads &operandGrads)

/// The VJP of a unary operation whose gradient is EXPRESSION of `dy`, `x` (the
/// operand), `y` (the result) and `b` (the builder).
#define UNARY_VJP(OP, EXPRESSION)                                              \
  VJP(OP) {                                                                    \
    VjpBuilder b(builder, *this);                                              \
    [[maybe_unused]] Value dy = resultGrads[0], x = getInput(),                \
                           y = getResult();                                    \
    operandGrads.push_back(EXPRESSION);                                        \
    return success();                                                          \
  }

//===----------------------------------------------------------------------===//
// Unary operations
//===----------------------------------------------------------------------===//

UNARY_VJP(NegOp, b.neg(dy))
UNARY_VJP(AbsOp, b.mul(dy, b.make<SignOp>(x)))
UNARY_VJP(SignOp, Value())
UNARY_VJP(FloorOp, Value())
UNARY_VJP(CeilOp, Value())
UNARY_VJP(RoundOp, Value())
UNARY_VJP(ExpOp, b.mul(dy, y))
UNARY_VJP(Expm1Op, b.mul(dy, b.plusOne(y)))
UNARY_VJP(LogOp, b.div(dy, x))
UNARY_VJP(Log1pOp, b.div(dy, b.plusOne(x)))
UNARY_VJP(SoftplusOp, b.mul(dy, b.make<SigmoidOp>(x)))
UNARY_VJP(SqrtOp, b.div(dy, b.scale(y, 2.0)))
UNARY_VJP(RsqrtOp, b.scale(b.mul(dy, b.mul(b.mul(y, y), y)), -0.5))
UNARY_VJP(ReciprocalOp, b.neg(b.mul(dy, b.mul(y, y))))
UNARY_VJP(ErfOp, b.scale(b.mul(dy, b.make<ExpOp>(b.neg(b.mul(x, x)))),
                         2.0 / std::sqrt(M_PI)))
UNARY_VJP(TanhOp, b.mul(dy, b.oneMinus(b.mul(y, y))))
UNARY_VJP(SigmoidOp, b.mul(b.mul(dy, b.oneMinus(y)), y))
UNARY_VJP(ReluOp, b.make<ReluGradOp>(dy, y))
UNARY_VJP(GeluOp, b.make<GeluGradOp>(dy, x, getApproximate()))
UNARY_VJP(SinOp, b.mul(dy, b.make<CosOp>(x)))
UNARY_VJP(CosOp, b.neg(b.mul(dy, b.make<SinOp>(x))))
UNARY_VJP(TanOp, b.mul(dy, b.plusOne(b.mul(y, y))))
UNARY_VJP(AsinOp, b.mul(dy, b.make<RsqrtOp>(b.oneMinus(b.mul(x, x)))))
UNARY_VJP(AcosOp, b.neg(b.mul(dy, b.make<RsqrtOp>(b.oneMinus(b.mul(x, x))))))
UNARY_VJP(AtanOp, b.div(dy, b.plusOne(b.mul(x, x))))
UNARY_VJP(SinhOp, b.mul(dy, b.make<CoshOp>(x)))
UNARY_VJP(CoshOp, b.mul(dy, b.make<SinhOp>(x)))
UNARY_VJP(AsinhOp, b.mul(dy, b.make<RsqrtOp>(b.plusOne(b.mul(x, x)))))
UNARY_VJP(AcoshOp, b.mul(dy, b.make<RsqrtOp>(b.minusOne(b.mul(x, x)))))
UNARY_VJP(AtanhOp, b.div(dy, b.oneMinus(b.mul(x, x))))
// Only floats carry a gradient.
UNARY_VJP(CastOp,
          isa<FloatType>(getElementTypeOrSelf(x)) ? b.castLike(dy, x) : Value())

//===----------------------------------------------------------------------===//
// Binary operations
//===----------------------------------------------------------------------===//

/// Adds the gradients by the two operands of a broadcasting operation, given in
/// the result's shape.
static LogicalResult addBroadcastGrads(VjpBuilder b, Value lhs, Value rhs,
                                       Value lhsGrad, Value rhsGrad,
                                       Grads &operandGrads) {
  operandGrads.push_back(lhsGrad ? b.unbroadcast(lhsGrad, lhs) : Value());
  operandGrads.push_back(rhsGrad ? b.unbroadcast(rhsGrad, rhs) : Value());
  return success();
}

/// The VJP of a binary operation from the two expressions of `dy`, `lhs`,
/// `rhs`, `y` and `b`.
#define BINARY_VJP(OP, LHS_GRAD, RHS_GRAD)                                     \
  VJP(OP) {                                                                    \
    VjpBuilder b(builder, *this);                                              \
    [[maybe_unused]] Value dy = resultGrads[0], lhs = getLhs(),                \
                           rhs = getRhs(), y = getResult();                    \
    Value lhsGrad = LHS_GRAD, rhsGrad = RHS_GRAD;                              \
    return addBroadcastGrads(b, lhs, rhs, lhsGrad, rhsGrad, operandGrads);     \
  }

BINARY_VJP(AddOp, dy, dy)
BINARY_VJP(SubOp, dy, b.neg(dy))
BINARY_VJP(MulOp, b.mul(dy, rhs), b.mul(dy, lhs))
BINARY_VJP(DivOp, b.div(dy, rhs), b.neg(b.mul(dy, b.div(y, rhs))))

/// `dy` where the operand won, half of it where both are equal, else 0.
static Value winnerGrad(VjpBuilder b, Value dy, Value wins, Value equal) {
  Value half = b.mul(dy, b.scalar(dy, 0.5));
  return b.where(wins, dy, b.where(equal, half, b.scalar(dy, 0.0)));
}

/// The VJP of max and min; `Wins` compares an operand with the other one.
template <typename Wins, typename Op>
static LogicalResult buildExtremumVjp(Op op, VjpBuilder b, Value dy,
                                      Grads &operandGrads) {
  Value lhs = op.getLhs(), rhs = op.getRhs();
  Value equal = b.make<EqualOp>(lhs, rhs);
  Value lhsGrad = winnerGrad(b, dy, b.make<Wins>(lhs, rhs), equal);
  Value rhsGrad = winnerGrad(b, dy, b.make<Wins>(rhs, lhs), equal);
  return addBroadcastGrads(b, lhs, rhs, lhsGrad, rhsGrad, operandGrads);
}

VJP(MaxOp) {
  return buildExtremumVjp<GreaterOp>(*this, {builder, *this}, resultGrads[0],
                                     operandGrads);
}

VJP(MinOp) {
  return buildExtremumVjp<LessOp>(*this, {builder, *this}, resultGrads[0],
                                  operandGrads);
}

/// `a - b * trunc(a / b)`: the quotient counts as constant.
VJP(ModOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0], lhs = getLhs(), rhs = getRhs();
  Value quotient = b.div(lhs, rhs);
  Value magnitude = b.make<FloorOp>(b.make<AbsOp>(quotient));
  Value truncated = b.mul(b.make<SignOp>(quotient), magnitude);
  return addBroadcastGrads(b, lhs, rhs, dy, b.neg(b.mul(dy, truncated)),
                           operandGrads);
}

/// The value of a constant all of whose elements are equal.
static std::optional<double> matchConstant(Value value) {
  DenseFPElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)) || !attr.isSplat())
    return std::nullopt;
  APFloat number = attr.getSplatValue<APFloat>();
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

/// The gradient by the base for a constant exponent: no select, and no power
/// where the exponent is 2.
static Value constantPowGrad(VjpBuilder b, Value dy, Value base,
                             double exponent) {
  if (exponent == 0.0)
    return Value();
  Value power = base;
  if (exponent != 2.0)
    power = b.make<PowOp>(base, b.scalar(base, exponent - 1.0));
  return b.mul(dy, b.scale(power, exponent));
}

VJP(PowOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0], base = getLhs(), exponent = getRhs();
  if (std::optional<double> constant = matchConstant(exponent))
    return addBroadcastGrads(b, base, exponent,
                             constantPowGrad(b, dy, base, *constant), Value(),
                             operandGrads);
  Value zero = b.scalar(base, 0.0);
  Value power = b.make<PowOp>(base, b.sub(exponent, b.scalar(base, 1.0)));
  Value constant = b.make<EqualOp>(exponent, zero);
  Value baseSlope = b.mul(exponent, power);
  Value baseGrad = b.where(constant, zero, b.mul(dy, baseSlope));

  Value isZero = b.make<EqualOp>(base, zero);
  Value notNegative = b.make<GreaterEqualOp>(exponent, zero);
  Value flat = b.make<AndOp>(isZero, notNegative);
  Value exponentSlope = b.mul(getResult(), b.make<LogOp>(base));
  Value exponentGrad = b.where(flat, zero, b.mul(dy, exponentSlope));
  return addBroadcastGrads(b, base, exponent, baseGrad, exponentGrad,
                           operandGrads);
}

VJP(WhereOp) {
  VjpBuilder b(builder, *this);
  Value dy = resultGrads[0], zero = b.scalar(dy, 0.0);
  Value trueGrad = b.where(getCondition(), dy, zero);
  Value falseGrad = b.where(getCondition(), zero, dy);
  operandGrads.push_back(Value());
  return addBroadcastGrads(b, getOnTrue(), getOnFalse(), trueGrad, falseGrad,
                           operandGrads);
}
