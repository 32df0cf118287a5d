//===- CopyFileTest.cpp - Writing what lies in files ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes arrive, holes stay holes, and a file that shrinks on the way is an
// error.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/CopyFile.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::zero::onnx_import;
namespace fs = std::filesystem;

namespace {

constexpr size_t mebibyte = size_t(1) << 20;

class CopyFile : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "zero-copy-XXXXXX";
    folder = mkdtemp(pattern.data());
    out = open((folder / "out").c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_GE(out, 0);
  }
  void TearDown() override {
    close(out);
    fs::remove_all(folder);
  }
  /// A file of `size` with `text` at `at` and holes elsewhere.
  FileRef sparse(size_t size, size_t at, StringRef text) {
    std::ofstream(folder / "in", std::ios::binary).close();
    fs::resize_file(folder / "in", size);
    std::fstream file(folder / "in",
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file.write(text.data(), text.size());
    file.close();
    llvm::Expected<FileRef> mapped = mapFile((folder / "in").string());
    EXPECT_TRUE(bool(mapped));
    return *mapped;
  }
  std::string written() {
    std::ifstream file(folder / "out", std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  static ArrayRef<char> bytes(StringRef text) {
    return ArrayRef<char>(text.data(), text.size());
  }

  fs::path folder;
  int out = -1;
};

TEST_F(CopyFile, BytesComeInOrder) {
  FileRef file = sparse(mebibyte, 100, "middle");
  FileWriter writer(out);
  writer.write(bytes("head "));
  writer.copy(*file, file->bytes().slice(100, 6));
  writer.write(bytes(" tail"));
  EXPECT_FALSE(bool(writer.finish()));
  EXPECT_EQ(written(), "head middle tail");
}

TEST_F(CopyFile, HolesStayHoles) {
  FileRef file = sparse(64 * mebibyte, 20 * mebibyte, "data");
  FileWriter writer(out);
  writer.write(bytes("12345678"));
  writer.copy(*file, file->bytes());
  EXPECT_FALSE(bool(writer.finish()));
  struct stat info;
  ASSERT_EQ(fstat(out, &info), 0);
  EXPECT_EQ(size_t(info.st_size), 64 * mebibyte + 8);
  std::string content = written();
  EXPECT_EQ(content.substr(20 * mebibyte + 8, 4), "data");
  EXPECT_EQ(content.find_first_not_of('\0', 8), 20 * mebibyte + 8);
  EXPECT_EQ(content.find_first_not_of('\0', 20 * mebibyte + 12),
            std::string::npos);
  struct stat source;
  ASSERT_EQ(stat((folder / "in").c_str(), &source), 0);
  if (size_t(source.st_blocks) * 512 < mebibyte) // it knows holes
    EXPECT_LT(size_t(info.st_blocks) * 512, mebibyte);
}

TEST_F(CopyFile, AMappingWithoutDescriptorIsWritten) {
  FileRef file = sparse(20 * mebibyte, 9 * mebibyte, "data");
  void *data = mmap(nullptr, 20 * mebibyte, PROT_READ, MAP_PRIVATE,
                    file->descriptor(), 0);
  ASSERT_NE(data, MAP_FAILED);
  MappedFile closed(static_cast<const char *>(data), 20 * mebibyte, -1);
  FileWriter writer(out);
  writer.copy(closed, closed.bytes().drop_front(3));
  EXPECT_FALSE(bool(writer.finish()));
  EXPECT_EQ(written(),
            std::string(file->bytes().begin() + 3, file->bytes().end()));
}

TEST_F(CopyFile, AFileThatShrankIsAnError) {
  FileRef file = sparse(4 * mebibyte, 0, "data");
  fs::resize_file(folder / "in", mebibyte);
  FileWriter writer(out);
  writer.copy(*file, file->bytes());
  llvm::Error error = writer.finish();
  EXPECT_TRUE(bool(error));
  llvm::consumeError(std::move(error));
}

TEST_F(CopyFile, TheFirstErrorIsKept) {
  FileWriter writer(open("/dev/null", O_RDONLY));
  writer.write(bytes("x"));
  EXPECT_EQ(llvm::toString(writer.finish()), "Bad file descriptor");
}

} // namespace
