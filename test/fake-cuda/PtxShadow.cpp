//===- PtxShadow.cpp - Who touched which bytes in a launch ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxShadow.h"

#include <algorithm>

using namespace fake_cuda::ptx;

// A mark packs an accessor: atomic:1, warp epoch:7, epoch:20, thread:11,
// block + 1:25. Epochs wrap: what is 2^20 barriers apart and untouched between
// is told apart by nothing, which no test comes near.
static constexpr unsigned kBlockBits = 25, kThreadBits = 11, kEpochBits = 20,
                          kWarpEpochBits = 7;
// Readers: 0 to 1023 is a thread, 1024 + w several lanes of warp w.
static constexpr uint64_t kManyLanes = 1024, kLanes = 32;
static constexpr uint64_t kManyThreads = (1u << kThreadBits) - 1;
static constexpr uint64_t kManyBlocks = (1u << kBlockBits) - 1;

static uint64_t blockOf(uint64_t mark) { return mark & kManyBlocks; }
static uint64_t threadOf(uint64_t mark) {
  return mark >> kBlockBits & kManyThreads;
}
static uint64_t epochOf(uint64_t mark) {
  return mark >> (kBlockBits + kThreadBits) & ((1u << kEpochBits) - 1);
}
static uint64_t warpEpochOf(uint64_t mark) {
  return mark >> (kBlockBits + kThreadBits + kEpochBits) &
         ((1u << kWarpEpochBits) - 1);
}
/// kManyThreads: of several warps.
static uint64_t warpOf(uint64_t mark) {
  uint64_t thread = threadOf(mark);
  if (thread == kManyThreads)
    return thread;
  return thread < kManyLanes ? thread / kLanes : thread - kManyLanes;
}
static bool isAtomic(uint64_t mark) { return mark >> 63; }

static uint64_t markOf(const Accessor &accessor) {
  uint64_t epochs = accessor.epoch & ((1u << kEpochBits) - 1);
  epochs |= uint64_t(accessor.warpEpoch & ((1u << kWarpEpochBits) - 1))
            << kEpochBits;
  return (uint64_t(accessor.block) + 1) |
         uint64_t(accessor.thread) << kBlockBits |
         epochs << (kBlockBits + kThreadBits) |
         uint64_t(accessor.isAtomic) << 63;
}

/// Whether an earlier access of another thread is ordered by no barrier.
bool Shadow::conflicts(uint64_t other, uint64_t mine) const {
  if (other == 0 || (isAtomic(other) && isAtomic(mine)))
    return false;
  if (blockOf(other) != blockOf(mine))
    return blocksRace;
  if (threadOf(other) == threadOf(mine) || epochOf(other) != epochOf(mine))
    return false;
  return warpOf(other) != warpOf(mine) ||
         warpEpochOf(other) == warpEpochOf(mine);
}

/// The readers so far and one more.
static uint64_t joinReaders(uint64_t readers, uint64_t mine,
                            bool blocksMatter) {
  if (readers == 0)
    return mine;
  if (blockOf(readers) != blockOf(mine))
    return blocksMatter ? kManyBlocks | kManyThreads << kBlockBits : mine;
  if (epochOf(readers) != epochOf(mine) || threadOf(readers) == threadOf(mine))
    return mine;
  // Of those in other warps a barrier of this warp says nothing.
  uint64_t who = kManyThreads;
  if (warpOf(readers) == warpOf(mine)) {
    if (warpEpochOf(readers) != warpEpochOf(mine))
      return mine;
    who = kManyLanes + warpOf(mine);
  }
  uint64_t both = (mine & ~(kManyThreads << kBlockBits)) | who << kBlockBits;
  return isAtomic(readers) ? both : both & ~(uint64_t(1) << 63);
}

/// The quick way: nobody else has touched the cell. False: not known.
inline bool Shadow::touchOwn(Cell &cell, uint64_t mine, bool isWrite) const {
  constexpr uint64_t who = kManyBlocks | kManyThreads << kBlockBits;
  if (cell.write ? (cell.write ^ mine) & who : kind == Shared && !isWrite)
    return false;
  if (cell.read && (cell.read ^ mine) & who)
    return false;
  (isWrite ? cell.write : cell.read) = mine;
  return true;
}

