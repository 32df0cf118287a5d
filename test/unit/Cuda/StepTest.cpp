//===- StepTest.cpp - Tests of parameters and micro-batches on GPUs -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

using namespace zrt;
using namespace zrt::test;
using ::testing::ElementsAre;

TEST(CudaStep, MicroBatchesRunTheirCommands) {
  for (int graph : {0, 1}) {
    PlanBuilder plan(2);
    uint32_t x = plan.input("x", {4}), sum = plan.buffer("sum", {4});
    uint32_t y = plan.buffer("y", {4});
    plan.launch("double4", {x, sum});
    plan.collective(fb::Op_AllReduce, sum, y, 4, 4);
    plan.output(y);
    plan.output(sum);
    plan.program.micro_batches = 3;
    plan.program.micro_commands = 1;
    zrt_session_options options = {};
    options.graph = graph;
    expectSame(plan, 1e-6, options);
  }
}

TEST(CudaStep, InitialValues) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y});
  plan.parameter("zeros", {3}, true, fb::Init_Zeros);
  plan.parameter("ones", {3}, true, fb::Init_Ones);
  plan.parameter("file", {3}, false);
  forCuda(plan);
  Running running(plan);
  std::vector<float> read(3);
  ASSERT_FALSE(running.session.getParameter(0, read.data(), 12));
  EXPECT_THAT(read, ElementsAre(0, 0, 0));
  ASSERT_FALSE(running.session.getParameter(1, read.data(), 12));
  EXPECT_THAT(read, ElementsAre(1, 1, 1));
  setInputs(running, 1);
  EXPECT_EQ(running.session.step().message(),
            "parameter file has no value: set it first");
}

/// Buffers of each rank are averaged; others come from the first rank.
TEST(CudaStep, BuffersAreAveraged) {
  PlanBuilder plan(2);
  plan.parameter("mean", {2}, false).role = fb::ParamRole_Buffer;
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y});
  forCuda(plan);
  Running running(plan);
  float first[2] = {1, 2}, second[2] = {3, 6}, mean[2] = {};
  ASSERT_FALSE(running.session.writeChunk(0, 0, 0, first, 8));
  ASSERT_FALSE(running.session.writeChunk(0, 1, 0, second, 8));
  ASSERT_FALSE(running.session.getParameter(0, mean, 8));
  EXPECT_THAT(mean, ElementsAre(2, 4));
}

TEST(CudaStep, OutputsAcrossRanks) {
  for (fb::AcrossRanks across :
       {fb::AcrossRanks_Same, fb::AcrossRanks_Mean, fb::AcrossRanks_Sum}) {
    PlanBuilder plan(2);
    uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
    plan.launch("double4", {x, y});
    plan.output(y, across);
    forCuda(plan);
    Running running(plan);
    running.set<float>("x", 0, {1, 1, 1, 1});
    running.set<float>("x", 1, {2, 2, 2, 2});
    running.step();
    double values[4];
    ASSERT_FALSE(running.session.readOutput(0, values, 4));
    EXPECT_EQ(values[0], across == fb::AcrossRanks_Same   ? 2
                         : across == fb::AcrossRanks_Mean ? 3
                                                          : 6);
  }
}

TEST(CudaStep, CheckComparesReplicas) {
  PlanBuilder plan(2);
  plan.parameter("w", {4}, false);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y});
  forCuda(plan);
  zrt_session_options options = {};
  options.check = 1;
  Running running(plan, options);
  std::vector<float> one(4, 1), two(4, 2);
  ASSERT_FALSE(running.session.writeChunk(0, 0, 0, one.data(), 16));
  ASSERT_FALSE(running.session.writeChunk(0, 1, 0, two.data(), 16));
  setInputs(running, 1);
  EXPECT_EQ(running.session.step().message(),
            "check: parameter w differs between rank 0 and 1");
}

TEST(CudaStep, CheckLooksAtPadding) {
  PlanBuilder plan(2);
  fb::ParameterT &w = plan.parameter("w", {3}, true, fb::Init_Ones);
  uint32_t x = plan.input("x", {2}), held = w.buffer;
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  plan.operand(copy, x);
  plan.operand(copy, held);
  forCuda(plan);
  zrt_session_options options = {};
  options.check = 1;
  Running running(plan, options);
  setInputs(running, 1);
  EXPECT_EQ(running.session.step().message(),
            "check: padding of parameter w on rank 1 is not zero (byte 4)");
}
