//===- PtxConvert.cpp - Conversions ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The conversions that kernels use all the time have handlers of their own; the
// others are done lane by lane from a description.
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
/// In Inst::imm.
struct Conversion {
  Type to, from;
  uint8_t toBytes, fromBytes; // of the registers
  Rounding rounding;
  bool toIntegral, flushes, saturates;
};
static_assert(sizeof(Conversion) == sizeof(int64_t));
} // namespace

static bool isFloat(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F32 ||
         type == Type::F64;
}

static uint64_t readRegister(Warp &warp, uint32_t slot, unsigned bytes,
                             unsigned lane) {
  uint64_t value = 0;
  std::memcpy(&value, warp.lanes<char>(slot) + lane * bytes, bytes);
  return value;
}

static int64_t signExtend(uint64_t value, unsigned bytes) {
  unsigned shift = 64 - 8 * bytes;
  return static_cast<int64_t>(value << shift) >> shift;
}

static uint64_t truncate(uint64_t value, unsigned bytes) {
  return bytes == 8 ? value : value & ((uint64_t(1) << (8 * bytes)) - 1);
}

/// An integer of the source's type, as a number.
static __int128 readInteger(const Conversion &how, uint64_t bits) {
  unsigned bytes = bytesOf(how.from);
  if (isSigned(how.from))
    return signExtend(bits, bytes);
  return truncate(bits, bytes);
}

static double readFloat(Type type, uint64_t bits) {
  switch (type) {
  case Type::F16:
    return F16{uint16_t(bits)}.widen();
  case Type::BF16:
    return BF16{uint16_t(bits)}.widen();
  case Type::F32:
    return bitsAs<float>(uint32_t(bits));
  default:
    return bitsAs<double>(bits);
  }
}

/// Bits of an integer of the destination's type, extended to its register.
static uint64_t writeInteger(const Conversion &how, __int128 value) {
  unsigned bytes = bytesOf(how.to);
  uint64_t bits = truncate(static_cast<uint64_t>(value), bytes);
  return isSigned(how.to) ? static_cast<uint64_t>(signExtend(bits, bytes))
                          : bits;
}

static __int128 clampToDestination(const Conversion &how, __int128 value) {
  unsigned bits = 8 * bytesOf(how.to);
  __int128 one = 1;
  __int128 most =
      isSigned(how.to) ? (one << (bits - 1)) - 1 : (one << bits) - 1;
  __int128 least = isSigned(how.to) ? -(one << (bits - 1)) : 0;
  return std::clamp(value, least, most);
}

static double roundToIntegral(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(value);
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  }
  return value;
}

static uint64_t floatToInteger(const Conversion &how, double value) {
  if (std::isnan(value)) {
    bool isWide = how.from == Type::F64 || bytesOf(how.to) == 8;
    return isWide ? writeInteger(how, __int128(1) << (8 * bytesOf(how.to) - 1))
                  : 0;
  }
  value = roundToIntegral(value, how.rounding);
  value = std::clamp(value, -0x1p65, 0x1p65);
  return writeInteger(how, clampToDestination(how, __int128(value)));
}

/// Under the host's rounding mode, which is that of the conversion.
template <typename To, typename From>
static To roundTo(From value) {
  volatile From from = value;
  return static_cast<To>(from);
}

static uint64_t writeFloat(const Conversion &how, double value) {
  if (how.saturates)
    value = value > 0 ? std::min(value, 1.0) : 0.0;
  switch (how.to) {
  case Type::F16:
    return F16::round(roundToOdd(value), how.rounding).bits;
  case Type::BF16:
    return BF16::round(roundToOdd(value), how.rounding).bits;
  case Type::F32: {
    float made = roundTo<float>(value);
    if (how.flushes && std::fabs(made) < std::numeric_limits<float>::min())
      made = std::copysign(0.0f, made);
    return bitsAs<uint32_t>(made);
  }
  default:
    return bitsAs<uint64_t>(value);
  }
}

static uint64_t integerToFloat(const Conversion &how, __int128 value) {
  bool isNegative = value < 0;
  if (how.to == Type::F64)
    return bitsAs<uint64_t>(isNegative ? roundTo<double>(int64_t(value))
                                       : roundTo<double>(uint64_t(value)));
  if (how.to == Type::F32)
    return bitsAs<uint32_t>(isNegative ? roundTo<float>(int64_t(value))
                                       : roundTo<float>(uint64_t(value)));
  return writeFloat(how, double(value));
}

