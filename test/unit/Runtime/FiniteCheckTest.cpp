//===- FiniteCheckTest.cpp - Tests of the search for NaN ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is found in which type and view, and which of several findings is named.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "runtime/host/FiniteScan.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace zrt;
using namespace zrt::test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

template <typename T>
std::string found(const std::vector<T> &data, fb::DType type, View view,
                  bool negative = true) {
  auto finding = host::findNotFinite(
      reinterpret_cast<const uint8_t *>(data.data()), type, view, negative);
  if (!finding)
    return "";
  return std::to_string(finding->value) + "@" +
         std::to_string(finding->element) + " " +
         std::to_string(finding->count) + "/" + std::to_string(finding->total);
}

TEST(FiniteCheck, AllFloatingTypes) {
  View four = contiguousView({4});
  EXPECT_EQ(found<float>({1, 2, NAN, inf}, fb::DType_F32, four), "nan@2 2/4");
  EXPECT_EQ(found<double>({1, HUGE_VAL, 0, 1e300}, fb::DType_F64, four),
            "inf@1 1/4");
  // The largest f16, inf, nan; the largest bf16, -inf, nan.
  EXPECT_EQ(found<uint16_t>({0x7BFF, 0x7C00, 0x7C01, 0}, fb::DType_F16, four),
            "inf@1 2/4");
  EXPECT_EQ(found<uint16_t>({0x7F7F, 0xFF80, 0x7FC0, 0}, fb::DType_BF16, four),
            "-inf@1 2/4");
  EXPECT_EQ(found<float>({1e38f, -1e38f, 1e-45f, -0.0f}, fb::DType_F32, four),
            "");
  EXPECT_EQ(found<float>({}, fb::DType_F32, contiguousView({0, 4})), "");
}

TEST(FiniteCheck, OnlyWhatTheViewShows) {
  std::vector<float> data = {0, 1, NAN, 3, 4, inf};
  View column; // elements 1, 4
  column.offset = 1;
  column.sizes = {2, 1};
  column.strides = {3, 1};
  EXPECT_EQ(found(data, fb::DType_F32, column), "");
  column.offset = 2; // elements 2, 5
  EXPECT_EQ(found(data, fb::DType_F32, column), "nan@0 2/2");
}

TEST(FiniteCheck, MinusInfinityOnlyWhereAskedFor) {
  View two = contiguousView({2});
  EXPECT_EQ(found<float>({-inf, 1}, fb::DType_F32, two, false), "");
  EXPECT_EQ(found<float>({-inf, NAN}, fb::DType_F32, two, false), "nan@1 1/2");
}

zrt_session_options finite() {
  zrt_session_options options = {};
  options.check_finite = 1;
  return options;
}

std::string stepError(Running &running) {
  return running.session.step().message();
}

class FiniteStep : public ::testing::Test {
protected:
  FiniteStep() : plan(3) {
    x = plan.input("x", {4});
    y = plan.buffer("hidden", {4});
    z = plan.buffer("out", {4});
    fb::CommandT &first = plan.launch("double4", {x, y});
    first.writes = {1};
    first.location = "layers.0/mul";
    plan.launch("double4", {y, z}).writes = {1};
    plan.output(z);
  }

  /// The step's error where ranks have these inputs.
  std::string run(std::vector<float> a, std::vector<float> b,
                  std::vector<float> c) {
    Running running(plan, finite());
    running.set("x", 0, a);
    running.set("x", 1, b);
    running.set("x", 2, c);
    return stepError(running);
  }

  PlanBuilder plan;
  uint32_t x, y, z;
};

const std::vector<float> good = {1, 2, 3, 4};

TEST_F(FiniteStep, TheCommandThatWroteItIsNamed) {
  EXPECT_EQ(run(good, good, good), "");
  EXPECT_EQ(run(good, {1, 3e38f, 2, 3e38f}, good),
            "rank 1, command 0 (launch double4 on \"x\") of \"layers.0/mul\": "
            "\"hidden\" (f32[4]) has inf at [1]; 2 of its 4 elements are not "
            "finite");
  // 1e38 is finite when doubled once, not twice.
  EXPECT_EQ(run(good, good, {1, 2, 3, 1e38f}),
            "rank 2, command 1 (launch double4 on \"hidden\"): \"out\" "
            "(f32[4]) has inf at [3]; "
            "1 of its 4 elements are not finite");
}

TEST_F(FiniteStep, TheFirstCommandThenTheLowestRankIsNamed) {
  for (int again = 0; again < 20; ++again) {
    std::string error =
        run({1e38f, 2, 3, 4}, {3e38f, 2, 3, 4}, {3e38f, 2, 3, 4});
    EXPECT_EQ(error.rfind("rank 1, command 0 ", 0), 0u) << error;
  }
}

TEST_F(FiniteStep, InputsComeBeforeAllCommands) {
  EXPECT_EQ(
      run(good, good, {1, 2, NAN, 4}),
      "rank 2, before the first command: \"x\" (f32[4]) has nan at [2]; 1 "
      "of its 4 elements are not finite");
}

