//===- DiskArena.h - Memory that lies in a file -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The disk space of one rank: a private file of a fixed size that has no name,
// so that it is gone when the process ends, however that happens. Reads and
// writes are cut into pieces, several of which are under way at a time, past
// the page cache where the file system can do that.
//
// Each block has a checksum (XXH3, 64 bits) in memory, taken when it is written
// and compared when it is read, beside the transfers of other pieces: 8 bytes
// for every 4096 on disk.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_DISKARENA_H
#define ZERO_RUNTIME_IO_DISKARENA_H

#include "runtime/io/FileSystem.h"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace zrt {

struct DiskArenaOptions {
  /// Past the page cache, if the file system can.
  bool direct = true;
  /// Through the system's queue, if it has one.
  bool queue = true;
  bool checksums = true;
  unsigned depth = 16;         ///< transfers under way, each way
  size_t pieceBytes = 1 << 20; ///< of a transfer; whole blocks
};

/// Throws IoError. Reading and writing may go on at the same time, from two
/// threads or more, at different places.
class DiskArena {
public:
  /// What is read, written and checked as one; memory that is aligned to it
  /// needs no copy on the way.
  static constexpr uint64_t blockBytes = 4096;

  /// A file of `bytes` bytes in the folder at `path`; `what` is its name in
  /// messages. All zeros.
  DiskArena(const std::string &path, uint64_t bytes, const std::string &what,
            const DiskArenaOptions &options = {},
            FileSystem &system = FileSystem::real());
  ~DiskArena();
  DiskArena(DiskArena &&) = delete;
  DiskArena &operator=(DiskArena &&) = delete;

  uint64_t bytes() const { return arenaBytes; }
  /// "io_uring, O_DIRECT", or what else and why.
  std::string access() const;

  void read(uint64_t offset, void *data, uint64_t bytes);
  void write(uint64_t offset, const void *data, uint64_t bytes);
  /// The same; what follows in the last block is nobody's and becomes zeros,
  /// which saves a read of that block.
  void writeToBlockEnd(uint64_t offset, const void *data, uint64_t bytes);
  /// All bytes become `value`: 0 or 0xFF. Costs nothing for whole blocks.
  void fill(uint64_t offset, uint64_t bytes, uint8_t value);

private:
  struct Piece;
  class Lane;

  void open(FileSystem::Handle folder, FileSystem &system);
  void makeRoom(FileSystem::Handle folder);
  void writeZeros();
  void check(uint64_t offset, uint64_t bytes) const;
  void write(uint64_t offset, const void *data, uint64_t bytes, bool toEnd);
  [[noreturn]] void fail(const char *verb, uint64_t offset, uint64_t bytes,
                         const std::string &reason) const;

  FileSystem &system;
  const DiskArenaOptions options;
  std::string name; // for messages
  uint64_t arenaBytes;
  FileSystem::Handle file = -1;
  std::string notDirect, notQueued; // why not; empty: is
  /// By block: its checksum, or what it is known to hold.
  std::vector<uint64_t> marks;
  std::unique_ptr<Lane> reader, writer;
};

/// Throws IoError where the folder at `path` cannot be used, or its file system
/// has less than `bytes` bytes free; the message has `what` for.
void checkDiskRoom(const std::string &path, uint64_t bytes,
                   const std::string &what,
                   FileSystem &system = FileSystem::real());

} // namespace zrt

#endif // ZERO_RUNTIME_IO_DISKARENA_H
