//===- SessionTest.cpp - Tests of sessions --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters, inputs and outputs of ranks, the failure of one of them, and the
// checks of state after a step.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <cstdlib>

using namespace zrt;
using namespace zrt::test;

extern "C" int refusesFromC(void);

namespace {
zrt_session_options checking() {
  zrt_session_options options = {};
  options.check = 1;
  return options;
}

void setParameter(Running &running, uint32_t index,
                  const std::vector<float> &data) {
  Status failed = running.session.setParameter(index, data.data(),
                                               data.size() * sizeof(float));
  ASSERT_FALSE(failed) << failed.message();
}

std::vector<float> getParameter(Running &running, uint32_t index) {
  std::vector<float> data(running.program.parameter(index).bytes / 4);
  Status failed =
      running.session.getParameter(index, data.data(), data.size() * 4);
  EXPECT_FALSE(failed) << failed.message();
  return data;
}
} // namespace

/// A parameter goes into shards and comes back whole, for even, uneven and
/// empty shards; the rest of each shard is zero.
TEST(Session, ShardsRoundTrip) {
  for (uint32_t ranks : {1, 2, 3, 4, 8})
    for (int64_t rows : {1, 3, 8, 10}) {
      PlanBuilder plan(ranks);
      plan.parameter("w", {rows, 3}, true);
      plan.output(plan.program.parameters[0]->buffer);
      Running running(plan);
      std::vector<float> data = numbers(5, rows * 3);
      setParameter(running, 0, data);
      EXPECT_EQ(getParameter(running, 0), data);
      int64_t chunk = (rows + ranks - 1) / ranks * 3;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        std::vector<float> shard = running.get(0, rank);
        for (int64_t i = 0; i < chunk; ++i) {
          size_t at = rank * chunk + i;
          EXPECT_EQ(shard[i], at < data.size() ? data[at] : 0.0f);
        }
      }
    }
}

TEST(Session, InitialValues) {
  PlanBuilder plan(2);
  plan.parameter("zeros", {3}, true, fb::Init_Zeros);
  plan.parameter("ones", {3}, true, fb::Init_Ones);
  plan.parameter("replicated", {3}, false, fb::Init_Ones);
  Running running(plan);
  EXPECT_EQ(getParameter(running, 0), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(getParameter(running, 1), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(getParameter(running, 2), (std::vector<float>{1, 1, 1}));
  Status failed = running.session.step(); // all have a value
  EXPECT_FALSE(failed) << failed.message();
}

TEST(Session, Constants) {
  PlanBuilder plan(2);
  uint32_t c = plan.buffer("c", {2}, fb::DType_F32, fb::Kind_Constant);
  auto constant = std::make_unique<fb::ConstantT>();
  constant->buffer = c;
  float values[2] = {3, 4};
  constant->data.resize(8);
  std::memcpy(constant->data.data(), values, 8);
  plan.program.constants.push_back(std::move(constant));
  plan.output(c);
  Running running(plan);
  for (uint32_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(running.get(0, rank), (std::vector<float>{3, 4}));
}

/// Buffers that each rank keeps for itself are averaged when read.
TEST(Session, BufferRoleIsAveraged) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4});
  fb::ParameterT &mean = plan.parameter("mean", {4}, false, fb::Init_Zeros);
  mean.role = fb::ParamRole_Buffer;
  plan.launch("double4", {x, mean.buffer});
  Running running(plan, checking());
  running.set<float>("x", 0, {1, 2, 3, 4});
  running.set<float>("x", 1, {3, 2, 1, 0});
  running.step();
  EXPECT_EQ(getParameter(running, 0), (std::vector<float>{4, 4, 4, 4}));
}

/// Outputs are combined in f64: Same is rank 0's.
TEST(Session, OutputsAcrossRanks) {
  PlanBuilder plan(3);
  uint32_t x = plan.input("x", {1});
  uint32_t y = plan.input("y", {1}, fb::DType_I64);
  plan.output(x, fb::AcrossRanks_Same);
  plan.output(x, fb::AcrossRanks_Mean);
  plan.output(x, fb::AcrossRanks_Sum);
  plan.output(y, fb::AcrossRanks_Sum);
  Running running(plan);
  for (int rank = 0; rank < 3; ++rank) {
    running.set("x", rank, std::vector<float>{0.1f + float(rank)});
    running.set("y", rank, std::vector<int64_t>{rank + 5});
  }
  running.step();
  double values[4];
  for (uint32_t output = 0; output < 4; ++output) {
    Status failed = running.session.readOutput(output, &values[output], 1);
    ASSERT_FALSE(failed) << failed.message();
  }
  double sum = double(0.1f) + double(1.1f) + double(2.1f);
  EXPECT_EQ(values[0], double(0.1f));
  EXPECT_EQ(values[1], sum / 3);
  EXPECT_EQ(values[2], sum);
  EXPECT_EQ(values[3], 18.0);
}

