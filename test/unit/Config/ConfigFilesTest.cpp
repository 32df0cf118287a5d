//===- ConfigFilesTest.cpp - Configs as people have them ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each config in configs/ gives the table of verdicts beside it. With
// ZERO_UPDATE_EXPECTED=1 in the environment the tables are written instead.
//
//===----------------------------------------------------------------------===//

#include "Configs.h"

#include <cstdlib>

#include <gtest/gtest.h>

using namespace mlir::zero;

namespace {

class ConfigFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(ConfigFiles, GiveTheirTable) {
  std::string text =
      config_tests::readFile(config_tests::pathOf(GetParam(), ".json"));
  llvm::Expected<ConfigResult> result =
      readDeepSpeedConfig(text, config_tests::questionOf(text));
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  std::string table;
  llvm::raw_string_ostream os(table);
  printConfigResult(os, *result, GetParam() + ".json");
  for (const std::string &note : result->notes)
    os << "note: " << note << '\n';
  std::filesystem::path expected = config_tests::pathOf(GetParam(), ".txt");
  if (std::getenv("ZERO_UPDATE_EXPECTED"))
    std::ofstream(expected, std::ios::binary) << table;
  EXPECT_EQ(table, config_tests::readFile(expected));
}

INSTANTIATE_TEST_SUITE_P(All, ConfigFiles,
                         ::testing::ValuesIn(config_tests::names()),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
