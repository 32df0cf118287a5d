//===- CopyFile.h - Writing what lies in files -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a file front to back from memory and from parts of other files, which
// do not pass through memory of this process where the system can copy them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_COPYFILE_H
#define ZERO_LIB_IMPORT_COPYFILE_H

#include "lib/Import/FileAccess.h"

namespace mlir::zero::onnx_import {

/// Writes to an empty regular file. The first error stops all that follows.
class FileWriter {
public:
  explicit FileWriter(int fd) : fd(fd) {}

  void write(ArrayRef<char> bytes);
  /// Writes `part`, which lies in `file`; its holes stay holes.
  void copy(const MappedFile &file, ArrayRef<char> part);
  /// Gives the file its length. The first error, if there was one.
  llvm::Error finish();

private:
  void copyData(const MappedFile &file, ArrayRef<char> part);
  bool copyInKernel(const MappedFile &file, ArrayRef<char> &part);
  void skip(size_t size);

  int fd;
  /// Where the next byte goes.
  uint64_t position = 0;
  /// Whether the last bytes are a hole that only a length makes.
  bool endsInHole = false;
  int error = 0;
};

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_COPYFILE_H
