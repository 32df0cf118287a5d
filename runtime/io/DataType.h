//===- DataType.h - Element types in tensor files ---------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types that tensor files can hold, and the conversions between
// them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_DATATYPE_H
#define ZERO_RUNTIME_IO_DATATYPE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zrt {

/// Every element type of the safetensors format. Those up to
/// F8E5M2FNUZ are those of plans, in the order of the plan format; the others
/// can be listed and measured, but not converted.
enum class DataType : uint8_t {
  F32,
  F64,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U8,
  Bool,
  U16,
  U32,
  U64,
  F8E4M3,
  F8E5M2,
  F8E8M0,
  F8E4M3FNUZ,
  F8E5M2FNUZ,
  C64,
  F6E2M3,
  F6E3M2,
  F4
};

/// Bits of one element.
unsigned bitWidth(DataType type);

/// The name in safetensors headers, such as "F32".
std::string_view name(DataType type);

/// The type with that safetensors name.
std::optional<DataType> dataTypeNamed(std::string_view name);

/// True for signed and unsigned integers (not bool).
bool isInteger(DataType type);

/// Bytes of a tensor: nothing when the number overflows or is no whole number
/// of bytes.
std::optional<uint64_t> tensorBytes(DataType type,
                                    const std::vector<int64_t> &shape);

/// "F32[8x64]", for messages.
std::string describe(DataType type, const std::vector<int64_t> &shape);

/// True when each value of `from` exists in `to`.
bool convertsExactly(DataType from, DataType to);

/// True when `convert` goes from `from` to `to`: exactly, or between floats,
/// where a narrower type rounds.
bool converts(DataType from, DataType to);

/// Converts `count` elements; requires converts(from, to). Rounds to the
/// nearest, ties to even, on the way to f16 and bf16 by way of f32 as PyTorch
/// does. The pointers need no alignment.
void convert(DataType from, const void *source, DataType to, void *target,
             size_t count);

/// Element `index` of a buffer of integers or bools.
int64_t integerAt(DataType type, const void *data, size_t index);

} // namespace zrt

#endif // ZERO_RUNTIME_IO_DATATYPE_H
