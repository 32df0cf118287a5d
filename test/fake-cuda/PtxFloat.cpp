//===- PtxFloat.cpp - Floating-point instructions -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exact instructions give the bits of the device; approximate ones are those of
// the host's functions, which are better than the device's.
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxHalf.h"
#include "test/fake-cuda/PtxLanes.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

using namespace fake_cuda;
using namespace fake_cuda::ptx;

namespace {
struct Add {
  template <typename T>
  T operator()(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <typename T>
  T operator()(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <typename T>
  T operator()(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <typename T>
  T operator()(T a, T b) {
    return a / b;
  }
};
struct Fma {
  template <typename T>
  T operator()(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
/// A number wins over a NaN; -0 is less than +0.
struct Min {
  template <typename T>
  T operator()(T a, T b) {
    if (a == b)
      return std::signbit(a) ? a : b;
    return a < b || b != b ? a : b;
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) {
    if (a == b)
      return std::signbit(a) ? b : a;
    return a > b || b != b ? a : b;
  }
};
template <typename Op>
struct PropagateNan {
  template <typename T>
  T operator()(T a, T b) {
    if (a != a || b != b)
      return std::numeric_limits<T>::quiet_NaN();
    return Op()(a, b);
  }
};
struct Abs {
  template <typename T>
  T operator()(T a) {
    return std::fabs(a);
  }
};
struct Neg {
  template <typename T>
  T operator()(T a) {
    return -a;
  }
};
struct Rcp {
  template <typename T>
  T operator()(T a) {
    return T(1) / a;
  }
};
/// The device gives the upper half of the bits.
struct RcpGross {
  double operator()(double a) {
    double exact = 1 / a;
    return bitsAs<double>(bitsAs<uint64_t>(exact) & ~uint64_t(0xFFFFFFFF));
  }
};
struct Sqrt {
  template <typename T>
  T operator()(T a) {
    return std::sqrt(a);
  }
};
struct Rsqrt {
  template <typename T>
  T operator()(T a) {
    return T(1 / std::sqrt(double(a)));
  }
};
struct Sin {
  float operator()(float a) { return std::sin(double(a)); }
};
struct Cos {
  float operator()(float a) { return std::cos(double(a)); }
};
struct Lg2 {
  float operator()(float a) { return std::log2(a); }
};
struct Ex2 {
  float operator()(float a) { return std::exp2(a); }
};
struct Tanh {
  float operator()(float a) { return std::tanh(double(a)); }
};
struct CopySign {
  template <typename T>
  T operator()(T a, T b) {
    return std::copysign(b, a);
  }
};

enum Flags : uint8_t { kFlush = 1, kSaturate = 2, kRelu = 4 };
} // namespace

//===----------------------------------------------------------------------===//
// With modifiers
//===----------------------------------------------------------------------===//

template <typename T>
static T flush(T value) {
  return std::fabs(value) < std::numeric_limits<T>::min()
             ? std::copysign(T(0), value)
             : value;
}

template <typename T>
static T finish(T value, uint8_t flags) {
  if (flags & kFlush)
    value = flush(value);
  if (flags & kSaturate) // a NaN becomes 0
    value = value > 0 ? std::min(value, T(1)) : T(0);
  return value;
}

static constexpr int kHostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                                     FE_UPWARD};

/// A handler under `inst.count`, a Rounding, and `inst.flags`. The operands are
/// read and the results are in memory between the changes of the mode.
template <typename T, unsigned Packed = 1, typename Fn>
static void modifiedLanes(Warp &warp, const Inst &inst, Mask mask, Fn compute) {
  struct Lane {
    T parts[Packed];
  };
  alignas(64) T made[kLanes * Packed];
  if (inst.count)
    std::fesetround(kHostModes[inst.count]);
  for (unsigned i = 0; i < kLanes * Packed; ++i)
    made[i] = compute(i);
  asm volatile("" : : "r"(made) : "memory");
  if (inst.count)
    std::fesetround(FE_TONEAREST);
  for (T &value : made)
    value = finish(value, inst.flags);
  storeLanes(warp.lanes<Lane>(inst.dst), reinterpret_cast<Lane *>(made), mask);
}

template <typename T>
static T read(const T *lanes, unsigned lane, uint8_t flags) {
  return flags & kFlush ? flush(lanes[lane]) : lanes[lane];
}

template <typename Op, typename T>
static void modifiedUnary(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a);
  modifiedLanes<T>(warp, inst, mask,
                   [&](unsigned i) { return Op()(read(a, i, inst.flags)); });
}

template <typename Op, typename T, unsigned Packed = 1>
static void modifiedBinary(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a), *b = warp.lanes<T>(inst.b);
  modifiedLanes<T, Packed>(warp, inst, mask, [&](unsigned i) {
    return Op()(read(a, i, inst.flags), read(b, i, inst.flags));
  });
}

template <typename Op, typename T, unsigned Packed = 1>
static void modifiedTernary(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a), *b = warp.lanes<T>(inst.b);
  const T *c = warp.lanes<T>(inst.c);
  modifiedLanes<T, Packed>(warp, inst, mask, [&](unsigned i) {
    return Op()(read(a, i, inst.flags), read(b, i, inst.flags),
                read(c, i, inst.flags));
  });
}

/// add.f32.f16 d, a, c and the like: a is widened, which is exact.
template <typename Op, typename H>
static void mixedBinary(Warp &warp, const Inst &inst, Mask mask) {
  const H *a = warp.lanes<H>(inst.a);
  const float *b = warp.lanes<float>(inst.b);
  modifiedLanes<float>(warp, inst, mask,
                       [&](unsigned i) { return Op()(a[i].widen(), b[i]); });
}

template <typename H>
static void mixedFma(Warp &warp, const Inst &inst, Mask mask) {
  const H *a = warp.lanes<H>(inst.a), *b = warp.lanes<H>(inst.b);
  const float *c = warp.lanes<float>(inst.c);
  modifiedLanes<float>(warp, inst, mask, [&](unsigned i) {
    return std::fma(a[i].widen(), b[i].widen(), c[i]);
  });
}

/// Vector code with the host's own fused instruction, where it has one.
#if defined(__x86_64__)
__attribute__((target_clones("fma", "default")))
#endif
static void
fuse(float *made, const float *a, const float *b, const float *c) {
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
}

static void fusedLanes(Warp &warp, const Inst &inst, Mask mask) {
  alignas(64) float made[kLanes];
  fuse(made, warp.lanes<float>(inst.a), warp.lanes<float>(inst.b),
       warp.lanes<float>(inst.c));
  storeLanes(warp.lanes<float>(inst.dst), made, mask);
}

static void decodeModifiers(Decoder &decoder, Inst &inst) {
  inst.count = 0;
  std::string_view rounding = decoder.takeOne({"rn", "rz", "rm", "rp"});
  if (rounding == "rz")
    inst.count = static_cast<uint8_t>(Rounding::Zero);
  if (rounding == "rm")
    inst.count = static_cast<uint8_t>(Rounding::Down);
  if (rounding == "rp")
    inst.count = static_cast<uint8_t>(Rounding::Up);
  inst.flags |= decoder.take("ftz") ? kFlush : 0;
  inst.flags |= decoder.take("sat") ? kSaturate : 0;
  inst.flags |= decoder.take("relu") ? kRelu : 0;
}

//===----------------------------------------------------------------------===//
// 16 bits
//===----------------------------------------------------------------------===//

/// Computes in f32, which is wide enough that the second rounding changes
/// nothing (fused: rounded to odd before). Packed operands are 64 lanes.
template <typename H, unsigned Packed, typename Fn>
static void halfLanes(Warp &warp, const Inst &inst, Mask mask, Fn compute) {
  H made[kLanes * Packed];
  for (unsigned i = 0; i < kLanes * Packed; ++i) {
    float value = compute(i);
    if (inst.flags & kSaturate)
      value = value > 0 ? std::min(value, 1.0f) : 0;
    if (inst.flags & kRelu && value <= 0)
      value = 0;
    made[i] = H::round(value);
  }
  H *to = warp.lanes<H>(inst.dst);
  for (unsigned i = 0; i < kLanes * Packed; ++i)
    if (mask >> (i / Packed) & 1)
      to[i] = made[i];
}

template <typename Op, typename H, unsigned Packed>
static void halfUnary(Warp &warp, const Inst &inst, Mask mask) {
  const H *a = warp.lanes<H>(inst.a);
  halfLanes<H, Packed>(warp, inst, mask,
                       [&](unsigned i) { return Op()(a[i].widen()); });
}

template <typename Op, typename H, unsigned Packed>
static void halfBinary(Warp &warp, const Inst &inst, Mask mask) {
  const H *a = warp.lanes<H>(inst.a), *b = warp.lanes<H>(inst.b);
  halfLanes<H, Packed>(warp, inst, mask, [&](unsigned i) {
    return Op()(a[i].widen(), b[i].widen());
  });
}

template <typename H, unsigned Packed>
static void halfFma(Warp &warp, const Inst &inst, Mask mask) {
  const H *a = warp.lanes<H>(inst.a), *b = warp.lanes<H>(inst.b);
  const H *c = warp.lanes<H>(inst.c);
  halfLanes<H, Packed>(warp, inst, mask, [&](unsigned i) {
    return fusedToOdd(a[i].widen(), b[i].widen(), c[i].widen());
  });
}

/// Calls `fn(H(), integral_constant<Packed>)` for a type of 16 bits.
template <typename Fn>
static void withHalf(Type type, Fn fn) {
  using One = std::integral_constant<unsigned, 1>;
  using Two = std::integral_constant<unsigned, 2>;
  if (type == Type::F16)
    fn(F16(), One());
  else if (type == Type::BF16)
    fn(BF16(), One());
  else if (type == Type::F16x2)
    fn(F16(), Two());
  else
    fn(BF16(), Two());
}

static bool isHalf(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F16x2 ||
         type == Type::BF16x2;
}
static bool isFloat(Type type) {
  return type == Type::F32 || type == Type::F64 || type == Type::F32x2 ||
         isHalf(type);
}

//===----------------------------------------------------------------------===//
// Decoders
//===----------------------------------------------------------------------===//

/// Whether the instruction's type is a floating-point one: its last word is.
static bool isFloatInstruction(Decoder &decoder) {
  return isFloat(decoder.lastType());
}

static bool isModified(const Inst &inst) { return inst.count || inst.flags; }

template <typename Op>
static void decodeUnary(Decoder &decoder, Inst &inst) {
  decoder.take("approx");
  decodeModifiers(decoder, inst);
  Type type = decoder.takeType();
  decodeOperands(decoder, inst, type, 1);
  if (isHalf(type))
    withHalf(type, [&](auto h, auto packed) {
      inst.run = halfUnary<Op, decltype(h), packed.value>;
    });
  else if (type == Type::F32)
    inst.run =
        isModified(inst) ? modifiedUnary<Op, float> : unary<Op, float, float>;
  else if (type == Type::F64)
    inst.run = isModified(inst) ? modifiedUnary<Op, double>
                                : unary<Op, double, double>;
  else
    decoder.fail("it has no such floating-point type");
}

static bool isMixed(Decoder &decoder, Type type) {
  Type source = decoder.lastType();
  return type == Type::F32 && (source == Type::F16 || source == Type::BF16);
}

template <typename Op>
static void decodeMixed(Decoder &decoder, Inst &inst) {
  Type source = decoder.takeType();
  decoder.expectOperands(3);
  inst.dst = decoder.result(0, Type::F32);
  inst.a = decoder.value(1, source);
  inst.b = decoder.value(2, Type::F32);
  inst.run = source == Type::F16 ? mixedBinary<Op, F16> : mixedBinary<Op, BF16>;
}

static void decodeMixedFma(Decoder &decoder, Inst &inst) {
  Type source = decoder.takeType();
  decoder.expectOperands(4);
  inst.dst = decoder.result(0, Type::F32);
  inst.a = decoder.value(1, source);
  inst.b = decoder.value(2, source);
  inst.c = decoder.value(3, Type::F32);
  inst.run = source == Type::F16 ? mixedFma<F16> : mixedFma<BF16>;
}

template <typename Op>
static void decodeBinary(Decoder &decoder, Inst &inst) {
  decodeModifiers(decoder, inst);
  Type type = decoder.takeType();
  if constexpr (std::is_same_v<Op, Add> || std::is_same_v<Op, Sub>)
    if (isMixed(decoder, type))
      return decodeMixed<Op>(decoder, inst);
  decodeOperands(decoder, inst, type, 2);
  if (isHalf(type))
    withHalf(type, [&](auto h, auto packed) {
      inst.run = halfBinary<Op, decltype(h), packed.value>;
    });
  else if (type == Type::F32)
    inst.run =
        isModified(inst) ? modifiedBinary<Op, float> : binary<Op, float, float>;
  else if (type == Type::F64)
    inst.run = isModified(inst) ? modifiedBinary<Op, double>
                                : binary<Op, double, double>;
  else if (type == Type::F32x2)
    inst.run = modifiedBinary<Op, float, 2>;
  else
    decoder.fail("it has no such floating-point type");
}

/// One that exists in f32 only, or in 16 bits.
template <typename Op>
static void decodeApproximate(Decoder &decoder, Inst &inst) {
  if (!decoder.take("approx"))
    decoder.fail("modifier '.approx' is missing");
  decodeModifiers(decoder, inst);
  Type type = decoder.takeType();
  decodeOperands(decoder, inst, type, 1);
  if (isHalf(type))
    withHalf(type, [&](auto h, auto packed) {
      inst.run = halfUnary<Op, decltype(h), packed.value>;
    });
  else if (type == Type::F32)
    inst.run =
        isModified(inst) ? modifiedUnary<Op, float> : unary<Op, float, float>;
  else
    decoder.fail("it has no such floating-point type");
}

static void decodeFma(Decoder &decoder, Inst &inst) {
  decodeModifiers(decoder, inst);
  Type type = decoder.takeType();
  if (isMixed(decoder, type))
    return decodeMixedFma(decoder, inst);
  decodeOperands(decoder, inst, type, 3);
  if (isHalf(type))
    withHalf(type, [&](auto h, auto packed) {
      inst.run = halfFma<decltype(h), packed.value>;
    });
  else if (type == Type::F32)
    inst.run = isModified(inst) ? modifiedTernary<Fma, float> : fusedLanes;
  else if (type == Type::F64)
    inst.run = isModified(inst) ? modifiedTernary<Fma, double>
                                : ternary<Fma, double, double>;
  else if (type == Type::F32x2)
    inst.run = modifiedTernary<Fma, float, 2>;
  else
    decoder.fail("it has no such floating-point type");
}

static void decodeMinMax(Decoder &decoder, Inst &inst) {
  if (!isFloatInstruction(decoder))
    return decodeIntegerMinMax(decoder, inst);
  bool isNan = decoder.take("NaN");
  if (decoder.opcode() == "min")
    return isNan ? decodeBinary<PropagateNan<Min>>(decoder, inst)
                 : decodeBinary<Min>(decoder, inst);
  return isNan ? decodeBinary<PropagateNan<Max>>(decoder, inst)
               : decodeBinary<Max>(decoder, inst);
}

static void decodeDiv(Decoder &decoder, Inst &inst) {
  if (!isFloatInstruction(decoder))
    return decodeIntegerDiv(decoder, inst);
  decoder.ignore({"approx", "full"});
  decodeBinary<Div>(decoder, inst);
}

static void decodeRcp(Decoder &decoder, Inst &inst) {
  bool isGross = decoder.take("approx") && decoder.lastType() == Type::F64;
  return isGross ? decodeUnary<RcpGross>(decoder, inst)
                 : decodeUnary<Rcp>(decoder, inst);
}

static void decodeCopySign(Decoder &decoder, Inst &inst) {
  Type type = decoder.takeType();
  decodeOperands(decoder, inst, type, 2);
  if (type != Type::F32 && type != Type::F64)
    decoder.fail("it has no such floating-point type");
  inst.run = type == Type::F32 ? binary<CopySign, float, float>
                               : binary<CopySign, double, double>;
}

template <typename T>
static void testProperty(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a);
  Mask made = testLanes([&](unsigned i) {
    int kind = std::fpclassify(a[i]);
    switch (inst.imm) {
    case 0:
      return kind != FP_NAN && kind != FP_INFINITE;
    case 1:
      return kind == FP_INFINITE;
    case 2:
      return kind != FP_NAN;
    case 3:
      return kind == FP_NAN;
    case 4:
      return kind == FP_NORMAL;
    default:
      return kind == FP_SUBNORMAL;
    }
  });
  storePredicate(warp, inst.dst, made, mask);
}

