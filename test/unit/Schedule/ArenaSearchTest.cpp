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

/// A rectangle of time by bytes, cut into `pieces`; `cut` bytes at most are
/// taken off each. What was the rectangle's height is always enough.
static std::vector<LiveRange> cutRectangle(std::mt19937 &random, int64_t times,
                                           int64_t height, size_t pieces,
                                           int64_t cut) {
  std::vector<LiveRange> ranges = {{0, times - 1, height}};
  for (int tries = 0; ranges.size() < pieces && tries < 1000; ++tries) {
    LiveRange &piece = ranges[random() % ranges.size()];
    LiveRange other = piece;
    if (random() % 2) {
      int64_t life = piece.last - piece.first + 1;
      if (life < 2)
        continue;
      other.first += 1 + static_cast<int64_t>(random() % (life - 1));
      piece.last = other.first - 1;
    } else {
      if (piece.bytes < 2)
        continue;
      other.bytes = 1 + static_cast<int64_t>(random() % (piece.bytes - 1));
      piece.bytes -= other.bytes;
    }
    ranges.push_back(other);
  }
  for (LiveRange &range : ranges)
    range.bytes = std::max<int64_t>(
        1, range.bytes - static_cast<int64_t>(random() % (cut + 1)));
  std::shuffle(ranges.begin(), ranges.end(), random);
  return ranges;
}

/// What is cut from a rectangle fits into it again, however long the search.
/// Lower limits on the way must not confuse it.
TEST(ArenaSearch, NeverCallsPossibleImpossible) {
  std::mt19937 random(24);
  int found = 0, rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    int64_t height = 24;
    auto ranges = cutRectangle(random, 16, height, 16 + round % 24, round % 3);
    Problem problem = makeProblem(ranges);
    Search search(problem);
    int64_t load = maxLoad(problem);
    for (int64_t limit : {load, load + 1, height}) {
      int64_t effort = 6000;
      Verdict verdict = search.run(limit, effort);
      if (limit == height) {
        EXPECT_NE(verdict, Verdict::Impossible) << "round " << round;
        found += verdict == Verdict::Found;
      }
      if (verdict == Verdict::Found)
        expectPlacement(problem, search.offsets(), limit);
    }
  }
  EXPECT_GT(found, rounds / 2);
}

TEST(ArenaSearch, GivesUpAtTheEndOfItsEffort) {
  std::mt19937 random(23);
  Problem problem = makeProblem(tightRanges(random, 40, 60, 9));
  Search search(problem);
  int64_t effort = 50;
  EXPECT_EQ(search.run(40, effort), Verdict::GaveUp);
  EXPECT_LE(effort, 0);
}
