//===- NcclRoom.h - Memory that the ranks of a communicator share ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks may be threads or processes: they meet in a file in memory that only
// the identifier of the communicator leads to. Its creator keeps it open; it is
// gone with the last process that has it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_NCCLROOM_H
#define ZERO_TEST_FAKECUDA_NCCLROOM_H

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace fake_cuda {

constexpr int kMaxRanks = 32;
constexpr int kMaxCommunicators = 64;
constexpr int kMaxSplits = 64;
constexpr uint64_t kSlotBytes = uint64_t(1) << 30;

/// What a rank calls; ranks compare theirs.
struct Call {
  int32_t op, type, reduction, root;
  uint64_t count;
};

/// What a rank says in a split.
struct SplitEntry {
  std::atomic<int32_t> said; ///< 1: color and key are there
  int32_t color, key;
  std::atomic<int32_t> room; ///< 1 + number of the new communicator
};

/// A communicator's part of the file. Zero at first.
struct Board {
  std::atomic<uint64_t> joined[kMaxRanks]; ///< 1 + number of ranks it expects
  std::atomic<uint64_t> finalized[kMaxRanks];
  std::atomic<uint64_t> published[kMaxRanks]; ///< operations, with their data
  std::atomic<uint64_t> finished[kMaxRanks];  ///< operations, read from all
  Call calls[kMaxRanks];                      ///< of the operation published
  SplitEntry splits[kMaxSplits][kMaxRanks];
};

/// The file, as one rank sees it.
class Room {
public:
  /// A new file, and the identifier that leads to it. Null: `error` says why.
  static bool create(ncclUniqueId &id, std::string &error);
  static std::shared_ptr<Room> open(const ncclUniqueId &id, std::string &error);
  ~Room();
  Room(const Room &) = delete;
  Room &operator=(const Room &) = delete;

  Board &board(int communicator) { return boards()[communicator]; }
  /// A number that no communicator has; kMaxCommunicators and more: there are
  /// too many.
  int newCommunicator();
  /// Data of a rank: kSlotBytes, mapped when they are first asked for.
  char *slot(int communicator, int rank);

private:
  explicit Room(int file) : file(file) {}
  Board *boards();

  int file;
  char *control = nullptr;
  std::atomic<char *> slots[kMaxCommunicators][kMaxRanks] = {};
};

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_NCCLROOM_H