static void decodeTestp(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(2);
  const char *names[] = {"finite",     "infinite", "number",
                         "notanumber", "normal",   "subnormal"};
  inst.imm = -1;
  for (int i = 0; i < 6; ++i)
    if (decoder.take(names[i]))
      inst.imm = i;
  Type type = decoder.takeType();
  inst.dst = decoder.result(0, Type::Pred);
  inst.a = decoder.value(1, type);
  if (inst.imm < 0 || (type != Type::F32 && type != Type::F64))
    decoder.fail("it has no such property or type");
  inst.run = type == Type::F32 ? testProperty<float> : testProperty<double>;
}

template <DecodeFunction floats, DecodeFunction integers>
static void decodeEither(Decoder &decoder, Inst &inst) {
  return isFloatInstruction(decoder) ? floats(decoder, inst)
                                     : integers(decoder, inst);
}

void fake_cuda::ptx::addFloatInstructions(DecodeTable &table) {
  table["add"] = decodeEither<decodeBinary<Add>, decodeIntegerAdd>;
  table["sub"] = decodeEither<decodeBinary<Sub>, decodeIntegerAdd>;
  table["mul"] = decodeEither<decodeBinary<Mul>, decodeIntegerMul>;
  table["mad"] = decodeEither<decodeFma, decodeIntegerMad>;
  table["fma"] = decodeFma;
  table["div"] = decodeDiv;
  table["min"] = decodeMinMax;
  table["max"] = decodeMinMax;
  table["abs"] = decodeEither<decodeUnary<Abs>, decodeIntegerUnary>;
  table["neg"] = decodeEither<decodeUnary<Neg>, decodeIntegerUnary>;
  table["rcp"] = decodeRcp;
  table["sqrt"] = decodeUnary<Sqrt>;
  table["rsqrt"] = decodeUnary<Rsqrt>;
  table["sin"] = decodeApproximate<Sin>;
  table["cos"] = decodeApproximate<Cos>;
  table["lg2"] = decodeApproximate<Lg2>;
  table["ex2"] = decodeApproximate<Ex2>;
  table["tanh"] = decodeApproximate<Tanh>;
  table["copysign"] = decodeCopySign;
  table["testp"] = decodeTestp;
}
