//===- FlagsTest.cpp - Tests of command line flags ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values of each kind, and the line that each mistake gives.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Flags.h"

#include <gtest/gtest.h>

using namespace zero_tools;

namespace {

class FlagsTest : public ::testing::Test {
protected:
  FlagsTest() {
    flags.text("--name", &name, "NAME", "a text");
    flags.list("--item", &items, "ITEM", "a list");
    flags.integer("--count", &count, 1, 8, "N", "a number");
    flags.integer("--size", &size, 0, INT64_MAX, "N", "a number");
    flags.number("--rate", &rate, 0, "R", "a fraction");
    flags.toggle("--on", &on, "a switch");
    flags.unavailable("--later", true);
    flags.unavailable("--soon", false);
  }

  std::optional<std::vector<std::string>> parse(std::vector<std::string> args) {
    std::vector<char *> argv = {const_cast<char *>("tool")};
    for (std::string &arg : args)
      argv.push_back(arg.data());
    return flags.parse(int(argv.size()), argv.data());
  }

  std::string errorOf(std::vector<std::string> args) {
    try {
      parse(std::move(args));
    } catch (const FlagError &error) {
      return error.what();
    }
    return "";
  }

  Flags flags{"usage: tool"};
  std::string name;
  std::vector<std::string> items;
  std::optional<int64_t> count, size;
  std::optional<double> rate;
  bool on = false;
};

TEST_F(FlagsTest, SetsValues) {
  auto others = parse({"a", "--name", "x=y", "--item=1", "--count=8", "--on",
                       "--item", "2", "--rate", "1e-3", "b", "-"});
  EXPECT_EQ(*others, (std::vector<std::string>{"a", "b", "-"}));
  EXPECT_EQ(name, "x=y");
  EXPECT_EQ(items, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(count, 8);
  EXPECT_EQ(rate, 1e-3);
  EXPECT_TRUE(on);
  EXPECT_FALSE(size);
  EXPECT_TRUE(flags.given("--item"));
  EXPECT_FALSE(flags.given("--size"));
}

TEST_F(FlagsTest, HelpListsWhatIsThere) {
  ::testing::internal::CaptureStdout();
  EXPECT_FALSE(parse({"--count", "2", "--help"}));
  std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("usage: tool\n"), text.npos);
  EXPECT_NE(text.find("  --count N               a number\n"), text.npos);
  EXPECT_EQ(text.find("--later"), text.npos);
}

TEST_F(FlagsTest, MistakesAreOneLine) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--nme", "x"}, "unknown flag --nme, see --help"},
      {{"-x"}, "unknown flag -x, see --help"},
      {{"--name"}, "--name needs a value"},
      {{"--name", ""}, "--name has an empty value"},
      {{"--on=1"}, "--on takes no value"},
      {{"--name", "a", "--name", "b"}, "--name is given twice"},
      {{"--count", "0"}, "--count '0': expected a whole number from 1 to 8"},
      {{"--count", "9"}, "--count '9': expected a whole number from 1 to 8"},
      {{"--count", "1x"}, "--count '1x': expected a whole number from 1 to 8"},
      {{"--count="}, "--count has an empty value"},
      {{"--count", "99999999999999999999"},
       "--count '99999999999999999999': expected a whole number from 1 to 8"},
      {{"--size", "-1"}, "--size '-1': expected a whole number of at least 0"},
      {{"--rate", "-1"}, "--rate '-1': expected a number of at least 0"},
      {{"--rate", "nan"}, "--rate 'nan': expected a number of at least 0"},
      {{"--rate", "inf"}, "--rate 'inf': expected a number of at least 0"},
      {{"--rate", "1e39"},
       "--rate '1e39' is outside the range of f32, 1.4e-45 to 3.4e38"},
      {{"--rate", "1e999"},
       "--rate '1e999' is outside the range of f32, 1.4e-45 to 3.4e38"},
      {{"--rate", "1e-46"},
       "--rate '1e-46' is outside the range of f32, 1.4e-45 to 3.4e38"},
      {{"--later", "x"}, "not available yet: --later"},
      {{"--later=x"}, "not available yet: --later"},
      {{"--soon"}, "not available yet: --soon"},
  };
  for (const auto &[args, message] : cases)
    EXPECT_EQ(errorOf(args), message);
}

TEST(ParsePair, WantsTwoNumbers) {
  EXPECT_EQ(parsePair("--betas", "0.9,0.95"), std::make_pair(0.9, 0.95));
  for (const char *text : {"", "0.9", "0.9,", ",1", "1,2,3", "a,b"})
    EXPECT_THROW(parsePair("--betas", text), FlagError) << text;
}

} // namespace
