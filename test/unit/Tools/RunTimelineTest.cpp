//===- RunTimelineTest.cpp - Tests of zero-run's timelines ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A hand-made plan with two streams: what was measured, and what the plan
// predicts.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/RunTimeline.h"

#include "../Runtime/PlanBuilder.h"

#include <gmock/gmock.h>

using namespace zero_tools;
using namespace zrt::test;
using mlir::zero::TaskKind;
using mlir::zero::Timeline;
using ::testing::ElementsAre;
namespace fb = zrt::fb;

namespace {

constexpr uint32_t ranks = 4;

fb::CommandT &copy(PlanBuilder &plan, uint32_t from, uint32_t to) {
  fb::CommandT &command = plan.command(fb::Op_Copy);
  plan.operand(command, from);
  plan.operand(command, to);
  return command;
}

void plan(fb::CommandT &command, double start, double seconds) {
  command.planned_start = start;
  command.planned_seconds = seconds;
}

/// Gathers w and reduces y beside a copy, both of which the last copy awaits.
PlanBuilder twoStreams() {
  PlanBuilder made(ranks);
  made.program.grid = {2, 2};
  made.program.stage = 3;
  made.program.budget_bytes = 5000;
  made.program.arena_lower_bound = 70;
  made.program.planned_step_seconds = 11;
  made.streams(2, 3);
  made.program.stream_names = {"compute", "all_gather", "all_reduce.0"};
  uint32_t w = made.parameter("w", {6}, true, fb::Init_Zeros).buffer;
  fb::ParameterT &state = made.parameter("m", {6}, true, fb::Init_Zeros);
  state.role = fb::ParamRole_State;
  state.of = "w";
  uint32_t x = made.input("x", {6}), y = made.input("y", {6});
  uint32_t g = made.buffer("g", {6}, fb::DType_F32, fb::Kind_Gathered);
  plan(copy(made, x, y), 0, 1);
  made.program.commands.back()->signal = 0;
  fb::CommandT &gather = made.collective(fb::Op_AllGather, w, g, 6, 3);
  gather.axes = {1};
  gather.label = "gather w";
  place(gather, 1, {}, 1);
  plan(gather, 0, 4);
  fb::CommandT &reduce = made.collective(fb::Op_AllReduce, y, y, 6, 6);
  reduce.axes = {0};
  place(reduce, 2, {0}, 2);
  plan(reduce, 1, 8);
  place(copy(made, g, x), 0, {1, 2});
  plan(*made.program.commands.back(), 9, 2);
  return made;
}

std::vector<std::string> names(const Timeline &timeline) {
  std::vector<std::string> result;
  for (const auto &span : timeline.spans)
    if (span.rank == 0)
      result.push_back(span.channel + ": " + span.name);
  return result;
}

void checkFacts(const Timeline &timeline) {
  EXPECT_EQ(mlir::zero::checkTimeline(timeline), "");
  EXPECT_EQ(timeline.model, "model");
  EXPECT_EQ(timeline.machine, "machine");
  EXPECT_EQ(timeline.ranks, 4);
  EXPECT_THAT(timeline.grid, ElementsAre(2, 2));
  EXPECT_EQ(timeline.stage, 3);
  EXPECT_EQ(timeline.budgetBytes, 5000);
  EXPECT_EQ(timeline.lowerBound, 70);
  EXPECT_GT(timeline.plannedPeak, 0);
  EXPECT_THAT(names(timeline),
              ElementsAre("compute: copy", "all_gather: gather w",
                          "all_reduce.0: all_reduce", "compute: copy"));
  EXPECT_EQ(timeline.spans[1].kind, TaskKind::AllGather);
  EXPECT_EQ(timeline.spans[2].kind, TaskKind::AllReduce);
  EXPECT_EQ(timeline.spans[3].kind, TaskKind::Compute);
  EXPECT_EQ(timeline.spans[1].sentBytes, 12); // half of 24 bytes
  EXPECT_EQ(timeline.spans[2].sentBytes, 24); // twice that
  EXPECT_EQ(timeline.spans[2].command, 2);
  ASSERT_EQ(timeline.parameters.size(), 1u);
  const auto &w = timeline.parameters[0];
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.type, "f32");
  EXPECT_EQ(w.gathered, "once");
  EXPECT_THAT(w.shape, ElementsAre(6));
  EXPECT_THAT(w.shard, ElementsAre(3));
  EXPECT_EQ(w.bytes, 24); // with the state
  auto gathered = size_t(mlir::zero::MemoryKind::Gathered);
  ASSERT_EQ(timeline.memory.size(), 2u);
  EXPECT_EQ(timeline.memory[0].time, 0);
  EXPECT_EQ(timeline.memory[0].bytes[gathered], 0);
  EXPECT_EQ(timeline.memory[1].bytes[gathered], 24);
}

