//===- TrainToLinalgTinyFloats.cpp - Floats of 8 bits ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between f32 and floats of 8 bits, as integer arithmetic on their
// bits without branches. The rules are those of ONNX's Cast.
//
//===----------------------------------------------------------------------===//

#include "FloatBits.h"
#include "TrainToLinalg.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// How a format lays out its 7 bits of magnitude.
struct Format {
  int mantissa, bias;
  uint32_t largest;  ///< of the finite numbers
  uint32_t beyond;   ///< what a number that is too large becomes, with overflow
  uint32_t infinity; ///< or 0 if there is none
  uint32_t nan;      ///< the smallest; with the sign bit it has no other
  bool hasNegativeZero() const { return nan != 0x80; }
};

/// Integer arithmetic on the bits of f32 and of floats of 8 bits.
struct Bits : FloatBits {
  using FloatBits::FloatBits;
  using FloatBits::select;

  Value number(double value) {
    return arith::ConstantOp::create(*this, getF32FloatAttr(float(value)));
  }
  Value fromTiny(Value x) { return widen(x, getI8Type()); }
  Value toTiny(Value x, Type type) { return narrow(x, getI8Type(), type); }
  Value isAbove(Value x, uint32_t y) {
    return compare(arith::CmpIPredicate::ugt, x, y);
  }
  Value isEqual(Value x, uint32_t y) {
    return compare(arith::CmpIPredicate::eq, x, y);
  }
  Value select(Value condition, uint32_t x, Value y) {
    return select(condition, constant(x), y);
  }
  /// 1 where the condition holds, else 0.
  Value flag(Value condition) {
    return arith::ExtUIOp::create(*this, getI32Type(), condition);
  }
};
} // namespace

static constexpr uint32_t kInfinity = 0x7F800000, kNan = 0x7FC00000;

static Format formatOf(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return {3, 7, 0x7E, 0x7F, 0, 0x7F};
  if (isa<Float8E5M2Type>(type))
    return {2, 15, 0x7B, 0x7C, 0x7C, 0x7D};
  if (isa<Float8E4M3FNUZType>(type))
    return {3, 8, 0x7F, 0x80, 0, 0x80};
  return {2, 16, 0x7F, 0x80, 0, 0x80};
}

bool zero::isTinyFloat(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type, Float8E4M3FNUZType,
             Float8E5M2FNUZType, Float8E8M0FNUType>(type);
}

//===----------------------------------------------------------------------===//
// Powers of two
//===----------------------------------------------------------------------===//

/// The exponent is f32's; of 0 the power is a subnormal f32.
static Value widenScale(Bits b, Value code) {
  Value bits = b.select(b.isEqual(code, 0), 0x00400000, b.left(code, 23));
  return b.toFloat(b.select(b.isEqual(code, 0xFF), kNan, bits));
}

static Value roundToScale(Bits b, Value bits, const TinyRounding &rounding) {
  Value exponent = b.right(bits, 23), mantissa = b.bitAnd(bits, 0x7FFFFF);
  Value isSmall = b.isBelow(bits, 0x00800000);
  // Above the power of the exponent, or above 2^-127 where there is none.
  uint32_t normal = rounding.scale == "up" ? 0 : 0x3FFFFF;
  uint32_t small = rounding.scale == "up" ? 0x400000 : 0x5FFFFF;
  Value code = exponent;
  if (rounding.scale != "down") {
    Value limit = b.select(isSmall, small, b.constant(normal));
    Value up =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, mantissa, limit);
    code = b.add(exponent, b.flag(up));
  }
  // A sign makes the number lie below all powers.
  Value isLow = b.isBelow(bits, 0x00400000), sign = b.isAbove(bits, 0x7FFFFFFF);
  Value tooLow = arith::OrIOp::create(b, isLow, sign);
  code =
      b.select(b.isAbove(code, 0xFE), rounding.overflows ? 0xFF : 0xFE, code);
  code = b.select(tooLow, rounding.overflows ? 0xFF : 0, code);
  return b.select(b.isAbove(b.bitAnd(bits, 0x7FFFFFFF), kInfinity), 0xFF, code);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static Value widen(Bits b, Value code, Format format) {
  Value magnitude = b.bitAnd(code, 0x7F);
  // A multiplication moves the exponent, of subnormals too.
  Value shifted = b.toFloat(b.left(magnitude, 23 - format.mantissa));
  Value factor = b.toFloat(b.constant(uint32_t(127 + 127 - format.bias) << 23));
  Value bits = b.fromFloat(arith::MulFOp::create(b, shifted, factor));
  if (format.infinity)
    bits = b.select(b.isEqual(magnitude, format.infinity), kInfinity, bits);
  Value isNan = format.hasNegativeZero() ? b.isAbove(magnitude, format.nan - 1)
                                         : b.isEqual(code, format.nan);
  bits = b.select(isNan, kNan, bits);
  return b.toFloat(b.bitOr(bits, b.left(b.bitAnd(code, 0x80), 24)));
}

static Value roundTo(Bits b, Value bits, Format format,
                     const TinyRounding &rounding) {
  Value magnitude = b.bitAnd(bits, 0x7FFFFFFF);
  uint32_t drop = 23 - format.mantissa;
  // Ties to even, and the exponent of the format.
  Value odd = b.bitAnd(b.right(magnitude, drop), 1);
  Value up = b.add(b.add(magnitude, (1u << (drop - 1)) - 1), odd);
  Value normal = b.add(b.right(up, drop),
                       -uint32_t((127 - format.bias) << format.mantissa));
  // The last bit of a float of this size is the smallest of the format.
  uint32_t anchor = uint32_t(127 + 1 - format.bias + drop) << 23;
  Value sum = arith::AddFOp::create(b, b.toFloat(magnitude),
                                    b.toFloat(b.constant(anchor)));
  Value small = b.add(b.fromFloat(sum), -anchor);
  uint32_t leastNormal = uint32_t(127 + 1 - format.bias) << 23;
  Value code = b.select(b.isBelow(magnitude, leastNormal), small, normal);
  uint32_t beyond = rounding.overflows ? format.beyond : format.largest;
  code = b.select(b.isAbove(magnitude, kInfinity - 1), beyond, code);
  code = b.select(b.isAbove(code, format.largest), beyond, code);
  code = b.select(b.isAbove(magnitude, kInfinity), format.nan, code);
  Value sign = b.bitAnd(b.right(bits, 24), 0x80);
  // Without a negative zero its code means not a number.
  if (!format.hasNegativeZero())
    sign = b.select(b.isEqual(code, 0), 0u, sign);
  return b.bitOr(code, sign);
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

Value zero::widenTiny(OpBuilder &builder, Location loc, Value x) {
  Bits b(loc, builder);
  Value code = b.fromTiny(x);
  return isa<Float8E8M0FNUType>(x.getType())
             ? widenScale(b, code)
             : widen(b, code, formatOf(x.getType()));
}

Value zero::roundToTiny(OpBuilder &builder, Location loc, Value x, Type type,
                        const TinyRounding &rounding) {
  Bits b(loc, builder);
  Value bits = b.fromFloat(x);
  Value code = isa<Float8E8M0FNUType>(type)
                   ? roundToScale(b, bits, rounding)
                   : roundTo(b, bits, formatOf(type), rounding);
  return b.toTiny(code, type);
}
