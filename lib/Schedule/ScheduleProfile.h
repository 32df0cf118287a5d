//===- ScheduleProfile.h - Memory over places, incrementally ----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes alive by place, as a segment tree: adding to a range and asking for the
// maximum or the last place above a limit take logarithmic time.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_SCHEDULEPROFILE_H
#define ZERO_LIB_SCHEDULE_SCHEDULEPROFILE_H

#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace mlir::zero {

/// Bytes by place.
class MemoryProfile {
public:
  explicit MemoryProfile(llvm::ArrayRef<int64_t> bytes) {
    while (leaves < bytes.size())
      leaves *= 2;
    highest.assign(2 * leaves, std::numeric_limits<int64_t>::min() / 2);
    added.assign(2 * leaves, 0);
    std::copy(bytes.begin(), bytes.end(), highest.begin() + leaves);
    for (size_t node = leaves - 1; node != 0; --node)
      highest[node] = std::max(highest[2 * node], highest[2 * node + 1]);
  }

  /// Adds to places first .. last, inclusive; nothing if first > last.
  void add(int64_t first, int64_t last, int64_t bytes) {
    if (first <= last)
      add(1, 0, leaves - 1, first, last, bytes);
  }

  /// Most bytes in first .. last, inclusive.
  int64_t max(int64_t first, int64_t last) const {
    if (first > last)
      return std::numeric_limits<int64_t>::min() / 2;
    return max(1, 0, leaves - 1, first, last);
  }

  /// Last place <= last with more than `limit` bytes; -1 if none.
  int64_t lastAbove(int64_t last, int64_t limit) const {
    return lastAbove(1, 0, leaves - 1, last, limit);
  }

private:
  void add(size_t node, int64_t low, int64_t high, int64_t first, int64_t last,
           int64_t bytes) {
    if (first > high || last < low)
      return;
    if (first <= low && high <= last) {
      highest[node] += bytes;
      added[node] += bytes;
      return;
    }
    int64_t middle = (low + high) / 2;
    add(2 * node, low, middle, first, last, bytes);
    add(2 * node + 1, middle + 1, high, first, last, bytes);
    highest[node] =
        std::max(highest[2 * node], highest[2 * node + 1]) + added[node];
  }

  int64_t max(size_t node, int64_t low, int64_t high, int64_t first,
              int64_t last) const {
    if (first > high || last < low)
      return std::numeric_limits<int64_t>::min() / 2;
    if (first <= low && high <= last)
      return highest[node];
    int64_t middle = (low + high) / 2;
    return added[node] +
           std::max(max(2 * node, low, middle, first, last),
                    max(2 * node + 1, middle + 1, high, first, last));
  }

  int64_t lastAbove(size_t node, int64_t low, int64_t high, int64_t last,
                    int64_t limit) const {
    if (low > last || highest[node] <= limit)
      return -1;
    if (low == high)
      return low;
    int64_t middle = (low + high) / 2;
    limit -= added[node];
    int64_t right = lastAbove(2 * node + 1, middle + 1, high, last, limit);
    return right >= 0 ? right : lastAbove(2 * node, low, middle, last, limit);
  }

  size_t leaves = 1;
  std::vector<int64_t> highest; ///< of the subtree, with what was added to it
  std::vector<int64_t> added;   ///< to all of the subtree
};

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_SCHEDULEPROFILE_H
