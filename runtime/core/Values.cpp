//===- Values.cpp - Elements as numbers -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Values.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Values.h"

#include "runtime/core/NarrowFloat.h"

#include <cstring>

using namespace zrt;

double zrt::numberAt(const void *data, fb::DType type, uint64_t index) {
  switch (type) {
  case fb::DType_F64:
    return static_cast<const double *>(data)[index];
  case fb::DType_F16:
    return static_cast<const Half *>(data)[index].widen();
  case fb::DType_BF16:
    return static_cast<const BFloat16 *>(data)[index].widen();
  case fb::DType_I64:
    return double(static_cast<const int64_t *>(data)[index]);
  case fb::DType_I32:
    return static_cast<const int32_t *>(data)[index];
  case fb::DType_I16:
    return static_cast<const int16_t *>(data)[index];
  case fb::DType_I8:
    return static_cast<const int8_t *>(data)[index];
  case fb::DType_U64:
    return double(static_cast<const uint64_t *>(data)[index]);
  case fb::DType_U32:
    return static_cast<const uint32_t *>(data)[index];
  case fb::DType_U16:
    return static_cast<const uint16_t *>(data)[index];
  case fb::DType_F32:
    return static_cast<const float *>(data)[index];
  default:
    return static_cast<const uint8_t *>(data)[index];
  }
}

static int64_t integerAt(const void *data, fb::DType type, uint64_t index) {
  if (type == fb::DType_I64)
    return static_cast<const int64_t *>(data)[index];
  return int64_t(numberAt(data, type, index));
}

std::vector<uint8_t> zrt::onesOf(fb::DType type, uint64_t bytes) {
  static const float f32 = 1;
  static const double f64 = 1;
  static const uint16_t f16 = 0x3C00, bf16 = 0x3F80;
  static const int64_t integer = 1; // little endian: also its shorter types
  const void *one = type == fb::DType_F32    ? static_cast<const void *>(&f32)
                    : type == fb::DType_F64  ? &f64
                    : type == fb::DType_F16  ? &f16
                    : type == fb::DType_BF16 ? static_cast<const void *>(&bf16)
                                             : &integer;
  std::vector<uint8_t> data(bytes);
  uint64_t size = elementBytes(type);
  for (uint64_t at = 0; at < bytes; at += size)
    std::memcpy(&data[at], one, size);
  return data;
}

void zrt::checkSizeOf(const char *what, const std::string &name, uint64_t given,
                      uint64_t expected) {
  if (given != expected)
    fail(ZRT_ERROR_ARGUMENT, what, " ", name, " has ", expected, " bytes, not ",
         given);
}

void zrt::checkInputRange(const Input &input, const void *data, int rank) {
  if (!input.hasRange)
    return;
  uint64_t count = input.bytes / elementBytes(input.dtype);
  for (uint64_t i = 0; i < count; ++i) {
    int64_t value = integerAt(data, input.dtype, i);
    if ((value >= input.min && value <= input.max) ||
        (input.hasIgnore && value == input.ignore))
      continue;
    std::string of =
        rank == ZRT_ALL_RANKS ? "" : " of rank " + std::to_string(rank);
    std::string ignored =
        input.hasIgnore ? " and is not " + std::to_string(input.ignore) : "";
    fail(ZRT_ERROR_ARGUMENT, "input ", input.name, of, ": value ", value,
         " at element ", i, " is outside [", input.min, ", ", input.max, "]",
         ignored);
  }
}