TEST(RunTimeline, Predicted) {
  Running running(twoStreams());
  auto timeline = predictedTimeline(running.program, "model", "machine");
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->source, "predicted");
  checkFacts(*timeline);
  EXPECT_EQ(timeline->spans.size(), 4u);
  EXPECT_EQ(timeline->stepSeconds, 11);
  // Compute stands still from 1: for the gather to 4, for the rest to 9.
  EXPECT_EQ(timeline->exposedSeconds, 8);
  EXPECT_EQ(timeline->spans[1].exposed, 3);
  EXPECT_EQ(timeline->spans[2].exposed, 5);
  EXPECT_EQ(timeline->spans[1].reason,
            "needed 1000.000 ms after its start, took 4000.000 ms");
  EXPECT_EQ(timeline->spans[0].reason, "");
  EXPECT_EQ(timeline->memory[1].time, 1); // compute has reached the gather
}

TEST(RunTimeline, PlansWithoutTimesPredictNothing) {
  PlanBuilder made = twoStreams();
  made.program.commands[2]->planned_start = -1;
  Running partly(made);
  EXPECT_FALSE(predictedTimeline(partly.program, "", ""));
  made = twoStreams();
  made.program.planned_step_seconds = -1;
  Running none(made);
  EXPECT_FALSE(predictedTimeline(none.program, "", ""));
}

TEST(RunTimeline, Measured) {
  Running running(twoStreams());
  for (int step = 0; step < 2; ++step) {
    running.session.resetCounters();
    for (const char *input : {"x", "y"})
      running.set(input, ZRT_ALL_RANKS, std::vector<float>(6, 1.0f));
    running.step();
  }
  Timeline timeline =
      measuredTimeline(running.program, running.session, "model", "machine");
  EXPECT_EQ(timeline.source, "measured");
  checkFacts(timeline);
  EXPECT_EQ(timeline.spans.size(), 4u * ranks);
  EXPECT_DOUBLE_EQ(timeline.stepSeconds * 1e3,
                   running.session.counters().step_ms);
  EXPECT_DOUBLE_EQ(timeline.exposedSeconds * 1e3,
                   running.session.counters().exposed_comm_ms);
  double exposed = 0;
  for (const auto &span : timeline.spans) {
    exposed += span.exposed / ranks;
    EXPECT_LE(span.end, timeline.stepSeconds);
    EXPECT_EQ(span.exposed > 0, !span.reason.empty()) << span.name;
  }
  EXPECT_NEAR(exposed, timeline.exposedSeconds, 1e-9);
}

/// Adds an arena and puts a buffer at its beginning.
void move(PlanBuilder &plan, uint32_t buffer, fb::Space space) {
  auto arena = std::make_unique<fb::ArenaT>();
  arena->space = space;
  arena->alignment = 64;
  arena->bytes = 64;
  plan.program.buffers[buffer]->arena = uint32_t(plan.program.arenas.size());
  plan.program.buffers[buffer]->offset = 0;
  plan.program.arenas.push_back(std::move(arena));
}

/// Copies between memory spaces say which way they go and what they carry.
TEST(RunTimeline, CopiesBetweenSpaces) {
  PlanBuilder made(2);
  made.streams(2, 1);
  made.program.stream_names = {"compute", "to_host", "to_device"};
  uint32_t x = made.input("x", {6}), y = made.buffer("y", {6});
  uint32_t h = made.buffer("h", {6});
  move(made, h, fb::Space_Host);
  place(copy(made, x, h), 1, {}, 0);
  place(copy(made, h, y), 2, {0});
  copy(made, x, y);
  Running running(made);
  running.set("x", ZRT_ALL_RANKS, std::vector<float>(6, 1.0f));
  running.step();
  Timeline timeline =
      measuredTimeline(running.program, running.session, "", "");
  ASSERT_EQ(timeline.spans.size(), 6u);
  EXPECT_EQ(timeline.spans[0].kind, TaskKind::CopyOut);
  EXPECT_EQ(timeline.spans[0].sentBytes, 24);
  EXPECT_EQ(timeline.spans[1].kind, TaskKind::CopyIn);
  EXPECT_EQ(timeline.spans[1].sentBytes, 24);
  EXPECT_EQ(timeline.spans[2].kind, TaskKind::Compute);
  EXPECT_EQ(timeline.spans[2].sentBytes, 0);
  EXPECT_EQ(timeline.host.plannedPeak, 64);
  EXPECT_EQ(timeline.disk.plannedPeak, 0);
  auto activations = size_t(mlir::zero::MemoryKind::Activation);
  ASSERT_FALSE(timeline.host.memory.empty());
  EXPECT_EQ(timeline.host.memory[0].bytes[activations], 24);
  EXPECT_TRUE(timeline.disk.memory.empty());
}

/// A collective on the compute stream is exposed from begin to end.
TEST(RunTimeline, CollectiveOfTheComputeStream) {
  PlanBuilder made(2);
  uint32_t x = made.input("x", {4});
  made.collective(fb::Op_AllReduce, x, x, 4, 4);
  Running running(made);
  running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 1.0f));
  running.step();
  Timeline timeline =
      measuredTimeline(running.program, running.session, "", "");
  ASSERT_EQ(timeline.spans.size(), 2u);
  EXPECT_EQ(timeline.spans[1].exposed,
            timeline.spans[1].end - timeline.spans[1].start);
  EXPECT_EQ(timeline.spans[1].reason, "runs on the compute channel");
}

} // namespace
