//===- TrainToLinalgCast.cpp - Conversions of elements --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// train.cast and train.bitcast. LLVM leaves a float's conversion to an integer
// that does not hold it undefined; here it is the nearest bound.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero;

namespace {
/// Builds conversions at one place.
struct Converter : FloatMath {
  Value compare(arith::CmpFPredicate p, Value x, double y) {
    return arith::CmpFOp::create(b, loc, p, x, constant(x.getType(), y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value integer(Type type, const APInt &value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }

  Value toBool(Value x);
  Value toInteger(Value x, Type type, bool isUnsigned);
  Value fromInteger(Value x, Type to, bool isUnsigned);
};
} // namespace

Value Converter::toBool(Value x) {
  Type type = x.getType();
  if (isa<FloatType>(type))
    return compare(arith::CmpFPredicate::UNE, x, 0);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x,
                               constant(type, 0));
}

/// A float, truncated towards zero.
Value Converter::toInteger(Value x, Type type, bool isUnsigned) {
  unsigned width = type.getIntOrFloatBitWidth();
  APInt low =
      isUnsigned ? APInt::getZero(width) : APInt::getSignedMinValue(width);
  APInt high =
      isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  double beyond = std::ldexp(1.0, isUnsigned ? width : width - 1);
  Value inside = isUnsigned ? Value(arith::FPToUIOp::create(b, loc, type, x))
                            : Value(arith::FPToSIOp::create(b, loc, type, x));
  Value above = compare(arith::CmpFPredicate::OGE, x, beyond);
  Value below =
      compare(arith::CmpFPredicate::OLT, x, isUnsigned ? 0.0 : -beyond);
  Value noNumber =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  Value result = select(above, integer(type, high), inside);
  result = select(below, integer(type, low), result);
  return select(noNumber, integer(type, APInt::getZero(width)), result);
}

Value Converter::fromInteger(Value x, Type to, bool isUnsigned) {
  if (isa<FloatType>(to))
    return isUnsigned ? Value(arith::UIToFPOp::create(b, loc, to, x))
                      : Value(arith::SIToFPOp::create(b, loc, to, x));
  unsigned from = x.getType().getIntOrFloatBitWidth();
  if (isUnsigned && from < to.getIntOrFloatBitWidth())
    return arith::ExtUIOp::create(b, loc, to, x);
  return convertScalar(b, loc, x, to);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// `to` is the type in the program, which knows its sign, `result` what it is
/// stored as.
static Value castElement(Converter c, train::CastOp op, Value x, Type result) {
  Type from = x.getType(), to = op.getTo();
  if (isTinyFloat(from)) {
    x = widenTiny(c.b, c.loc, x);
    from = x.getType();
  }
  if (isTinyFloat(result)) {
    Type f32 = c.b.getF32Type();
    bool isUnsignedOrBool = from.isInteger(1) || isUnsigned(op);
    Value wide = isa<IntegerType>(from)
                     ? c.fromInteger(x, f32, isUnsignedOrBool)
                     : c.cast(x, f32);
    return roundToTiny(c.b, c.loc, wide, result,
                       {op.getOverflows(), op.getRoundScale()});
  }
  if (result.isInteger(1))
    return c.toBool(x);
  if (isa<IntegerType>(from))
    return c.fromInteger(x, result, from.isInteger(1) || isUnsigned(op));
  if (isa<IntegerType>(result))
    return c.toInteger(c.cast(x, getComputeType(from)), result,
                       to.isUnsignedInteger());
  return c.cast(x, result);
}

static SmallVector<Value> lowerCast(OpBuilder &b, train::CastOp op) {
  RankedTensorType type = op.getType();
  return mapElements(
      b, op.getLoc(), emptyTensor(b, op.getLoc(), type), op.getInput(),
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        return SmallVector<Value>{
            castElement({{nested, loc}}, op, args[0], type.getElementType())};
      });
}

static SmallVector<Value> lowerBitcast(OpBuilder &b, train::BitcastOp op) {
  RankedTensorType type = op.getType();
  return mapElements(
      b, op.getLoc(), emptyTensor(b, op.getLoc(), type), op.getInput(),
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        Type to = type.getElementType();
        return SmallVector<Value>{
            args[0].getType() == to
                ? args[0]
                : Value(arith::BitcastOp::create(nested, loc, to, args[0]))};
      });
}

void zero::populateTrainCastToLinalg(RewritePatternSet &patterns) {
  addLowering<train::CastOp>(patterns, lowerCast);
  addLowering<train::BitcastOp>(patterns, lowerBitcast);
}
