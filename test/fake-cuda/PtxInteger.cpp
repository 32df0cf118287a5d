//===- PtxInteger.cpp - Integer and bit instructions ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxLanes.h"

#include <algorithm>
#include <type_traits>

using namespace fake_cuda::ptx;

namespace {
/// Twice as wide, of the same sign.
template <typename T>
struct Wide;
template <>
struct Wide<uint16_t> {
  using Type = uint32_t;
};
template <>
struct Wide<int16_t> {
  using Type = int32_t;
};
template <>
struct Wide<uint32_t> {
  using Type = uint64_t;
};
template <>
struct Wide<int32_t> {
  using Type = int64_t;
};
template <>
struct Wide<uint64_t> {
  using Type = unsigned __int128;
};
template <>
struct Wide<int64_t> {
  using Type = __int128;
};

/// In unsigned arithmetic of at least 32 bits: it wraps as the device's does.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

struct Add {
  template <typename T>
  T operator()(T a, T b) {
    return T(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Sub {
  template <typename T>
  T operator()(T a, T b) {
    return T(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct MulLo {
  template <typename T>
  T operator()(T a, T b) {
    return T(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct MulHi {
  template <typename T>
  T operator()(T a, T b) {
    using W = typename Wide<T>::Type;
    return T(W(a) * W(b) >> (8 * sizeof(T)));
  }
};
struct MulWide {
  template <typename T>
  typename Wide<T>::Type operator()(T a, T b) {
    using W = typename Wide<T>::Type;
    return W(a) * W(b);
  }
};
template <typename Mul>
struct MulAdd {
  template <typename T, typename C>
  C operator()(T a, T b, C c) {
    return Add()(C(Mul()(a, b)), c);
  }
};
/// A division by zero gives all ones, as the devices do; PTX leaves it open.
struct Div {
  template <typename T>
  T operator()(T a, T b) {
    if (b == 0)
      return T(-1);
    return std::is_signed_v<T> && b == T(-1) ? Sub()(T(0), a) : T(a / b);
  }
};
struct Rem {
  template <typename T>
  T operator()(T a, T b) {
    if (b == 0)
      return a;
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};
struct Abs {
  template <typename T>
  T operator()(T a) {
    return a < 0 ? Sub()(T(0), a) : a;
  }
};
struct Neg {
  template <typename T>
  T operator()(T a) {
    return Sub()(T(0), a);
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) {
    return std::min(a, b);
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) {
    return std::max(a, b);
  }
};
struct Sad {
  template <typename T>
  T operator()(T a, T b, T c) {
    return Add()(c, a < b ? Sub()(b, a) : Sub()(a, b));
  }
};
struct And {
  template <typename T>
  T operator()(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <typename T>
  T operator()(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <typename T>
  T operator()(T a) {
    return ~a;
  }
};
struct CNot {
  template <typename T>
  T operator()(T a) {
    return a == 0;
  }
};
/// Shifts by more than the width are those by the width.
struct Shl {
  template <typename T>
  T operator()(T a, uint32_t b) {
    return b >= 8 * sizeof(T) ? T(0) : T(Wrapping<T>(a) << b);
  }
};
struct Shr {
  template <typename T>
  T operator()(T a, uint32_t b) {
    uint32_t most = 8 * sizeof(T) - 1;
    if (std::is_signed_v<T>)
      return a >> std::min(b, most);
    return b > most ? T(0) : T(a >> b);
  }
};
struct Popc {
  template <typename T>
  uint32_t operator()(T a) {
    return __builtin_popcountll(a);
  }
};
struct Clz {
  uint32_t operator()(uint32_t a) { return a ? __builtin_clz(a) : 32; }
  uint32_t operator()(uint64_t a) { return a ? __builtin_clzll(a) : 64; }
};
struct Bfind {
  template <typename T>
  uint32_t operator()(T a) {
    using U = std::make_unsigned_t<T>;
    U bits = a < 0 ? ~U(a) : U(a);
    return bits ? 8 * sizeof(T) - 1 - Clz()(bits) : ~0u;
  }
};
struct Brev {
  template <typename T>
  T operator()(T a) {
    T reversed = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i)
      reversed |= (a >> i & 1) << (8 * sizeof(T) - 1 - i);
    return reversed;
  }
};
struct Bfe {
  template <typename T>
  T operator()(T a, uint32_t position, uint32_t length) {
    using U = std::make_unsigned_t<T>;
    const uint32_t width = 8 * sizeof(T);
    position &= 0xFF;
    length &= 0xFF;
    if (length == 0)
      return 0;
    uint32_t last = std::min(position + length - 1, width - 1);
    bool sign = std::is_signed_v<T> && (U(a) >> last & 1);
    U field = position >= width ? 0 : U(a) >> position;
    if (length >= width)
      length = width;
    U keep = length == width ? ~U(0) : U((Wrapping<U>(1) << length) - 1);
    field &= keep;
    uint32_t have = last >= position ? last - position + 1 : 0;
    if (sign && have < width)
      field |= U(Wrapping<U>(~U(0)) << have);
    return T(field);
  }
};
/// Of the four operands the last two are c and d.
template <typename T>
T insertBits(T a, T b, uint32_t position, uint32_t length) {
  position &= 0xFF;
  length &= 0xFF;
  T made = b;
  for (uint32_t i = 0; i < length && position + i < 8 * sizeof(T); ++i) {
    T bit = T(1) << (position + i);
    made = (made & ~bit) | ((a >> i & 1) ? bit : 0);
  }
  return made;
}
struct Funnel {
  bool left, clamp;
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t by) const {
    by = clamp ? std::min(by, 32u) : by & 31;
    uint64_t both = uint64_t(high) << 32 | low;
    return left ? uint32_t(both << by >> 32) : uint32_t(both >> by);
  }
};
} // namespace

/// Calls `fn` with a value of the integer type.
template <typename Fn>
static void withInteger(Decoder &decoder, Type type, Fn fn) {
  switch (type) {
  case Type::U16:
  case Type::B16:
    return fn(uint16_t());
  case Type::S16:
    return fn(int16_t());
  case Type::U32:
  case Type::B32:
    return fn(uint32_t());
  case Type::S32:
    return fn(int32_t());
  case Type::U64:
  case Type::B64:
    return fn(uint64_t());
  case Type::S64:
    return fn(int64_t());
  default:
    decoder.fail("it has no such integer type");
  }
}

template <typename Op>
static void decodeBinary(Decoder &decoder, Inst &inst) {
  Type type = decoder.takeType();
  decodeOperands(decoder, inst, type, 2);
  withInteger(decoder, type, [&](auto t) {
    using T = decltype(t);
    inst.run = binary<Op, T, T>;
  });
}

template <typename Op>
static void decodeUnary(Decoder &decoder, Inst &inst) {
  Type type = decoder.takeType();
  decodeOperands(decoder, inst, type, 1);
  withInteger(decoder, type, [&](auto t) {
    using T = decltype(t);
    inst.run = unary<Op, T, T>;
  });
}

//===----------------------------------------------------------------------===//
// With a carry
//===----------------------------------------------------------------------===//

namespace {
enum CarryFlags : uint8_t { kSubtract = 1, kCarryIn = 2, kCarryOut = 4 };
} // namespace

/// add.cc, addc, sub.cc, subc: the carry is a mask of lanes of the warp. For a
/// subtraction it is the borrow.
template <typename T>
static void addWithCarry(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a), *b = warp.lanes<T>(inst.b);
  Mask &carry = warp.carry;
  Mask out = 0;
  eachLane<T>(warp, inst.dst, mask, [&](unsigned i) {
    T in = inst.flags & kCarryIn ? carry >> i & 1 : 0, partial, sum;
    bool overflow;
    if (inst.flags & kSubtract) {
      overflow = __builtin_sub_overflow(a[i], b[i], &partial);
      overflow |= __builtin_sub_overflow(partial, in, &sum);
    } else {
      overflow = __builtin_add_overflow(a[i], b[i], &partial);
      overflow |= __builtin_add_overflow(partial, in, &sum);
    }
    out |= Mask(overflow) << i;
    return sum;
  });
  if (inst.flags & kCarryOut)
    carry = (carry & ~mask) | (out & mask);
}

/// mad.lo.cc, madc.hi: the product's half plus c plus the carry.
template <typename T, typename Mul>
static void multiplyWithCarry(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a), *b = warp.lanes<T>(inst.b);
  const T *c = warp.lanes<T>(inst.c);
  Mask &carry = warp.carry;
  Mask out = 0;
  eachLane<T>(warp, inst.dst, mask, [&](unsigned i) {
    T in = inst.flags & kCarryIn ? carry >> i & 1 : 0, partial, sum;
    bool overflow = __builtin_add_overflow(Mul()(a[i], b[i]), c[i], &partial);
    overflow |= __builtin_add_overflow(partial, in, &sum);
    out |= Mask(overflow) << i;
    return sum;
  });
  if (inst.flags & kCarryOut)
    carry = (carry & ~mask) | (out & mask);
}

static void decodeCarry(Decoder &decoder, Inst &inst, uint8_t flags) {
  Type type = decoder.takeType();
  inst.flags = flags | (decoder.take("cc") ? kCarryOut : 0);
  decodeOperands(decoder, inst, type, 2);
  inst.run =
      bytesOf(type) == 8 ? addWithCarry<uint64_t> : addWithCarry<uint32_t>;
}

/// mad and madc of both halves.
template <typename T>
static Handler carryProduct(bool isHigh) {
  return isHigh ? multiplyWithCarry<T, MulHi> : multiplyWithCarry<T, MulLo>;
}

//===----------------------------------------------------------------------===//
// Decoders; those of add, sub, mul, mad, abs, neg, min and max are called where
// the type is no floating-point one.
//===----------------------------------------------------------------------===//

static bool hasCarryOut(Decoder &decoder) {
  return decoder.firstWord() == "cc";
}

namespace {
struct SaturatingAdd {
  int32_t operator()(int32_t a, int32_t b) {
    return std::clamp<int64_t>(int64_t(a) + b, INT32_MIN, INT32_MAX);
  }
};
struct SaturatingSub {
  int32_t operator()(int32_t a, int32_t b) {
    return std::clamp<int64_t>(int64_t(a) - b, INT32_MIN, INT32_MAX);
  }
};
} // namespace

void fake_cuda::ptx::decodeIntegerAdd(Decoder &decoder, Inst &inst) {
  bool isSub = decoder.opcode() == "sub";
  if (hasCarryOut(decoder))
    return decodeCarry(decoder, inst, isSub ? kSubtract : 0);
  if (decoder.take("sat")) {
    if (decoder.takeType() != Type::S32)
      decoder.fail("modifier '.sat' needs type s32");
    decodeOperands(decoder, inst, Type::S32, 2);
    inst.run = isSub ? binary<SaturatingSub, int32_t, int32_t>
                     : binary<SaturatingAdd, int32_t, int32_t>;
    return;
  }
  return isSub ? decodeBinary<Sub>(decoder, inst)
               : decodeBinary<Add>(decoder, inst);
}

void fake_cuda::ptx::decodeIntegerMul(Decoder &decoder, Inst &inst) {
  std::string_view half = decoder.takeOne({"lo", "hi", "wide"});
  if (half.empty())
    decoder.fail("it needs .lo, .hi or .wide");
  if (half != "wide")
    return half == "lo" ? decodeBinary<MulLo>(decoder, inst)
                        : decodeBinary<MulHi>(decoder, inst);
  Type type = decoder.takeType();
  decoder.expectOperands(3);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, type);
  if (bytesOf(type) == 8)
    decoder.fail("no product is wider than 64 bits");
  inst.dst = decoder.result(0, bytesOf(type) == 2 ? Type::B32 : Type::B64);
  withInteger(decoder, type, [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) < 8)
      inst.run = binary<MulWide, typename Wide<T>::Type, T>;
  });
}

void fake_cuda::ptx::decodeIntegerMad(Decoder &decoder, Inst &inst) {
  bool isMadc = decoder.opcode() == "madc";
  std::string_view half = decoder.takeOne({"lo", "hi", "wide"});
  if (half.empty())
    decoder.fail("it needs .lo, .hi or .wide");
  Type type = decoder.takeType();
  bool carryOut = decoder.take("cc");
  decoder.expectOperands(4);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, type);
  bool isWide = half == "wide";
  Type sum = !isWide ? type : bytesOf(type) == 2 ? Type::B32 : Type::B64;
  if (isWide && bytesOf(type) == 8)
    decoder.fail("no product is wider than 64 bits");
  inst.c = decoder.value(3, sum);
  inst.dst = decoder.result(0, sum);
  if (isMadc || carryOut) {
    inst.flags = (isMadc ? kCarryIn : 0) | (carryOut ? kCarryOut : 0);
    if (isWide || (half == "hi" && isSigned(type)) || bytesOf(type) == 2)
      decoder.fail("with a carry it is supported unsigned or .lo only");
    inst.run = bytesOf(type) == 8 ? carryProduct<uint64_t>(half == "hi")
                                  : carryProduct<uint32_t>(half == "hi");
    return;
  }
  withInteger(decoder, type, [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) < 8)
      if (isWide)
        inst.run = ternary<MulAdd<MulWide>, typename Wide<T>::Type, T>;
    if (half == "lo")
      inst.run = ternary<MulAdd<MulLo>, T, T>;
    if (half == "hi")
      inst.run = ternary<MulAdd<MulHi>, T, T>;
  });
}

void fake_cuda::ptx::decodeIntegerUnary(Decoder &decoder, Inst &inst) {
  return decoder.opcode() == "abs" ? decodeUnary<Abs>(decoder, inst)
                                   : decodeUnary<Neg>(decoder, inst);
}

void fake_cuda::ptx::decodeIntegerMinMax(Decoder &decoder, Inst &inst) {
  return decoder.opcode() == "min" ? decodeBinary<Min>(decoder, inst)
                                   : decodeBinary<Max>(decoder, inst);
}

void fake_cuda::ptx::decodeIntegerDiv(Decoder &decoder, Inst &inst) {
  decodeBinary<Div>(decoder, inst);
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

template <typename Op>
static void predicateLogic(Warp &warp, const Inst &inst, Mask mask) {
  storePredicate(warp, inst.dst,
                 Op()(warp.predicate(inst.a), warp.predicate(inst.b)), mask);
}

static void predicateNot(Warp &warp, const Inst &inst, Mask mask) {
  storePredicate(warp, inst.dst, ~warp.predicate(inst.a), mask);
}

template <typename Op>
static void decodeLogic(Decoder &decoder, Inst &inst) {
  if (decoder.firstWord() != "pred")
    return decodeBinary<Op>(decoder, inst);
  decodeOperands(decoder, inst, decoder.takeType(), 2);
  inst.run = predicateLogic<Op>;
}

static void decodeNot(Decoder &decoder, Inst &inst) {
  if (decoder.firstWord() != "pred")
    return decodeUnary<Not>(decoder, inst);
  decodeOperands(decoder, inst, decoder.takeType(), 1);
  inst.run = predicateNot;
}

template <typename Op>
static void decodeShift(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(3);
  Type type = decoder.takeType();
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, Type::U32);
  withInteger(decoder, type, [&](auto t) {
    using T = decltype(t);
    inst.run = binary<Op, T, T, uint32_t>;
  });
}

/// With a result of 32 bits, from 32 or 64.
template <typename Op>
static void decodeCount(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(2);
  Type type = decoder.takeType();
  inst.dst = decoder.result(0, Type::U32);
  inst.a = decoder.value(1, type);
  if (bytesOf(type) != 4 && bytesOf(type) != 8)
    decoder.fail("it has no such integer type");
  inst.run = bytesOf(type) == 8 ? unary<Op, uint32_t, uint64_t>
                                : unary<Op, uint32_t, uint32_t>;
}

static void decodeBfind(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(2);
  bool isShift = decoder.take("shiftamt");
  Type type = decoder.takeType();
  if (isShift)
    decoder.fail("modifier '.shiftamt' is not supported");
  inst.dst = decoder.result(0, Type::U32);
  inst.a = decoder.value(1, type);
  withInteger(decoder, type, [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) >= 4)
      inst.run = unary<Bfind, uint32_t, T>;
    else
      decoder.fail("it has no such integer type");
  });
}

