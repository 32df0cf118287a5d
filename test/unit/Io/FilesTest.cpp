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
#include <sys/stat.h>
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
