//===- AccumulateTest.cpp - Tests of micro-batches ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs whose first commands run once for each micro-batch before the last.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

using namespace zrt;
using namespace zrt::test;

namespace {
zrt_session_options checking() {
  zrt_session_options options = {};
  options.check = options.poison = 1;
  return options;
}

/// A step of three micro-batches: `sum` += x in each, then all_reduce(sum) to
/// the output, and `sum` is zero again. The micro-batches before the last also
/// gather, so that there is traffic to count.
struct Accumulating {
  PlanBuilder plan{2};
  uint32_t x, sum, total, part, whole;

  Accumulating() {
    x = plan.input("x", {4});
    fb::ParameterT &parameter =
        plan.parameter("sum", {4}, false, fb::Init_Zeros);
    parameter.role = fb::ParamRole_Accumulator;
    sum = parameter.buffer;
    total = plan.buffer("total", {4});
    part = plan.buffer("part", {2});
    whole = plan.buffer("whole", {4});
    plan.launch("add4", {x, sum, sum});
    plan.command(fb::Op_Fill);
    plan.operand(*plan.program.commands.back(), part);
    plan.collective(fb::Op_AllGather, part, whole, 4, 2);
    plan.launch("add4", {x, sum, sum});
    plan.collective(fb::Op_AllReduce, sum, total, 4, 4);
    plan.command(fb::Op_Fill);
    plan.operand(*plan.program.commands.back(), sum);
    plan.output(total);
    plan.program.micro_batches = 3;
    plan.program.micro_commands = 3;
  }
};

void setBatch(Running &running, float value) {
  for (int rank = 0; rank < 2; ++rank)
    running.set("x", rank, std::vector<float>(4, value * float(rank + 1)));
}

std::string errorAfter(void (*damage)(fb::ProgramT &)) {
  Accumulating made;
  damage(made.plan.program);
  return loadError(made.plan);
}
} // namespace

/// Sums begin at zero in each step.
TEST(Accumulate, SumsOverMicroBatches) {
  Accumulating made;
  Running running(made.plan, checking());
  EXPECT_EQ(running.program.info().micro_batches, 3u);
  for (int step = 0; step < 3; ++step) {
    for (float value : {1.0f, 10.0f}) {
      setBatch(running, value);
      Status failed = running.session.accumulate();
      ASSERT_FALSE(failed) << failed.message();
    }
    setBatch(running, 100);
    running.step();
    EXPECT_EQ(running.get(0, 1), std::vector<float>(4, 333));
  }
}

/// A step is exactly as many calls as its program has micro-batches.
TEST(Accumulate, CallsInOrder) {
  Accumulating made;
  Running running(made.plan);
  setBatch(running, 1);
  EXPECT_EQ(running.session.step().message(),
            "a step of this program has 3 micro-batches; accumulate 2 before "
            "the step, not 0");
  for (int call = 0; call < 2; ++call) {
    setBatch(running, 1);
    Status failed = running.session.accumulate();
    ASSERT_FALSE(failed) << failed.message();
  }
  EXPECT_EQ(running.session.step().message(), "input x was not set for rank 0");
  setBatch(running, 1);
  EXPECT_EQ(running.session.accumulate().message(),
            "a step of this program has 3 micro-batches; all before the last, "
            "2, are accumulated: run the step");
  running.step();
  EXPECT_EQ(running.get(0), std::vector<float>(4, 9));
  PlanBuilder single(1);
  Running other(single);
  EXPECT_EQ(other.session.accumulate().message(),
            "a step of this program has 1 micro-batches; all before the last, "
            "0, are accumulated: run the step");
}

/// Bytes are those of all micro-batches; times of the others come first.
TEST(Accumulate, CountersAndSpans) {
  Accumulating made;
  Running running(made.plan);
  for (int call = 0; call < 2; ++call) {
    setBatch(running, 1);
    Status failed = running.session.accumulate();
    ASSERT_FALSE(failed) << failed.message();
  }
  setBatch(running, 1);
  running.step();
  zrt_counters counters = running.session.counters();
  EXPECT_EQ(counters.steps, 1u);
  EXPECT_EQ(counters.comm_bytes_times_ranks[ZRT_ALL_GATHER], 2u * 16);
  EXPECT_EQ(counters.comm_bytes_times_ranks[ZRT_ALL_REDUCE], 2u * 16);
  std::vector<zrt_span> spans;
  ASSERT_FALSE(running.session.spans(0, spans));
  EXPECT_GT(spans[3].start_ms, spans[2].end_ms);
  EXPECT_LE(spans.back().end_ms, counters.step_ms);
  running.session.resetCounters();
  EXPECT_EQ(running.session.counters().comm_bytes_times_ranks[ZRT_ALL_GATHER],
            0u);
}

