//===- Html.cpp - Text that is safe in a page ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Html.h.
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Trace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace mlir::zero;
using namespace llvm;

std::string mlir::zero::escapeHtml(StringRef text) {
  // A page has no control characters, not even escaped ones.
  std::string valid = oneLine(json::fixUTF8(text)), result;
  raw_string_ostream os(result);
  printHTMLEscaped(valid, os);
  return result;
}

std::string mlir::zero::quoteForScript(StringRef text) {
  std::string quoted, result;
  raw_string_ostream os(quoted);
  os << json::Value(json::fixUTF8(text));
  StringRef rest = quoted;
  while (!rest.empty()) {
    // U+2028 and U+2029 end a line of JavaScript.
    bool isLine = rest.starts_with("\xE2\x80\xA8");
    if (isLine || rest.starts_with("\xE2\x80\xA9")) {
      result += isLine ? "\\u2028" : "\\u2029";
      rest = rest.drop_front(3);
      continue;
    }
    char c = rest.front();
    if (c == '<' || c == '>' || c == '&')
      result += "\\u00" + utohexstr(c, /*LowerCase=*/true);
    else
      result += c;
    rest = rest.drop_front();
  }
  return result;
}

static std::string print(const char *form, double value) {
  std::string text;
  raw_string_ostream(text) << format(form, value);
  return text;
}

/// Four digits at least where they fit before the unit.
static std::string digits(double value) {
  return print(value >= 1000  ? "%.0f"
               : value >= 100 ? "%.1f"
               : value >= 10  ? "%.2f"
                              : "%.3f",
               value);
}

std::string mlir::zero::showSeconds(double seconds) {
  double size = std::abs(seconds);
  StringRef sign = seconds < 0 ? "-" : "";
  if (size == 0)
    return "0 s";
  if (size >= 1)
    return (sign + digits(size) + " s").str();
  if (size >= 1e-3)
    return (sign + digits(size * 1e3) + " ms").str();
  if (size >= 1e-6)
    return (sign + digits(size * 1e6) + " µs").str();
  return (sign + digits(size * 1e9) + " ns").str();
}

std::string mlir::zero::showBytes(double bytes) {
  static constexpr StringLiteral units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0)
    return print("%.0f", bytes) + " B";
  return print(bytes >= 100 ? "%.1f" : "%.2f", bytes) + " " + units[unit].str();
}

std::string mlir::zero::showPercent(double percent) {
  return print("%.1f", percent) + " %";
}

std::string mlir::zero::cssPercent(double percent) {
  return print("%.2f", percent) + "%";
}

std::string mlir::zero::showCount(double count) {
  std::string text = print("%.0f", count);
  for (int at = int(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}

std::string mlir::zero::showShape(ArrayRef<int64_t> shape) {
  return shape.empty() ? "scalar"
                       : join(map_range(shape,
                                        [](int64_t size) {
                                          return std::to_string(size);
                                        }),
                              "×");
}