TEST_F(FiniteStep, NamesAreInert) {
  plan.program.commands[0]->location = "a\n\x1b[2J\"</script>";
  EXPECT_NE(run({3e38f, 2, 3, 4}, good, good)
                .find(R"(of "a\x0a\x1b[2J\"</script>":)"),
            std::string::npos);
}

TEST_F(FiniteStep, ASessionThatLostItsStateEnds) {
  Running running(plan, finite());
  for (int rank = 0; rank < 3; ++rank)
    running.set<float>("x", rank, {NAN, 2, 3, 4});
  std::string error = stepError(running);
  for (int rank = 0; rank < 3; ++rank)
    running.set("x", rank, good);
  EXPECT_EQ(stepError(running), "an earlier step failed: " + error);
}

TEST_F(FiniteStep, OffByDefault) {
  Running running(plan);
  for (int rank = 0; rank < 3; ++rank)
    running.set<float>("x", rank, {NAN, 2, 3, 4});
  EXPECT_EQ(stepError(running), "");
}

TEST_F(FiniteStep, ASkippedStepIsNoError) {
  auto output = std::make_unique<fb::OutputT>();
  output->name = "overflow";
  output->buffer = plan.input("flag", {1});
  plan.program.outputs.push_back(std::move(output));
  Running running(plan, finite());
  auto step = [&](float overflow, float value) {
    for (int rank = 0; rank < 3; ++rank) {
      running.set<float>("x", rank, {value, 2, 3, 4});
      running.set<float>("flag", rank, {overflow});
    }
    return stepError(running);
  };
  EXPECT_EQ(step(1, 3e38f), "");
  EXPECT_EQ(step(0, 1), "");
  EXPECT_NE(step(0, 3e38f), "");
}

/// A mask: -inf in a tensor on the way, and outputs without it.
TEST(FiniteMask, MinusInfinityAloneIsNoFinding) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4}), good = plan.input("good", {4});
  uint32_t y = plan.buffer("masked", {4}), z = plan.buffer("out", {4});
  plan.launch("double4", {x, y}).writes = {1};
  plan.launch("double4", {good, z}).writes = {1};
  plan.output(z);
  Running running(plan, finite());
  auto step = [&](float value, float other) {
    running.set<float>("x", 0, {value, 1, 1, 1});
    running.set<float>("good", 0, {other, 1, 1, 1});
    return stepError(running);
  };
  EXPECT_EQ(step(-3e38f, 1), "");
  EXPECT_EQ(step(-3e38f, 1), "");
  // The command was seen to write it; the other is to blame.
  EXPECT_NE(step(-3e38f, -3e38f).find("\"out\" (f32[4]) has -inf at [0]"),
            std::string::npos);
}

/// Tensors that the model has no name for are the results of their commands.
TEST(FiniteNames, NumbersAreNoNames) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("#7", {4});
  uint32_t z = plan.buffer("z", {4});
  plan.launch("double4", {x, y}).writes = {1};
  plan.launch("double4", {y, z}).writes = {1};
  Running running(plan, finite());
  running.set<float>("x", 0, {1, 1e38f, 3e38f, 1});
  EXPECT_EQ(stepError(running),
            "rank 0, command 0 (launch double4 on \"x\"): its result (f32[4]) "
            "has inf at [2]; 1 of its 4 elements are not finite");
  Running later(plan, finite());
  later.set<float>("x", 0, {1, 1e38f, 1, 1});
  EXPECT_NE(stepError(later).find("command 1 (launch double4): \"z\""),
            std::string::npos);
}

TEST(FiniteNames, TheMicroBatchIsNamed) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.program.micro_batches = 3;
  plan.program.micro_commands = 1;
  plan.launch("double4", {x, y}).writes = {1};
  plan.launch("double4", {x, y}).writes = {1};
  Running running(plan, finite());
  for (float value : {1.0f, 3e38f}) {
    running.set<float>("x", 0, {value, 1, 1, 1});
    Status failed = running.session.accumulate();
    EXPECT_FALSE(failed) << failed.message();
  }
  running.set<float>("x", 0, {1, 1, 1, 1});
  EXPECT_EQ(
      stepError(running).rfind("rank 0, micro-batch 2 of 3, command 0 ", 0),
      0u);
}

/// Without a list of what a kernel writes all that it is given is looked at.
TEST(FiniteMask, ProgramsThatDoNotSayWhatTheyWrite) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y});
  Running running(plan, finite());
  running.set<float>("x", 0, {3e38f, 1, 1, 1});
  EXPECT_NE(
      stepError(running).find("command 0 (launch double4 on \"x\"): \"y\""),
      std::string::npos);
}

TEST(FiniteCollective, WhatACollectiveWritesIsLookedAt) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4}), sum = plan.buffer("sum", {4});
  plan.collective(fb::Op_AllReduce, x, sum, 4, 4);
  Running running(plan, finite());
  running.set<float>("x", 0, {3e38f, 1, 1, 1});
  running.set<float>("x", 1, {3e38f, 1, 1, 1});
  EXPECT_EQ(
      stepError(running),
      "rank 0, command 0 (all_reduce): \"sum\" (f32[4]) has inf at [0]; 1 "
      "of its 4 elements are not finite");
}

/// State is looked at before the first step, and initial values named.
TEST(FiniteState, InitialValuesAreLookedAt) {
  PlanBuilder plan(1);
  plan.parameter("w", {2, 2}, false);
  Running running(plan, finite());
  float values[4] = {1, 2, NAN, 4};
  Status failed = running.session.setParameter(0, values, sizeof(values));
  ASSERT_FALSE(failed) << failed.message();
  EXPECT_EQ(
      stepError(running),
      "rank 0, before the first command: \"w\" (f32[2x2]) has nan at [1, 0]; 1 "
      "of its 4 elements are not finite");
}

} // namespace
