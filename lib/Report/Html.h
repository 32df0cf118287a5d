//===- Html.h - Text that is safe in a page ---------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names come from models that anybody made: whatever is in them is shown as
// text and never runs.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_REPORT_HTML_H
#define ZERO_LIB_REPORT_HTML_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <string>

namespace mlir::zero {

/// `text` for elements and quoted attributes.
std::string escapeHtml(llvm::StringRef text);

/// `text` as a JSON string, quotes included, inside a <script> block: nothing
/// in it ends the block or a line.
std::string quoteForScript(llvm::StringRef text);

/// "12.35 ms", "1.50 GiB", "61.3 %": four digits or so, with a unit.
std::string showSeconds(double seconds);
std::string showBytes(double bytes);
std::string showPercent(double percent);
/// "61.3%": a length in a style.
std::string cssPercent(double percent);
/// "12345678" as "12,345,678".
std::string showCount(double count);
/// "4x8", with a multiplication sign.
std::string showShape(llvm::ArrayRef<int64_t> shape);

} // namespace mlir::zero

#endif // ZERO_LIB_REPORT_HTML_H
