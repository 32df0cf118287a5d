//===- SchedulerTest.cpp --------------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedules are valid and within their budget, time never rises with it, all
// passes together are no worse than any alone, and equal input gives equal
// output.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/Scheduler.h"
#include "ScheduleGraphs.h"

#include "gtest/gtest.h"
#include <limits>

using namespace mlir::zero;

constexpr auto kRun = ScheduleStep::Run;
constexpr auto kStart = ScheduleStep::Start;
constexpr auto kWait = ScheduleStep::Wait;

/// Twelve layers: too many for branch and bound.
static StepGraph largeStep(bool replicate = false) {
  std::mt19937 random(5);
  RandomShape shape;
  shape.layers = 12;
  shape.replicate = replicate;
  StepGraph graph = randomStep(random, shape);
  for (StepTask &task : graph.tasks)
    task.latency = task.channel ? task.seconds / 4 : 0;
  return graph;
}

/// What holds for every result.
static void expectConsistent(const StepGraph &graph,
                             const ScheduleResult &result, int64_t budget) {
  EXPECT_EQ(checkSchedule(graph, result.schedule), "");
  SimulatedStep simulated = simulate(graph, result.schedule);
  EXPECT_EQ(simulated.seconds, result.simulated.seconds);
  EXPECT_EQ(simulated.peakBytes, result.simulated.peakBytes);
  EXPECT_GE(simulated.seconds, result.lowerBoundSeconds * (1 - 1e-12));
  EXPECT_EQ(result.feasible, budget < 0 || simulated.peakBytes <= budget);
  EXPECT_EQ(result.missingBytes,
            result.feasible ? 0 : simulated.peakBytes - budget);
  // The point of the front that it is; at equal time the lowest peak.
  bool isOnFront = false;
  for (const ParetoPoint &point : result.front)
    isOnFront |= point.seconds == simulated.seconds &&
                 point.peakBytes == simulated.peakBytes;
  EXPECT_TRUE(isOnFront);
  int64_t sum = 0;
  for (size_t i = 0; i != result.peakBuffers.size(); ++i) {
    int64_t bytes = graph.buffers[result.peakBuffers[i]].bytes;
    sum += bytes;
    int32_t before = result.peakBuffers[i ? i - 1 : 0];
    EXPECT_GE(graph.buffers[before].bytes, bytes);
  }
  EXPECT_EQ(sum, simulated.peakBytes);
}

static void expectStaircase(const std::vector<ParetoPoint> &front) {
  for (size_t i = 1; i < front.size(); ++i) {
    EXPECT_LT(front[i - 1].seconds, front[i].seconds);
    EXPECT_GT(front[i - 1].peakBytes, front[i].peakBytes);
  }
}

TEST(Scheduler, TimeNeverRisesWithTheBudget) {
  for (bool replicate : {false, true}) {
    StepGraph graph = largeStep(replicate);
    ScheduleResult free = scheduleStep(graph, {});
    expectConsistent(graph, free, -1);
    expectStaircase(free.front);
    int64_t least = free.front.back().peakBytes;
    double before = std::numeric_limits<double>::max();
    for (int64_t budget = least - 2; budget <= free.simulated.peakBytes + 9;
         budget += 1 + (budget > least) * (free.simulated.peakBytes / 7)) {
      SchedulerOptions options;
      options.memoryBytes = budget;
      ScheduleResult result = scheduleStep(graph, options);
      expectConsistent(graph, result, budget);
      EXPECT_EQ(result.feasible, budget >= least);
      EXPECT_LE(result.simulated.seconds, before);
      before = result.simulated.seconds;
      EXPECT_EQ(result.front.size(), free.front.size());
    }
    EXPECT_GE(before, free.simulated.seconds);
  }
}

TEST(Scheduler, SaysWhatIsMissing) {
  StepGraph graph = largeStep();
  SchedulerOptions options;
  options.memoryBytes = 0;
  ScheduleResult result = scheduleStep(graph, options);
  EXPECT_FALSE(result.feasible);
  EXPECT_EQ(result.missingBytes, result.front.back().peakBytes);
  expectConsistent(graph, result, 0);
}

