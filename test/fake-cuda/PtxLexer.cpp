//===- PtxLexer.cpp - Words of PTX ----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxLexer.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

using namespace fake_cuda::ptx;

static bool isWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

void Lexer::fail(const std::string &what) const {
  std::string found = token.kind == Token::End
                          ? "the end of the text"
                          : "'" + std::string(token.text) + "'";
  throw Error("PTX line " + std::to_string(token.line) + ": expected " + what +
              ", found " + found);
}

Token Lexer::take() {
  Token taken = token;
  previousEnd = at;
  next();
  return taken;
}

bool Lexer::takeIf(std::string_view mark) {
  if (!token.is(mark))
    return false;
  take();
  return true;
}

void Lexer::expect(std::string_view mark) {
  if (!takeIf(mark))
    fail("'" + std::string(mark) + "'");
}

std::string_view Lexer::expectWord(const char *what) {
  if (token.kind != Token::Word)
    fail(what);
  return take().text;
}

uint64_t Lexer::expectInteger(const char *what) {
  if (token.kind != Token::Integer)
    fail(what);
  return take().bits;
}

void Lexer::skipLine() {
  at = tokenBegin;
  while (at < text.size() && text[at] != '\n')
    ++at;
  previousEnd = at;
  next();
}

void Lexer::skipSpace() {
  while (at < text.size()) {
    if (text[at] == '\n')
      ++line;
    if (std::isspace(static_cast<unsigned char>(text[at])) || !text[at]) {
      ++at;
    } else if (text.compare(at, 2, "//") == 0) {
      while (at < text.size() && text[at] != '\n')
        ++at;
    } else if (text.compare(at, 2, "/*") == 0) {
      size_t close = std::min(text.find("*/", at + 2), text.size());
      for (; at < close; ++at)
        line += text[at] == '\n';
      at = std::min(close + 2, text.size());
    } else {
      return;
    }
  }
}

void Lexer::next() {
  skipSpace();
  tokenBegin = at;
  token = Token();
  token.line = line;
  if (at == text.size())
    return;
  char c = text[at];
  char after = at + 1 < text.size() ? text[at + 1] : '\0';
  if (std::isdigit(static_cast<unsigned char>(c)))
    return lexNumber();
  if (c == '"')
    return lexString();
  if (!isWordChar(c) || (c == '.' && !isWordChar(after))) {
    token.kind = Token::Mark;
    token.text = text.substr(at++, 1);
    return;
  }
  token.kind = Token::Word;
  while (at < text.size()) {
    if (isWordChar(text[at]))
      ++at;
    else if (text.compare(at, 2, "::") == 0)
      at += 2;
    else
      break;
  }
  token.text = text.substr(tokenBegin, at - tokenBegin);
}

void Lexer::lexString() {
  size_t close = text.find('"', at + 1);
  token.kind = Token::String;
  if (close == std::string_view::npos) {
    token.text = text.substr(at, 1);
    fail("a closing quote");
  }
  token.text = text.substr(at + 1, close - at - 1);
  at = close + 1;
}

/// 0f3F800000 and 0d3FF0000000000000: the bits themselves.
void Lexer::lexFloatBits(char kind) {
  size_t digits = kind == 'f' ? 8 : 16;
  token.text = text.substr(at, 2 + digits);
  for (char c : token.text.substr(2))
    if (!std::isxdigit(static_cast<unsigned char>(c)))
      fail("hexadecimal digits of a number");
  if (token.text.size() != 2 + digits)
    fail("hexadecimal digits of a number");
  token.kind = kind == 'f' ? Token::Float32 : Token::Float;
  token.bits =
      std::strtoull(std::string(token.text.substr(2)).c_str(), nullptr, 16);
  at += 2 + digits;
}

void Lexer::lexDecimalFloat(size_t start) {
  std::string digits(text.substr(start, 64));
  char *stop = nullptr;
  double value = std::strtod(digits.c_str(), &stop);
  at = start + (stop - digits.c_str());
  token.kind = Token::Float;
  token.text = text.substr(start, at - start);
  std::memcpy(&token.bits, &value, sizeof value);
}

void Lexer::lexNumber() {
  size_t start = at;
  char second = at + 1 < text.size() ? std::tolower(text[at + 1]) : '\0';
  if (text[at] == '0' && (second == 'f' || second == 'd'))
    return lexFloatBits(second);
  int base = 10;
  if (text[at] == '0' && (second == 'x' || second == 'b')) {
    base = second == 'x' ? 16 : 2;
    at += 2;
  } else if (text[at] == '0') {
    base = 8;
  }
  size_t digits = at;
  while (at < text.size() &&
         std::isxdigit(static_cast<unsigned char>(text[at])))
    ++at;
  // A decimal exponent looks like a digit of base 16.
  if (base != 16 && at < text.size() && text[at] == '.')
    return lexDecimalFloat(start);
  token.kind = Token::Integer;
  token.text = text.substr(start, at - start);
  std::string value(text.substr(digits, at - digits));
  char *stop = nullptr;
  token.bits = std::strtoull(value.c_str(), &stop, base);
  if (*stop && (*stop == 'e' || *stop == 'E') && base != 16)
    return lexDecimalFloat(start);
  if (*stop || value.empty())
    fail("a number");
  if (at < text.size() && text[at] == 'U')
    ++at;
}
