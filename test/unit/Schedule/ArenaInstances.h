//===- ArenaInstances.h - Small instances and their optimum -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instances for tests of the arena planner, and exhaustive placement.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_SCHEDULE_ARENAINSTANCES_H
#define ZERO_TEST_SCHEDULE_ARENAINSTANCES_H

#include "zero/Schedule/ArenaPlanner.h"

#include <algorithm>
#include <random>

namespace mlir::zero {

/// Whether ranges k and up fit below `height` beside those before them: tries
/// every offset.
inline bool fitsBelow(const std::vector<LiveRange> &ranges, int64_t height,
                      int64_t alignment, std::vector<int64_t> &offsets) {
  size_t k = offsets.size();
  if (k == ranges.size())
    return true;
  for (int64_t at = 0; at + ranges[k].bytes <= height; at += alignment) {
    bool free = true;
    for (size_t j = 0; j < k && free; ++j)
      free = ranges[k].first > ranges[j].last ||
             ranges[j].first > ranges[k].last ||
             at >= offsets[j] + ranges[j].bytes ||
             offsets[j] >= at + ranges[k].bytes;
    if (!free)
      continue;
    offsets.push_back(at);
    if (fitsBelow(ranges, height, alignment, offsets))
      return true;
    offsets.pop_back();
  }
  return false;
}

/// The height of the lowest plan of a few small ranges.
inline int64_t lowestHeight(const std::vector<LiveRange> &ranges,
                            int64_t alignment) {
  int64_t height = maxLiveBytes(ranges);
  std::vector<int64_t> offsets;
  while (!fitsBelow(ranges, height, alignment, offsets))
    ++height;
  return height;
}

/// Ranges that leave no byte of `load` free at any time: often more than `load`
/// is needed.
inline std::vector<LiveRange> tightRanges(std::mt19937 &random, int64_t load,
                                          int times, int largest) {
  std::vector<LiveRange> ranges;
  std::vector<size_t> live;
  int64_t free = load;
  for (int time = 0; time < times; ++time) {
    for (int ends = time ? 1 + random() % 2 : 0; ends > 0 && !live.empty();
         --ends) {
      size_t k = random() % live.size();
      ranges[live[k]].last = time - 1;
      free += ranges[live[k]].bytes;
      live.erase(live.begin() + k);
    }
    while (free > 0) {
      int64_t size =
          std::min<int64_t>(free, 1 + static_cast<int64_t>(random() % largest));
      live.push_back(ranges.size());
      ranges.push_back({time, times - 1, size});
      free -= size;
    }
  }
  return ranges;
}

/// Smallest instances found that need more than the bytes alive at one time.
inline const std::vector<std::vector<LiveRange>> kAboveTheBound = {{{0, 1, 2},
                                                                    {0, 0, 2},
                                                                    {1, 3, 1},
                                                                    {1, 4, 1},
                                                                    {2, 2, 1},
                                                                    {2, 3, 1},
                                                                    {3, 4, 1},
                                                                    {4, 5, 2},
                                                                    {5, 5, 2}},
                                                                   {{0, 0, 2},
                                                                    {0, 2, 2},
                                                                    {1, 3, 1},
                                                                    {1, 1, 1},
                                                                    {2, 4, 1},
                                                                    {3, 5, 1},
                                                                    {3, 6, 1},
                                                                    {4, 6, 1},
                                                                    {5, 5, 1},
                                                                    {6, 7, 2},
                                                                    {7, 7, 2}},
                                                                   {{0, 0, 3},
                                                                    {0, 1, 2},
                                                                    {1, 2, 2},
                                                                    {1, 5, 1},
                                                                    {2, 2, 1},
                                                                    {2, 3, 1},
                                                                    {3, 6, 3},
                                                                    {4, 4, 1},
                                                                    {5, 5, 1},
                                                                    {6, 6, 2}},
                                                                   {{0, 1, 3},
                                                                    {0, 0, 3},
                                                                    {1, 2, 3},
                                                                    {2, 4, 1},
                                                                    {2, 5, 2},
                                                                    {3, 3, 2},
                                                                    {3, 4, 1},
                                                                    {4, 5, 2},
                                                                    {5, 6, 2},
                                                                    {6, 6, 4}},
                                                                   {{0, 2, 3},
                                                                    {0, 0, 4},
                                                                    {1, 1, 1},
                                                                    {1, 5, 2},
                                                                    {1, 4, 1},
                                                                    {2, 3, 1},
                                                                    {3, 4, 1},
                                                                    {3, 3, 2},
                                                                    {4, 5, 3},
                                                                    {5, 5, 2}}};

} // namespace mlir::zero

#endif // ZERO_TEST_SCHEDULE_ARENAINSTANCES_H
