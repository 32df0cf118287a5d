//===- TrainToLinalgElementwise.cpp - Elementwise operations --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scalar function of every elementwise operation, in arith and math. Floats
// narrower than f32 are computed in f32 and rounded once.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// Builds scalar arithmetic at one place; floats unless said otherwise.
struct Scalars : FloatMath {
  Value select(Value c, Value x, Value y) {
    return arith::SelectOp::create(b, loc, c, x, y);
  }
  Value compare(arith::CmpFPredicate p, Value x, double y) {
    return arith::CmpFOp::create(b, loc, p, x, constant(x.getType(), y));
  }
  Value compare(arith::CmpIPredicate p, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, p, x, y);
  }
};
} // namespace

static bool isFloat(Value value) { return isa<FloatType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Unary operations
//===----------------------------------------------------------------------===//

static Value emit(Scalars s, train::NegOp, ValueRange x) {
  if (isFloat(x[0]))
    return arith::NegFOp::create(s.b, s.loc, x[0]);
  return arith::SubIOp::create(s.b, s.loc, s.constant(x[0].getType(), 0), x[0]);
}

static Value emit(Scalars s, train::AbsOp, ValueRange x) {
  if (isFloat(x[0]))
    return math::AbsFOp::create(s.b, s.loc, x[0]);
  return math::AbsIOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::SignOp, ValueRange x) {
  Type type = x[0].getType();
  if (!isFloat(x[0])) {
    Value zero = s.constant(type, 0);
    Value up = s.compare(arith::CmpIPredicate::sgt, x[0], zero);
    Value down = s.compare(arith::CmpIPredicate::slt, x[0], zero);
    return s.select(up, s.constant(type, 1),
                    s.select(down, s.constant(type, -1), zero));
  }
  Value up = s.compare(arith::CmpFPredicate::OGT, x[0], 0);
  Value down = s.compare(arith::CmpFPredicate::OLT, x[0], 0);
  return s.select(up, s.constant(type, 1),
                  s.select(down, s.constant(type, -1), x[0]));
}

static Value emit(Scalars s, train::ExpOp, ValueRange x) {
  return math::ExpOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::LogOp, ValueRange x) {
  return math::LogOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::SqrtOp, ValueRange x) {
  return math::SqrtOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::RsqrtOp, ValueRange x) {
  Value root = math::SqrtOp::create(s.b, s.loc, x[0]);
  return s.div(s.constant(x[0].getType(), 1), root);
}

static Value emit(Scalars s, train::ReciprocalOp, ValueRange x) {
  return s.div(s.constant(x[0].getType(), 1), x[0]);
}

static Value emit(Scalars s, train::ErfOp, ValueRange x) {
  return math::ErfOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::TanhOp, ValueRange x) {
  return math::TanhOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::SigmoidOp, ValueRange x) {
  Value negative = arith::NegFOp::create(s.b, s.loc, x[0]);
  Value power = math::ExpOp::create(s.b, s.loc, negative);
  return s.div(s.constant(x[0].getType(), 1), s.add(power, 1.0));
}

static Value emit(Scalars s, train::ReluOp, ValueRange x) {
  // Unordered: not a number stays.
  Value keep = s.compare(arith::CmpFPredicate::UGT, x[0], 0);
  return s.select(keep, x[0], s.constant(x[0].getType(), 0));
}

static Value emit(Scalars s, train::SinOp, ValueRange x) {
  return math::SinOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::CosOp, ValueRange x) {
  return math::CosOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::FloorOp, ValueRange x) {
  return math::FloorOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::NotOp, ValueRange x) {
  return arith::XOrIOp::create(s.b, s.loc, x[0], s.constant(x[0].getType(), 1));
}

static Value emit(Scalars s, train::IsNanOp, ValueRange x) {
  return arith::CmpFOp::create(s.b, s.loc, arith::CmpFPredicate::UNO, x[0],
                               x[0]);
}

//===----------------------------------------------------------------------===//
// Gelu
//===----------------------------------------------------------------------===//

static constexpr double kSqrtHalf = 0.70710678118654752440;
static constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
static constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
static constexpr double kCubic = 0.044715;

/// tanh(sqrt(2/pi) * (x + 0.044715 x^3)).
static Value emitGeluTanh(Scalars s, Value x) {
  Value cube = s.mul(s.mul(x, x), x);
  Value inner = s.mul(s.add(x, s.mul(cube, kCubic)), kSqrtTwoOverPi);
  return math::TanhOp::create(s.b, s.loc, inner);
}

/// (1 + erf(x / sqrt(2))) / 2, the normal distribution.
static Value emitNormalCdf(Scalars s, Value x) {
  Value erf = math::ErfOp::create(s.b, s.loc, s.mul(x, kSqrtHalf));
  return s.mul(s.add(erf, 1.0), 0.5);
}

static Value emit(Scalars s, train::GeluOp op, ValueRange x) {
  if (op.getApproximate() == "tanh")
    return s.mul(s.mul(x[0], 0.5), s.add(emitGeluTanh(s, x[0]), 1.0));
  return s.mul(x[0], emitNormalCdf(s, x[0]));
}

static Value emit(Scalars s, train::GeluGradOp op, ValueRange args) {
  Value grad = args[0], x = args[1];
  if (op.getApproximate() != "tanh") {
    Value square = s.mul(s.mul(x, x), -0.5);
    Value bell = math::ExpOp::create(s.b, s.loc, square);
    Value pdf = s.mul(bell, kInvSqrtTwoPi);
    return s.mul(grad, s.add(emitNormalCdf(s, x), s.mul(x, pdf)));
  }
  Value tanh = emitGeluTanh(s, x);
  Value slope = s.sub(s.constant(x.getType(), 1), s.mul(tanh, tanh));
  Value inner =
      s.mul(s.add(s.mul(s.mul(x, x), 3 * kCubic), 1.0), kSqrtTwoOverPi);
  Value left = s.mul(s.add(tanh, 1.0), 0.5);
  Value right = s.mul(s.mul(s.mul(x, 0.5), slope), inner);
  return s.mul(grad, s.add(left, right));
}

static Value emit(Scalars s, train::ReluGradOp, ValueRange args) {
  Value active = s.compare(arith::CmpFPredicate::OGT, args[1], 0);
  return s.select(active, args[0], s.constant(args[0].getType(), 0));
}

//===----------------------------------------------------------------------===//
// Binary operations
//===----------------------------------------------------------------------===//

static Value emit(Scalars s, train::AddOp, ValueRange x) {
  if (isFloat(x[0]))
    return s.add(x[0], x[1]);
  return arith::AddIOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::SubOp, ValueRange x) {
  if (isFloat(x[0]))
    return s.sub(x[0], x[1]);
  return arith::SubIOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::MulOp, ValueRange x) {
  if (isFloat(x[0]))
    return s.mul(x[0], x[1]);
  return arith::MulIOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::DivOp, ValueRange x) {
  if (isFloat(x[0]))
    return s.div(x[0], x[1]);
  return arith::DivSIOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::PowOp, ValueRange x) {
  return math::PowFOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::MaxOp, ValueRange x) {
  return maxScalar(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::MinOp, ValueRange x) {
  return minScalar(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::ModOp, ValueRange x) {
  if (isFloat(x[0]))
    return arith::RemFOp::create(s.b, s.loc, x[0], x[1]);
  // The remainder has the dividend's sign; ONNX wants the divisor's.
  Value zero = s.constant(x[0].getType(), 0);
  Value rest = arith::RemSIOp::create(s.b, s.loc, x[0], x[1]);
  Value mixed = arith::XOrIOp::create(s.b, s.loc, rest, x[1]);
  Value opposite = s.compare(arith::CmpIPredicate::slt, mixed, zero);
  Value nonzero = s.compare(arith::CmpIPredicate::ne, rest, zero);
  Value wrong = arith::AndIOp::create(s.b, s.loc, opposite, nonzero);
  Value shifted = arith::AddIOp::create(s.b, s.loc, rest, x[1]);
  return s.select(wrong, shifted, rest);
}

static Value emit(Scalars s, train::AndOp, ValueRange x) {
  return arith::AndIOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::OrOp, ValueRange x) {
  return arith::OrIOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::XorOp, ValueRange x) {
  return arith::XOrIOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emitCompare(Scalars s, ValueRange x, arith::CmpFPredicate floats,
                         arith::CmpIPredicate integers) {
  if (isFloat(x[0]))
    return arith::CmpFOp::create(s.b, s.loc, floats, x[0], x[1]);
  return s.compare(integers, x[0], x[1]);
}

static Value emit(Scalars s, train::EqualOp, ValueRange x) {
  return emitCompare(s, x, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq);
}

static Value emit(Scalars s, train::LessOp, ValueRange x) {
  return emitCompare(s, x, arith::CmpFPredicate::OLT,
                     arith::CmpIPredicate::slt);
}

static Value emit(Scalars s, train::LessEqualOp, ValueRange x) {
  return emitCompare(s, x, arith::CmpFPredicate::OLE,
                     arith::CmpIPredicate::sle);
}

static Value emit(Scalars s, train::GreaterOp, ValueRange x) {
  return emitCompare(s, x, arith::CmpFPredicate::OGT,
                     arith::CmpIPredicate::sgt);
}

static Value emit(Scalars s, train::GreaterEqualOp, ValueRange x) {
  return emitCompare(s, x, arith::CmpFPredicate::OGE,
                     arith::CmpIPredicate::sge);
}

static Value emit(Scalars s, train::WhereOp, ValueRange x) {
  return s.select(x[0], x[1], x[2]);
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

static Value emit(Scalars s, train::CastOp op, ValueRange x) {
  Type from = x[0].getType(), to = op.getTo();
  bool toFloat = isa<FloatType>(to);
  if (to.isInteger(1)) {
    if (isFloat(x[0]))
      return s.compare(arith::CmpFPredicate::UNE, x[0], 0);
    return s.compare(arith::CmpIPredicate::ne, x[0], s.constant(from, 0));
  }
  if (from.isInteger(1)) {
    if (toFloat)
      return arith::UIToFPOp::create(s.b, s.loc, to, x[0]);
    return arith::ExtUIOp::create(s.b, s.loc, to, x[0]);
  }
  if (isFloat(x[0]) && !toFloat)
    return arith::FPToSIOp::create(s.b, s.loc, to, x[0]);
  if (!isFloat(x[0]) && toFloat)
    return arith::SIToFPOp::create(s.b, s.loc, to, x[0]);
  return convertScalar(s.b, s.loc, x[0], to);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

template <typename OpTy>
static SmallVector<Value> lower(OpBuilder &b, OpTy op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return mapElements(
      b, op.getLoc(), emptyTensor(b, op.getLoc(), type), op->getOperands(),
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        // A choice moves elements as they are.
        constexpr bool moves = std::is_same_v<OpTy, train::WhereOp>;
        SmallVector<Value> scalars;
        for (Value arg : args) {
          Type type = arg.getType();
          scalars.push_back(convertScalar(nested, loc, arg,
                                          moves ? type : getComputeType(type)));
        }
        Value result = emit(Scalars{{nested, loc}}, op, scalars);
        return SmallVector<Value>{
            convertScalar(nested, loc, result, type.getElementType())};
      });
}

template <typename... OpTys>
static void addAll(RewritePatternSet &patterns) {
  (addLowering<OpTys>(patterns, lower<OpTys>), ...);
}

void zero::populateTrainElementwiseToLinalg(RewritePatternSet &patterns) {
  addAll<train::AbsOp, train::AddOp, train::AndOp, train::CastOp, train::CosOp,
         train::DivOp, train::EqualOp, train::ErfOp, train::ExpOp,
         train::FloorOp, train::GeluGradOp, train::GeluOp,
         train::GreaterEqualOp, train::GreaterOp, train::IsNanOp,
         train::LessEqualOp, train::LessOp, train::LogOp, train::MaxOp,
         train::MinOp, train::ModOp, train::MulOp, train::NegOp, train::NotOp,
         train::OrOp, train::PowOp, train::ReciprocalOp, train::ReluGradOp,
         train::ReluOp, train::RsqrtOp, train::SigmoidOp, train::SignOp,
         train::SinOp, train::SqrtOp, train::SubOp, train::TanhOp,
         train::WhereOp, train::XorOp>(patterns);
}
