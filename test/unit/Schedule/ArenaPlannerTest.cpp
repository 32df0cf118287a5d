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

#include "ArenaInstances.h"

#include "gtest/gtest.h"
#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>

using namespace mlir::zero;

/// Fails where two ranges that live together share a byte, or one is not
/// aligned or sticks out. Sweeps over time with the live ranges by offset.
static void expectValid(const std::vector<LiveRange> &ranges,
                        const ArenaPlan &plan, int64_t alignment) {
  ASSERT_EQ(plan.offsets.size(), ranges.size());
  std::vector<std::tuple<int64_t, int, size_t>> events; // begins before ends
  for (size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_GE(plan.offsets[i], 0);
    ASSERT_EQ(plan.offsets[i] % alignment, 0);
    ASSERT_LE(plan.offsets[i] + ranges[i].bytes, plan.height);
    if (ranges[i].bytes == 0 || ranges[i].last < ranges[i].first)
      continue;
    events.push_back({ranges[i].first, 0, i});
    events.push_back({ranges[i].last, 1, i});
  }
  std::sort(events.begin(), events.end());
  std::map<int64_t, size_t> live;
  for (auto [time, ends, i] : events) {
    if (ends) {
      live.erase(plan.offsets[i]);
      continue;
    }
    auto [self, fresh] = live.insert({plan.offsets[i], i});
    ASSERT_TRUE(fresh) << i << " and " << self->second;
    auto next = std::next(self);
    if (next != live.end()) {
      ASSERT_LE(plan.offsets[i] + ranges[i].bytes, next->first)
          << i << " and " << next->second;
    }
    if (self != live.begin()) {
      auto [offset, before] = *std::prev(self);
      ASSERT_LE(offset + ranges[before].bytes, plan.offsets[i])
          << i << " and " << before;
    }
  }
}

static std::vector<LiveRange>
randomRanges(std::mt19937 &random, int n, int times, int longest, int largest) {
  std::vector<LiveRange> ranges;
  for (int i = 0; i < n; ++i) {
    int64_t first = random() % times;
    ranges.push_back({first, first + static_cast<int64_t>(random() % longest),
                      1 + static_cast<int64_t>(random() % largest)});
  }
  return ranges;
}

