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

/// A buffer to place. It lives in [first, last], in any unit of time.
struct LiveRange {
  int64_t first = 0; ///< when it is first written
  int64_t last = 0;  ///< when it is last used, inclusive; >= first
  int64_t bytes = 0; ///< >= 0
};

/// Where the buffers lie.
struct ArenaPlan {
  std::vector<int64_t> offsets; ///< in bytes, one per range, aligned
  int64_t height = 0;           ///< bytes of the arena: the highest end
  int64_t lowerBound = 0; ///< most bytes alive at one time: no plan is lower
};

/// Most bytes alive at one time.
int64_t maxLiveBytes(llvm::ArrayRef<LiveRange> ranges);

/// Places `ranges` at multiples of `alignment` bytes. Deterministic: equal
/// input gives equal offsets. Takes O(n^2) time for n ranges: each of several
/// orders is placed by best fit, and the lowest arena wins.
ArenaPlan planArena(llvm::ArrayRef<LiveRange> ranges, int64_t alignment);

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_ARENAPLANNER_H
