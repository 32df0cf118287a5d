//===- Files.h - Errors, mapped files, atomic writes ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every reader and writer of the runtime shares: the error they throw, a
// read-only memory map, and a file that appears under its name only once it is
// complete and on disk.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_FILES_H
#define ZERO_RUNTIME_IO_FILES_H

#include "runtime/io/FileSystem.h"

#include <optional>
#include <stdexcept>

namespace zrt {

/// A file that cannot be read, written or trusted; the text is one line that
/// starts with the file's name.
class IoError : public std::runtime_error {
public:
  IoError(const std::string &path, const std::string &message)
      : std::runtime_error(path + ": " + message) {}
};

/// The whole of a regular file, mapped read-only. Throws IoError. Nobody may
/// shorten the file while it is mapped.
class MappedFile {
public:
  explicit MappedFile(const std::string &path) : MappedFile(File::open(path)) {}
  /// An open file of the real file system.
  explicit MappedFile(const File &file);
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  const std::string &path() const { return filePath; }
  const uint8_t *data() const { return bytes; }
  size_t size() const { return length; }

private:
  std::string filePath;
  const uint8_t *bytes = nullptr;
  size_t length = 0;
};

/// Writes to a temporary file beside `path`; commit() syncs it and renames it
/// over `path`, so that a reader sees the old file or the whole new one,
/// whatever happens in between. Without commit() nothing is left behind. A
/// device or pipe is written to directly, never replaced.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path,
                      FileSystem &system = FileSystem::real());
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  ~AtomicFile();

  void write(const void *data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();
  const std::string &path() const { return finalPath; }

private:
  void createTemporary();
  void openDevice();

  FileSystem &system;
  std::string finalPath;
  std::string temporaryPath; // empty: nothing to rename or remove
  std::optional<File> file;
  int device = -1; // written to in place of a file
};

/// Throws IoError if `output` is the same file as one of `inputs`: writing it
/// would destroy what is read. Empty names are skipped.
void refuseOverwrite(const std::string &output,
                     const std::vector<std::string> &inputs);

/// A file that a run writes, or a folder for several, and what names it.
struct OutputPath {
  std::string flag, path;
  bool folder = false;
};

/// Throws IoError if two are the same file or one's file is another's folder:
/// the later would destroy the earlier. Devices and pipes may be shared.
void refuseSameOutput(const std::vector<OutputPath> &outputs);

/// A file that grows beyond the limit of the process (ulimit -f) is an error
/// of the write from now on, as a full disk is, and no longer the silent end of
/// the process.
void reportFileSizeLimit();

} // namespace zrt

#endif // ZERO_RUNTIME_IO_FILES_H
