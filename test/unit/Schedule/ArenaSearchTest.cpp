//===- ArenaSearchTest.cpp ------------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search alone, without the passes before it that hide its errors: it finds
// a placement exactly where exhaustive placement does.
//
//===----------------------------------------------------------------------===//

#include "ArenaInstances.h"

#include "lib/Schedule/ArenaSearch.h"

#include "gtest/gtest.h"

using namespace mlir::zero;
using namespace mlir::zero::arena;

static void expectPlacement(const Problem &problem,
                            const std::vector<int64_t> &offsets,
                            int64_t limit) {
  const std::vector<Item> &items = problem.items;
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_GE(offsets[i], 0);
    EXPECT_LE(offsets[i] + items[i].size, limit);
    for (size_t j = 0; j < i; ++j)
      EXPECT_TRUE(items[i].first >= items[j].end ||
                  items[j].first >= items[i].end ||
                  offsets[i] >= offsets[j] + items[j].size ||
                  offsets[j] >= offsets[i] + items[i].size)
          << i << " and " << j;
  }
}

/// Just below, at and a little above the optimum.
static void expectExact(const std::vector<LiveRange> &ranges) {
  int64_t lowest = lowestHeight(ranges, 1);
  Problem problem = makeProblem(ranges);
  Search search(problem);
  for (int64_t limit = lowest + 2; limit >= lowest - 2; --limit) {
    int64_t effort = 1000000;
    Verdict verdict = search.run(limit, effort);
    EXPECT_EQ(verdict, limit < lowest ? Verdict::Impossible : Verdict::Found)
        << limit << " of " << lowest;
    if (verdict == Verdict::Found)
      expectPlacement(problem, search.offsets(), limit);
  }
}

TEST(ArenaSearch, TightInstances) {
  std::mt19937 random(21);
  for (int round = 0; round < 300; ++round)
    expectExact(tightRanges(random, 4 + round % 5, 7, 2 + round % 3));
}

TEST(ArenaSearch, InstancesAboveTheBound) {
  for (const std::vector<LiveRange> &ranges : kAboveTheBound)
    expectExact(ranges);
}

/// Sizes that no longer match leave bytes that must be wasted somewhere.
TEST(ArenaSearch, InstancesWithWaste) {
  std::mt19937 random(22);
  int above = 0;
  for (int round = 0; round < 300; ++round) {
    auto ranges = kAboveTheBound[round % kAboveTheBound.size()];
    for (LiveRange &range : ranges) {
      range.bytes = 3 * range.bytes - static_cast<int64_t>(random() % 2);
      range.last += random() % 8 == 0;
    }
    expectExact(ranges);
    above += lowestHeight(ranges, 1) > maxLiveBytes(ranges);
  }
  EXPECT_GT(above, 50); // most need more than the bound
}

/// With time run backwards the same heights are possible, though the search
/// goes other ways; lower limits before must not confuse it.
TEST(ArenaSearch, AgreesWithTimeRunBackwards) {
  std::mt19937 random(24);
  int impossible = 0;
  for (int round = 0; round < 240; ++round) {
    auto ranges =
        tightRanges(random, 5 + round % 9, 14 + round % 16, 2 + round % 5);
    if (round % 2) // with some bytes to waste
      for (LiveRange &range : ranges)
        range.bytes = 5 * range.bytes - static_cast<int64_t>(random() % 2);
    auto backwards = ranges;
    for (LiveRange &range : backwards)
      range = {-range.last, -range.first, range.bytes};
    Problem problem = makeProblem(ranges), mirror = makeProblem(backwards);
    Search search(problem), mirrored(mirror);
    int64_t load = maxLoad(problem);
    for (int64_t limit : {load, load + 1, load + 2}) {
      int64_t effort = 10000, otherEffort = 10000;
      Verdict verdict = search.run(limit, effort);
      Verdict other = mirrored.run(limit, otherEffort);
      if (verdict == Verdict::Found)
        expectPlacement(problem, search.offsets(), limit);
      bool isPossible = verdict == Verdict::Found || other == Verdict::Found;
      bool isImpossible =
          verdict == Verdict::Impossible || other == Verdict::Impossible;
      EXPECT_FALSE(isPossible && isImpossible)
          << "round " << round << " limit " << limit;
      impossible += isImpossible;
    }
  }
  EXPECT_GT(impossible, 20); // both verdicts are common
}

TEST(ArenaSearch, GivesUpAtTheEndOfItsEffort) {
  std::mt19937 random(23);
  Problem problem = makeProblem(tightRanges(random, 40, 60, 9));
  Search search(problem);
  int64_t effort = 50;
  EXPECT_EQ(search.run(40, effort), Verdict::GaveUp);
  EXPECT_LE(effort, 0);
}
