//===- FloatBits.h - Arithmetic on the bits of floats -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the conversions between f32 and narrower floats are built from.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_FLOATBITS_H
#define ZERO_LIB_LOWERING_FLOATBITS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::zero {

/// Builds unsigned arithmetic in i32, the bits of an f32 or, in the lowest of
/// them, of a narrower float.
struct FloatBits : ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value constant(uint32_t value) {
    return arith::ConstantOp::create(
        *this, getIntegerAttr(getI32Type(), static_cast<int32_t>(value)));
  }
  Value fromFloat(Value x) {
    return arith::BitcastOp::create(*this, getI32Type(), x);
  }
  Value toFloat(Value x) {
    return arith::BitcastOp::create(*this, getF32Type(), x);
  }
  /// The bits of a float that is as wide as `integer`.
  Value widen(Value x, Type integer) {
    Value bits = arith::BitcastOp::create(*this, integer, x);
    return arith::ExtUIOp::create(*this, getI32Type(), bits);
  }
  /// The float of `type`, as wide as `integer`, that has these bits.
  Value narrow(Value x, Type integer, Type type) {
    Value bits = arith::TruncIOp::create(*this, integer, x);
    return arith::BitcastOp::create(*this, type, bits);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(*this, x, y); }
  Value add(Value x, uint32_t y) { return add(x, constant(y)); }
  Value bitAnd(Value x, uint32_t y) {
    return arith::AndIOp::create(*this, x, constant(y));
  }
  Value bitOr(Value x, Value y) { return arith::OrIOp::create(*this, x, y); }
  Value left(Value x, uint32_t by) {
    return arith::ShLIOp::create(*this, x, constant(by));
  }
  Value right(Value x, uint32_t by) {
    return arith::ShRUIOp::create(*this, x, constant(by));
  }
  Value compare(arith::CmpIPredicate predicate, Value x, uint32_t y) {
    return arith::CmpIOp::create(*this, predicate, x, constant(y));
  }
  Value isBelow(Value x, uint32_t y) {
    return compare(arith::CmpIPredicate::ult, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(*this, condition, x, y);
  }
};

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_FLOATBITS_H
