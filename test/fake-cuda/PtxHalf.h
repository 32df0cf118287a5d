//===- PtxHalf.h - Floating-point numbers of 16 bits ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f16 and bf16, to and from f32. Written apart from the runtime's, so that the
// two check each other.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTXHALF_H
#define ZERO_TEST_FAKECUDA_PTXHALF_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace fake_cuda {

/// To nearest, ties to even; toward zero, down, up.
enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

namespace half_detail {
inline float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t toBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline bool roundsUp(uint32_t kept, uint32_t rest, uint32_t half, bool negative,
                     Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return rest > half || (rest == half && (kept & 1));
  case Rounding::Zero:
    return false;
  case Rounding::Down:
    return negative && rest;
  case Rounding::Up:
    return !negative && rest;
  }
  return false;
}

/// Sign, exponent and `mantissa` bits; the exponent of 1.0 is `bias`.
inline uint16_t narrow(float value, int mantissa, int bias, Rounding rounding) {
  uint32_t bits = toBits(value);
  bool negative = bits >> 31;
  uint16_t sign = negative ? 0x8000 : 0;
  uint32_t magnitude = bits & 0x7FFFFFFF;
  uint16_t infinity = 0x7FFF & ~((1u << mantissa) - 1);
  if (magnitude > 0x7F800000)
    return 0x7FFF;
  if (magnitude == 0x7F800000)
    return sign | infinity;
  int exponent = int(magnitude >> 23);
  uint32_t significand = magnitude & 0x7FFFFF;
  if (exponent == 0)
    exponent = 1;
  else
    significand |= 0x800000;
  exponent -= 127;
  int least = 1 - bias;
  int shift = 23 - mantissa;
  if (exponent < least) {
    shift += least - exponent;
    exponent = least;
  }
  if (shift > 26)
    shift = 26;
  uint32_t kept = significand >> shift;
  uint32_t rest = significand & ((1u << shift) - 1);
  if (roundsUp(kept, rest, 1u << (shift - 1), negative, rounding))
    ++kept;
  uint32_t made = (uint32_t(exponent - least) << mantissa) + kept;
  if (made < infinity)
    return sign | made;
  bool staysFinite = rounding == Rounding::Zero ||
                     rounding == (negative ? Rounding::Up : Rounding::Down);
  return sign | (staysFinite ? infinity - 1 : infinity);
}
} // namespace half_detail

struct F16 {
  uint16_t bits;

  static F16 round(float value, Rounding rounding = Rounding::Nearest) {
    return {half_detail::narrow(value, 10, 15, rounding)};
  }
  float widen() const {
    uint32_t sign = uint32_t(bits & 0x8000) << 16;
    uint32_t magnitude = bits & 0x7FFF;
    if (magnitude >= 0x7C00) // infinity and NaN
      return half_detail::fromBits(sign | 0x7F800000 |
                                   (magnitude & 0x3FF) << 13);
    // The exponent is scaled by 2^112, which makes subnormals right too.
    float scaled = half_detail::fromBits(magnitude << 13) * 0x1p112f;
    return half_detail::fromBits(half_detail::toBits(scaled) | sign);
  }
};

struct BF16 {
  uint16_t bits;

  static BF16 round(float value, Rounding rounding = Rounding::Nearest) {
    uint32_t bits = half_detail::toBits(value);
    if (rounding == Rounding::Nearest && (bits & 0x7F800000) != 0x7F800000)
      return {uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
    return {half_detail::narrow(value, 7, 127, rounding)};
  }
  float widen() const { return half_detail::fromBits(uint32_t(bits) << 16); }
};

/// The f32 next to a number toward zero, its last bit set where that is not
/// exact: a later rounding to fewer bits is then that of the number itself.
inline float roundToOdd(double value) {
  float near = static_cast<float>(value);
  if (near == value || std::isnan(near))
    return near;
  uint32_t bits = half_detail::toBits(near);
  if (std::fabs(double(near)) > std::fabs(value))
    --bits;
  return half_detail::fromBits(bits | 1);
}

/// a * b + c with operands of 16 bits, rounded to odd in f32.
inline float fusedToOdd(float a, float b, float c) {
  double product = double(a) * b; // exact
  double sum = product + c;
  if (!std::isfinite(sum))
    return static_cast<float>(sum);
  double partial = sum - product;
  double error = (product - (sum - partial)) + (c - partial);
  if (error != 0) {
    uint64_t bits;
    std::memcpy(&bits, &sum, sizeof bits);
    if ((error < 0) != (sum < 0))
      --bits;
    bits |= 1;
    std::memcpy(&sum, &bits, sizeof bits);
  }
  return roundToOdd(sum);
}

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_PTXHALF_H
