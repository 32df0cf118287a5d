//===- TensorFile.h - Files of named tensors --------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One view of the files that hold named tensors (safetensors, NumPy's .npz):
// names, types and shapes, and the bytes of each tensor as read-only memory.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_TENSORFILE_H
#define ZERO_RUNTIME_IO_TENSORFILE_H

#include "runtime/io/DataType.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace zrt {

/// What a file says about a tensor.
struct TensorInfo {
  DataType type;
  std::vector<int64_t> shape;
  /// Bytes of the values.
  uint64_t bytes;
};

class TensorFile {
public:
  virtual ~TensorFile();

  const std::string &path() const { return filePath; }

  /// All tensors by name.
  const std::map<std::string, TensorInfo, std::less<>> &tensors() const {
    return infos;
  }

  /// The tensor with that name, or null.
  const TensorInfo *find(std::string_view name) const;

  /// Its values, row-major and little-endian, not necessarily aligned; valid
  /// as long as the file object. Throws IoError for an unknown name or bytes
  /// that cannot be decoded.
  virtual const uint8_t *data(std::string_view name) = 0;

protected:
  explicit TensorFile(std::string path) : filePath(std::move(path)) {}
  [[noreturn]] void unknownTensor(std::string_view name) const;

  std::string filePath;
  std::map<std::string, TensorInfo, std::less<>> infos;
};

/// Opens a .safetensors or .npz file, told apart by content. Throws IoError.
std::unique_ptr<TensorFile> openTensorFile(const std::string &path);

} // namespace zrt

#endif // ZERO_RUNTIME_IO_TENSORFILE_H