static void decodeBfe(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(4);
  Type type = decoder.takeType();
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, Type::U32);
  inst.c = decoder.value(3, Type::U32);
  withInteger(decoder, type, [&](auto t) {
    using T = decltype(t);
    inst.run = ternary<Bfe, T, T, uint32_t, uint32_t>;
  });
}

template <typename T>
static void insertLanes(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a), *b = warp.lanes<T>(inst.b);
  const uint32_t *position = warp.lanes<uint32_t>(inst.c);
  const uint32_t *length = warp.lanes<uint32_t>(inst.d);
  eachLane<T>(warp, inst.dst, mask, [&](unsigned i) {
    return insertBits(a[i], b[i], position[i], length[i]);
  });
}

static void decodeBfi(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(5);
  Type type = decoder.takeType();
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, type);
  inst.c = decoder.value(3, Type::U32);
  inst.d = decoder.value(4, Type::U32);
  inst.run = bytesOf(type) == 8 ? insertLanes<uint64_t> : insertLanes<uint32_t>;
}

static void funnelLanes(Warp &warp, const Inst &inst, Mask mask) {
  const uint32_t *a = warp.lanes<uint32_t>(inst.a);
  const uint32_t *b = warp.lanes<uint32_t>(inst.b);
  const uint32_t *c = warp.lanes<uint32_t>(inst.c);
  Funnel funnel{(inst.flags & 1) != 0, (inst.flags & 2) != 0};
  eachLane<uint32_t>(warp, inst.dst, mask,
                     [&](unsigned i) { return funnel(a[i], b[i], c[i]); });
}

