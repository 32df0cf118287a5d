//===- PluginTest.cpp - Libraries that are loaded when used ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Plugin.h"
#include "runtime/core/Error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace zrt;
using testing::HasSubstr;

static std::string errorOf(const Plugin &plugin, const char *function) {
  try {
    findInPlugin(plugin, function);
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ZRT_ERROR_TARGET);
    return error.what();
  }
  return "";
}

// The types of a plugin of another version are not those of this program.
TEST(Plugin, OfAnotherVersionIsRefused) {
  EXPECT_THAT(
      errorOf({"libzrt-other-version.so", "the test's plugin"},
              "zrt_some_function"),
      HasSubstr("the test's plugin is of another version than this program"));
}

TEST(Plugin, MissingIsSaidWithItsName) {
  EXPECT_THAT(errorOf({"libzrt-missing.so", "the test's plugin"}, "f"),
              HasSubstr("the test's plugin cannot be loaded: "));
}
