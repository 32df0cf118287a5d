//===- Report.cpp - What became of a config, in words ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of a file's keys, and the table of all keys.
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace mlir::zero;
using llvm::StringRef;

/// `text` and spaces up to `width`.
static std::string padded(StringRef text, size_t width) {
  return text.str() + std::string(width - std::min(width, text.size()), ' ');
}

void mlir::zero::printConfigResult(llvm::raw_ostream &os,
                                   const ConfigResult &result, StringRef file) {
  size_t keyWidth = 3, valueWidth = 5;
  for (const ConfigEntry &entry : result.entries) {
    keyWidth = std::max(keyWidth, entry.path.size());
    valueWidth = std::max(valueWidth, entry.value.size());
  }
  os << padded("key", keyWidth) << "  " << padded("value", valueWidth)
     << "  verdict    what becomes of it\n";
  size_t counts[4] = {};
  for (const ConfigEntry &entry : result.entries) {
    os << padded(entry.path, keyWidth) << "  "
       << padded(entry.value, valueWidth) << "  "
       << padded(verdictName(entry.verdict), 9) << "  " << entry.becomes
       << '\n';
    ++counts[size_t(entry.verdict)];
  }
  os << llvm::formatv("{0}: {1} keys: {2} used, {3} mapped, {4} without "
                      "effect, {5} refused\n",
                      file, result.entries.size(), counts[0], counts[1],
                      counts[2], counts[3]);
}

//===----------------------------------------------------------------------===//
// All keys
//===----------------------------------------------------------------------===//

static std::string cell(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

static std::string verdictText(const ConfigKey &key) {
  std::string text = verdictName(key.verdict).str();
  if (key.verdict == ConfigVerdict::Refused && key.switched)
    return text + " if on";
  if (key.verdict == ConfigVerdict::Refused && *key.harmless) {
    std::string values;
    for (char c : StringRef(key.harmless))
      values += c == '|' ? std::string(", ") : std::string(1, c);
    return text + " unless " + values;
  }
  return text;
}

void mlir::zero::printKeyTable(llvm::raw_ostream &os) {
  os << "| key | value | DeepSpeed's default | verdict | what becomes of it "
        "|\n|---|---|---|---|---|\n";
  for (const ConfigKey &key : deepSpeedKeys()) {
    os << "| `" << key.path << '`';
    llvm::SmallVector<StringRef> aliases;
    StringRef(key.aliases).split(aliases, '|', -1, /*KeepEmpty=*/false);
    for (StringRef alias : aliases)
      os << ", `" << alias << '`';
    os << " | " << cell(keys::expectation(key)) << " | ";
    if (*key.defaultValue)
      os << '`' << key.defaultValue << '`';
    os << " | " << verdictText(key) << " | " << cell(key.note);
    if (*key.kinds) {
      std::string kinds;
      for (char c : StringRef(key.kinds))
        kinds += c == '|' ? std::string(", ") : std::string(1, c);
      os << " (" << kinds << ')';
    }
    os << " |\n";
  }
}