static void decodeFunnel(Decoder &decoder, Inst &inst) {
  inst.flags = decoder.takeOne({"l", "r"}) == "l" ? 1 : 0;
  inst.flags |= decoder.takeOne({"clamp", "wrap"}) == "clamp" ? 2 : 0;
  decodeOperands(decoder, inst, decoder.takeType(), 3);
  inst.run = funnelLanes;
}

/// Each bit of the table says what three bits give.
static void lop3(Warp &warp, const Inst &inst, Mask mask) {
  const uint32_t *a = warp.lanes<uint32_t>(inst.a);
  const uint32_t *b = warp.lanes<uint32_t>(inst.b);
  const uint32_t *c = warp.lanes<uint32_t>(inst.c);
  eachLane<uint32_t>(warp, inst.dst, mask, [&](unsigned i) {
    uint32_t made = 0;
    for (unsigned row = 0; row < 8; ++row)
      if (inst.imm >> row & 1)
        made |= (row & 4 ? a[i] : ~a[i]) & (row & 2 ? b[i] : ~b[i]) &
                (row & 1 ? c[i] : ~c[i]);
    return made;
  });
}

static void decodeLop3(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(5);
  if (decoder.takeType() != Type::B32 ||
      decoder.operand(4).kind != Operand::Integer)
    decoder.fail("it needs type b32 and a constant table");
  inst.dst = decoder.result(0, Type::B32);
  inst.a = decoder.value(1, Type::B32);
  inst.b = decoder.value(2, Type::B32);
  inst.c = decoder.value(3, Type::B32);
  inst.imm = static_cast<int64_t>(decoder.operand(4).bits);
  inst.run = lop3;
}

