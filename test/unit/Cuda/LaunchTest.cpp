//===- LaunchTest.cpp - Tests of kernels and streams on a GPU -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <cmath>

using namespace zrt;
using namespace zrt::test;
using ::testing::ElementsAre;

TEST(CudaLaunch, OperandsAndScratchAreTheArguments) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4});
  uint32_t y = plan.buffer("y", {4}), z = plan.buffer("z", {4});
  plan.launch("double4", {x, y});
  plan.launch("add_two4", {y, z});
  plan.output(z);
  forCuda(plan);
  Running running(plan);
  running.set<float>("x", 0, {1, 2, 3, 4});
  running.set<float>("x", 1, {5, 6, 7, 8});
  running.step();
  EXPECT_THAT(running.get(0, 0), ElementsAre(4, 6, 8, 10));
  EXPECT_THAT(running.get(0, 1), ElementsAre(12, 14, 16, 18));
  EXPECT_GE(running.session.counters().library_workspace_bytes, 16u);
}

namespace {
/// x doubled on one stream and then two added on the other, by an event.
PlanBuilder twoStreams() {
  PlanBuilder plan(1);
  plan.streams(1, 1);
  uint32_t x = plan.input("x", {4});
  uint32_t y = plan.buffer("y", {4}), z = plan.buffer("z", {4});
  place(plan.launch("double4", {x, y}), 1, {}, 0);
  place(plan.launch("add_two4", {y, z}), 0, {0});
  plan.output(z);
  forCuda(plan);
  return plan;
}
} // namespace

TEST(CudaLaunch, StreamsWaitForEvents) {
  for (bool graph : {false, true}) {
    PlanBuilder plan = twoStreams();
    zrt_session_options options = {};
    options.graph = graph;
    Running running(plan, options);
    for (float step : {1.0f, 2.0f, 3.0f}) {
      running.set<float>("x", 0, {step, 0, 0, 0});
      running.step();
      EXPECT_THAT(running.get(0), ElementsAre(2 * step + 2, 2, 2, 2));
    }
  }
}

/// Spans follow each other on a stream, and a waiting stream says so.
TEST(CudaLaunch, CommandsHaveTheirTimes) {
  PlanBuilder plan = twoStreams();
  Running running(plan);
  running.set<float>("x", 0, {1, 2, 3, 4});
  running.step();
  std::vector<zrt_span> spans;
  ASSERT_FALSE(running.session.spans(0, spans));
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_GE(spans[0].start_ms, 0);
  EXPECT_GE(spans[0].end_ms, spans[0].start_ms);
  EXPECT_GE(spans[1].start_ms, spans[0].end_ms);
  EXPECT_GE(spans[1].waited_ms, 0);
  zrt_counters counters = running.session.counters();
  EXPECT_NEAR(counters.kernel_ms,
              spans[0].end_ms - spans[0].start_ms + spans[1].end_ms -
                  spans[1].start_ms,
              1e-6);
  EXPECT_GE(counters.step_ms, spans[1].end_ms);
  double ms[2];
  ASSERT_EQ(zrt_session_command_ms(running.session.get(), 0, ms, 2), ZRT_OK);
  EXPECT_NEAR(ms[0], spans[0].end_ms - spans[0].start_ms, 1e-6);
  running.session.resetCounters();
  EXPECT_EQ(running.session.counters().kernel_ms, 0);
}

/// In a graph no command is timed; the step is.
TEST(CudaLaunch, GraphsHaveTheTimeOfTheStepAlone) {
  PlanBuilder plan = twoStreams();
  zrt_session_options options = {};
  options.graph = 1;
  Running running(plan, options);
  for (int step = 0; step < 2; ++step) {
    running.set<float>("x", 0, {1, 2, 3, 4});
    running.step();
  }
  zrt_counters counters = running.session.counters();
  EXPECT_EQ(counters.kernel_ms, 0);
  EXPECT_GT(counters.step_ms, 0);
  EXPECT_EQ(counters.steps, 2u);
}

/// What is released is not what a later kernel may read.
TEST(CudaLaunch, PoisonShowsUsesOfWhatIsReleased) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4});
  uint32_t y = plan.buffer("y", {4}), z = plan.buffer("z", {4});
  plan.launch("double4", {x, y}).release = {y};
  plan.launch("double4", {y, z});
  plan.output(z);
  forCuda(plan);
  zrt_session_options options = {};
  options.poison = 1;
  Running running(plan, options);
  running.set<float>("x", 0, {1, 2, 3, 4});
  running.step();
  EXPECT_TRUE(std::isnan(running.get(0)[0]));
}
