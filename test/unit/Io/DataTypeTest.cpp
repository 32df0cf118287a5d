//===- DataTypeTest.cpp - Tests of element types --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exact conversions lose nothing; NarrowFloatTest.cpp tests those that round.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DataType.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace zrt;

namespace {

constexpr DataType planTypes[] = {DataType::F32,  DataType::F64, DataType::F16,
                                  DataType::BF16, DataType::I64, DataType::I32,
                                  DataType::I16,  DataType::I8,  DataType::U8,
                                  DataType::Bool};

TEST(DataType, NamesReadBack) {
  for (unsigned i = 0; i <= unsigned(DataType::F4); ++i)
    EXPECT_EQ(dataTypeNamed(name(DataType(i))), DataType(i));
  EXPECT_FALSE(dataTypeNamed("f32"));
}

TEST(DataType, BytesDoNotOverflow) {
  EXPECT_EQ(tensorBytes(DataType::F32, {2, 3}), 24u);
  EXPECT_EQ(tensorBytes(DataType::F32, {}), 4u);
  EXPECT_EQ(tensorBytes(DataType::F6E2M3, {4}), 3u);
  EXPECT_FALSE(tensorBytes(DataType::F6E2M3, {3}));
  EXPECT_FALSE(tensorBytes(DataType::U8, {-1}));
  EXPECT_FALSE(tensorBytes(DataType::U8, {int64_t(1) << 40, int64_t(1) << 40}));
}

TEST(DataType, ExactConversions) {
  using T = DataType;
  const std::pair<T, T> exact[] = {
      {T::I32, T::I64}, {T::U8, T::F32},   {T::U16, T::I32}, {T::U32, T::I64},
      {T::F16, T::F32}, {T::BF16, T::F32}, {T::F32, T::F64}, {T::Bool, T::I64},
      {T::I16, T::F32}, {T::I32, T::F64},  {T::U8, T::I16},  {T::I8, T::F16}};
  for (auto [from, to] : exact)
    EXPECT_TRUE(convertsExactly(from, to)) << name(from) << " " << name(to);
  const std::pair<T, T> lossy[] = {
      {T::F64, T::F32},    {T::I64, T::I32}, {T::I32, T::F32},
      {T::I64, T::F64},    {T::U64, T::I64}, {T::I8, T::U8},
      {T::U8, T::I8},      {T::F32, T::I64}, {T::F32, T::F16},
      {T::F16, T::BF16},   {T::U8, T::Bool}, {T::C64, T::F32},
      {T::F8E4M3, T::F32}, {T::I16, T::F16}};
  for (auto [from, to] : lossy)
    EXPECT_FALSE(convertsExactly(from, to)) << name(from) << " " << name(to);
}

/// Each value of an 8-bit type goes to each wider type and back to double.
TEST(DataType, SmallIntegersKeepTheirValues) {
  for (DataType from : {DataType::I8, DataType::U8})
    for (DataType to : planTypes) {
      if (from == to || !convertsExactly(from, to))
        continue;
      for (int bits = 0; bits < 256; ++bits) {
        uint8_t source = uint8_t(bits);
        unsigned char converted[8], wide[8];
        convert(from, &source, to, converted, 1);
        double value;
        if (isInteger(to)) {
          value = double(integerAt(to, converted, 0));
        } else {
          convert(to, converted, DataType::F64, wide, 1);
          std::memcpy(&value, wide, 8);
        }
        EXPECT_EQ(value, from == DataType::I8 ? int8_t(source) : source)
            << name(from) << " " << name(to);
      }
    }
}

TEST(DataType, HalvesBecomeFloats) {
  const std::pair<uint16_t, float> halves[] = {
      {0x3C00, 1},        {0xC000, -2},
      {0x0001, 0x1p-24f}, {0x83FF, -1023 * 0x1p-24f},
      {0x0400, 0x1p-14f}, {0x7BFF, 65504},
      {0x7C00, INFINITY}, {0x3555, 0x1.554p-2f}};
  for (auto [bits, expected] : halves) {
    float value;
    convert(DataType::F16, &bits, DataType::F32, &value, 1);
    EXPECT_EQ(value, expected) << bits;
  }
  uint16_t nan = 0x7E01, brain = 0xC049;
  float value;
  convert(DataType::F16, &nan, DataType::F32, &value, 1);
  EXPECT_TRUE(std::isnan(value));
  convert(DataType::BF16, &brain, DataType::F32, &value, 1);
  EXPECT_EQ(value, -3.140625f);
}

TEST(DataType, PointersNeedNoAlignment) {
  char bytes[13] = {};
  int32_t source[] = {-1, 1 << 30};
  std::memcpy(bytes + 1, source, 8);
  int64_t target[2];
  convert(DataType::I32, bytes + 1, DataType::I64, target, 2);
  EXPECT_EQ(target[0], -1);
  EXPECT_EQ(target[1], 1 << 30);
}

} // namespace
