//===- Shadow.cpp - Who touched which bytes last --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Shadow.h"

#include <algorithm>

using namespace fake_cuda;

/// Makes a cell begin at `offset` if one spans it. The first cell that begins
/// there or after.
Shadow::Cells::iterator Shadow::split(uint64_t offset) {
  auto next = cells.lower_bound(offset);
  if (next == cells.begin())
    return next;
  auto cell = std::prev(next);
  if (cell->second.end <= offset)
    return next;
  Cell right = cell->second;
  cell->second.end = offset;
  return cells.emplace_hint(next, offset, std::move(right));
}

/// The conflict of a cell with an access, if they are not ordered.
static std::optional<Race> conflict(uint64_t begin, uint64_t end,
                                    const Epoch &lastWrite,
                                    const std::vector<Epoch> &reads, bool write,
                                    const Clock &clock) {
  if (!clock.covers(lastWrite))
    return Race{begin, end, true, lastWrite};
  if (write)
    for (const Epoch &read : reads)
      if (!clock.covers(read))
        return Race{begin, end, false, read};
  return std::nullopt;
}

/// A read that all later ones come after need not be remembered.
static void addRead(std::vector<Epoch> &reads, const Clock &clock,
                    const Epoch &self) {
  reads.erase(
      std::remove_if(reads.begin(), reads.end(),
                     [&](const Epoch &read) { return clock.covers(read); }),
      reads.end());
  reads.push_back(self);
}

std::optional<Race> Shadow::access(uint64_t begin, uint64_t end, bool write,
                                   const Clock &clock, const Epoch &self) {
  std::lock_guard<std::mutex> lock(mutex);
  std::optional<Race> race;
  auto first = split(begin);
  auto last = split(end);
  first = cells.lower_bound(begin);
  for (auto cell = first; cell != last && !race; ++cell)
    race = conflict(cell->first, cell->second.end, cell->second.write,
                    cell->second.reads, write, clock);
  if (write) {
    cells.erase(first, last);
    cells.emplace(begin, Cell{end, self, {}});
    return race;
  }
  for (auto cell = first; cell != last; ++cell)
    addRead(cell->second.reads, clock, self);
  // What was never written has no cell yet.
  for (uint64_t at = begin; at < end;) {
    auto cell = cells.lower_bound(at);
    uint64_t stop = cell == cells.end() ? end : std::min(cell->first, end);
    if (stop > at)
      cells.emplace_hint(cell, at, Cell{stop, {}, {self}});
    at = stop < end ? cell->second.end : end;
  }
  return race;
}
