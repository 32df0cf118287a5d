//===- SummaryTest.cpp - Numbers of a report -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "zero/Report/Summary.h"
#include "TestTimelines.h"

#include "gmock/gmock.h"

using namespace mlir::zero;

TEST(Summary, DrawsTheFirstOfEachSource) {
  std::vector<Timeline> timelines = {makeTimeline("measured"),
                                     makeTimeline("predicted"),
                                     makeTimeline("measured")};
  DrawnTimelines drawn = drawnTimelines(timelines);
  EXPECT_EQ(drawn.predicted, &timelines[1]);
  EXPECT_EQ(drawn.measured, &timelines[0]);
  EXPECT_EQ(drawnTimelines({}).predicted, nullptr);
}

// Means over ranks 0 and 3.
TEST(Summary, SumsChannels) {
  Timeline timeline = makeTimeline("predicted");
  timeline.spans[0].sentBytes = 1000;
  auto sums = summarizeChannels(timeline);
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums[0].channel, "compute");
  EXPECT_EQ(sums[1].channel, "all_gather");
  EXPECT_EQ(sums[2].channel, "all_reduce.0");
  EXPECT_DOUBLE_EQ(sums[0].spans, 0.5);
  EXPECT_DOUBLE_EQ(sums[0].busySeconds, 0.1);
  EXPECT_DOUBLE_EQ(sums[1].spans, 1);
  EXPECT_NEAR(sums[1].busySeconds, 0.085, 1e-9);
  EXPECT_DOUBLE_EQ(sums[1].exposedSeconds, 0.075);
  EXPECT_DOUBLE_EQ(sums[1].sentBytes, 500);
}

// Each kind by itself where they share a channel.
TEST(Summary, SumsKindsOfAChannel) {
  Timeline timeline;
  timeline.spans = {makeSpan(0, "compute", "g", TaskKind::AllGather, 0, 1),
                    makeSpan(0, "compute", "c", TaskKind::Compute, 1, 3)};
  auto sums = summarizeChannels(timeline);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].kind, TaskKind::Compute);
  EXPECT_DOUBLE_EQ(sums[0].busySeconds, 2);
  EXPECT_EQ(sums[1].kind, TaskKind::AllGather);
  EXPECT_DOUBLE_EQ(sums[1].busySeconds, 1);
}

TEST(Summary, FindsThePeak) {
  Timeline timeline = makeTimeline("predicted");
  EXPECT_DOUBLE_EQ(memoryPeak(timeline).time, 0.1);
  timeline.memory.clear();
  EXPECT_EQ(memoryPeak(timeline).bytes[0], 0);
}

TEST(Summary, ComparesCommands) {
  Timeline predicted, measured;
  predicted.ranks = measured.ranks = 2;
  auto add = [](Timeline &t, int32_t rank, int32_t command, double seconds) {
    t.spans.push_back(makeSpan(rank, "compute", "x", TaskKind::Compute, 1,
                               1 + seconds, command));
  };
  for (auto [command, seconds] :
       {std::pair(0, 0.5), {1, 0.25}, {2, 0.125}, {3, 1.0}, {-1, 9.0}})
    add(predicted, 0, command, seconds);
  for (int32_t rank : {0, 1}) {
    add(measured, rank, 0, 0.5);
    add(measured, rank, 1, rank ? 0.5 : 0.75); // 0.625 on average
    add(measured, rank, 2, 0);
    add(measured, rank, 7, 1); // not predicted
    add(measured, rank, -1, 1);
  }
  auto rows = compareCommands(predicted, measured);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].command, 1);
  EXPECT_DOUBLE_EQ(rows[0].difference(), 0.375);
  EXPECT_EQ(rows[1].command, 2);
  EXPECT_DOUBLE_EQ(rows[1].difference(), -0.125);
  EXPECT_EQ(rows[2].command, 0);
  EXPECT_DOUBLE_EQ(rows[2].difference(), 0);
  // 60 % and 0 %; a command that took no time has no error in percent.
  EXPECT_DOUBLE_EQ(medianErrorPercent(rows), 30);
  EXPECT_DOUBLE_EQ(medianErrorPercent({}), 0);
}

// One row a collective, whatever the number of ranks: by command, and without
// one by its position.
TEST(Summary, ListsExposedCollectives) {
  Timeline timeline = makeTimeline("predicted");
  for (int32_t rank : {0, 3})
    for (double exposed : {0.2, 0.0, 0.3}) {
      timeline.spans.push_back(
          makeSpan(rank, "all_reduce", "norm", TaskKind::AllReduce, 0.4, 0.5));
      timeline.spans.back().exposed = rank ? exposed : exposed / 2;
    }
  timeline.spans[1].exposed = 9; // compute does not wait for itself
  auto rows = exposedCollectives(timeline);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_DOUBLE_EQ(rows[0].span->exposed, 0.3);
  EXPECT_DOUBLE_EQ(rows[1].span->exposed, 0.2);
  EXPECT_DOUBLE_EQ(rows[2].span->exposed, 0.1);
  EXPECT_EQ(rows[0].span->rank, 3);
  EXPECT_EQ(rows[2].span->rank, 0);
  for (const ExposedCollective &row : rows)
    EXPECT_EQ(row.ranks, 2);
}
