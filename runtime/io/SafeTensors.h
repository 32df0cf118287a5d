//===- SafeTensors.h - Reader and writer of safetensors ---------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The safetensors format: 8 bytes of header length, a JSON header, the values.
// The reader refuses what the format's reference implementation refuses; the
// writer streams, so that the whole file never lies in memory.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_SAFETENSORS_H
#define ZERO_RUNTIME_IO_SAFETENSORS_H

#include "runtime/io/Files.h"
#include "runtime/io/TensorFile.h"

#include <map>

namespace zrt {

/// A mapped safetensors file. The header is untrusted: every offset is checked
/// before the constructor returns.
class SafeTensorsFile : public TensorFile {
public:
  /// Throws IoError.
  explicit SafeTensorsFile(const std::string &path)
      : SafeTensorsFile(std::make_unique<MappedFile>(path)) {}
  explicit SafeTensorsFile(std::unique_ptr<MappedFile> mapped);

  const uint8_t *data(std::string_view name) override;

  /// The free strings of "__metadata__".
  const std::map<std::string, std::string> &metadata() const {
    return metadataStrings;
  }

private:
  std::unique_ptr<MappedFile> file;
  std::map<std::string, uint64_t, std::less<>> offsets;
  std::map<std::string, std::string> metadataStrings;
};

/// What a header says. The values of tensor T are the bytes [offsets[T],
/// offsets[T] + infos[T].bytes) of the file.
struct SafeTensorsHeader {
  std::map<std::string, TensorInfo, std::less<>> infos;
  std::map<std::string, uint64_t, std::less<>> offsets;
  std::map<std::string, std::string> metadata;
};

/// Reads the header of an open file, without the values. Throws IoError like
/// SafeTensorsFile.
SafeTensorsHeader readSafeTensorsHeader(File &file);

/// The same for bytes that were read: `start` is all of a file of `fileBytes`
/// bytes that is before the values. `path` is for messages.
SafeTensorsHeader parseSafeTensorsHeader(const std::string &path,
                                         std::string_view start,
                                         uint64_t fileBytes);
/// The largest such start.
constexpr uint64_t maxSafeTensorsHeaderBytes = 8 + 100000000;

/// Writes a safetensors file: all tensors are declared first, then their
/// values follow in the same order, in pieces of any size.
class SafeTensorsWriter {
public:
  struct Tensor {
    std::string name;
    DataType type;
    std::vector<int64_t> shape;
  };

  /// Starts the file. Throws IoError (also for a name that is used twice or is
  /// not UTF-8).
  SafeTensorsWriter(const std::string &path, const std::vector<Tensor> &tensors,
                    const std::map<std::string, std::string> &metadata = {},
                    FileSystem &system = FileSystem::real());

  /// The bytes before the values, which lie one after the other: for a file
  /// that its owner writes. `valueBytes` are those of all values. `path` is for
  /// messages.
  static std::string header(const std::string &path,
                            const std::vector<Tensor> &tensors,
                            const std::map<std::string, std::string> &metadata,
                            uint64_t &valueBytes);

  /// Appends values of the tensors.
  void write(const void *data, size_t size);

  /// Makes the file appear under its name; throws IoError when values are
  /// missing.
  void commit();

private:
  AtomicFile file;
  uint64_t missing = 0;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_SAFETENSORS_H
