//===- TemporaryFolderTest.cpp - Tests of temporary folders ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The folder goes away with the object and with the process.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/TemporaryFolder.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

using namespace zero_tools;

namespace {

class TemporaryFolderTest : public ::testing::Test {
protected:
  TemporaryFolderTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "zero-test-XXXXXX").string();
    root = mkdtemp(pattern.data());
    if (const char *old = std::getenv("TMPDIR"))
      oldRoot = old;
    setenv("TMPDIR", root.c_str(), 1);
  }
  ~TemporaryFolderTest() override {
    if (oldRoot)
      setenv("TMPDIR", oldRoot->c_str(), 1);
    else
      unsetenv("TMPDIR");
    std::filesystem::remove_all(root);
  }

  static void fill(const TemporaryFolder &folder) {
    for (int i = 0; i < 300; ++i)
      std::ofstream(folder.path() + "/file" + std::to_string(i)) << i;
  }

  std::string root;
  std::optional<std::string> oldRoot;
};

TEST_F(TemporaryFolderTest, IsPrivateAndGoesWithTheObject) {
  {
    TemporaryFolder folder;
    fill(folder);
    EXPECT_EQ(std::filesystem::status(folder.path()).permissions(),
              std::filesystem::perms::owner_all);
    EXPECT_EQ(folder.path().compare(0, root.size(), root), 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(root));
}

TEST_F(TemporaryFolderTest, GoesWithTheProcess) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGABRT}) {
    pid_t child = fork();
    if (!child) {
      TemporaryFolder folder;
      fill(folder);
      raise(signal);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << signal;
    EXPECT_TRUE(std::filesystem::is_empty(root)) << signal;
  }
}

TEST_F(TemporaryFolderTest, NamesTheRootThatIsMissing) {
  setenv("TMPDIR", (root + "/no").c_str(), 1);
  try {
    TemporaryFolder folder;
    FAIL() << "made " << folder.path();
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find("No such file"),
              std::string::npos);
  }
}

} // namespace
