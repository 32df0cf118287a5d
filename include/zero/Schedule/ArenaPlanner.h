//===- ArenaPlanner.h - Offsets for buffers in an arena ---------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Static memory planning: buffers with known lifetimes get byte offsets in one
// arena, so that no two that live at the same time overlap (dynamic storage
// allocation; Buchsbaum et al., "OPT versus LOAD in Dynamic Storage
// Allocation", 2003). Needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_ARENAPLANNER_H
#define ZERO_SCHEDULE_ARENAPLANNER_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace mlir::zero {

/// A buffer to place. It lives in [first, last], in any unit of time; with
/// last < first it never does, and shares its bytes with all others.
struct LiveRange {
  int64_t first = 0; ///< when it is first written
  int64_t last = 0;  ///< when it is last used, inclusive
  int64_t bytes = 0; ///< >= 0
};

/// How low, and how hard to try.
struct ArenaOptions {
  int64_t alignment = 1; ///< offsets are multiples of this; >= 1
  int64_t capacity = -1; ///< stop at the first plan that fits; -1: minimise
  /// Nodes of the search that follows the one-pass placements where they leave
  /// a gap above the lower bound; a node with many buffers counts for several.
  /// 0: one pass only.
  int64_t effort = 100000;
  /// With no capacity: the search runs only for a gap of more than this.
  double worthwhileGap = 0.01;
};

/// Where the buffers lie.
struct ArenaPlan {
  std::vector<int64_t> offsets; ///< in bytes, one per range, aligned
  int64_t height = 0;           ///< bytes of the arena: the highest end
  int64_t lowerBound = 0;  ///< most bytes alive at one time: no plan is lower
  const char *method = ""; ///< what found it, for people

  /// How far above the lower bound: 0.01 is 1 %.
  double gap() const {
    return lowerBound > 0 ? double(height - lowerBound) / lowerBound : 0;
  }
};

/// Most bytes alive at one time. Sizes must add up to less than 2^63.
int64_t maxLiveBytes(llvm::ArrayRef<LiveRange> ranges);

/// Places `ranges`. Deterministic: equal input gives equal offsets. First
/// several orders in one pass each, in O(n log n) steps for n ranges on all
/// graphs seen; then, within `effort`, other orders and a search for less.
/// Aligned sizes must add up to less than 2^63.
ArenaPlan planArena(llvm::ArrayRef<LiveRange> ranges,
                    const ArenaOptions &options);

/// The same at multiples of `alignment` bytes with the default effort: for a
/// compiler, which has many arenas to place.
ArenaPlan planArena(llvm::ArrayRef<LiveRange> ranges, int64_t alignment);

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_ARENAPLANNER_H
