//===- ArenaPlannerTest.cpp -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans are valid (nothing that lives together overlaps), aligned, repeatable,
// and as low as they can be where that is known.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/ArenaPlanner.h"

#include "gtest/gtest.h"
#include <random>

using namespace mlir::zero;

/// Fails where two ranges that live together share a byte, or one is not
/// aligned or sticks out.
static void expectValid(const std::vector<LiveRange> &ranges,
                        const ArenaPlan &plan, int64_t alignment) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % alignment, 0);
    EXPECT_LE(plan.offsets[i] + ranges[i].bytes, plan.height);
    for (size_t j = 0; j < i; ++j) {
      bool together = ranges[i].first <= ranges[j].last &&
                      ranges[j].first <= ranges[i].last;
      bool apart = plan.offsets[i] + ranges[i].bytes <= plan.offsets[j] ||
                   plan.offsets[j] + ranges[j].bytes <= plan.offsets[i];
      bool empty = ranges[i].bytes == 0 || ranges[j].bytes == 0;
      EXPECT_TRUE(!together || apart || empty) << i << " and " << j;
    }
  }
}

TEST(ArenaPlanner, SharesBytesOfBuffersThatNeverLiveTogether) {
  std::vector<LiveRange> ranges = {{0, 1, 64}, {2, 3, 64}, {4, 9, 64}};
  ArenaPlan plan = planArena(ranges, 64);
  expectValid(ranges, plan, 64);
  EXPECT_EQ(plan.height, 64);
  EXPECT_EQ(plan.lowerBound, 64);
}

TEST(ArenaPlanner, RangesThatTouchInTimeDoNotShare) {
  // A command reads the one and writes the other at time 1.
  std::vector<LiveRange> ranges = {{0, 1, 64}, {1, 2, 64}};
  ArenaPlan plan = planArena(ranges, 64);
  expectValid(ranges, plan, 64);
  EXPECT_EQ(plan.height, 128);
}

TEST(ArenaPlanner, RoundsUpToTheAlignment) {
  std::vector<LiveRange> ranges = {{0, 2, 3}, {0, 2, 5}, {0, 2, 0}};
  ArenaPlan plan = planArena(ranges, 64);
  expectValid(ranges, plan, 64);
  // The larger first; the arena ends where the last byte does.
  EXPECT_EQ(plan.height, 64 + 3);
  EXPECT_EQ(plan.lowerBound, 8);
}

TEST(ArenaPlanner, NothingToPlace) {
  ArenaPlan plan = planArena({}, 64);
  EXPECT_EQ(plan.height, 0);
  EXPECT_EQ(plan.lowerBound, 0);
}

TEST(ArenaPlanner, StackOfActivationsReachesTheLowerBound) {
  // Forward keeps, backward frees in the opposite order: a stack.
  std::vector<LiveRange> ranges;
  for (int64_t i = 0; i < 50; ++i)
    ranges.push_back({i, 100 - i, 64 * (i % 7 + 1)});
  ArenaPlan plan = planArena(ranges, 64);
  expectValid(ranges, plan, 64);
  EXPECT_EQ(plan.height, plan.lowerBound);
}

TEST(ArenaPlanner, RandomPlansAreValidAndRepeatable) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    std::vector<LiveRange> ranges;
    for (int i = 0; i < 120; ++i) {
      int64_t first = random() % 200;
      ranges.push_back({first, first + static_cast<int64_t>(random() % 40),
                        static_cast<int64_t>(random() % 5000)});
    }
    ArenaPlan plan = planArena(ranges, 64);
    expectValid(ranges, plan, 64);
    EXPECT_GE(plan.height, plan.lowerBound);
    EXPECT_LE(plan.height, plan.lowerBound * 3 / 2);
    EXPECT_EQ(plan.offsets, planArena(ranges, 64).offsets);
  }
}
