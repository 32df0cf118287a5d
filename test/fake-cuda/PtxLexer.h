//===- PtxLexer.h - Words of PTX ------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits PTX into words, numbers and marks. A word has the dots that it is
// written with: ".reg", "ld.global.L1::no_allocate.f32", "%tid.x".
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTXLEXER_H
#define ZERO_TEST_FAKECUDA_PTXLEXER_H

#include "test/fake-cuda/PtxSyntax.h"

namespace fake_cuda::ptx {

struct Token {
  enum Kind : uint8_t { End, Word, Integer, Float, Float32, String, Mark };
  Kind kind = End;
  std::string_view text;
  uint64_t bits = 0; // of a number
  uint32_t line = 1;

  bool is(std::string_view mark) const {
    return (kind == Mark || kind == Word) && text == mark;
  }
};

class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) { next(); }

  const Token &peek() const { return token; }
  /// The current token; moves behind it.
  Token take();
  bool takeIf(std::string_view mark);
  /// Throws Error unless the current token is `mark`.
  void expect(std::string_view mark);
  std::string_view expectWord(const char *what);
  uint64_t expectInteger(const char *what);
  /// The rest of the line, for directives without a semicolon.
  void skipLine();

  /// Start of the current token, and the end of the one before.
  size_t begin() const { return tokenBegin; }
  size_t end() const { return previousEnd; }
  std::string_view slice(size_t from, size_t to) const {
    return text.substr(from, to - from);
  }

  [[noreturn]] void fail(const std::string &what) const;

private:
  void next();
  void skipSpace();
  void lexNumber();
  void lexFloatBits(char kind);
  void lexDecimalFloat(size_t start);
  void lexString();

  std::string_view text;
  size_t at = 0;
  size_t tokenBegin = 0, previousEnd = 0;
  uint32_t line = 1;
  Token token;
};

} // namespace fake_cuda::ptx

#endif // ZERO_TEST_FAKECUDA_PTXLEXER_H
