//===- FilesTest.cpp - Tests of mapped and atomic files -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Atomic files leave either the old or the whole new content.
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"
#include "runtime/io/TensorFile.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;

namespace {

class Files : public FileTest {};

TEST_F(Files, AtomicFileAppearsOnCommit) {
  put("f", "old");
  {
    AtomicFile file(in("f"));
    file.write("new");
    EXPECT_EQ(get("f"), "old");
    file.commit();
    EXPECT_EQ(get("f"), "new");
  }
  EXPECT_EQ(get("f"), "new");
  EXPECT_EQ(numFiles(), 1u);
}

TEST_F(Files, AtomicFileWithoutCommitLeavesNothing) {
  { AtomicFile(in("f")).write("new"); }
  EXPECT_EQ(numFiles(), 0u);
}

TEST_F(Files, AtomicFileHasOrdinaryRights) {
  mode_t mask = umask(022);
  AtomicFile file(in("f"));
  file.commit();
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat(in("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST_F(Files, AtomicFileNamesTheFolderThatIsMissing) {
  EXPECT_EQ(errorOf([&] { AtomicFile file(in("no/f")); }),
            "f: cannot create: No such file or directory");
}

TEST_F(Files, AtomicFileWritesToAPipeAndLeavesItOne) {
  ASSERT_EQ(mkfifo(in("pipe").c_str(), 0600), 0);
  int reader = open(in("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  AtomicFile file(in("pipe"));
  file.write("new");
  file.commit();
  char text[4] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 3);
  EXPECT_STREQ(text, "new");
  close(reader);
  struct stat info;
  ASSERT_EQ(stat(in("pipe").c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
  EXPECT_EQ(numFiles(), 1u);
}

TEST_F(Files, OutputsAreNotInputs) {
  put("data", "x");
  ASSERT_EQ(symlink("data", in("link").c_str()), 0);
  refuseOverwrite(in("new"), {in("data"), ""});
  refuseOverwrite("", {in("data")});
  EXPECT_THROW(refuseOverwrite(in("link"), {"", in("data")}), IoError);
}

TEST_F(Files, OutputsAreNotEachOther) {
  put("data", "x");
  ASSERT_EQ(symlink("data", in("link").c_str()), 0);
  std::filesystem::create_directory(in("folder"));
  auto same = [&](const OutputPath &a, const OutputPath &b) {
    return errorOf([&] { refuseSameOutput({{"--x", ""}, a, b}); });
  };
  auto clash = [&](const std::string &a, const std::string &b) {
    return same({"--a", in(a)}, {"--b", in(b)}) != "";
  };
  EXPECT_EQ(same({"--a", in("new")}, {"--b", in("new")}),
            "new: is written by both --a and --b; give each its own file");
  EXPECT_TRUE(clash("new", "folder/../new"));
  EXPECT_TRUE(clash("no/new", "no/new"));
  EXPECT_TRUE(clash("data", "link"));
  EXPECT_FALSE(clash("new", "other"));
  EXPECT_FALSE(clash("new", "data"));
  EXPECT_FALSE(clash("new", "folder/new"));
  EXPECT_EQ(same({"--a", "/dev/null"}, {"--b", "/dev/null"}), "");
  for (const char *name : {"folder", "new"}) {
    EXPECT_NE(same({"--a", in(name), true}, {"--b", in(name)}), "");
    EXPECT_EQ(same({"--a", in(name), true}, {"--b", in(name), true}), "");
  }
}

TEST_F(Files, AFileSizeLimitIsAnError) {
  pid_t child = fork();
  if (!child) {
    reportFileSizeLimit();
    struct rlimit limit = {4, 4};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string error = errorOf([&] {
      AtomicFile file(in("large"));
      file.write("12345678");
      file.commit();
    });
    _exit(error == "large: cannot write: File too large" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(numFiles(), 0u);
}

TEST_F(Files, MappedFileWantsARegularFile) {
  ASSERT_EQ(mkfifo(in("pipe").c_str(), 0600), 0);
  EXPECT_EQ(errorOf([&] { MappedFile file(in("pipe")); }),
            "pipe: not a regular file");
  EXPECT_EQ(MappedFile(put("empty", "")).size(), 0u);
}

TEST_F(Files, TensorFilesAreToldApartByContent) {
  EXPECT_TRUE(
      openTensorFile(put("a.npz", safetensors("{}")))->tensors().empty());
  EXPECT_NE(errorOf([&] {
              openTensorFile(
                  put("a", std::string("PK\3\4") + std::string(30, 0)));
            }).find("npz archive"),
            std::string::npos);
}

} // namespace
