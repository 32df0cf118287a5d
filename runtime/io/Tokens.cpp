//===- Tokens.cpp - Files of tokens ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Detection of the format, and what is said about files that are cut.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Tokens.h"

using namespace zrt;

static constexpr size_t headerWords = 256, headerBytes = 4 * headerWords;

namespace {
/// A format of llm.c.
struct Format {
  int64_t magic, version;
  DataType type;
};
} // namespace

static constexpr Format formats[] = {{20240520, 1, DataType::U16},
                                     {20240801, 7, DataType::U32}};

TokenFile::TokenFile(const std::string &path) : file(path) {
  first = file.data();
  size_t bytes = file.size();
  readHeader();
  if (hasHeader)
    bytes -= headerBytes;
  unsigned bits = bitWidth(tokenType);
  if (bytes % (bits / 8))
    throw IoError(path, "has " + std::to_string(bytes) +
                            (hasHeader ? " bytes after its header" : " bytes") +
                            ", which are no whole " + std::to_string(bits) +
                            "-bit tokens: the file is cut or of another kind");
  int64_t held = int64_t(bytes / (bits / 8));
  if (hasHeader && held != count)
    throw IoError(path, "has " + std::to_string(held) +
                            " tokens, its header says " +
                            std::to_string(count) +
                            ": the file is cut or has more behind it");
  count = held;
}

void TokenFile::readHeader() {
  auto word = [&](size_t index) {
    return integerAt(DataType::I32, file.data(), index);
  };
  const Format *format = nullptr;
  for (const Format &candidate : formats)
    if (file.size() >= 4 && word(0) == candidate.magic)
      format = &candidate;
  if (!format)
    return;
  hasHeader = true;
  tokenType = format->type;
  if (file.size() < headerBytes)
    throw IoError(path(), "begins as a token file of llm.c and has " +
                              std::to_string(file.size()) +
                              " bytes; the header alone has " +
                              std::to_string(headerBytes));
  if (word(1) != format->version)
    throw IoError(path(), "is a token file of llm.c of version " +
                              std::to_string(word(1)) + ", expected version " +
                              std::to_string(format->version));
  count = word(2);
  first += headerBytes;
}

std::string TokenFile::format() const {
  return std::string(hasHeader ? "llm.c" : "nanoGPT") + ", " +
         std::to_string(bitWidth(tokenType)) + "-bit";
}
