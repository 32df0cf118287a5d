//===- NarrowFloatTest.cpp - Tests of bf16 and f16 ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every value of both types against its definition, and rounding against the
// nearest of all values.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DataType.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace zrt;

namespace {

/// A format of 1 sign bit, `exponentBits` and the rest.
struct Format {
  DataType type;
  int exponentBits;

  int mantissaBits() const { return 15 - exponentBits; }
  uint16_t infinity() const {
    return uint16_t(((1 << exponentBits) - 1) << mantissaBits());
  }
  /// The value by IEEE 754's formula.
  double value(uint16_t bits) const {
    int mantissa = bits & ((1 << mantissaBits()) - 1);
    int exponent = (bits & 0x7FFF) >> mantissaBits();
    int bias = (1 << (exponentBits - 1)) - 1;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponentBits) - 1)
      return mantissa ? NAN : sign * INFINITY;
    int hidden = exponent ? 1 << mantissaBits() : 0;
    return sign * std::ldexp(hidden + mantissa,
                             std::max(exponent, 1) - bias - mantissaBits());
  }
  /// The nearest value, ties to the one with an even last bit; beyond the
  /// largest the next one would be 2^n, which is infinity.
  uint16_t nearest(float number) const {
    double size = std::abs(double(number));
    uint16_t low = 0, high = infinity();
    while (high - low > 1) {
      uint16_t middle = uint16_t((low + high) / 2);
      (value(middle) <= size ? low : high) = middle;
    }
    double next = high == infinity()
                      ? 2 * value(uint16_t(infinity() - (1 << mantissaBits())))
                      : value(high);
    double below = size - value(low), above = next - size;
    bool up = above < below || (above == below && low % 2);
    uint16_t bits = std::isinf(number) ? infinity() : up ? high : low;
    return uint16_t(bits | (std::signbit(number) ? 0x8000 : 0));
  }
};

constexpr Format formats[] = {{DataType::BF16, 8}, {DataType::F16, 5}};

template <typename To, typename From>
To converted(DataType from, From source, DataType to) {
  To target;
  convert(from, &source, to, &target, 1);
  return target;
}

TEST(NarrowFloat, EveryValueWidensExactly) {
  for (const Format &format : formats)
    for (int bits = 0; bits < 65536; ++bits) {
      double expected = format.value(uint16_t(bits));
      auto single =
          converted<float>(format.type, uint16_t(bits), DataType::F32);
      auto wide = converted<double>(format.type, uint16_t(bits), DataType::F64);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(single) && std::isnan(wide)) << bits;
        continue;
      }
      ASSERT_EQ(double(single), expected) << bits;
      ASSERT_EQ(wide, expected) << bits;
      ASSERT_EQ(std::signbit(single), bits >> 15) << bits;
    }
}

TEST(NarrowFloat, EveryValueComesBack) {
  for (const Format &format : formats)
    for (int bits = 0; bits < 65536; ++bits) {
      auto single =
          converted<float>(format.type, uint16_t(bits), DataType::F32);
      auto back = converted<uint16_t>(DataType::F32, single, format.type);
      if (std::isnan(single))
        EXPECT_GT(back & 0x7FFF, format.infinity()) << bits;
      else
        ASSERT_EQ(back, bits);
    }
}

void expectNearest(const Format &format, float number) {
  ASSERT_EQ(converted<uint16_t>(DataType::F32, number, format.type),
            format.nearest(number))
      << name(format.type) << " of " << number;
}

/// The middle of each two neighbours, and the floats beside it.
TEST(NarrowFloat, TiesGoToEven) {
  for (const Format &format : formats)
    for (int bits = 0; bits < format.infinity(); ++bits) {
      double low = format.value(uint16_t(bits));
      double high = format.value(uint16_t(bits + 1));
      if (std::isinf(high)) // what the next value would be
        high = low + (low - format.value(uint16_t(bits - 1)));
      auto middle = float((low + high) / 2);
      for (float number : {middle, std::nextafter(middle, 0.0f),
                           std::nextafter(middle, INFINITY)}) {
        expectNearest(format, number);
        expectNearest(format, -number);
      }
    }
}

TEST(NarrowFloat, RandomBitsGoToTheNearest) {
  std::mt19937 generator(1);
  for (const Format &format : formats)
    for (int i = 0; i < 200000; ++i) {
      uint32_t bits = generator();
      float number;
      std::memcpy(&number, &bits, 4);
      if (!std::isnan(number))
        expectNearest(format, number);
    }
}

TEST(NarrowFloat, ExtremesOfFloats) {
  for (const Format &format : formats)
    for (float number : {0.0f, 1e-45f, 0x1p-126f, 3.4028235e38f, 65504.0f,
                         65519.99f, 65520.0f, INFINITY}) {
      expectNearest(format, number);
      expectNearest(format, -number);
    }
  uint32_t loud = 0x7F800001; // only payload bits that a narrow type lacks
  for (const Format &format : formats) {
    uint16_t bits = converted<uint16_t>(DataType::F32, loud, format.type);
    EXPECT_TRUE(std::isnan(format.value(bits)));
  }
  EXPECT_EQ(converted<uint16_t>(DataType::F32, loud, DataType::BF16), 0x7FC0);
}

/// f64 is rounded to f32 on the way, as in PyTorch: just above a tie it ends
/// where the tie does.
TEST(NarrowFloat, DoublesRoundByWayOfFloats) {
  double justAbove = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(converted<uint16_t>(DataType::F64, justAbove, DataType::BF16),
            0x3F80);
}

TEST(NarrowFloat, WhatConverts) {
  for (DataType from :
       {DataType::F32, DataType::F64, DataType::F16, DataType::BF16})
    for (DataType to :
         {DataType::F32, DataType::F64, DataType::F16, DataType::BF16})
      EXPECT_TRUE(converts(from, to)) << name(from) << " " << name(to);
  EXPECT_FALSE(converts(DataType::I64, DataType::F32));
  EXPECT_FALSE(converts(DataType::F32, DataType::I64));
  EXPECT_FALSE(converts(DataType::F8E4M3, DataType::F32));
  EXPECT_TRUE(converts(DataType::I8, DataType::BF16));
}

} // namespace
