//===- Document.h - Configuration files as people write them ----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JSON with comments (`//`, `/* */`, `#`), trailing commas and the numbers
// Infinity, -Infinity and NaN, which Python's json has. Keeps the order of
// members, how numbers were written and where everything stands, which
// llvm::json does not, and refuses a key that stands twice. Uses only LLVM's
// Support library.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CONFIG_DOCUMENT_H
#define ZERO_CONFIG_DOCUMENT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace mlir::zero {

/// Bytes, keys of an object, and objects and arrays inside each other, that a
/// file may have.
constexpr size_t kMaxConfigBytes = 1 << 20;
constexpr size_t kMaxConfigMembers = 4096;
constexpr int kMaxConfigDepth = 32;

/// A value of a configuration file.
struct ConfigValue {
  enum class Kind { Null, Bool, Number, Text, List, Object };

  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;
  /// A text; of a number, its digits as they were written.
  std::string text;
  std::vector<ConfigValue> items;
  /// Of an object, in the file's order.
  std::vector<std::pair<std::string, ConfigValue>> members;
  /// Where it begins, from 1.
  unsigned line = 0;

  /// The member of that name; null if there is none.
  const ConfigValue *find(llvm::StringRef name) const;
  /// "auto", which stands for any value.
  bool isAuto() const { return kind == Kind::Text && text == "auto"; }
  /// On one line, cut after `width` characters.
  std::string print(size_t width = 40) const;
};

/// Parses a file's text. The error is "LINE:COLUMN: MESSAGE".
llvm::Expected<ConfigValue> parseConfig(llvm::StringRef text);

} // namespace mlir::zero

#endif // ZERO_CONFIG_DOCUMENT_H
