//===- NarrowFloat.h - bf16 and f16 -----------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two 16-bit float types, as their bits. Written without branches, so that
// loops over them are vectorized, and in integers where a processor's own
// instruction would flush subnormals: every processor gives the same bits.
// Kernels round the same way (lib/Lowering/KernelExpandMath.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_CORE_NARROWFLOAT_H
#define ZERO_RUNTIME_CORE_NARROWFLOAT_H

#include <cstdint>
#include <cstring>

namespace zrt {

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// The upper half of an f32.
struct BFloat16 {
  uint16_t bits;

  float widen() const { return floatOf(uint32_t(bits) << 16); }

  /// To the nearest, ties to even; not a number becomes 0x7FC0, as in PyTorch.
  static BFloat16 round(float value) {
    uint32_t bits = bitsOf(value);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return {uint16_t((bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : rounded)};
  }
};

/// IEEE 754 binary16.
struct Half {
  uint16_t bits;

  /// Exact; not a number becomes quiet.
  float widen() const {
    uint32_t magnitude = uint32_t(bits & 0x7FFF) << 13;
    // A multiplication moves the exponent, of subnormals too.
    uint32_t finite = bitsOf(floatOf(magnitude) * 0x1p112f);
    uint32_t quiet = magnitude > 0x0F800000 ? 0x7FC00000 : 0x7F800000;
    uint32_t result = magnitude >= 0x0F800000 ? magnitude | quiet : finite;
    return floatOf(result | uint32_t(bits & 0x8000) << 16);
  }

  /// To the nearest, ties to even; from 65520 on infinity. Not a number stays
  /// so, with the upper bits of its payload.
  static Half round(float value) {
    uint32_t bits = bitsOf(value), magnitude = bits & 0x7FFFFFFF;
    uint32_t normal =
        (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    // The last bit of a float in [0.5, 1) is the smallest half.
    uint32_t tiny = bitsOf(floatOf(magnitude) + 0.5f) - bitsOf(0.5f);
    uint32_t nan = 0x7E00 | (magnitude >> 13 & 0x3FF);
    uint32_t result = magnitude < 0x38800000   ? tiny
                      : magnitude < 0x47800000 ? normal
                      : magnitude > 0x7F800000 ? nan
                                               : 0x7C00;
    return {uint16_t(result | (bits >> 16 & 0x8000))};
  }
};

} // namespace zrt

#endif // ZERO_RUNTIME_CORE_NARROWFLOAT_H
