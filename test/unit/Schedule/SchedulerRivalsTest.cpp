//===- SchedulerRivalsTest.cpp --------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Within the memory that another rule takes, ours is never slower, and at its
// speed ours never takes more memory. bench/schedule has the full-size models.
//
//===----------------------------------------------------------------------===//

#include "bench/schedule/ModelStep.h"
#include "bench/schedule/Rivals.h"
#include "zero/Schedule/Scheduler.h"

#include "gtest/gtest.h"

using namespace mlir::zero;

/// Six layers of `shape`.
static StepGraph smallStep(LlamaShape shape, int64_t tokens, int64_t ranks) {
  static const CostModel cost(llvm::cantFail(loadMachine("h100")));
  shape.layers = 6;
  shape.tokens = tokens;
  return llamaStep(shape, cost, ranks);
}

static void expectNoBetter(const StepGraph &graph, const Schedule &rival,
                           const std::vector<ParetoPoint> &front) {
  ASSERT_EQ(checkSchedule(graph, rival), "");
  SimulatedStep theirs = simulate(graph, rival);
  bool isMet = false;
  for (const ParetoPoint &point : front)
    isMet |=
        point.seconds <= theirs.seconds && point.peakBytes <= theirs.peakBytes;
  EXPECT_TRUE(isMet) << theirs.seconds << " s within " << theirs.peakBytes;
}

static void compare(const StepGraph &graph) {
  std::vector<ParetoPoint> front = scheduleStep(graph, {}).front;
  expectNoBetter(graph, serialSchedule(graph), front);
  for (int32_t depth : {1, 2, 3})
    expectNoBetter(graph, scheduleFsdp2(graph, depth), front);
  for (int64_t memory : {20, 40, 80})
    expectNoBetter(graph, scheduleDeepCompile(graph, memory << 30), front);
  expectNoBetter(graph, scheduleGreedyBuckets(graph), front);
}

TEST(SchedulerRivals, ComputeBound) {
  compare(smallStep(llama8b(), 8192, 8));
  compare(smallStep(llama70b(), 8192, 64));
}

TEST(SchedulerRivals, LatencyBound) {
  compare(smallStep(llama8b(), 2048, 1024));
  compare(smallStep(llama70b(), 2048, 256));
}

TEST(SchedulerRivals, LayersOfGigabytes) {
  compare(smallStep(llama405b(), 2048, 256));
}
