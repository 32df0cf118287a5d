//===- KernelExpandFloats.cpp - bf16 and f16 as bits ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Narrow floats are computed in f32. The conversions give the bits of
// runtime/core/NarrowFloat.h and have no branches, so that LLVM vectorizes
// them.
//
//===----------------------------------------------------------------------===//

#include "FloatBits.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELEXPANDFLOATS
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

static bool isNarrow(Type type) { return type.isBF16() || type.isF16(); }

static bool isConversion(Operation *op) {
  return isa<arith::ExtFOp, arith::TruncFOp>(op);
}

static bool touchesNarrow(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), isNarrow) ||
         llvm::any_of(op->getResultTypes(), isNarrow);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Makes `op` one on f32 that reads widened operands and whose results are
/// rounded. A conversion from or to f64 becomes two.
static void computeInF32(Operation *op) {
  OpBuilder b(op);
  Type f32 = b.getF32Type();
  for (OpOperand &operand : op->getOpOperands())
    if (isNarrow(operand.get().getType()))
      operand.set(arith::ExtFOp::create(b, op->getLoc(), f32, operand.get()));
  b.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    Type narrow = result.getType();
    if (!isNarrow(narrow))
      continue;
    result.setType(f32);
    auto rounded = arith::TruncFOp::create(b, op->getLoc(), narrow, result);
    result.replaceAllUsesExcept(rounded, rounded);
  }
}

static void computeAllInF32(func::FuncOp func) {
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) {
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
        isa<arith::BitcastOp, arith::ConstantOp, arith::SelectOp>(op) ||
        !touchesNarrow(op))
      return;
    Type other = isa<arith::ExtFOp>(op)     ? op->getResult(0).getType()
                 : isa<arith::TruncFOp>(op) ? op->getOperand(0).getType()
                                            : Type();
    if (!isConversion(op) || !other.isF32())
      ops.push_back(op);
  });
  for (Operation *op : ops)
    computeInF32(op);
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

namespace {
/// Integer arithmetic on the bits of f32 and of floats of 16 bits.
struct Bits : FloatBits {
  using FloatBits::FloatBits;

  Value fromNarrow(Value x) { return widen(x, getI16Type()); }
  Value toNarrow(Value x, Type type) { return narrow(x, getI16Type(), type); }
  /// Rounds away the last `count` bits, ties to even.
  Value roundOff(Value x, uint32_t count) {
    Value odd = bitAnd(right(x, count), 1);
    return right(add(add(x, (1u << (count - 1)) - 1), odd), count);
  }
};
} // namespace

static Value widenBrain(Bits b, Value x) {
  return b.toFloat(b.left(b.fromNarrow(x), 16));
}

static Value roundToBrain(Bits b, Value x, Type type) {
  Value bits = b.fromFloat(x);
  Value isNumber = b.isBelow(b.bitAnd(bits, 0x7FFFFFFF), 0x7F800001);
  // Before the rounding, on 32 bits as the comparison: LLVM would split a
  // select of 16 bits into scalars where masks are vectors (AVX2).
  Value number = b.select(isNumber, bits, b.constant(0x7FC00000));
  return b.toNarrow(b.roundOff(number, 16), type);
}

static Value widenHalf(Bits b, Value x) {
  Value bits = b.fromNarrow(x);
  Value magnitude = b.left(b.bitAnd(bits, 0x7FFF), 13);
  // A multiplication moves the exponent, of subnormals too.
  Value factor = b.toFloat(b.constant((127 + 112) << 23));
  Value finite =
      b.fromFloat(arith::MulFOp::create(b, b.toFloat(magnitude), factor));
  Value special = b.bitOr(magnitude, b.select(b.isBelow(magnitude, 0x0F800001),
                                              b.constant(0x7F800000),
                                              b.constant(0x7FC00000)));
  Value result = b.select(b.isBelow(magnitude, 0x0F800000), finite, special);
  return b.toFloat(b.bitOr(result, b.left(b.bitAnd(bits, 0x8000), 16)));
}

static Value roundToHalf(Bits b, Value x, Type type) {
  Value bits = b.fromFloat(x);
  Value magnitude = b.bitAnd(bits, 0x7FFFFFFF);
  Value normal =
      b.add(b.roundOff(magnitude, 13), static_cast<uint32_t>(-(112 << 10)));
  // The last bit of a float in [0.5, 1) is the smallest half.
  uint32_t half = 126u << 23;
  Value sum = arith::AddFOp::create(b, b.toFloat(magnitude),
                                    b.toFloat(b.constant(half)));
  Value tiny = b.add(b.fromFloat(sum), -half);
  Value payload = b.bitAnd(b.right(magnitude, 13), 0x3FF);
  Value nan = b.bitOr(payload, b.constant(0x7E00));
  Value special =
      b.select(b.isBelow(magnitude, 0x7F800001), b.constant(0x7C00), nan);
  Value result =
      b.select(b.isBelow(magnitude, 0x38800000), tiny,
               b.select(b.isBelow(magnitude, 0x47800000), normal, special));
  Value sign = b.bitAnd(b.right(bits, 16), 0x8000);
  return b.toNarrow(b.bitOr(result, sign), type);
}

static void expandConversions(func::FuncOp func, bool expandHalf) {
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) {
    if (isConversion(op) && touchesNarrow(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    Value x = op->getOperand(0), result = op->getResult(0);
    bool widens = isa<arith::ExtFOp>(op);
    Type narrow = widens ? x.getType() : result.getType();
    if (narrow.isF16() && !expandHalf)
      continue;
    Bits b(op->getLoc(), op);
    Value expanded =
        narrow.isBF16() ? widens ? widenBrain(b, x) : roundToBrain(b, x, narrow)
        : widens ? widenHalf(b, x)
                        : roundToHalf(b, x, narrow);
    result.replaceAllUsesWith(expanded);
    op->erase();
  }
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct KernelExpandFloats
    : zero::impl::KernelExpandFloatsBase<KernelExpandFloats> {
  using KernelExpandFloatsBase::KernelExpandFloatsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    computeAllInF32(func);
    expandConversions(func, expandHalf);
  }
};
} // namespace
