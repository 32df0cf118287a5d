//===- TestFiles.h - Folders and files of a test ----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A temporary folder for the files of a test, and shorthands to make and to
// refuse them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_IO_TESTFILES_H
#define ZERO_TEST_UNIT_IO_TESTFILES_H

#include "runtime/io/Files.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace zrt::test {

/// A folder of its own for each test.
class FileTest : public ::testing::Test {
protected:
  FileTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "zero-io-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~FileTest() override { std::filesystem::remove_all(folder); }

  std::string in(const std::string &name) const { return folder + "/" + name; }

  std::string put(const std::string &name, const std::string &bytes) const {
    std::ofstream(in(name), std::ios::binary) << bytes;
    return in(name);
  }

  std::string get(const std::string &name) const {
    std::ifstream file(in(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Number of entries of the folder.
  size_t numFiles() const {
    return std::distance(std::filesystem::directory_iterator(folder),
                         std::filesystem::directory_iterator());
  }

  std::string folder;
};

/// The message of the IoError that `action` throws, without the folder of the
/// file; "" when it throws none.
template <typename Action>
std::string errorOf(Action action) {
  try {
    action();
  } catch (const IoError &error) {
    std::string text = error.what();
    size_t colon = text.find(": ");
    size_t slash = text.rfind('/', colon);
    return slash == text.npos ? text : text.substr(slash + 1);
  }
  return "";
}

/// Bytes of a list of numbers.
template <typename T>
std::string bytesOf(std::vector<T> values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

/// `value` as N little-endian bytes.
inline std::string little(uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = 0; i < bytes; ++i)
    text += char(value >> (8 * i));
  return text;
}

/// A safetensors file of that header and that many or those bytes of values.
inline std::string safetensors(const std::string &header,
                               const std::string &values = "") {
  return little(header.size(), 8) + header + values;
}
inline std::string safetensors(const std::string &header, size_t values) {
  return safetensors(header, std::string(values, '\0'));
}

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_IO_TESTFILES_H