/// An instance of test/models/allocation.
static std::vector<LiveRange> readInstance(const std::string &name) {
  std::ifstream in(std::string(ZERO_TEST_MODELS "/allocation/") + name);
  std::vector<LiveRange> ranges;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream row(line);
    std::string id;
    LiveRange range;
    row >> id >> range.first >> range.last >> range.bytes;
    --range.last; // the file's intervals are half-open
    ranges.push_back(range);
  }
  return ranges;
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
  // The arena ends where the last byte does.
  EXPECT_LE(plan.height, 64 + 5);
  EXPECT_EQ(plan.lowerBound, 2 * 64 - 61);
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
  for (int round = 0; round < 8; ++round) {
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

TEST(ArenaPlanner, NoBytesAndNoLife) {
  std::vector<LiveRange> ranges = {
      {0, 4, 0}, {2, 2, 64}, {5, 4, 192}, {0, 9, 0}};
  ArenaPlan plan = planArena(ranges, 64);
  expectValid(ranges, plan, 64);
  EXPECT_EQ(plan.height, 192); // what never lives still fits in
  EXPECT_EQ(plan.lowerBound, 64);
}

TEST(ArenaPlanner, ReachesTheOptimumOfSmallInstances) {
  std::mt19937 random(11);
  ArenaOptions options;
  options.worthwhileGap = 0;
  for (int round = 0; round < 300; ++round) {
    options.alignment = round % 3 == 0 ? 4 : 1;
    auto ranges = randomRanges(random, 3 + round % 5, 6, 5, 8);
    ArenaPlan plan = planArena(ranges, options);
    expectValid(ranges, plan, options.alignment);
    int64_t lowest = lowestHeight(ranges, options.alignment);
    // Heights are compared in multiples of the alignment.
    auto units = [&](int64_t bytes) {
      return (bytes + options.alignment - 1) / options.alignment;
    };
    EXPECT_EQ(units(plan.height), units(lowest)) << "round " << round;
    EXPECT_LE(plan.lowerBound, lowest);
  }
}

TEST(ArenaPlanner, ReachesTheOptimumOfTightInstances) {
  std::mt19937 random(1);
  ArenaOptions options;
  options.worthwhileGap = 0;
  for (int round = 0; round < 1500; ++round) {
    auto ranges = tightRanges(random, 4 + round % 4, 6, 2 + round % 3);
    ArenaPlan plan = planArena(ranges, options);
    expectValid(ranges, plan, 1);
    EXPECT_EQ(plan.height, lowestHeight(ranges, 1)) << "round " << round;
  }
}

TEST(ArenaPlanner, ReachesTheOptimumAboveTheBound) {
  std::mt19937 random(1);
  ArenaOptions options;
  options.worthwhileGap = 0;
  for (std::vector<LiveRange> ranges : kAboveTheBound) {
    int64_t lowest = lowestHeight(ranges, 1);
    ASSERT_EQ(lowest, maxLiveBytes(ranges) + 1);
    // Two independent copies in time, in any order of the ranges.
    size_t n = ranges.size();
    for (size_t i = 0; i < n; ++i)
      ranges.push_back(
          {ranges[i].first + 50, ranges[i].last + 50, ranges[i].bytes});
    for (int round = 0; round < 5; ++round) {
      std::shuffle(ranges.begin(), ranges.end(), random);
      ArenaPlan plan = planArena(ranges, options);
      expectValid(ranges, plan, 1);
      EXPECT_EQ(plan.height, lowest);
      EXPECT_EQ(plan.lowerBound, lowest - 1);
    }
  }
}

TEST(ArenaPlanner, FindsWhatFitsAndNothingElse) {
  std::mt19937 random(5);
  ArenaOptions options;
  for (int round = 0; round < 500; ++round) {
    auto ranges = tightRanges(random, 6, 7, 3);
    int64_t lowest = lowestHeight(ranges, 1);
    options.capacity = lowest;
    ArenaPlan fits = planArena(ranges, options);
    expectValid(ranges, fits, 1);
    EXPECT_EQ(fits.height, lowest);
    options.capacity = lowest - 1;
    ArenaPlan tooSmall = planArena(ranges, options);
    expectValid(ranges, tooSmall, 1);
    EXPECT_GE(tooSmall.height, lowest);
  }
}

TEST(ArenaPlanner, OnePassIsValidWithoutASearch) {
  std::mt19937 random(3);
  ArenaOptions options;
  options.effort = 0;
  auto ranges = readInstance("B.1048576.csv");
  ArenaPlan plan = planArena(ranges, options);
  expectValid(ranges, plan, 1);
  EXPECT_EQ(plan.lowerBound, 1048576);
  EXPECT_GT(plan.height, 1048576); // the search is needed: see below
  EXPECT_STREQ(plan.method, "one pass");
  EXPECT_NEAR(plan.gap(), double(plan.height) / 1048576 - 1, 1e-12);
}

/// Instances on which one-pass placements are 17 to 26 % too high.
class ArenaPlannerHard : public testing::TestWithParam<const char *> {};

TEST_P(ArenaPlannerHard, FitsTheKnownCapacity) {
  auto ranges = readInstance(GetParam());
  ASSERT_FALSE(ranges.empty());
  ArenaOptions options;
  options.capacity = 1048576;
  ArenaPlan plan = planArena(ranges, options);
  expectValid(ranges, plan, 1);
  EXPECT_LE(plan.height, options.capacity);
  EXPECT_EQ(plan.offsets, planArena(ranges, options).offsets);
  // Nor does the order of the ranges matter.
  std::reverse(ranges.begin(), ranges.end());
  EXPECT_EQ(plan.height, planArena(ranges, options).height);
}

INSTANTIATE_TEST_SUITE_P(MiniMalloc, ArenaPlannerHard,
                         testing::Values("B.1048576.csv", "C.1048576.csv",
                                         "G.1048576.csv", "H.1048576.csv"));

/// One step of `layers` equal layers: shards that stay, parameters gathered one
/// layer ahead, activations kept for backward, gradients until their reduction.
static std::vector<LiveRange> trainingStep(int64_t layers) {
  std::vector<LiveRange> ranges;
  int64_t end = 4 * layers + 4;
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t forward = 2 * layer + 2, backward = end - 2 * layer - 2;
    for (int64_t size : {1600, 700, 300})
      ranges.push_back({0, end, size / 8 + layer % 3}); // shard
    for (int64_t size : {1600, 700, 300}) {
      ranges.push_back({forward - 2, forward, size});
      ranges.push_back({backward - 2, backward, size});
      ranges.push_back(
          {backward, std::min(end, backward + 2), size}); // gradient
      ranges.push_back({forward, backward, size / 3});    // activation
    }
    ranges.push_back({forward, forward, 450}); // workspace
    ranges.push_back({backward, backward, 900});
  }
  return ranges;
}

TEST(ArenaPlanner, TrainingStepsAreWithinOnePercentOfTheBound) {
  for (int64_t layers : {2, 7, 32, 126}) {
    auto ranges = trainingStep(layers);
    ArenaPlan plan = planArena(ranges, 64);
    expectValid(ranges, plan, 64);
    EXPECT_LE(plan.gap(), 0.01) << layers << " layers";
  }
}

TEST(ArenaPlanner, ManyBuffers) {
  std::mt19937 random(13);
  auto ranges = randomRanges(random, 20000, 40000, 300, 4096);
  ArenaPlan plan = planArena(ranges, 64);
  expectValid(ranges, plan, 64);
  EXPECT_LE(plan.gap(), 0.06);
}

TEST(ArenaPlanner, TheEndsOfTime) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  std::vector<LiveRange> ranges = {
      {kMin, kMax, kMax / 2}, {kMin, kMin, 5}, {kMax, kMax, 7}};
  ArenaPlan plan = planArena(ranges, 1);
  expectValid(ranges, plan, 1);
  EXPECT_EQ(plan.height, kMax / 2 + 7);
}
