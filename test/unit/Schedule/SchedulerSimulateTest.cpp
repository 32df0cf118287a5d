//===- SchedulerSimulateTest.cpp ------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a schedule does, by hand, and every kind of wrong schedule.
//
//===----------------------------------------------------------------------===//

#include "ScheduleGraphs.h"
#include "zero/Schedule/Scheduler.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::zero;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kRun = ScheduleStep::Run;
constexpr auto kStart = ScheduleStep::Start;
constexpr auto kWait = ScheduleStep::Wait;

namespace {
/// Two gathers and three computes; the last gather repeats the first.
///
///   0 gather shard -> a (4 s)       1 run a -> x (3 s)
///   2 gather shard -> b (4 s)       3 run b, x -> y (5 s)
///   4 reduce y -> z (6 s)           5 run z, shard -> shard (1 s)
struct Sample {
  StepBuilder b;
  int32_t shard, a, x, again, y, z;

  Sample() {
    b.graph.channels = {"compute", "all_gather", "reduce_scatter"};
    shard = b.buffer(1, MemoryKind::Parameter, true);
    a = b.buffer(100, MemoryKind::Gathered);
    x = b.buffer(10, MemoryKind::Activation);
    again = b.buffer(100, MemoryKind::Gathered);
    y = b.buffer(50, MemoryKind::Gradient);
    z = b.buffer(5, MemoryKind::Gradient);
    b.task(TaskKind::AllGather, 1, 4, {shard}, {a});
    b.run(3, {a}, {x});
    b.task(TaskKind::AllGather, 1, 4, {shard}, {again});
    b.run(5, {again, x}, {y});
    b.task(TaskKind::ReduceScatter, 2, 6, {y}, {z});
    b.run(1, {z, shard}, {shard});
    b.graph.tasks[2].repeats = 0;
    b.graph.tasks[2].latency = b.graph.tasks[0].latency = 1;
  }

  std::string check(std::vector<ScheduleStep> steps,
                    std::vector<std::vector<int32_t>> buckets = {},
                    std::vector<int32_t> dropped = {}) const {
    return checkSchedule(
        b.graph, {std::move(steps), std::move(buckets), std::move(dropped)});
  }
};
} // namespace

TEST(SchedulerSimulate, NothingOverlaps) {
  Sample s;
  Schedule serial = serialSchedule(s.b.graph);
  EXPECT_EQ(checkSchedule(s.b.graph, serial), "");
  SimulatedStep step = simulate(s.b.graph, serial);
  EXPECT_EQ(step.seconds, 4 + 3 + 4 + 5 + 6 + 1);
  EXPECT_EQ(step.computeSeconds, 9);
  EXPECT_EQ(step.exposedSeconds, 14);
  EXPECT_EQ(step.tasks[2].start, 7);
  EXPECT_EQ(step.tasks[2].end, 11);
  EXPECT_EQ(step.tasks[2].exposed, 4);
  // Start, wait, run, start, wait, run, start, wait, run.
  EXPECT_THAT(step.liveBytes,
              ElementsAre(101, 101, 111, 111, 111, 161, 56, 56, 6));
  EXPECT_EQ(step.peakBytes, 161);
  EXPECT_EQ(step.peakStep, 5);
}

TEST(SchedulerSimulate, AStartedTaskRunsBesideCompute) {
  Sample s;
  Schedule schedule{{{kStart, 0},
                     {kWait, 0},
                     {kStart, 2},
                     {kRun, 1},
                     {kWait, 2},
                     {kRun, 3},
                     {kStart, 4},
                     {kWait, 4},
                     {kRun, 5}},
                    {},
                    {}};
  EXPECT_EQ(checkSchedule(s.b.graph, schedule), "");
  SimulatedStep step = simulate(s.b.graph, schedule);
  EXPECT_EQ(step.tasks[2].start, 4);
  EXPECT_EQ(step.tasks[2].exposed, 1); // 4 s beside 3 s of compute
  EXPECT_EQ(step.seconds, 4 + 4 + 5 + 6 + 1);
  // Held from its start: 1 + 100 + 10 + 100 while task 1 runs.
  EXPECT_EQ(step.liveBytes[3], 211);
}