static uint64_t convert(const Conversion &how, uint64_t bits) {
  if (!isFloat(how.from)) {
    __int128 value = readInteger(how, bits);
    if (isFloat(how.to))
      return integerToFloat(how, value);
    return writeInteger(how,
                        how.saturates ? clampToDestination(how, value) : value);
  }
  double value = readFloat(how.from, bits);
  if (how.flushes && how.from == Type::F32 &&
      std::fabs(value) < std::numeric_limits<float>::min())
    value = std::copysign(0.0, value);
  if (!isFloat(how.to))
    return floatToInteger(how, value);
  if (how.toIntegral)
    value = roundToIntegral(value, how.rounding);
  return writeFloat(how, value);
}

static void convertLanes(Warp &warp, const Inst &inst, Mask mask) {
  auto how = bitsAs<Conversion>(inst.imm);
  static constexpr int hostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                                      FE_UPWARD};
  bool changesMode =
      how.rounding != Rounding::Nearest && isFloat(how.to) && !how.toIntegral;
  if (changesMode)
    std::fesetround(hostModes[int(how.rounding)]);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint64_t bits =
        convert(how, readRegister(warp, inst.a, how.fromBytes, lane));
    std::memcpy(warp.lanes<char>(inst.dst) + lane * how.toBytes, &bits,
                how.toBytes);
  }
  if (changesMode)
    std::fesetround(FE_TONEAREST);
}

namespace {
template <typename To>
struct CastTo {
  template <typename From>
  To operator()(From a) {
    return static_cast<To>(a);
  }
};
struct Widen {
  template <typename H>
  float operator()(H a) {
    return a.widen();
  }
};
template <typename H>
struct Narrow {
  H operator()(float a) { return H::round(a); }
};
struct Saturate {
  float operator()(float a) { return a > 0 ? std::min(a, 1.0f) : 0.0f; }
};
template <Rounding rounding>
struct ToIntegral {
  float operator()(float a) {
    return static_cast<float>(roundToIntegral(a, rounding));
  }
};
template <Rounding rounding>
struct ToInt32 {
  int32_t operator()(float a) {
    double value = a == a ? roundToIntegral(a, rounding) : 0;
    return static_cast<int32_t>(std::clamp(value, -0x1p31, 0x1p31 - 1));
  }
};
} // namespace

/// From f32, with one modifier; else null.
static Handler fastModified(const Conversion &how) {
  if (how.from != Type::F32 || how.flushes || (how.saturates && how.toIntegral))
    return nullptr;
  if (how.to == Type::F32 && how.saturates)
    return unary<Saturate, float, float>;
  constexpr Rounding nearest = Rounding::Nearest, down = Rounding::Down;
  constexpr Rounding zero = Rounding::Zero;
  if (how.to == Type::F32 && how.toIntegral && how.rounding == nearest)
    return unary<ToIntegral<nearest>, float, float>;
  if (how.to == Type::F32 && how.toIntegral && how.rounding == down)
    return unary<ToIntegral<down>, float, float>;
  if (how.to == Type::S32 && how.rounding == nearest)
    return unary<ToInt32<nearest>, int32_t, float>;
  if (how.to == Type::S32 && how.rounding == zero)
    return unary<ToInt32<zero>, int32_t, float>;
  return nullptr;
}

/// A handler of its own, where registers have the size of the types; else null.
static Handler fastHandler(Type to, Type from) {
  struct Entry {
    Type to, from;
    Handler run;
  };
  using T = Type;
  static const Entry entries[] = {
      {T::U64, T::U32, unary<CastTo<uint64_t>, uint64_t, uint32_t>},
      {T::S64, T::U32, unary<CastTo<uint64_t>, uint64_t, uint32_t>},
      {T::S64, T::S32, unary<CastTo<int64_t>, int64_t, int32_t>},
      {T::U64, T::S32, unary<CastTo<int64_t>, int64_t, int32_t>},
      {T::U32, T::U64, unary<CastTo<uint32_t>, uint32_t, uint64_t>},
      {T::S32, T::S64, unary<CastTo<uint32_t>, uint32_t, uint64_t>},
      {T::U32, T::S64, unary<CastTo<uint32_t>, uint32_t, uint64_t>},
      {T::S32, T::U64, unary<CastTo<uint32_t>, uint32_t, uint64_t>},
      {T::U32, T::U16, unary<CastTo<uint32_t>, uint32_t, uint16_t>},
      {T::S32, T::S16, unary<CastTo<int32_t>, int32_t, int16_t>},
      {T::U16, T::U32, unary<CastTo<uint16_t>, uint16_t, uint32_t>},
      {T::F32, T::S32, unary<CastTo<float>, float, int32_t>},
      {T::F32, T::U32, unary<CastTo<float>, float, uint32_t>},
      {T::F32, T::S64, unary<CastTo<float>, float, int64_t>},
      {T::F64, T::F32, unary<CastTo<double>, double, float>},
      {T::F32, T::F64, unary<CastTo<float>, float, double>},
      {T::F32, T::F16, unary<Widen, float, F16>},
      {T::F32, T::BF16, unary<Widen, float, BF16>},
      {T::F16, T::F32, unary<Narrow<F16>, F16, float>},
      {T::BF16, T::F32, unary<Narrow<BF16>, BF16, float>},
  };
  for (const Entry &entry : entries)
    if (entry.to == to && entry.from == from)
      return entry.run;
  return nullptr;
}

