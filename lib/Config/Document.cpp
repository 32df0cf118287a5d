//===- Document.cpp - Configuration files as people write them ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A recursive parser with a bound on its depth.
//
//===----------------------------------------------------------------------===//

#include "zero/Config/Document.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <cstdlib>
#include <limits>

using namespace mlir::zero;
using llvm::StringRef;
using llvm::Twine;

using Kind = ConfigValue::Kind;

namespace {
/// Reads one file. The first mistake is kept; from then on all fails.
class Parser {
public:
  explicit Parser(StringRef text) : text(text) {}

  bool parseFile(ConfigValue &value);
  std::string takeError() { return std::move(error); }

private:
  bool fail(const Twine &message) { return failAt(at, message); }
  bool failAt(size_t place, const Twine &message);
  bool skipSpace();
  bool skipLine();
  bool skipBlock();
  bool eat(char c);
  std::string found() const;

  bool parseValue(ConfigValue &value, int depth);
  bool parseObject(ConfigValue &value, int depth);
  bool parseMember(ConfigValue &object, int depth);
  bool parseList(ConfigValue &value, int depth);
  bool parseText(std::string &result);
  bool parseEscape(std::string &result);
  bool parseHex(uint32_t &code);
  bool parseUnicode(std::string &result);
  bool parseNumber(ConfigValue &value);
  bool parseNonFinite(ConfigValue &value);
  bool parseWord(ConfigValue &value);

  StringRef text;
  size_t at = 0;
  unsigned line = 1;
  size_t lineStart = 0;
  std::string error;
};
} // namespace

bool Parser::failAt(size_t place, const Twine &message) {
  size_t column = place >= lineStart ? place - lineStart + 1 : 1;
  error = (Twine(line) + ":" + Twine(column) + ": " + message).str();
  return false;
}

bool Parser::skipLine() {
  while (at < text.size() && text[at] != '\n')
    ++at;
  return true;
}

bool Parser::skipBlock() {
  size_t begin = at;
  size_t end = text.find("*/", at + 2);
  if (end == StringRef::npos)
    return failAt(begin, "a comment begins with /* and does not end");
  for (; at < end + 2; ++at)
    if (text[at] == '\n') {
      ++line;
      lineStart = at + 1;
    }
  return true;
}

/// White space and comments.
bool Parser::skipSpace() {
  while (at < text.size()) {
    StringRef rest = text.substr(at);
    if (rest.front() == '\n') {
      ++line;
      lineStart = ++at;
    } else if (llvm::isSpace(rest.front())) {
      ++at;
    } else if (rest.starts_with("//") || rest.starts_with("#")) {
      skipLine();
    } else if (rest.starts_with("/*")) {
      if (!skipBlock())
        return false;
    } else {
      break;
    }
  }
  return true;
}

bool Parser::eat(char c) {
  if (at >= text.size() || text[at] != c)
    return false;
  ++at;
  return true;
}