TEST(SchedulerSimulate, AChannelTakesTasksInTurn) {
  Sample s;
  Schedule schedule{{{kStart, 0},
                     {kStart, 2},
                     {kWait, 0},
                     {kRun, 1},
                     {kWait, 2},
                     {kRun, 3},
                     {kStart, 4},
                     {kWait, 4},
                     {kRun, 5}},
                    {},
                    {}};
  SimulatedStep step = simulate(s.b.graph, schedule);
  EXPECT_EQ(step.tasks[2].start, 4); // though started at 0
  EXPECT_EQ(step.tasks[2].end, 8);
}

TEST(SchedulerSimulate, ABucketPaysLatencyOnce) {
  Sample s;
  Schedule schedule{{{kStart, 0},
                     {kWait, 0},
                     {kRun, 1},
                     {kRun, 3},
                     {kStart, 4},
                     {kWait, 4},
                     {kRun, 5}},
                    {{0, 2}},
                    {}};
  EXPECT_EQ(checkSchedule(s.b.graph, schedule), "");
  SimulatedStep step = simulate(s.b.graph, schedule);
  EXPECT_EQ(step.tasks[0].end, 7); // 1 + 3 + 3
  EXPECT_EQ(step.tasks[2].end, 7);
  EXPECT_EQ(step.tasks[0].exposed, 7);
  EXPECT_EQ(step.tasks[2].exposed, 0); // counted once
  EXPECT_EQ(step.peakBytes, 1 + 100 + 100 + 10);
}

TEST(SchedulerSimulate, ADroppedGatherKeepsTheFirst) {
  Sample s;
  Schedule schedule{{{kStart, 0},
                     {kWait, 0},
                     {kRun, 1},
                     {kRun, 3},
                     {kStart, 4},
                     {kWait, 4},
                     {kRun, 5}},
                    {},
                    {2}};
  EXPECT_EQ(checkSchedule(s.b.graph, schedule), "");
  SimulatedStep step = simulate(s.b.graph, schedule);
  EXPECT_EQ(step.seconds, 4 + 3 + 5 + 6 + 1);
  EXPECT_THAT(step.liveBytes, ElementsAre(101, 101, 111, 161, 56, 56, 6));
}

TEST(SchedulerSimulate, WhatIsReadFirstIsThereFromTheBeginning) {
  StepBuilder b;
  int32_t input = b.buffer(8, MemoryKind::Input);
  int32_t x = b.buffer(2, MemoryKind::Activation);
  int32_t y = b.buffer(1, MemoryKind::Activation);
  b.run(1, {}, {x});
  b.run(1, {x, input}, {y});
  b.run(1, {y}, {y});
  SimulatedStep step = simulate(b.graph, serialSchedule(b.graph));
  EXPECT_THAT(step.liveBytes, ElementsAre(10, 11, 1));
}

TEST(SchedulerSimulate, TheStepEndsWithTheLastChannel) {
  StepBuilder b;
  b.graph.channels = {"compute", "all_gather"};
  int32_t shard = b.buffer(1, MemoryKind::Parameter, true);
  int32_t full = b.buffer(4, MemoryKind::Gathered);
  b.run(1, {}, {shard});
  b.task(TaskKind::AllGather, 1, 5, {shard}, {full});
  Schedule schedule{{{kRun, 0}, {kStart, 1}, {kWait, 1}}, {}, {}};
  EXPECT_EQ(simulate(b.graph, schedule).seconds, 6);
}

//===----------------------------------------------------------------------===//
// Wrong schedules
//===----------------------------------------------------------------------===//

TEST(SchedulerCheck, UseBeforeTheWait) {
  Sample s;
  EXPECT_THAT(s.check({{kStart, 0}, {kRun, 1}, {kWait, 0}}),
              HasSubstr("task 1 reads buffer 1 before the wait for task 0"));
}

