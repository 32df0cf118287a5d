//===- HostileTest.cpp - Damaged configs ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each config cut at every byte, with bytes changed, and with values of each
// type in each place, is read or refused in lines.
//
//===----------------------------------------------------------------------===//

#include "Configs.h"

#include <random>

#include <gtest/gtest.h>

using namespace mlir::zero;

namespace {

/// Reads `text` both ways; all that comes of it is lines. Returns whether it
/// was a config.
bool readTwice(llvm::StringRef text, ConfigQuestion question) {
  bool valid = true;
  for (bool complete : {false, true}) {
    question.complete = complete;
    llvm::Expected<ConfigResult> result = readDeepSpeedConfig(text, question);
    if (!result) {
      std::string line = llvm::toString(result.takeError());
      EXPECT_EQ(line.find('\n'), line.npos) << line;
      valid = false;
      continue;
    }
    std::string table;
    llvm::raw_string_ostream os(table);
    printConfigResult(os, *result, "f");
    EXPECT_EQ(size_t(std::count(table.begin(), table.end(), '\n')),
              result->entries.size() + 2);
  }
  return valid;
}

TEST(Hostile, CutAnywhere) {
  size_t read = 0;
  for (const std::string &name : config_tests::names()) {
    std::string text =
        config_tests::readFile(config_tests::pathOf(name, ".json"));
    ConfigQuestion question = config_tests::questionOf(text);
    size_t end = text.find_last_of('}');
    for (size_t size = 0; size < end; size += 3)
      EXPECT_FALSE(readTwice(llvm::StringRef(text).take_front(size), question))
          << name << " cut after " << size;
    read += readTwice(text, question);
  }
  EXPECT_EQ(read, config_tests::names().size());
}

TEST(Hostile, ChangedBytes) {
  std::mt19937 random(7);
  for (const std::string &name : config_tests::names()) {
    std::string whole =
        config_tests::readFile(config_tests::pathOf(name, ".json"));
    ConfigQuestion question = config_tests::questionOf(whole);
    for (int round = 0; round < 300; ++round) {
      std::string text = whole;
      for (unsigned change = random() % 4 + 1; change; --change) {
        size_t at = random() % text.size();
        static const char chars[] = "{}[]\",:0-9.eE#/*\\\n\0\x7f\xff_ta";
        switch (random() % 3) {
        case 0:
          text[at] = chars[random() % (sizeof(chars) - 1)];
          break;
        case 1:
          text.erase(at, random() % 8 + 1);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 16));
        }
        if (text.empty())
          break;
      }
      readTwice(text, question);
    }
  }
}

/// `"a": {"b": VALUE}` for the path a.b.
std::string wrapped(llvm::StringRef path, const std::string &value) {
  auto [section, name] = path.split('.');
  std::string text = "{\"" + section.str() + "\": ";
  return text + (name.empty() ? value : wrapped(name, value)) + "}";
}

TEST(Hostile, EveryValueInEveryPlace) {
  const char *values[] = {"null",
                          "true",
                          "false",
                          "0",
                          "-1",
                          "0.5",
                          "1e9",
                          "1e308",
                          "-1e308",
                          "1e-320",
                          "9223372036854775807",
                          "9223372036854775808",
                          "\"\"",
                          "\"auto\"",
                          "\"x\"",
                          "\"fp16\"",
                          "[]",
                          "[1,2]",
                          "[[]]",
                          "{}",
                          "{\"x\":1}",
                          "[\"auto\"]"};
  ConfigQuestion question;
  question.flags.ranks = 4;
  for (const ConfigKey &key : deepSpeedKeys())
    for (const char *value : values)
      EXPECT_TRUE(readTwice(wrapped(key.path, value), question)) << key.path;
}

/// Hints of near names do not take minutes.
TEST(Hostile, ManyStrangers) {
  std::string text = "{", inner = "{";
  for (int i = 0; i < 4000; ++i)
    inner += "\"stage_of_key_" + std::to_string(i) + "\": 1,";
  for (const char *section : {"zero_optimization", "fp16", "bf16", "compile",
                              "aio", "checkpoint", "tensorboard"})
    text += "\"" + std::string(section) + "\": " + inner + "},";
  EXPECT_TRUE(readTwice(text + "}", {}));
}

TEST(Hostile, NamesThatAreNoNames) {
  for (const char *name : {"", ".", "a.b", "optimizer.type", "..", "|", "auto",
                           "\\u0000", "</script>", "\\ud83d\\ude00", "a\\nb"})
    EXPECT_TRUE(readTwice(std::string("{\"") + name + "\": 1, \"fp16\": {\"" +
                              name + "\": {}}}",
                          {}));
  EXPECT_TRUE(readTwice("{\"" + std::string(100000, 'x') + "\": 1}", {}));
}

} // namespace