/// cvt.rn.bf16x2.f32 d, a, b: a goes to the upper half.
template <typename H>
static void packLanes(Warp &warp, const Inst &inst, Mask mask) {
  const float *a = warp.lanes<float>(inst.a), *b = warp.lanes<float>(inst.b);
  auto rounding = Rounding(inst.count);
  auto narrow = [&](float value) -> uint32_t {
    if (inst.flags && value <= 0)
      value = 0;
    return H::round(value, rounding).bits;
  };
  eachLane<uint32_t>(warp, inst.dst, mask, [&](unsigned i) {
    return narrow(a[i]) << 16 | narrow(b[i]);
  });
}

static void roundToTf32(Warp &warp, const Inst &inst, Mask mask) {
  const uint32_t *a = warp.lanes<uint32_t>(inst.a);
  eachLane<uint32_t>(warp, inst.dst, mask, [&](unsigned i) {
    bool isFinite = (a[i] & 0x7F800000) != 0x7F800000;
    return isFinite ? (a[i] + 0x1000) & ~0x1FFFu : a[i];
  });
}

static Rounding takeRounding(Decoder &decoder, bool &toIntegral, bool &given) {
  static const struct {
    const char *word;
    Rounding rounding;
  } names[] = {{"rn", Rounding::Nearest},
               {"rz", Rounding::Zero},
               {"rm", Rounding::Down},
               {"rp", Rounding::Up}};
  toIntegral = given = false;
  for (const auto &name : names) {
    given = decoder.take(name.word);
    toIntegral = !given && decoder.take(std::string(name.word) + "i");
    if (given || toIntegral)
      return name.rounding;
  }
  return Rounding::Nearest;
}

static void decodePacked(Decoder &decoder, Inst &inst, Type to,
                         Rounding rounding) {
  decoder.expectOperands(3);
  inst.flags = decoder.take("relu");
  if (decoder.takeType() != Type::F32)
    decoder.fail("packed results are supported from f32 only");
  inst.count = static_cast<uint8_t>(rounding);
  inst.dst = decoder.result(0, to);
  inst.a = decoder.value(1, Type::F32);
  inst.b = decoder.value(2, Type::F32);
  inst.run = to == Type::F16x2 ? packLanes<F16> : packLanes<BF16>;
}

static void decodeTf32(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(2);
  if (!decoder.take("rna") || decoder.takeType() != Type::F32)
    decoder.fail("only cvt.rna.tf32.f32 is supported");
  inst.dst = decoder.result(0, Type::B32);
  inst.a = decoder.value(1, Type::F32);
  inst.run = roundToTf32;
}

static void decodeCvt(Decoder &decoder, Inst &inst) {
  if (decoder.take("tf32"))
    return decodeTf32(decoder, inst);
  Conversion how{};
  bool isRounding = false;
  how.rounding = takeRounding(decoder, how.toIntegral, isRounding);
  how.flushes = decoder.take("ftz");
  how.saturates = decoder.take("sat");
  how.to = decoder.takeType();
  if (how.to == Type::F16x2 || how.to == Type::BF16x2)
    return decodePacked(decoder, inst, how.to, how.rounding);
  how.from = decoder.takeType();
  decoder.expectOperands(2);
  unsigned toBytes = 0, fromBytes = 0;
  inst.dst = decoder.wideResult(decoder.operand(0), how.to, toBytes);
  inst.a = decoder.wideValue(decoder.operand(1), how.from, fromBytes);
  how.toBytes = toBytes;
  how.fromBytes = fromBytes;
  bool toFloat = isFloat(how.to), fromFloat = isFloat(how.from);
  if (fromFloat && !toFloat && !how.toIntegral)
    decoder.fail("a rounding to an integer, such as '.rzi', is missing");
  inst.imm = bitsAs<int64_t>(how);
  inst.run = convertLanes;
  if (toBytes != bytesOf(how.to) || fromBytes != bytesOf(how.from))
    return;
  bool isPlain = how.rounding == Rounding::Nearest && !how.toIntegral &&
                 !how.flushes && !how.saturates;
  Handler fast = isPlain ? fastHandler(how.to, how.from) : fastModified(how);
  if (fast)
    inst.run = fast;
}

void fake_cuda::ptx::addConvertInstructions(DecodeTable &table) {
  table["cvt"] = decodeCvt;
}