/// --check: what a step leaves in an accumulator would count twice.
TEST(Accumulate, ChecksThatSumsAreZero) {
  Accumulating made;
  made.plan.program.commands.pop_back();
  zrt_session_options options = {};
  options.check = 1;
  Running running(made.plan, options);
  for (int call = 0; call < 2; ++call) {
    running.set<float>("x", ZRT_ALL_RANKS, {1, 1, 1, 1});
    Status failed = running.session.accumulate();
    ASSERT_FALSE(failed) << failed.message();
  }
  running.set<float>("x", ZRT_ALL_RANKS, {1, 1, 1, 1});
  EXPECT_EQ(running.session.step().message(),
            "check: accumulator sum on rank 0 is not zero after the step "
            "(byte 2)");
}

TEST(Accumulate, Streams) {
  Accumulating made;
  fb::ProgramT &program = made.plan.program;
  made.plan.streams(1, 2);
  place(*program.commands[1], 0, {}, 0);
  place(*program.commands[2], 1, {0});
  place(*program.commands[3], 0, {}, 1);
  place(*program.commands[4], 1, {1});
  program.commands.pop_back();
  program.parameters[0]->role = fb::ParamRole_Buffer;
  Running running(made.plan, checking());
  for (int step = 0; step < 20; ++step) {
    for (int call = 0; call < 2; ++call) {
      setBatch(running, 1);
      Status failed = running.session.accumulate();
      ASSERT_FALSE(failed) << failed.message();
    }
    setBatch(running, 1);
    running.step();
    EXPECT_EQ(running.get(0), std::vector<float>(4, 9.0f * float(step + 1)));
  }
  // Across the end of a micro-batch an event is never signalled again.
  program.commands[4]->wait = {0};
  EXPECT_EQ(loadError(made.plan),
            "command 4 (all_reduce): waits for event 0, which a command of the "
            "micro-batches before signals");
}

TEST(Accumulate, RefusesHostileNumbers) {
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.micro_batches = 0; }),
            "the program has no micro-batch");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.micro_commands = 7; }),
            "the program has 7 commands for a micro-batch, but 6 commands");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.micro_commands = 0; }),
            "the program has 3 micro-batches and 0 commands for the ones "
            "before the last");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.micro_batches = 1; }),
            "the program has 1 micro-batches and 3 commands for the ones "
            "before the last");
  EXPECT_EQ(errorAfter(
                [](fb::ProgramT &p) { p.parameters[0]->init = fb::Init_Ones; }),
            "parameter sum: is an accumulator and does not start as zeros");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[0]->writes = {3}; }),
            "command 0 (launch add4): writes operand 3 of 3");
}

/// A state may start from a value in the file: the loss scale.
TEST(Accumulate, StateFromValue) {
  PlanBuilder plan(3);
  fb::ParameterT &scale = plan.parameter("scale", {}, false, fb::Init_Value);
  scale.role = fb::ParamRole_State;
  float value = 65536;
  scale.init_value.resize(4);
  std::memcpy(scale.init_value.data(), &value, 4);
  plan.output(scale.buffer);
  Running running(plan);
  EXPECT_EQ(running.program.parameter(0).init, ZRT_INIT_VALUE);
  EXPECT_EQ(running.program.parameter(0).role, ZRT_STATE);
  EXPECT_STREQ(running.program.parameter(0).of, "");
  EXPECT_EQ(running.get(0, 2), std::vector<float>{65536});
  scale.init_value.pop_back();
  EXPECT_EQ(loadError(plan), "parameter scale: has 4 bytes but its value 3");
}

/// Damage that the checks let pass leaves a program that runs to its end or
/// fails: no call waits forever.
TEST(Accumulate, AcceptedDamageIsSafe) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a changed wait or range makes two streams of the file race";
#endif
  Accumulating made;
  fb::ProgramT &program = made.plan.program;
  program.commands.erase(program.commands.begin()); // launches: machine code
  program.commands.erase(program.commands.begin() + 2);
  program.micro_commands = 2;
  program.kernels.clear();
  made.plan.streams(1, 2);
  place(*program.commands[0], 0, {}, 0);
  place(*program.commands[1], 1, {0});
  place(*program.commands[2], 1, {}, 1);
  place(*program.commands[3], 0, {1});
  const std::string bytes = made.plan.bytes();
  int ran = 0;
  for (size_t at = 8; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = char(damaged[at] ^ 0x01);
    Program loaded;
    Session session;
    if (loaded.loadBytes(damaged.data(), damaged.size()) ||
        session.create(loaded) || loaded.info().micro_batches > 100)
      continue;
    auto call = [&](bool last) {
      for (uint32_t input = 0; input < loaded.info().num_inputs; ++input) {
        std::vector<uint8_t> data(loaded.input(input).bytes);
        Status ignored =
            session.setInput(input, ZRT_ALL_RANKS, data.data(), data.size());
        (void)ignored;
      }
      return last ? session.step() : session.accumulate();
    };
    bool failed = false;
    for (uint32_t i = 1; i < loaded.info().micro_batches && !failed; ++i)
      failed = bool(call(/*last=*/false));
    ran += !failed && !call(/*last=*/true);
  }
  EXPECT_GT(ran, 100);
}
