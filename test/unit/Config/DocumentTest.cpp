//===- DocumentTest.cpp - Tests of the parser of configs ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JSON as people write it, and the line that each mistake gives.
//
//===----------------------------------------------------------------------===//

#include "zero/Config/Document.h"

#include <gtest/gtest.h>

using namespace mlir::zero;

using Kind = ConfigValue::Kind;

namespace {

std::string errorOf(llvm::StringRef text) {
  llvm::Expected<ConfigValue> value = parseConfig(text);
  return value ? "" : llvm::toString(value.takeError());
}

TEST(Document, ReadsWhatPeopleWrite) {
  llvm::Expected<ConfigValue> value =
      parseConfig("\xEF\xBB\xBF// first\n"
                  "{ # second\n"
                  "  \"a\": 5e8, /* third\n"
                  "  \"gone\": 1 */\n"
                  "  \"b\": [true, null, -0.5,],\n"
                  "  \"c\": {\"d\": \"x//y # z\"},\n"
                  "}\n// last");
  ASSERT_TRUE(bool(value)) << llvm::toString(value.takeError());
  ASSERT_EQ(value->members.size(), 3u);
  EXPECT_EQ(value->find("a")->number, 5e8);
  EXPECT_EQ(value->find("a")->text, "5e8");
  EXPECT_EQ(value->find("a")->line, 3u);
  EXPECT_EQ(value->find("b")->line, 5u);
  ASSERT_EQ(value->find("b")->items.size(), 3u);
  EXPECT_EQ(value->find("b")->items[0].kind, Kind::Bool);
  EXPECT_EQ(value->find("b")->items[1].kind, Kind::Null);
  EXPECT_EQ(value->find("b")->items[2].number, -0.5);
  EXPECT_EQ(value->find("c")->find("d")->text, "x//y # z");
  EXPECT_EQ(value->find("gone"), nullptr);
}

TEST(Document, Escapes) {
  llvm::Expected<ConfigValue> value = parseConfig(
      R"({"t": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 \ud83d \udc00"})");
  ASSERT_TRUE(bool(value)) << llvm::toString(value.takeError());
  EXPECT_EQ(
      value->find("t")->text,
      "\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80 \xEF\xBF\xBD \xEF\xBF\xBD");
}

TEST(Document, Prints) {
  llvm::Expected<ConfigValue> value = parseConfig(
      R"({"a": [1e-3, true, null, "x\n"], "b": {}, "c": {"d": 1},
          "e": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})");
  ASSERT_TRUE(bool(value));
  EXPECT_EQ(value->find("a")->print(), R"([1e-3, true, null, "x\n"])");
  EXPECT_EQ(value->find("b")->print(), "{}");
  EXPECT_EQ(value->find("c")->print(), "{...}");
  EXPECT_EQ(value->find("e")->print(10), "\"aaaaaa...");
}

TEST(Document, MistakesAreOneLine) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "1:1: found the end of the file; expected {, a JSON object"},
      {"[1]", "1:1: found '['; expected {, a JSON object"},
      {"eyJhIjogMX0=", "1:1: found 'eyJhIjogMX0'; expected {, a JSON object"},
      {"{", "1:2: found the end of the file; expected a key in double quotes"},
      {"{a: 1}", "1:2: found 'a'; expected a key in double quotes"},
      {"{\"a\" 1}", "1:6: found '1'; expected : after the key \"a\""},
      {"{\"a\":", "1:6: found the end of the file; expected a value"},
      {"{\"a\": True}", "1:7: found 'True'; expected a value; JSON has true"},
      {"{\"a\": None}", "1:7: found 'None'; expected a value; JSON has null"},
      {"{\"a\": \x01}", "1:7: found byte 1; expected a value"},
      {"{\"a\": nan}", "1:7: found 'nan'; expected a value"},
      {"{\"a\": trueish}", "1:7: found 'trueish'; expected a value"},
      {"{\"a\": 1 \"b\": 2}", "1:9: found '\"'; expected , or }"},
      {"{\"a\": [1 2]}", "1:10: found '2'; expected , or ]"},
      {"{\"a\": [1,", "1:10: found the end of the file; expected a value"},
      {"{\"a\": 1}\n{", "2:1: found '{' after the end of the object"},
      {"{\"a\": 1,\n \"b\": 2,\n \"a\": 3}",
       "3:2: \"a\" stands twice; first on line 1"},
      {"{\"a\": \"x\ny\"}", "1:7: a text does not end on its line"},
      {"{\"a\": \"x", "1:7: a text does not end"},
      {"{\"a\": \"\\q\"}", "1:9: unknown escape in a text"},
      {"{\"a\": \"\\u12x4\"}",
       "1:10: expected four hexadecimal digits after \\u"},
      {"{\"a\": \"\\", "1:9: a text does not end"},
      {"/* {}", "1:1: a comment begins with /* and does not end"},
      {"{\"a\": 0x10}", "1:7: '0x10' is no number"},
      {"{\"a\": 1_000}", "1:7: '1_000' is no number"},
      {"{\"a\": 1-2}", "1:7: '1-2' is no number"},
      {"{\"a\": 1e999}", "1:7: the number 1e999 is out of range"},
      {"{\"a\": \"\xFF\"}", "1:1: byte 7 is not UTF-8; expected text"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_EQ(errorOf(text), message) << text;
}

TEST(Document, Bounds) {
  std::string deep;
  for (int i = 0; i < 33; ++i)
    deep += "{\"a\":";
  EXPECT_EQ(errorOf(deep + "1" + std::string(33, '}')),
            "1:166: nested more than 32 deep");
  // A parser without a bound would run out of stack.
  EXPECT_EQ(errorOf("{\"a\":" + std::string(500000, '[')),
            "1:38: nested more than 32 deep");
  std::string wide = "{";
  for (int i = 0; i < 5000; ++i)
    wide += "\"" + std::to_string(i) + "\":1,";
  EXPECT_NE(errorOf(wide + "}").find("more than 4096 keys in one object"),
            std::string::npos);
  EXPECT_EQ(errorOf(std::string(2 << 20, ' ')),
            "1:1: the file has 2097152 bytes; a config has at most 1048576");
}

} // namespace