Shadow::Conflict Shadow::touch(Cell &cell, uint64_t mine, bool isWrite) const {
  Conflict conflict;
  uint64_t other = 0;
  if (conflicts(cell.write, mine)) {
    other = cell.write;
    conflict.otherWrote = true;
  } else if (isWrite && conflicts(cell.read, mine)) {
    other = cell.read;
  }
  if (other) {
    conflict.what = Conflict::Race;
    conflict.otherIsKnown =
        threadOf(other) < kManyLanes && blockOf(other) != kManyBlocks;
    conflict.block = blockOf(other) - 1;
    conflict.thread = threadOf(other);
  } else if (kind == Shared && !isWrite &&
             blockOf(cell.write) != blockOf(mine)) {
    conflict.what = Conflict::NeverWritten;
  }
  if (isWrite)
    cell.write = mine;
  else
    cell.read = joinReaders(cell.read, mine, kind == Global);
  return conflict;
}

void Shadow::refine(Page &page, unsigned shift) {
  std::vector<Cell> cells(kPageBytes >> shift);
  for (size_t i = 0; i < cells.size(); ++i)
    cells[i] = page.cells[i >> (page.shift - shift)];
  page.cells = std::move(cells);
  page.shift = shift;
}

Shadow::Page &Shadow::pageOf(uint64_t address) {
  uint64_t number = address / kPageBytes;
  Recent &last = recent[number % recent.size()];
  if (number == last.number)
    return *last.page;
  auto &page = pages[number];
  if (!page) {
    page = std::make_unique<Page>();
    page->cells.resize(kPageBytes >> page->shift);
  }
  last = {number, page.get()};
  return *page;
}

std::vector<std::pair<uint64_t, uint64_t>> Shadow::ranges(bool written) const {
  std::vector<uint64_t> numbers;
  for (const auto &entry : pages)
    numbers.push_back(entry.first);
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::pair<uint64_t, uint64_t>> found;
  for (uint64_t number : numbers) {
    const Page &page = *pages.at(number);
    if (!(written ? page.isWritten : page.isRead))
      continue;
    for (size_t i = 0; i < page.cells.size(); ++i) {
      if (!(written ? page.cells[i].write : page.cells[i].read))
        continue;
      uint64_t begin = number * kPageBytes + (i << page.shift);
      uint64_t end = begin + (uint64_t(1) << page.shift);
      if (!found.empty() && found.back().second == begin)
        found.back().second = end;
      else
        found.push_back({begin, end});
    }
  }
  return found;
}

Shadow::Conflict Shadow::access(Accessor accessor, uint64_t address,
                                uint32_t bytes, uint32_t count) {
  unsigned shift = bytes % 4 == 0 && address % 4 == 0   ? 2
                   : bytes % 2 == 0 && address % 2 == 0 ? 1
                                                        : 0;
  uint64_t mine = markOf(accessor);
  uint64_t end = address + uint64_t(bytes) * count;
  uint64_t mineEnd = address + bytes;
  while (address < end) {
    Page &page = pageOf(address);
    if (page.shift > shift)
      refine(page, shift);
    (accessor.isWrite ? page.isWritten : page.isRead) = true;
    uint64_t stop = std::min(end, (address / kPageBytes + 1) * kPageBytes);
    uint64_t step = uint64_t(1) << page.shift;
    Cell *cell = &page.cells[address % kPageBytes >> page.shift];
    for (; address < stop; address += step, ++cell) {
      if (address >= mineEnd) {
        mine += uint64_t(1) << kBlockBits;
        mineEnd += bytes;
      }
      if (touchOwn(*cell, mine, accessor.isWrite))
        continue;
      Conflict conflict = touch(*cell, mine, accessor.isWrite);
      if (conflict.what != Conflict::None) {
        conflict.address = address;
        return conflict;
      }
    }
  }
  return Conflict();
}
