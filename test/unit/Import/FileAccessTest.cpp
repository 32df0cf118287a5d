//===- FileAccessTest.cpp - External data files ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What may be opened below a model's folder. test/Import/hostile-files.test
// tries the same through zero-import; here is the way for kernels without
// openat2, and that a file is mapped once.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/FileAccess.h"

#include "gtest/gtest.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>

using namespace mlir::zero::onnx_import;
namespace fs = std::filesystem;

namespace {

class FileAccess : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "zero-import-XXXXXX";
    folder = mkdtemp(pattern.data());
    fs::create_directories(folder / "model/sub");
    write("model/w.bin");
    write("model/sub/w.bin");
    write("outside.bin");
    fs::create_symlink("w.bin", folder / "model/link.bin");
    fs::create_symlink("../outside.bin", folder / "model/out.bin");
    fs::create_directory_symlink("sub", folder / "model/linkdir");
    dir = open((folder / "model").c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_GE(dir, 0);
  }
  void TearDown() override {
    close(dir);
    fs::remove_all(folder);
  }
  void write(const char *name) { std::ofstream(folder / name) << "12345678"; }

  /// Whether the walk opens `name`.
  bool opens(llvm::StringRef name) {
    int fd = walkBeneath(dir, name);
    if (fd >= 0)
      close(fd);
    return fd >= 0;
  }

  fs::path folder;
  int dir = -1;
};

TEST_F(FileAccess, WalkOpensWhatLiesBelow) {
  EXPECT_TRUE(opens("w.bin"));
  EXPECT_TRUE(opens("sub/w.bin"));
  EXPECT_TRUE(opens("./sub//w.bin"));
}

TEST_F(FileAccess, WalkFollowsNoLink) {
  EXPECT_FALSE(opens("link.bin"));
  EXPECT_EQ(errno, ELOOP);
  EXPECT_FALSE(opens("out.bin"));
  EXPECT_FALSE(opens("linkdir/w.bin"));
}

TEST_F(FileAccess, WalkSaysWhatIsMissing) {
  EXPECT_FALSE(opens("no.bin"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(opens("w.bin/x"));
  EXPECT_EQ(errno, ENOTDIR);
  EXPECT_FALSE(opens(""));
}

TEST_F(FileAccess, NamesAreCheckedBeforeTheyAreOpened) {
  ExternalFiles files((folder / "model/m.onnx").string());
  for (llvm::StringRef name : {"", "/etc/passwd", "../outside.bin",
                               "sub/../../outside.bin", "linkdir/w.bin"}) {
    llvm::Expected<FileRef> file = files.get(name);
    EXPECT_FALSE(bool(file)) << name.str();
    llvm::consumeError(file.takeError());
  }
}

TEST_F(FileAccess, EachFileIsMappedOnce) {
  ExternalFiles files((folder / "model/m.onnx").string());
  llvm::Expected<FileRef> first = files.get("w.bin");
  ASSERT_TRUE(bool(first));
  EXPECT_EQ((*first)->bytes().size(), 8u);
  llvm::Expected<FileRef> second = files.get("w.bin");
  ASSERT_TRUE(bool(second));
  EXPECT_EQ(*first, *second);
}

/// GHSA-q56x-g2fj-4rj6: a file that is exchanged between check and use. What is
/// mapped is what was checked, at whatever moment a link takes its place.
TEST_F(FileAccess, AnExchangedFileIsNotFollowed) {
  fs::path name = folder / "model/swap.bin", next = folder / "model/next";
  std::ofstream(folder / "outside.bin") << "OUTSIDE!";
  std::atomic<bool> stop = false;
  std::thread other([&] {
    for (unsigned i = 0; !stop; ++i) {
      if (i % 2)
        fs::create_symlink("../outside.bin", next);
      else
        std::ofstream(next) << "12345678";
      fs::rename(next, name);
    }
  });
  unsigned opened = 0, refused = 0;
  // On a busy machine the other thread may be still for some time.
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!(opened > 200 && refused > 200) &&
         std::chrono::steady_clock::now() < end) {
    ExternalFiles files((folder / "model/m.onnx").string());
    llvm::Expected<FileRef> file = files.get("swap.bin");
    if (!file) {
      llvm::consumeError(file.takeError());
      ++refused;
      continue;
    }
    llvm::ArrayRef<char> bytes = (*file)->bytes();
    EXPECT_NE(llvm::StringRef(bytes.data(), bytes.size()), "OUTSIDE!");
    ++opened;
  }
  stop = true;
  other.join();
  EXPECT_GT(opened, 0u);
  EXPECT_GT(refused, 0u);
}

} // namespace
