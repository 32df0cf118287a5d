//===- ArenaFit.h - Buffers as items over sections --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the arena planner's parts share: buffers over sections of time, and the
// placements that take one pass.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_ARENAFIT_H
#define ZERO_LIB_SCHEDULE_ARENAFIT_H

#include "zero/Schedule/ArenaPlanner.h"

namespace mlir::zero::arena {

/// A buffer over the sections [first, end), of `size` units.
struct Item {
  int32_t first = 0, end = 0;
  int64_t size = 0;
  double life = 0; ///< in the caller's unit of time
};

/// Items over `numSections` points of time: those at which no other point has
/// a larger set of items alive. Two items meet exactly if they share a section.
struct Problem {
  std::vector<Item> items;
  int32_t numSections = 0;
};

/// Items of `ranges` in their order.
Problem makeProblem(llvm::ArrayRef<LiveRange> ranges);

/// Largest sum of sizes over a section.
int64_t maxLoad(const Problem &problem);

/// Which item goes first into the lowest free place.
enum class Order { Longest, Largest, LargestArea, Widest };

/// The items in that order.
std::vector<uint32_t> sortItems(const Problem &problem, Order order);

/// Offset per item: the lowest stretch of the skyline takes the first item of
/// `order` that lies within it, or rises to its lower neighbour. O(n log n) in
/// practice (Burke et al., "A New Placement Heuristic for the Orthogonal
/// Stock-Cutting Problem", 2004, with time as the fixed axis).
std::vector<int64_t> fitSkyline(const Problem &problem,
                                llvm::ArrayRef<uint32_t> order);

/// Its cost in nodes of the search.
int64_t costOfFit(const Problem &problem);

/// The same over and over: items that stick out of `goal` move forward in the
/// order by random shares, and what is no higher is kept (Joslin and Clements,
/// "Squeaky Wheel Optimization", 1999). Takes the passes off `effort`.
std::vector<int64_t> fitReordered(const Problem &problem, Order first,
                                  int64_t goal, int64_t &effort);

/// A good hash of one number.
uint64_t mixBits(uint64_t x);

/// Highest end.
int64_t heightOf(const Problem &problem, llvm::ArrayRef<int64_t> offsets);

} // namespace mlir::zero::arena

#endif // ZERO_LIB_SCHEDULE_ARENAFIT_H
