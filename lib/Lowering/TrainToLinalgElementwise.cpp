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
  Value compare(arith::CmpIPredicate p, Value x, int64_t y) {
    return compare(p, x, constant(x.getType(), y));
  }
  template <typename OpTy>
  Value make(ValueRange operands) {
    return OpTy::create(b, loc, operands);
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

static Value emit(Scalars s, train::AbsOp op, ValueRange x) {
  if (isUnsigned(op))
    return x[0];
  if (isFloat(x[0]))
    return math::AbsFOp::create(s.b, s.loc, x[0]);
  return math::AbsIOp::create(s.b, s.loc, x[0]);
}

static Value emit(Scalars s, train::SignOp op, ValueRange x) {
  Type type = x[0].getType();
  if (isUnsigned(op))
    return s.select(s.compare(arith::CmpIPredicate::ne, x[0], 0),
                    s.constant(type, 1), x[0]);
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

/// Operations that are one of the math dialect.
#define EMIT_MATH(OP, MATH)                                                    \
  static Value emit(Scalars s, train::OP, ValueRange x) {                      \
    return s.make<math::MATH>(x);                                              \
  }

EMIT_MATH(AcosOp, AcosOp)
EMIT_MATH(AcoshOp, AcoshOp)
EMIT_MATH(AsinOp, AsinOp)
EMIT_MATH(AsinhOp, AsinhOp)
EMIT_MATH(AtanOp, AtanOp)
EMIT_MATH(AtanhOp, AtanhOp)
EMIT_MATH(CeilOp, CeilOp)
EMIT_MATH(CosOp, CosOp)
EMIT_MATH(CoshOp, CoshOp)
EMIT_MATH(ErfOp, ErfOp)
EMIT_MATH(ExpOp, ExpOp)
EMIT_MATH(Expm1Op, ExpM1Op)
EMIT_MATH(FloorOp, FloorOp)
EMIT_MATH(Log1pOp, Log1pOp)
EMIT_MATH(LogOp, LogOp)
EMIT_MATH(RoundOp, RoundEvenOp)
EMIT_MATH(SinOp, SinOp)
EMIT_MATH(SinhOp, SinhOp)
EMIT_MATH(SqrtOp, SqrtOp)
EMIT_MATH(TanOp, TanOp)
EMIT_MATH(TanhOp, TanhOp)

static Value emit(Scalars s, train::RsqrtOp, ValueRange x) {
  Value root = math::SqrtOp::create(s.b, s.loc, x[0]);
  return s.div(s.constant(x[0].getType(), 1), root);
}

static Value emit(Scalars s, train::ReciprocalOp, ValueRange x) {
  return s.div(s.constant(x[0].getType(), 1), x[0]);
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

/// max(x, 0) + ln(1 + e^-|x|)
static Value emit(Scalars s, train::SoftplusOp, ValueRange x) {
  Value magnitude = s.make<math::AbsFOp>(x[0]);
  Value power = s.make<math::ExpOp>(s.neg(magnitude));
  Value rest = s.make<math::Log1pOp>(power);
  Value positive = maxScalar(s.b, s.loc, x[0], s.constant(x[0].getType(), 0));
  return s.add(positive, rest);
}

static Value emit(Scalars s, train::NotOp, ValueRange x) {
  Value ones = s.constant(x[0].getType(), -1);
  return arith::XOrIOp::create(s.b, s.loc, x[0], ones);
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

/// The divisor where the processor can divide by it, else 1: not 0, and not -1,
/// whose quotient of the smallest integer does not exist.
static Value getSafeDivisor(Scalars s, Value divisor, bool isUnsigned) {
  Value unsafe = s.compare(arith::CmpIPredicate::eq, divisor, 0);
  if (!isUnsigned)
    unsafe = arith::OrIOp::create(
        s.b, s.loc, unsafe, s.compare(arith::CmpIPredicate::eq, divisor, -1));
  return s.select(unsafe, s.constant(divisor.getType(), 1), divisor);
}

static Value emit(Scalars s, train::DivOp op, ValueRange x) {
  if (isFloat(x[0]))
    return s.div(x[0], x[1]);
  Type type = x[0].getType();
  Value divisor = getSafeDivisor(s, x[1], isUnsigned(op));
  Value zero = s.constant(type, 0), quotient;
  if (isUnsigned(op)) {
    quotient = s.make<arith::DivUIOp>({x[0], divisor});
  } else {
    quotient = s.make<arith::DivSIOp>({x[0], divisor});
    Value negative = s.make<arith::SubIOp>({zero, x[0]});
    Value turns = s.compare(arith::CmpIPredicate::eq, x[1], -1);
    quotient = s.select(turns, negative, quotient);
  }
  return s.select(s.compare(arith::CmpIPredicate::eq, x[1], zero), zero,
                  quotient);
}

static Value emit(Scalars s, train::PowOp, ValueRange x) {
  return math::PowFOp::create(s.b, s.loc, x[0], x[1]);
}

static Value emit(Scalars s, train::MaxOp op, ValueRange x) {
  return maxScalar(s.b, s.loc, x[0], x[1], isUnsigned(op));
}

static Value emit(Scalars s, train::MinOp op, ValueRange x) {
  return minScalar(s.b, s.loc, x[0], x[1], isUnsigned(op));
}

static Value emit(Scalars s, train::ModOp op, ValueRange x) {
  if (isFloat(x[0]))
    return arith::RemFOp::create(s.b, s.loc, x[0], x[1]);
  Value divisor = getSafeDivisor(s, x[1], isUnsigned(op));
  // Where the divisor is not safe the rest by 1 is right: 0.
  if (isUnsigned(op))
    return s.make<arith::RemUIOp>({x[0], divisor});
  // The remainder has the dividend's sign; ONNX wants the divisor's.
  Value rest = s.make<arith::RemSIOp>({x[0], divisor});
  Value mixed = s.make<arith::XOrIOp>({rest, x[1]});
  Value opposite = s.compare(arith::CmpIPredicate::slt, mixed, 0);
  Value nonzero = s.compare(arith::CmpIPredicate::ne, rest, 0);
  Value wrong = s.make<arith::AndIOp>({opposite, nonzero});
  Value shifted = s.make<arith::AddIOp>({rest, x[1]});
  return s.select(wrong, shifted, rest);
}

/// Amounts beyond the width, which LLVM leaves undefined, shift all bits out.
static Value emit(Scalars s, train::ShiftLeftOp, ValueRange x) {
  Type type = x[0].getType();
  Value fits = s.compare(arith::CmpIPredicate::ult, x[1],
                         int64_t(type.getIntOrFloatBitWidth()));
  Value shifted = s.make<arith::ShLIOp>({x[0], x[1]});
  return s.select(fits, shifted, s.constant(type, 0));
}

static Value emit(Scalars s, train::ShiftRightOp op, ValueRange x) {
  Type type = x[0].getType();
  int64_t width = type.getIntOrFloatBitWidth();
  Value fits = s.compare(arith::CmpIPredicate::ult, x[1], width);
  if (isUnsigned(op)) {
    Value shifted = s.make<arith::ShRUIOp>({x[0], x[1]});
    return s.select(fits, shifted, s.constant(type, 0));
  }
  Value amount = s.select(fits, x[1], s.constant(type, width - 1));
  return s.make<arith::ShRSIOp>({x[0], amount});
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

/// The comparisons of floats, of signed and of unsigned integers.
#define EMIT_COMPARE(OP, FLOATS, SIGNED, UNSIGNED)                             \
  static Value emit(Scalars s, train::OP op, ValueRange x) {                   \
    if (isFloat(x[0]))                                                         \
      return arith::CmpFOp::create(s.b, s.loc, arith::CmpFPredicate::FLOATS,   \
                                   x[0], x[1]);                                \
    return s.compare(isUnsigned(op) ? arith::CmpIPredicate::UNSIGNED           \
                                    : arith::CmpIPredicate::SIGNED,            \
                     x[0], x[1]);                                              \
  }

EMIT_COMPARE(EqualOp, OEQ, eq, eq)
EMIT_COMPARE(LessOp, OLT, slt, ult)
EMIT_COMPARE(LessEqualOp, OLE, sle, ule)
EMIT_COMPARE(GreaterOp, OGT, sgt, ugt)
EMIT_COMPARE(GreaterEqualOp, OGE, sge, uge)

static Value emit(Scalars s, train::WhereOp, ValueRange x) {
  return s.select(x[0], x[1], x[2]);
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
  addAll<train::AbsOp, train::AcosOp, train::AcoshOp, train::AddOp,
         train::AndOp, train::AsinOp, train::AsinhOp, train::AtanOp,
         train::AtanhOp, train::CeilOp, train::CosOp, train::CoshOp,
         train::DivOp, train::EqualOp, train::ErfOp, train::ExpOp,
         train::Expm1Op, train::FloorOp, train::GeluOp, train::GeluGradOp,
         train::GreaterOp, train::GreaterEqualOp, train::IsNanOp, train::LessOp,
         train::LessEqualOp, train::LogOp, train::Log1pOp, train::MaxOp,
         train::MinOp, train::ModOp, train::MulOp, train::NegOp, train::NotOp,
         train::OrOp, train::PowOp, train::ReciprocalOp, train::ReluOp,
         train::ReluGradOp, train::RoundOp, train::RsqrtOp, train::ShiftLeftOp,
         train::ShiftRightOp, train::SigmoidOp, train::SignOp, train::SinOp,
         train::SinhOp, train::SoftplusOp, train::SqrtOp, train::SubOp,
         train::TanOp, train::TanhOp, train::WhereOp, train::XorOp>(patterns);
}
