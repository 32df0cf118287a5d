//===- FileAccess.h - Opening files that a model names ---------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Read-only mappings of files. The model itself is named by the user and is
// opened as given; external data is named by the model, which may be hostile,
// so it is opened relative to the model's folder, never through a link, and
// the checks are made on the opened file, not on its name.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_FILEACCESS_H
#define ZERO_LIB_IMPORT_FILEACCESS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace mlir::zero::onnx_import {

/// A whole file mapped for reading.
class MappedFile {
public:
  /// Owns the mapping and `fd`, which may be -1.
  MappedFile(const char *data, size_t size, int fd)
      : data(data), size(size), fd(fd) {}
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  ArrayRef<char> bytes() const { return ArrayRef<char>(data, size); }
  /// The opened file, or -1: not every large model's files can stay open.
  int descriptor() const { return fd; }
  /// Copies `part`, a few bytes, without making what lies around it resident.
  void read(ArrayRef<char> part, char *to) const;
  /// Takes the pages that lie in `part` out of the resident set; they come
  /// back when they are read.
  void release(ArrayRef<char> part) const;

private:
  const char *data;
  size_t size;
  int fd;
};

using FileRef = std::shared_ptr<MappedFile>;

/// Maps the regular file at `path`.
llvm::Expected<FileRef> mapFile(StringRef path);

/// Opens `name` below the folder `dir` one component at a time, refusing links:
/// what stands in for openat2 where the kernel lacks it. Returns -1 and sets
/// errno on failure.
int walkBeneath(int dir, StringRef name);

/// The external data files of one model, each mapped once.
class ExternalFiles {
public:
  /// `modelPath` is the model whose folder the names are relative to.
  explicit ExternalFiles(StringRef modelPath);
  /// Maps `name`, refusing names and files that leave the folder, pass
  /// through a symbolic link, have a second hard link or are not regular.
  llvm::Expected<FileRef> get(StringRef name);

  ~ExternalFiles();
  ExternalFiles(const ExternalFiles &) = delete;
  ExternalFiles &operator=(const ExternalFiles &) = delete;

private:
  std::string folder;
  /// The folder, opened when it is first needed.
  int dir = -1;
  llvm::StringMap<FileRef> files;
};

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_FILEACCESS_H