TEST(Scheduler, EqualInputGivesEqualOutput) {
  StepGraph graph = largeStep(true);
  ScheduleResult a = scheduleStep(graph, {}), b = scheduleStep(graph, {});
  EXPECT_EQ(a.schedule.steps, b.schedule.steps);
  EXPECT_EQ(a.schedule.buckets, b.schedule.buckets);
  EXPECT_EQ(a.schedule.dropped, b.schedule.dropped);
}

TEST(Scheduler, TogetherIsNoWorseThanAnyPassAlone) {
  bool SchedulerOptions::*passes[] = {
      &SchedulerOptions::prefetch, &SchedulerOptions::keepGathered,
      &SchedulerOptions::reorder, &SchedulerOptions::bucket};
  for (bool replicate : {false, true}) {
    StepGraph graph = largeStep(replicate);
    std::vector<ParetoPoint> joint = scheduleStep(graph, {}).front;
    for (auto pass : passes) {
      SchedulerOptions alone;
      for (auto other : passes)
        alone.*other = other == pass;
      ScheduleResult result = scheduleStep(graph, alone);
      expectConsistent(graph, result, -1);
      for (const ParetoPoint &point : result.front) {
        bool isMet = false;
        for (const ParetoPoint &other : joint)
          isMet |= other.seconds <= point.seconds &&
                   other.peakBytes <= point.peakBytes;
        EXPECT_TRUE(isMet) << point.seconds << " s " << point.peakBytes;
      }
    }
  }
}

TEST(Scheduler, NothingAllowedIsSerial) {
  StepGraph graph = largeStep();
  SchedulerOptions options;
  options.prefetch = options.keepGathered = false;
  options.reorder = options.bucket = false;
  ScheduleResult result = scheduleStep(graph, options);
  expectConsistent(graph, result, -1);
  EXPECT_EQ(result.simulated.seconds,
            simulate(graph, serialSchedule(graph)).seconds);
  EXPECT_TRUE(result.schedule.buckets.empty());
  EXPECT_TRUE(result.schedule.dropped.empty());
}

namespace {
/// Five computes in a row of 10 s and 10 bytes each; the last also uses what a
/// gather of 15 s brings.
struct Chain {
  StepBuilder b;
  int32_t gather;

  Chain() {
    b.graph.channels = {"compute", "all_gather", "reduce_scatter"};
    int32_t shard = b.buffer(1, MemoryKind::Parameter, true);
    int32_t full = b.buffer(100, MemoryKind::Gathered);
    int32_t value = b.buffer(10, MemoryKind::Activation);
    b.run(10, {}, {value});
    for (int i = 0; i != 3; ++i) {
      int32_t next = b.buffer(10, MemoryKind::Activation);
      b.run(10, {value}, {next});
      value = next;
    }
    gather = b.task(TaskKind::AllGather, 1, 15, {shard}, {full});
    b.run(10, {value, full}, {b.buffer(10, MemoryKind::Activation)});
  }
};
} // namespace

TEST(Scheduler, StartsJustInTime) {
  Chain chain;
  // Needed at 40 s: the last step that is reached by 25 s is the third run.
  ScheduleResult result = scheduleStep(chain.b.graph, {});
  std::vector<ScheduleStep> expected = {{kRun, 0}, {kRun, 1}, {kStart, 4},
                                        {kRun, 2}, {kRun, 3}, {kWait, 4},
                                        {kRun, 5}};
  EXPECT_EQ(result.schedule.steps, expected);
  EXPECT_EQ(result.simulated.seconds, 50);
  EXPECT_EQ(result.lowerBoundSeconds, 50);
}

TEST(Scheduler, TakesTheTimeThatMemoryLeaves) {
  Chain chain;
  // The third and fourth run take more memory: no gather beside them.
  chain.b.graph.buffers[4].bytes = 200;
  SchedulerOptions options;
  options.memoryBytes = 300;
  ScheduleResult result = scheduleStep(chain.b.graph, options);
  EXPECT_TRUE(result.feasible);
  EXPECT_EQ(result.simulated.seconds, 65);
}