/// What stands here, for messages.
std::string Parser::found() const {
  if (at >= text.size())
    return "the end of the file";
  StringRef word = text.substr(at).take_while(
      [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
  if (word.empty() && !llvm::isPrint(text[at]))
    return "byte " + std::to_string(static_cast<unsigned char>(text[at]));
  std::string shown =
      word.empty() ? text.substr(at, 1).str() : word.take_front(30).str();
  return "'" + shown + "'";
}

bool Parser::parseFile(ConfigValue &value) {
  text.consume_front("\xEF\xBB\xBF"); // some editors' mark of UTF-8
  if (!skipSpace())
    return false;
  if (at >= text.size() || text[at] != '{')
    return fail("found " + found() + "; expected {, a JSON object");
  if (!parseValue(value, 0) || !skipSpace())
    return false;
  if (at < text.size())
    return fail("found " + found() + " after the end of the object");
  return true;
}

bool Parser::parseValue(ConfigValue &value, int depth) {
  if (!skipSpace())
    return false;
  value.line = line;
  if (depth > kMaxConfigDepth)
    return fail("nested more than " + Twine(kMaxConfigDepth) + " deep");
  if (at >= text.size())
    return fail("found the end of the file; expected a value");
  char c = text[at];
  if (c == '{')
    return parseObject(value, depth);
  if (c == '[')
    return parseList(value, depth);
  if (c == '"') {
    value.kind = Kind::Text;
    return parseText(value.text);
  }
  if (parseNonFinite(value))
    return true;
  if (c == '-' || llvm::isDigit(c))
    return parseNumber(value);
  return parseWord(value);
}

bool Parser::parseMember(ConfigValue &object, int depth) {
  if (at >= text.size() || text[at] != '"')
    return fail("found " + found() + "; expected a key in double quotes");
  size_t begin = at;
  std::string name;
  if (!parseText(name))
    return false;
  if (const ConfigValue *other = object.find(name))
    return failAt(begin, "\"" + name + "\" stands twice; first on line " +
                             Twine(other->line));
  if (!skipSpace())
    return false;
  if (!eat(':'))
    return fail("found " + found() + "; expected : after the key \"" + name +
                "\"");
  ConfigValue value;
  if (!parseValue(value, depth + 1))
    return false;
  // Looking for a key twice is slow in large objects.
  if (object.members.size() >= kMaxConfigMembers)
    return failAt(begin, "more than " + Twine(kMaxConfigMembers) +
                             " keys in one object");
  object.members.emplace_back(std::move(name), std::move(value));
  return true;
}

bool Parser::parseObject(ConfigValue &value, int depth) {
  value.kind = Kind::Object;
  ++at;
  while (true) {
    if (!skipSpace())
      return false;
    if (eat('}'))
      return true;
    if (!parseMember(value, depth) || !skipSpace())
      return false;
    if (!eat(',') && (at >= text.size() || text[at] != '}'))
      return fail("found " + found() + "; expected , or }");
  }
}

bool Parser::parseList(ConfigValue &value, int depth) {
  value.kind = Kind::List;
  ++at;
  while (true) {
    if (!skipSpace())
      return false;
    if (eat(']'))
      return true;
    if (!parseValue(value.items.emplace_back(), depth + 1) || !skipSpace())
      return false;
    if (!eat(',') && (at >= text.size() || text[at] != ']'))
      return fail("found " + found() + "; expected , or ]");
  }
}

bool Parser::parseHex(uint32_t &code) {
  code = 0;
  StringRef digits = text.substr(at, 4);
  if (digits.size() < 4 || digits.getAsInteger(16, code))
    return fail("expected four hexadecimal digits after \\u");
  at += 4;
  return true;
}

/// After `\u`. Half of a pair becomes the replacement character.
bool Parser::parseUnicode(std::string &result) {
  uint32_t code;
  if (!parseHex(code))
    return false;
  if (code >= 0xD800 && code < 0xE000) {
    bool high = code < 0xDC00 && text.substr(at).starts_with("\\u");
    uint32_t low = 0;
    if (high) {
      at += 2;
      if (!parseHex(low))
        return false;
    }
    bool pair = high && low >= 0xDC00 && low < 0xE000;
    code = pair ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
  }
  char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
  char *end = bytes;
  llvm::ConvertCodePointToUTF8(code, end);
  result.append(bytes, end);
  return true;
}

bool Parser::parseEscape(std::string &result) {
  if (at >= text.size())
    return fail("a text does not end");
  char c = text[at++];
  static constexpr StringRef names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
  size_t index = names.find(c);
  if (index != StringRef::npos)
    result += values[index];
  else if (c == 'u')
    return parseUnicode(result);
  else
    return failAt(at - 1, "unknown escape in a text");
  return true;
}

bool Parser::parseText(std::string &result) {
  size_t begin = at++;
  while (at < text.size()) {
    unsigned char c = text[at];
    if (c == '"') {
      ++at;
      return true;
    }
    if (c < 0x20)
      return failAt(begin, "a text does not end on its line");
    ++at;
    if (c != '\\')
      result += char(c);
    else if (!parseEscape(result))
      return false;
  }
  return failAt(begin, "a text does not end");
}

bool Parser::parseNumber(ConfigValue &value) {
  size_t begin = at;
  StringRef digits = text.substr(at).take_while([](char c) {
    return llvm::isAlnum(c) || c == '.' || c == '+' || c == '-' || c == '_';
  });
  at += digits.size();
  value.kind = Kind::Number;
  value.text = digits.str();
  // StringRef's parser takes hexadecimal and words too, which JSON has not.
  bool plain = digits.find_first_not_of("0123456789+-.eE") == StringRef::npos;
  if (!plain || digits.getAsDouble(value.number, /*AllowInexact=*/true))
    return failAt(begin, "'" + digits.take_front(30) + "' is no number");
  if (!std::isfinite(value.number))
    return failAt(begin,
                  "the number " + digits.take_front(30) + " is out of range");
  return true;
}

/// What Python's json writes, and DeepSpeed reads, for numbers that JSON has
/// not. Without a match nothing fails.
bool Parser::parseNonFinite(ConfigValue &value) {
  double infinity = std::numeric_limits<double>::infinity();
  for (auto [word, number] :
       {std::pair<StringRef, double>{"Infinity", infinity},
        {"-Infinity", -infinity},
        {"NaN", std::nan("")}}) {
    StringRef rest = text.substr(at);
    if (!rest.consume_front(word) ||
        (!rest.empty() && (llvm::isAlnum(rest.front()) || rest.front() == '_')))
      continue;
    value.kind = Kind::Number;
    value.number = number;
    value.text = word.str();
    at += word.size();
    return true;
  }
  return false;
}

bool Parser::parseWord(ConfigValue &value) {
  for (StringRef word : {"true", "false", "null"}) {
    StringRef rest = text.substr(at);
    if (rest.consume_front(word) &&
        (rest.empty() || !llvm::isAlnum(rest.front()))) {
      value.kind = word == "null" ? Kind::Null : Kind::Bool;
      value.boolean = word == "true";
      at += word.size();
      return true;
    }
  }
  std::string hint;
  for (auto [python, json] : {std::pair<StringRef, StringRef>{"True", "true"},
                              {"False", "false"},
                              {"None", "null"}})
    if (text.substr(at).starts_with(python))
      hint = "; JSON has " + json.str();
  return fail("found " + found() + "; expected a value" + hint);
}

const ConfigValue *ConfigValue::find(StringRef name) const {
  for (const auto &[key, value] : members)
    if (key == name)
      return &value;
  return nullptr;
}

static void printTo(const ConfigValue &value, std::string &out, size_t width) {
  if (out.size() > width)
    return;
  llvm::raw_string_ostream os(out);
  switch (value.kind) {
  case Kind::Null:
    os << "null";
    break;
  case Kind::Bool:
    os << (value.boolean ? "true" : "false");
    break;
  case Kind::Number:
    os << value.text;
    break;
  case Kind::Text:
    os << llvm::json::Value(value.text);
    break;
  case Kind::List:
    os << '[';
    for (size_t i = 0; i < value.items.size(); ++i) {
      os << (i ? ", " : "");
      printTo(value.items[i], out, width);
    }
    os << ']';
    break;
  case Kind::Object:
    os << (value.members.empty() ? "{}" : "{...}");
    break;
  }
}

std::string ConfigValue::print(size_t width) const {
  std::string out;
  printTo(*this, out, width);
  if (out.size() <= width)
    return out;
  // Not in the middle of a character of several bytes.
  size_t end = width - 3;
  while (end && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80)
    --end;
  return out.substr(0, end) + "...";
}

llvm::Expected<ConfigValue> mlir::zero::parseConfig(StringRef text) {
  auto wrong = [](const Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  if (text.size() > kMaxConfigBytes)
    return wrong("1:1: the file has " + Twine(text.size()) +
                 " bytes; a config has at most " + Twine(kMaxConfigBytes));
  size_t bad = 0;
  if (!llvm::json::isUTF8(text, &bad))
    return wrong("1:1: byte " + Twine(bad) + " is not UTF-8; expected text");
  Parser parser(text);
  ConfigValue value;
  if (!parser.parseFile(value))
    return wrong(parser.takeError());
  return value;
}