TEST(Session, InputRange) {
  PlanBuilder plan(2);
  plan.input("labels", {3}, fb::DType_I64);
  fb::InputT &labels = *plan.program.inputs[0];
  labels.has_range = true;
  labels.max = 9;
  labels.has_ignore = true;
  labels.ignore = -100;
  Running running(plan);
  auto set = [&](int rank, std::vector<int64_t> data) {
    return running.session.setInput(0, rank, data.data(), data.size() * 8);
  };
  EXPECT_FALSE(set(ZRT_ALL_RANKS, {0, 9, -100}));
  Status above = set(1, {0, 10, 3});
  EXPECT_EQ(above.code(), ZRT_ERROR_ARGUMENT);
  EXPECT_EQ(above.message(), "input labels of rank 1: value 10 at element 1 is "
                             "outside [0, 9] and is not -100");
  EXPECT_EQ(set(ZRT_ALL_RANKS, {0, 1, -1}).message(),
            "input labels: value -1 at element 2 is outside [0, 9] and is not "
            "-100");
}

/// Everything that the caller can get wrong has a message.
TEST(Session, ArgumentErrors) {
  PlanBuilder plan(2);
  plan.input("x", {4});
  plan.parameter("w", {4}, true);
  plan.program.parameters[0]->init_file = "w.safetensors";
  plan.output(0);
  Running running(plan);
  Session &session = running.session;
  float data[4] = {};
  double values[4];
  EXPECT_EQ(session.setParameter(0, data, 12).message(),
            "parameter w has 16 bytes, not 12");
  EXPECT_EQ(session.getParameter(1, data, 16).message(),
            "parameter 1 does not exist: the program has 1");
  EXPECT_EQ(session.setInput(0, 0, data, 4).message(),
            "input x has 16 bytes, not 4");
  EXPECT_EQ(session.setInput(0, 2, data, 16).message(), "input x: rank 2 of 2");
  EXPECT_EQ(session.setInput(3, 0, data, 16).message(),
            "input 3 does not exist: the program has 1");
  EXPECT_EQ(session.setInput(0, 0, nullptr, 16).message(), "the data is NULL");
  EXPECT_EQ(session.readOutput(0, values, 1).message(),
            "output x has 4 elements, not 1");
  EXPECT_EQ(session.readOutputOfRank(0, 2, data, 16).message(),
            "output x: rank 2 of 2");
  EXPECT_EQ(session.readOutputOfRank(0, 0, data, 3).message(),
            "output x has 16 bytes, not 3");
  EXPECT_EQ(session.step().message(),
            "parameter w has no value: set it first from w.safetensors");
  setParameter(running, 0, {1, 2, 3, 4});
  running.set<float>("x", 0, {1, 2, 3, 4});
  EXPECT_EQ(session.step().message(), "input x was not set for rank 1");
  running.set<float>("x", 1, {1, 2, 3, 4});
  running.step();
  EXPECT_EQ(session.step().message(), "input x was not set for rank 0");
  EXPECT_EQ(zrt_session_create(nullptr, nullptr, nullptr), ZRT_ERROR_ARGUMENT);
  EXPECT_EQ(std::string(zrt_last_error()), "the result is NULL");
}

/// One rank fails between collectives: all stop, the first error is reported
/// with rank and place, and the session says so from then on.
TEST(Session, ErrorInOneRankEndsAll) {
  for (const char *kernel : {"refuse_negative", "throw_number"})
    for (uint32_t ranks : {1, 2, 3, 8}) {
      PlanBuilder plan(ranks);
      uint32_t x = plan.input("x", {4});
      plan.collective(fb::Op_AllReduce, x, x, 4, 4);
      uint32_t y = plan.input("y", {4});
      plan.launch(kernel, {y}).location = "layer3";
      plan.collective(fb::Op_AllReduce, x, x, 4, 4);
      Running running(plan);
      std::vector<float> good = {1, 2, 3, 4}, bad = {-1, 2, 3, 4};
      for (int step = 0; step < 2; ++step) {
        running.set("x", ZRT_ALL_RANKS, good);
        running.set("y", ZRT_ALL_RANKS, good);
        running.step();
      }
      running.set("x", ZRT_ALL_RANKS, good);
      running.set("y", ZRT_ALL_RANKS, good);
      running.set("y", int(ranks) - 1, bad);
      Status failed = running.session.step();
      EXPECT_EQ(failed.code(), ZRT_ERROR_EXECUTION);
      std::string cause = kernel == std::string("throw_number")
                              ? "unknown exception"
                              : "the element is negative";
      std::string expected = "rank " + std::to_string(ranks - 1) +
                             ", command 1 (launch " + kernel +
                             ") from layer3: " + cause;
      EXPECT_EQ(failed.message(), expected);
      EXPECT_EQ(running.session.step().message(),
                "an earlier step failed: " + expected);
    }
}

