//===- Tokens.h - Files of tokens -------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The streams of tokens that people train language models on, all little
// endian:
//   nanoGPT (data/*/prepare.py)        16-bit tokens, no header
//   llm.c (dev/data/data_common.py)    256 32-bit integers, of which the first
//     three are a magic number, the version and the number of tokens; then
//     16-bit tokens (magic 20240520, version 1: GPT-2) or 32-bit tokens (magic
//     20240801, version 7: Llama 3)
// A file that begins with one of the magic numbers is one of llm.c: as 16-bit
// tokens these would be 55432 and 55713, which no vocabulary of GPT-2 has.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_TOKENS_H
#define ZERO_RUNTIME_IO_TOKENS_H

#include "runtime/io/DataType.h"
#include "runtime/io/Files.h"

namespace zrt {

class TokenFile {
public:
  /// Maps the file and checks its header and size. Throws IoError.
  explicit TokenFile(const std::string &path);

  const std::string &path() const { return file.path(); }
  /// U16 or U32.
  DataType type() const { return tokenType; }
  int64_t size() const { return count; }

  const uint8_t *data() const { return first; }

  /// "llm.c, 32-bit", for messages.
  std::string format() const;

private:
  void readHeader();

  MappedFile file;
  DataType tokenType = DataType::U16;
  const uint8_t *first = nullptr;
  int64_t count = 0;
  bool hasHeader = false;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_TOKENS_H
