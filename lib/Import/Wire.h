//===- Wire.h - Protobuf messages as bytes ---------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fields of a message where they lie, so that a file can be written again
// with a few of them changed and the others, unknown ones too, as they were.
// https://protobuf.dev/programming-guides/encoding
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_WIRE_H
#define ZERO_LIB_IMPORT_WIRE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace mlir::zero::onnx_import {

/// One field of a message.
struct WireField {
  enum Type : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

  uint64_t number = 0;
  Type type = Varint;
  /// The whole field, with its key.
  StringRef all;
  /// Of Bytes: the content. It may be a message.
  StringRef content;
  /// Of Varint.
  uint64_t value = 0;
};

/// Takes the first field off `message`; false where it is malformed (groups,
/// which ONNX does not use, count as that).
bool takeField(StringRef &message, WireField &field);

/// The key of a field and, for Bytes, the length that follows it.
std::string encodeKey(uint64_t number, uint64_t length);
/// A whole field of a number.
std::string encodeNumber(uint64_t number, uint64_t value);
/// A whole field of bytes.
std::string encodeBytes(uint64_t number, StringRef content);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_WIRE_H