TEST(Scheduler, KeepsWhatIsWorthIt) {
  // A channel that is always busy: each gather dropped is time saved.
  std::mt19937 random(3);
  RandomShape shape;
  shape.layers = 10;
  StepGraph graph = randomStep(random, shape);
  for (StepTask &task : graph.tasks)
    if (task.kind == TaskKind::AllGather)
      task.seconds *= 10;
  ScheduleResult free = scheduleStep(graph, {});
  SchedulerOptions options;
  options.memoryBytes = free.front.back().peakBytes;
  ScheduleResult tight = scheduleStep(graph, options);
  EXPECT_GT(free.schedule.dropped.size(), tight.schedule.dropped.size());
  EXPECT_LT(free.simulated.seconds, tight.simulated.seconds);
}

TEST(Scheduler, BucketsKeepToTheirClassAndSize) {
  StepGraph graph = largeStep();
  for (size_t i = 0; i != graph.tasks.size(); ++i)
    graph.tasks[i].bucketClass = i % 2;
  SchedulerOptions options;
  options.bucketBytes = 200;
  ScheduleResult result = scheduleStep(graph, options);
  EXPECT_EQ(checkSchedule(graph, result.schedule), "");
  EXPECT_FALSE(result.schedule.buckets.empty());
  for (const std::vector<int32_t> &bucket : result.schedule.buckets) {
    int64_t read = 0, written = 0;
    for (int32_t member : bucket) {
      for (int32_t buffer : graph.tasks[member].reads)
        read += graph.buffers[buffer].bytes;
      for (int32_t buffer : graph.tasks[member].writes)
        written += graph.buffers[buffer].bytes;
    }
    EXPECT_LE(std::max(read, written), 200);
  }
}

TEST(Scheduler, EmptyAndComputeOnlySteps) {
  StepBuilder b;
  ScheduleResult empty = scheduleStep(b.graph, {});
  EXPECT_TRUE(empty.feasible);
  EXPECT_TRUE(empty.schedule.steps.empty());
  b.run(2, {}, {b.buffer(7, MemoryKind::Activation)});
  ScheduleResult one = scheduleStep(b.graph, {});
  EXPECT_EQ(one.simulated.seconds, 2);
  EXPECT_EQ(one.simulated.peakBytes, 7);
}

TEST(Scheduler, RandomStepsAreValid) {
  std::mt19937 random(9);
  for (int i = 0; i != 20; ++i) {
    RandomShape shape;
    shape.layers = 5 + random() % 4;
    shape.regather = random() % 2;
    shape.replicate = random() % 2;
    shape.lateUpdate = random() % 2;
    StepGraph graph =
        i % 2 ? randomTasks(random, 40, 30) : randomStep(random, shape);
    ScheduleResult free = scheduleStep(graph, {});
    expectConsistent(graph, free, -1);
    SchedulerOptions options;
    options.memoryBytes =
        (free.front.front().peakBytes + free.front.back().peakBytes) / 2;
    expectConsistent(graph, scheduleStep(graph, options), options.memoryBytes);
  }
}

/// Every step of a schedule matters: without any of them, and with any of them
/// twice, it is wrong.
TEST(Scheduler, MutationsAreCaught) {
  StepGraph graph = largeStep(true);
  Schedule schedule = scheduleStep(graph, {}).schedule;
  for (size_t i = 0; i != schedule.steps.size(); ++i) {
    Schedule without = schedule, twice = schedule;
    without.steps.erase(without.steps.begin() + i);
    EXPECT_NE(checkSchedule(graph, without), "") << "without step " << i;
    twice.steps.insert(twice.steps.begin() + i, schedule.steps[i]);
    EXPECT_NE(checkSchedule(graph, twice), "") << "step " << i << " twice";
  }
}

TEST(Scheduler, AHundredThousandTasks) {
  std::mt19937 random(1);
  RandomShape shape;
  shape.layers = 14'500;
  StepGraph graph = randomStep(random, shape);
  ASSERT_GE(graph.tasks.size(), 100'000u);
  SchedulerOptions options;
  options.keepGathered = options.reorder = options.bucket = false;
  ScheduleResult result = scheduleStep(graph, options);
  EXPECT_EQ(checkSchedule(graph, result.schedule), "");
  EXPECT_LT(result.simulated.seconds,
            simulate(graph, serialSchedule(graph)).seconds);
}
