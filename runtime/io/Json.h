//===- Json.h - JSON in and out ---------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The little JSON that the runtime writes, and the strict reading of
// safetensors headers and other small documents.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_JSON_H
#define ZERO_RUNTIME_IO_JSON_H

#include <string>
#include <string_view>

namespace zrt {

/// `text` as a JSON string with quotes. Bytes that are not UTF-8 become
/// U+FFFD.
std::string jsonQuote(std::string_view text);

/// The shortest text that reads back as `value`; "null" for NaN and Inf, which
/// JSON cannot say.
std::string jsonNumber(double value);

/// True when `text` is well-formed UTF-8.
bool isUtf8(std::string_view text);

} // namespace zrt

#endif // ZERO_RUNTIME_IO_JSON_H
