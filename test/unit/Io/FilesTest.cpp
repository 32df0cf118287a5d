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

#include <sys/stat.h>

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
