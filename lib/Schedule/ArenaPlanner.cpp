//===- ArenaPlanner.cpp - Offsets for buffers in an arena -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Best fit over a few orders of the buffers.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/ArenaPlanner.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <numeric>

using namespace mlir::zero;
using llvm::ArrayRef;
using llvm::SmallVector;

static bool overlapInTime(const LiveRange &a, const LiveRange &b) {
  return a.first <= b.last && b.first <= a.last;
}

int64_t mlir::zero::maxLiveBytes(ArrayRef<LiveRange> ranges) {
  SmallVector<std::pair<int64_t, int64_t>> events; // time, change
  for (const LiveRange &r : ranges) {
    events.push_back({r.first, r.bytes});
    events.push_back({r.last + 1, -r.bytes});
  }
  llvm::sort(events); // frees sort before the allocations of the same time
  int64_t live = 0, most = 0;
  for (auto [time, change] : events) {
    live += change;
    most = std::max(most, live);
  }
  return most;
}

namespace {
/// A buffer that has its place.
struct Placed {
  int64_t offset, end;
  size_t index;
};
} // namespace

/// The lowest end of the smallest gap among `placed` (sorted by offset) that
/// `range` fits in.
static int64_t bestFit(ArrayRef<Placed> placed, ArrayRef<LiveRange> ranges,
                       const LiveRange &range) {
  int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), free = 0;
  for (const Placed &p : placed) {
    if (!overlapInTime(ranges[p.index], range))
      continue;
    int64_t gap = p.offset - free;
    if (gap >= range.bytes && gap < bestGap) {
      best = free;
      bestGap = gap;
    }
    free = std::max(free, p.end);
  }
  return best >= 0 ? best : free;
}

static ArenaPlan placeInOrder(ArrayRef<LiveRange> ranges, int64_t alignment,
                              ArrayRef<size_t> order) {
  ArenaPlan plan;
  plan.offsets.assign(ranges.size(), 0);
  std::vector<Placed> placed;
  placed.reserve(ranges.size());
  for (size_t i : order) {
    if (ranges[i].bytes == 0)
      continue;
    Placed p{bestFit(placed, ranges, ranges[i]), 0, i};
    p.end = p.offset + llvm::alignTo(ranges[i].bytes, alignment);
    plan.offsets[i] = p.offset;
    plan.height = std::max(plan.height, p.offset + ranges[i].bytes);
    placed.insert(llvm::upper_bound(placed, p,
                                    [](const Placed &a, const Placed &b) {
                                      return a.offset < b.offset;
                                    }),
                  p);
  }
  return plan;
}

ArenaPlan mlir::zero::planArena(ArrayRef<LiveRange> ranges, int64_t alignment) {
  ArenaOptions options;
  options.alignment = alignment;
  return planArena(ranges, options);
}

ArenaPlan mlir::zero::planArena(ArrayRef<LiveRange> ranges,
                                const ArenaOptions &options) {
  int64_t alignment = options.alignment;
  SmallVector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0);
  auto length = [&](size_t i) { return ranges[i].last - ranges[i].first + 1; };
  auto bySize = [&](size_t a, size_t b) {
    return std::make_tuple(-ranges[a].bytes, -length(a), a) <
           std::make_tuple(-ranges[b].bytes, -length(b), b);
  };
  auto byLength = [&](size_t a, size_t b) {
    return std::make_tuple(-length(a), -ranges[a].bytes, a) <
           std::make_tuple(-length(b), -ranges[b].bytes, b);
  };
  auto byStart = [&](size_t a, size_t b) {
    return std::make_tuple(ranges[a].first, -ranges[a].bytes, a) <
           std::make_tuple(ranges[b].first, -ranges[b].bytes, b);
  };
  ArenaPlan best;
  best.height = std::numeric_limits<int64_t>::max();
  auto attempt = [&](auto less) {
    llvm::sort(order, less);
    ArenaPlan plan = placeInOrder(ranges, alignment, order);
    if (plan.height < best.height)
      best = std::move(plan);
  };
  attempt(bySize);
  attempt(byLength);
  attempt(byStart);
  best.lowerBound = maxLiveBytes(ranges);
  return best;
}