/// The check mode finds padding that a step made nonzero.
TEST(Session, CheckFindsPadding) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4});
  fb::ParameterT &w = plan.parameter("w", {7}, true, fb::Init_Zeros);
  plan.launch("double4", {x, w.buffer});
  for (bool check : {false, true}) {
    Running running(plan, check ? checking() : zrt_session_options{});
    running.set<float>("x", ZRT_ALL_RANKS, {1, 1, 1, 0});
    running.step();
    running.set<float>("x", ZRT_ALL_RANKS, {1, 1, 1, 1});
    Status failed = running.session.step();
    EXPECT_EQ(failed.message(), check ? "check: padding of parameter w on rank "
                                        "1 is not zero (byte 15)"
                                      : "");
  }
}

TEST(Session, CheckFindsReplicasThatDiffer) {
  PlanBuilder plan(3);
  uint32_t x = plan.input("x", {4});
  fb::ParameterT &w = plan.parameter("w", {4}, false, fb::Init_Zeros);
  plan.launch("double4", {x, w.buffer});
  Running running(plan, checking());
  running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
  running.step();
  running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
  running.set<float>("x", 2, {1, 2, 3, 5});
  EXPECT_EQ(running.session.step().message(),
            "check: parameter w differs between rank 0 and 2");
}

TEST(Session, CheckFindsOutputsThatDiffer) {
  PlanBuilder plan(2);
  plan.output(plan.input("x", {1}));
  Running running(plan, checking());
  running.set<float>("x", 0, {1});
  running.set<float>("x", 1, {2});
  EXPECT_EQ(running.session.step().message(),
            "check: output x differs between rank 0 and 1");
}

/// The program may go before its sessions.
TEST(Session, OutlivesTheProgram) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y});
  plan.output(y);
  Running running(plan);
  running.program = Program();
  std::vector<float> data = {1, 2, 3, 4};
  EXPECT_FALSE(running.session.setInput(0, ZRT_ALL_RANKS, data.data(), 16));
  running.step();
  EXPECT_FALSE(running.session.readOutputOfRank(0, 1, data.data(), 16));
  EXPECT_EQ(data, (std::vector<float>{2, 4, 6, 8}));
}

/// ZRT_CHECK and ZRT_POISON do for a whole run what the options do.
TEST(Session, ModesFromTheEnvironment) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4});
  plan.output(plan.buffer("never", {1}));
  plan.output(x);
  setenv("ZRT_POISON", "1", 1);
  Running poisoned(plan);
  setenv("ZRT_POISON", "0", 1);
  Running plain(plan);
  unsetenv("ZRT_POISON");
  for (Running *running : {&poisoned, &plain}) {
    running->set<float>("x", 0, {1, 2, 3, 4});
    running->step();
    float value = running->get(0)[0];
    EXPECT_EQ(value != value, running == &poisoned);
  }
  PlanBuilder two(2);
  two.output(two.input("x", {1}));
  setenv("ZRT_CHECK", "1", 1);
  Running checked(two);
  unsetenv("ZRT_CHECK");
  checked.set<float>("x", 0, {1});
  checked.set<float>("x", 1, {2});
  EXPECT_EQ(checked.session.step().message(),
            "check: output x differs between rank 0 and 1");
}

/// A rank's library calls may use more than one thread. (ThreadSanitizer does
/// not see how OpenMP's threads wait for each other.)
#if !ZERO_TEST_UNDER_TSAN
TEST(Session, ThreadsPerRank) {
  PlanBuilder plan(1);
  uint32_t a = plan.input("a", {64, 64}), b = plan.buffer("b", {64, 64});
  fb::CommandT &call = plan.command(fb::Op_Call, "matmul");
  for (uint32_t buffer : {a, a, b})
    plan.operand(call, buffer);
  plan.output(b);
  zrt_session_options options = {};
  options.threads_per_rank = 2;
  Running running(plan, options);
  running.set("a", 0, std::vector<float>(64 * 64, 2.0f));
  running.step();
  EXPECT_EQ(running.get(0), std::vector<float>(64 * 64, 256.0f));
}
#endif

TEST(Session, HeaderIsC) { EXPECT_TRUE(refusesFromC()); }
