//===- Json.cpp - JSON text -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writing of JSON strings and numbers.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Json.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

using namespace zrt;

/// Bytes of the UTF-8 sequence at the front of `text`, 0 if it is malformed
/// (overlong, a surrogate, beyond U+10FFFF, cut).
static size_t sequenceLength(std::string_view text) {
  auto byte = [&](size_t i) { return uint8_t(text[i]); };
  auto continues = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      if (i >= text.size() || (byte(i) & 0xC0) != 0x80)
        return false;
    return true;
  };
  uint8_t first = byte(0);
  if (first < 0x80)
    return 1;
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || !continues(1, length))
    return 0;
  uint8_t second = byte(1);
  bool bad =
      (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return bad ? 0 : length;
}

bool zrt::isUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = sequenceLength(text);
    if (!length)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string zrt::jsonQuote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    size_t length = sequenceLength(text);
    char c = text[0];
    if (!length) {
      out += "\xEF\xBF\xBD";
      length = 1;
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (uint8_t(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", unsigned(c));
      out += escape;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + '"';
}

std::string zrt::jsonNumber(double value) {
  if (!std::isfinite(value))
    return "null";
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end.ptr);
}
