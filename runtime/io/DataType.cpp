//===- DataType.cpp - Element types in tensor files -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names, sizes and conversions of element types.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DataType.h"
#include "runtime/core/NarrowFloat.h"

#include <cstring>

using namespace zrt;

namespace {
struct Info {
  std::string_view name;
  unsigned bits;
};
} // namespace

// In the order of the enum.
static constexpr Info infos[] = {
    {"F32", 32},        {"F64", 64},        {"F16", 16},    {"BF16", 16},
    {"I64", 64},        {"I32", 32},        {"I16", 16},    {"I8", 8},
    {"U8", 8},          {"BOOL", 8},        {"U16", 16},    {"U32", 32},
    {"U64", 64},        {"F8_E4M3", 8},     {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"C64", 64},    {"F6_E2M3", 6},
    {"F6_E3M2", 6},     {"F4", 4}};

unsigned zrt::bitWidth(DataType type) { return infos[size_t(type)].bits; }

std::string_view zrt::name(DataType type) { return infos[size_t(type)].name; }

std::optional<DataType> zrt::dataTypeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(infos); ++i)
    if (infos[i].name == name)
      return DataType(i);
  return std::nullopt;
}

static bool isUnsigned(DataType type) {
  return type == DataType::U8 || type == DataType::U16 ||
         type == DataType::U32 || type == DataType::U64;
}

static bool isSigned(DataType type) {
  return type == DataType::I64 || type == DataType::I32 ||
         type == DataType::I16 || type == DataType::I8;
}

bool zrt::isInteger(DataType type) {
  return isSigned(type) || isUnsigned(type);
}

std::optional<uint64_t> zrt::tensorBytes(DataType type,
                                         const std::vector<int64_t> &shape) {
  uint64_t bits = bitWidth(type);
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bits, uint64_t(dim), &bits))
      return std::nullopt;
  if (bits % 8)
    return std::nullopt;
  return bits / 8;
}

std::string zrt::describe(DataType type, const std::vector<int64_t> &shape) {
  std::string text(name(type));
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "x" : "") + std::to_string(shape[i]);
  return text + ']';
}

/// Bits of the integers that a floating-point type holds exactly.
static unsigned exactIntegerBits(DataType type) {
  switch (type) {
  case DataType::F32:
    return 24;
  case DataType::F64:
    return 53;
  case DataType::F16:
    return 11;
  case DataType::BF16:
    return 8;
  default:
    return 0;
  }
}

bool zrt::convertsExactly(DataType from, DataType to) {
  if (from == to)
    return true;
  unsigned fromBits = from == DataType::Bool ? 1 : bitWidth(from);
  bool wholeNumber = isInteger(from) || from == DataType::Bool;
  if (wholeNumber && isUnsigned(to))
    return !isSigned(from) && fromBits <= bitWidth(to);
  if (wholeNumber && isSigned(to))
    return isSigned(from) ? fromBits <= bitWidth(to) : fromBits < bitWidth(to);
  if (wholeNumber)
    return fromBits <= exactIntegerBits(to);
  bool half = from == DataType::F16 || from == DataType::BF16;
  return (half && to == DataType::F32) ||
         ((half || from == DataType::F32) && to == DataType::F64);
}

static bool isFloat(DataType type) { return exactIntegerBits(type) != 0; }

bool zrt::converts(DataType from, DataType to) {
  return convertsExactly(from, to) || (isFloat(from) && isFloat(to));
}

template <typename T>
static T load(const void *data, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * sizeof(T),
              sizeof(T));
  return value;
}

template <typename T>
static void store(void *data, size_t index, T value) {
  std::memcpy(static_cast<char *>(data) + index * sizeof(T), &value, sizeof(T));
}

int64_t zrt::integerAt(DataType type, const void *data, size_t index) {
  switch (type) {
  case DataType::I64:
  case DataType::U64:
    return load<int64_t>(data, index);
  case DataType::I32:
    return load<int32_t>(data, index);
  case DataType::U32:
    return load<uint32_t>(data, index);
  case DataType::I16:
    return load<int16_t>(data, index);
  case DataType::U16:
    return load<uint16_t>(data, index);
  case DataType::I8:
    return load<int8_t>(data, index);
  default:
    return load<uint8_t>(data, index);
  }
}

static double floatAt(DataType type, const void *data, size_t index) {
  switch (type) {
  case DataType::F32:
    return load<float>(data, index);
  case DataType::F64:
    return load<double>(data, index);
  case DataType::F16:
    return load<Half>(data, index).widen();
  case DataType::BF16:
    return load<BFloat16>(data, index).widen();
  default:
    return double(integerAt(type, data, index));
  }
}

static void convertOne(DataType from, const void *source, DataType to,
                       void *target, size_t i) {
  switch (to) {
  case DataType::F32:
    return store(target, i, float(floatAt(from, source, i)));
  case DataType::F64:
    return store(target, i, floatAt(from, source, i));
  case DataType::F16:
    return store(target, i, Half::round(float(floatAt(from, source, i))));
  case DataType::BF16:
    return store(target, i, BFloat16::round(float(floatAt(from, source, i))));
  default:
    break;
  }
  int64_t value = integerAt(from, source, i);
  switch (bitWidth(to)) {
  case 64:
    return store(target, i, value);
  case 32:
    return store(target, i, int32_t(value));
  case 16:
    return store(target, i, int16_t(value));
  default:
    return store(target, i, int8_t(value));
  }
}

void zrt::convert(DataType from, const void *source, DataType to, void *target,
                  size_t count) {
  if (from == to) {
    if (count)
      std::memcpy(target, source, count * bitWidth(to) / 8);
    return;
  }
  for (size_t i = 0; i < count; ++i)
    convertOne(from, source, to, target, i);
}
