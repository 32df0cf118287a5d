//===- PtxShadow.h - Who touched which bytes in a launch ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds data races of a launch: two threads, one of them writing, with no
// barrier of the block (or of the warp) between them; threads of different
// blocks have none ever. Accesses that are atomic do not race with each other.
//
// A cell of memory keeps its last write and its last read (or that there were
// several). It stands for 4 bytes, in a page with smaller accesses for less.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTXSHADOW_H
#define ZERO_TEST_FAKECUDA_PTXSHADOW_H

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace fake_cuda::ptx {

/// Who accesses, and when: epochs count the barriers passed.
struct Accessor {
  uint32_t block = 0;
  uint32_t thread = 0;
  uint32_t epoch = 0;
  uint32_t warpEpoch = 0;
  bool isWrite = false;
  bool isAtomic = false;
};

class Shadow {
public:
  enum Kind : uint8_t { Global, Shared };
  explicit Shadow(Kind kind) : kind(kind), blocksRace(kind == Global) {}

  struct Conflict {
    enum What : uint8_t { None, Race, NeverWritten };
    What what = None;
    bool otherWrote = false;
    bool otherIsKnown = false; // false: one of several readers
    uint32_t block = 0, thread = 0;
    uint64_t address = 0;
  };

  /// Notes the accesses of `count` threads with consecutive numbers to `bytes`
  /// each, one behind the other from `address` on. The first conflict.
  Conflict access(Accessor accessor, uint64_t address, uint32_t bytes,
                  uint32_t count);

  /// What was read or written, byte by byte: sorted, disjoint and not adjacent.
  std::vector<std::pair<uint64_t, uint64_t>> ranges(bool written) const;

  /// From now on, blocks do not race with each other.
  void ignoreBlocks() { blocksRace = false; }

private:
  static constexpr uint64_t kPageBytes = 4096;
  struct Cell {
    uint64_t write = 0, read = 0;
  };
  struct Page {
    std::vector<Cell> cells;
    unsigned shift = 2;
    bool isRead = false, isWritten = false;
  };

  Page &pageOf(uint64_t address);
  static void refine(Page &page, unsigned shift);
  bool conflicts(uint64_t other, uint64_t mine) const;
  bool touchOwn(Cell &cell, uint64_t mine, bool isWrite) const;
  Conflict touch(Cell &cell, uint64_t mine, bool isWrite) const;

  Kind kind;
  bool blocksRace;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  /// The pages used last, by the lowest bits of their numbers.
  struct Recent {
    uint64_t number = ~uint64_t(0);
    Page *page = nullptr;
  };
  std::array<Recent, 256> recent;
};

} // namespace fake_cuda::ptx

#endif // ZERO_TEST_FAKECUDA_PTXSHADOW_H