TEST(SchedulerCheck, StartBeforeItsOperand) {
  Sample s;
  EXPECT_THAT(s.check({{kStart, 0}, {kWait, 0}, {kRun, 1}, {kStart, 4}}),
              HasSubstr("task 4 reads buffer 4 not as task 3 wrote it"));
}

TEST(SchedulerCheck, AMissingWait) {
  Sample s;
  Schedule schedule = serialSchedule(s.b.graph);
  schedule.steps[4] = {kStart, 4}; // was the wait for task 2
  EXPECT_NE(checkSchedule(s.b.graph, schedule), "");
  EXPECT_THAT(s.check({{kStart, 0}}), HasSubstr("task 0 is never awaited"));
}

TEST(SchedulerCheck, WriteOfWhatIsInFlight) {
  Sample s;
  // The update writes the shard that the gather reads.
  EXPECT_THAT(s.check({{kStart, 0},
                       {kWait, 0},
                       {kRun, 1},
                       {kStart, 2},
                       {kWait, 2},
                       {kRun, 3},
                       {kStart, 4},
                       {kWait, 4},
                       {kRun, 5}}),
              "");
  StepBuilder b = s.b;
  b.graph.tasks[5].reads = {s.shard};
  EXPECT_THAT(
      checkSchedule(b.graph, {{{kStart, 0}, {kRun, 5}}, {}, {}}),
      HasSubstr("task 5 writes buffer 0 while a task in flight uses it"));
  // After it, the gather would read the new value.
  EXPECT_THAT(checkSchedule(b.graph, {{{kRun, 5}, {kStart, 0}}, {}, {}}),
              HasSubstr("reads buffer 0 after it was overwritten by task 5"));
}

TEST(SchedulerCheck, Twice) {
  Sample s;
  EXPECT_THAT(s.check({{kStart, 0}, {kStart, 0}}),
              HasSubstr("task 0 runs twice"));
  EXPECT_THAT(s.check({{kWait, 0}}),
              HasSubstr("task 0 is awaited but not in flight"));
  EXPECT_THAT(s.check({{kStart, 0}, {kWait, 0}, {kWait, 0}}),
              HasSubstr("task 0 is awaited but not in flight"));
}

TEST(SchedulerCheck, WrongChannel) {
  Sample s;
  EXPECT_THAT(s.check({{kRun, 0}}), HasSubstr("task 0 has its own channel"));
  EXPECT_THAT(s.check({{kStart, 1}}), HasSubstr("task 1 computes"));
  EXPECT_THAT(s.check({{kRun, 77}}), HasSubstr("task 77 does not exist"));
}

TEST(SchedulerCheck, NotAll) {
  Sample s;
  EXPECT_THAT(s.check({{kStart, 0}, {kWait, 0}}),
              HasSubstr("task 1 never runs"));
}

TEST(SchedulerCheck, TheLastValueOfABuffer) {
  StepBuilder b;
  int32_t x = b.buffer(1, MemoryKind::Activation);
  b.run(1, {}, {x});
  b.run(1, {}, {x});
  EXPECT_EQ(checkSchedule(b.graph, {{{kRun, 0}, {kRun, 1}}, {}, {}}), "");
  EXPECT_THAT(checkSchedule(b.graph, {{{kRun, 1}, {kRun, 0}}, {}, {}}),
              HasSubstr("buffer 0 ends as task 0 wrote it, not as task 1 did"));
}

TEST(SchedulerCheck, Buckets) {
  Sample s;
  std::vector<ScheduleStep> none;
  EXPECT_THAT(s.check(none, {{}}), HasSubstr("a bucket is empty"));
  EXPECT_THAT(s.check(none, {{0, 9}}), HasSubstr("task 9 of a bucket"));
  EXPECT_THAT(s.check(none, {{0, 1}}), HasSubstr("task 1 computes and cannot"));
  EXPECT_THAT(s.check(none, {{0, 4}}),
              HasSubstr("task 4 cannot share a bucket with task 0"));
  EXPECT_THAT(s.check(none, {{0, 2}, {2}}),
              HasSubstr("task 2 is in two buckets"));
  EXPECT_THAT(s.check(none, {{0, 2}}, {2}),
              HasSubstr("task 2 is dropped and in a bucket"));
  EXPECT_THAT(s.check({{kStart, 2}}, {{0, 2}}),
              HasSubstr("task 2 is not the first of its bucket"));
  StepBuilder b = s.b;
  b.graph.tasks[2].bucketClass = 1;
  EXPECT_THAT(checkSchedule(b.graph, {{}, {{0, 2}}, {}}),
              HasSubstr("task 2 cannot share a bucket with task 0"));
}

