//===- DiskLane.h - One way between memory and a file -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keeps several pieces of a read or write under way and finishes or repeats
// each: what is the same both ways, below DiskArena.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_DISKLANE_H
#define ZERO_RUNTIME_IO_DISKLANE_H

#include "runtime/io/DiskArena.h"

#include <cstdlib>
#include <functional>

namespace zrt {

/// Whole blocks of the file, of which a part is the caller's.
struct DiskArena::Piece {
  uint64_t offset = 0, bytes = 0;
  uint64_t skip = 0, used = 0; ///< the caller's bytes in it
  uint8_t *user = nullptr;     ///< where those are in memory

  /// Its memory is the caller's own.
  bool isPlain() const {
    return skip == 0 && used == bytes && uintptr_t(user) % blockBytes == 0;
  }
};

class DiskArena::Lane {
public:
  Lane(FileSystem &system, const DiskArenaOptions &options, bool write);

  /// Why there is no queue; empty where there is.
  const std::string &refusal() const { return reason; }

  /// What happens to a piece, beside the transfer of others.
  struct Steps {
    /// The next piece, until there is none.
    std::function<bool(Piece &piece)> next;
    /// Writing: the piece's memory is to be filled (where it is not the
    /// caller's own), and is about to be written.
    std::function<void(const Piece &piece, uint8_t *memory)> before;
    /// Reading: the piece has arrived.
    std::function<void(const Piece &piece, uint8_t *memory)> after;
    /// Does not return.
    std::function<void(const Piece &piece, const std::string &reason)> fail;
  };
  void run(FileSystem::Handle file, const Steps &steps);

private:
  struct Free {
    void operator()(uint8_t *memory) const { std::free(memory); }
  };
  struct Slot {
    Piece piece;
    uint8_t *memory = nullptr;
    uint64_t done = 0;
    int repeats = 0;
    std::unique_ptr<uint8_t, Free> own;
    uint64_t ownBytes = 0;
  };
  void ensureQueue();
  void runAll(FileSystem::Handle file, const Steps &steps);
  void start(Slot &slot, FileSystem::Handle file, const Steps &steps);
  void begin(Slot &slot, FileSystem::Handle file, const Steps &steps);
  bool advance(Slot &slot, int64_t result, const Steps &steps);
  uint8_t *ownMemory(Slot &slot);

  FileSystem &system;
  const DiskArenaOptions options;
  const bool write;
  std::mutex mutex; // one transfer at a time each way
  std::string reason;
  std::unique_ptr<TransferQueue> queue;
  std::vector<Slot> slots;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_DISKLANE_H
