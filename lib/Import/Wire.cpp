//===- Wire.cpp - Protobuf messages as bytes ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Wire.h.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Wire.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

static bool takeVarint(StringRef &bytes, uint64_t &value) {
  value = 0;
  for (unsigned i = 0; i < 10 && i < bytes.size(); ++i) {
    value |= uint64_t(bytes[i] & 0x7f) << (7 * i);
    if (bytes[i] & 0x80)
      continue;
    bytes = bytes.drop_front(i + 1);
    return true;
  }
  return false;
}

bool zero::onnx_import::takeField(StringRef &message, WireField &field) {
  StringRef rest = message;
  uint64_t key = 0, size = 0;
  if (!takeVarint(rest, key) || key >> 3 == 0)
    return false;
  field = {};
  field.number = key >> 3;
  field.type = WireField::Type(key & 7);
  switch (field.type) {
  case WireField::Varint:
    if (!takeVarint(rest, field.value))
      return false;
    break;
  case WireField::Fixed64:
    size = 8;
    break;
  case WireField::Fixed32:
    size = 4;
    break;
  case WireField::Bytes:
    if (!takeVarint(rest, size))
      return false;
    break;
  default:
    return false;
  }
  if (size > rest.size())
    return false;
  if (field.type == WireField::Bytes)
    field.content = rest.take_front(size);
  rest = rest.drop_front(size);
  field.all = message.drop_back(rest.size());
  message = rest;
  return true;
}

static void appendVarint(std::string &text, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    text += char(0x80 | (value & 0x7f));
  text += char(value);
}

std::string zero::onnx_import::encodeKey(uint64_t number, uint64_t length) {
  std::string text;
  appendVarint(text, number << 3 | WireField::Bytes);
  appendVarint(text, length);
  return text;
}

std::string zero::onnx_import::encodeNumber(uint64_t number, uint64_t value) {
  std::string text;
  appendVarint(text, number << 3 | WireField::Varint);
  appendVarint(text, value);
  return text;
}

std::string zero::onnx_import::encodeBytes(uint64_t number, StringRef content) {
  return encodeKey(number, content.size()) + content.str();
}