TEST(SchedulerCheck, Dropped) {
  Sample s;
  std::vector<ScheduleStep> none;
  EXPECT_THAT(s.check(none, {}, {9}), HasSubstr("task 9 does not exist"));
  EXPECT_THAT(s.check(none, {}, {0}),
              HasSubstr("task 0 repeats no earlier gather"));
  EXPECT_THAT(s.check(none, {}, {2, 2}), HasSubstr("task 2 is dropped twice"));
  EXPECT_THAT(s.check({{kStart, 2}}, {}, {2}),
              HasSubstr("task 2 is dropped and must not run"));
  StepBuilder b = s.b;
  b.graph.tasks[2].writes.push_back(s.z);
  EXPECT_THAT(checkSchedule(b.graph, {{}, {}, {2}}),
              HasSubstr("writes other buffers than task 0"));
}

/// What only a dropped gather needs is dropped with it.
TEST(SchedulerCheck, ServingTasks) {
  StepBuilder b;
  b.graph.channels = {"compute", "all_gather"};
  int32_t shard = b.buffer(1, MemoryKind::Parameter, true);
  int32_t whole = b.buffer(100, MemoryKind::Gathered);
  int32_t chunk = b.buffer(25, MemoryKind::Gathered);
  int32_t again = b.buffer(100, MemoryKind::Gathered);
  int32_t x = b.buffer(10, MemoryKind::Activation);
  b.task(TaskKind::AllGather, 1, 8, {shard}, {whole});
  b.run(3, {whole}, {x});
  b.run(1, {whole}, {chunk});
  b.task(TaskKind::AllGather, 1, 2, {chunk}, {again});
  b.run(5, {again, x}, {x});
  b.graph.tasks[3].repeats = 0;
  b.graph.tasks[2].serves = 3;
  std::vector<ScheduleStep> all = {{kStart, 0}, {kWait, 0},  {kRun, 1},
                                   {kRun, 2},   {kStart, 3}, {kWait, 3},
                                   {kRun, 4}};
  EXPECT_EQ(checkSchedule(b.graph, {all, {}, {}}), "");
  EXPECT_EQ(simulate(b.graph, {all, {}, {}}).seconds, 8 + 3 + 1 + 2 + 5);
  EXPECT_THAT(checkSchedule(b.graph, {all, {}, {3}}),
              HasSubstr("task 2 is dropped and must not run"));
  std::vector<ScheduleStep> rest = {
      {kStart, 0}, {kWait, 0}, {kRun, 1}, {kRun, 4}};
  EXPECT_EQ(checkSchedule(b.graph, {rest, {}, {3}}), "");
  EXPECT_THAT(checkSchedule(b.graph, {rest, {}, {}}),
              HasSubstr("not as task 3 wrote it"));
  // The scheduler keeps the whole, or the chunk where none may be dropped.
  ScheduleResult result = scheduleStep(b.graph, {});
  EXPECT_EQ(result.simulated.seconds, 8 + 3 + 5);
  EXPECT_EQ(checkSchedule(b.graph, result.schedule), "");
  SchedulerOptions chunks;
  chunks.keepGathered = false;
  result = scheduleStep(b.graph, chunks);
  EXPECT_EQ(result.simulated.seconds, 8 + 3 + 1 + 2 + 5);
}

TEST(SchedulerCheck, LabelsAreNamed) {
  Sample s;
  s.b.graph.tasks[1].label = "fc1";
  EXPECT_THAT(s.check({{kRun, 1}}), HasSubstr("task 1 (fc1)"));
}