static void decodeSad(Decoder &decoder, Inst &inst) {
  Type type = decoder.takeType();
  decodeOperands(decoder, inst, type, 3);
  withInteger(decoder, type, [&](auto t) {
    using T = decltype(t);
    inst.run = ternary<Sad, T, T>;
  });
}

void fake_cuda::ptx::addIntegerInstructions(DecodeTable &table) {
  table["addc"] = [](Decoder &d, Inst &i) { decodeCarry(d, i, kCarryIn); };
  table["subc"] = [](Decoder &d, Inst &i) {
    decodeCarry(d, i, kCarryIn | kSubtract);
  };
  table["madc"] = decodeIntegerMad;
  table["rem"] = decodeBinary<Rem>;
  table["sad"] = decodeSad;
  table["and"] = decodeLogic<And>;
  table["or"] = decodeLogic<Or>;
  table["xor"] = decodeLogic<Xor>;
  table["not"] = decodeNot;
  table["cnot"] = decodeUnary<CNot>;
  table["shl"] = decodeShift<Shl>;
  table["shr"] = decodeShift<Shr>;
  table["popc"] = decodeCount<Popc>;
  table["clz"] = decodeCount<Clz>;
  table["bfind"] = decodeBfind;
  table["brev"] = decodeUnary<Brev>;
  table["bfe"] = decodeBfe;
  table["bfi"] = decodeBfi;
  table["shf"] = decodeFunnel;
  table["lop3"] = decodeLop3;
}
