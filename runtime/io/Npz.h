//===- Npz.h - Reader of NumPy archives -------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NumPy's .npz: a zip archive (stored or deflated members) of .npy arrays, as
// numpy.savez and numpy.savez_compressed write it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_NPZ_H
#define ZERO_RUNTIME_IO_NPZ_H

#include "runtime/io/Files.h"
#include "runtime/io/TensorFile.h"

namespace zrt {

/// A mapped .npz file; the tensor names are the member names without ".npy".
/// The archive is untrusted: sizes are checked against the file before memory
/// is allocated, and checksums before values are used.
class NpzFile : public TensorFile {
public:
  /// Throws IoError.
  explicit NpzFile(const std::string &path)
      : NpzFile(std::make_unique<MappedFile>(path)) {}
  explicit NpzFile(std::unique_ptr<MappedFile> mapped);

  const uint8_t *data(std::string_view name) override;

private:
  struct Member {
    const uint8_t *stored = nullptr; // points into the file
    uint64_t storedBytes = 0, bytes = 0;
    uint32_t checksum = 0;
    bool deflated = false, verified = false;
    std::vector<uint8_t> inflated;
    size_t headerBytes = 0; // of the .npy header before the values
  };

  void readDirectory();
  void addMember(uint64_t directoryOffset, uint64_t &next);
  void locate(Member &member, uint64_t offset, const std::string &name);
  void addTensor(const std::string &name, Member member);
  [[noreturn]] void fail(const std::string &message) const;

  std::unique_ptr<MappedFile> file;
  std::map<std::string, Member, std::less<>> members;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_NPZ_H
