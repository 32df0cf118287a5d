//===- CommandTest.cpp - Tests of single commands -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches, copies, fills, and what the runtime observes while it executes
// them.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <cmath>

using namespace zrt;
using namespace zrt::test;

TEST(Command, LaunchRunsTheKernel) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y});
  plan.output(y);
  Running running(plan);
  running.set<float>("x", 0, {1, 2, 3, 4});
  running.set<float>("x", 1, {5, 6, 7, 8});
  running.step();
  EXPECT_EQ(running.get(0, 0), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(running.get(0, 1), (std::vector<float>{10, 12, 14, 16}));
}

/// A kernel gets the address of its view, offset included.
TEST(Command, LaunchOnAView) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {10}), y = plan.buffer("y", {4});
  fb::CommandT &launch = plan.launch("double4", {});
  plan.operand(launch, x, 5, {2, 2}, {2, 1});
  plan.operand(launch, y);
  plan.output(y);
  Running running(plan);
  running.set<float>("x", 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  running.step();
  EXPECT_EQ(running.get(0), (std::vector<float>{10, 12, 14, 16}));
}

/// Contiguous of another shape, strided, and transposed copies.
TEST(Command, Copy) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {2, 3}), y = plan.buffer("y", {6});
  uint32_t z = plan.buffer("z", {3, 2}), w = plan.buffer("w", {2, 2});
  fb::CommandT &flat = plan.command(fb::Op_Copy);
  plan.operand(flat, x);
  plan.operand(flat, y);
  fb::CommandT &transpose = plan.command(fb::Op_Copy);
  plan.operand(transpose, x, 0, {3, 2}, {1, 3});
  plan.operand(transpose, z);
  fb::CommandT &columns = plan.command(fb::Op_Copy);
  plan.operand(columns, x, 1, {2, 2}, {3, 1});
  plan.operand(columns, w);
  for (uint32_t buffer : {y, z, w})
    plan.output(buffer);
  Running running(plan);
  running.set<float>("x", 0, {1, 2, 3, 4, 5, 6});
  running.step();
  EXPECT_EQ(running.get(0), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(running.get(1), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(running.get(2), (std::vector<float>{2, 3, 5, 6}));
}

/// Every element size has its own loop.
TEST(Command, StridedCopyOfEveryWidth) {
  for (fb::DType type :
       {fb::DType_U8, fb::DType_I16, fb::DType_I32, fb::DType_I64}) {
    PlanBuilder plan(1);
    uint32_t x = plan.input("x", {2, 2}, type);
    uint32_t y = plan.buffer("y", {2, 2}, type);
    fb::CommandT &copy = plan.command(fb::Op_Copy);
    plan.operand(copy, x, 0, {2, 2}, {1, 2});
    plan.operand(copy, y);
    plan.output(y);
    Running running(plan);
    uint64_t size = elementBytes(type);
    std::vector<uint8_t> in(4 * size, 0);
    for (uint8_t i = 0; i < 4; ++i)
      in[i * size] = i + 1;
    running.set("x", 0, in);
    running.step();
    double out[4];
    Status failed = running.session.readOutput(0, out, 4);
    ASSERT_FALSE(failed) << failed.message();
    EXPECT_EQ(std::vector<double>(out, out + 4),
              (std::vector<double>{1, 3, 2, 4}));
  }
}

/// Empty views, even of absurd sizes, copy nothing at once.
TEST(Command, EmptyViews) {
  const int64_t huge = int64_t(1) << 62;
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  plan.operand(copy, x, 0, {0, huge, huge}, {huge, 0, huge});
  plan.operand(copy, x, 4, {0, huge, huge}, {1, 1, 0});
  fb::CommandT &fill = plan.command(fb::Op_Fill);
  plan.operand(fill, x, 0, {huge, huge, 0}, {0, 0, 1});
  fb::CommandT &launch = plan.launch("double4", {x, y});
  plan.operand(launch, x, 0, {0, huge, huge}, {huge, huge, huge});
  plan.output(x);
  std::string error = loadError(plan);
  EXPECT_EQ(error, "command 0 (copy): operand 0 has a negative or overflowing "
                   "size");
  copy.operands[0]->strides = {huge, 0, 1};
  fill.operands[0]->sizes = {0, huge, huge};
  launch.operands[2]->strides = {0, 0, 0};
  Running running(plan);
  running.set<float>("x", 0, {1, 2, 3, 4});
  running.step();
  EXPECT_EQ(running.get(0), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Command, Fill) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {2, 3});
  fb::CommandT &fill = plan.command(fb::Op_Fill);
  plan.operand(fill, x, 1, {2, 2}, {3, 1});
  plan.output(x);
  Running running(plan);
  running.set<float>("x", 0, {1, 2, 3, 4, 5, 6});
  running.step();
  EXPECT_EQ(running.get(0), (std::vector<float>{1, 0, 0, 4, 0, 0}));
}

/// Poisoning turns a use of released or unwritten memory into NaN.
TEST(Command, PoisonShowsUseAfterRelease) {
  for (int poison : {0, 1}) {
    PlanBuilder plan(1);
    uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
    uint32_t z = plan.buffer("z", {4}), never = plan.buffer("never", {4});
    plan.launch("double4", {x, y}).release = {y};
    plan.launch("double4", {y, z});
    plan.output(z);
    plan.output(never);
    zrt_session_options options = {};
    options.poison = poison;
    Running running(plan, options);
    running.set<float>("x", 0, {1, 2, 3, 4});
    running.step();
    EXPECT_EQ(std::isnan(running.get(0)[0]), poison == 1);
    EXPECT_EQ(std::isnan(running.get(1)[0]), poison == 1);
  }
}

/// Peak memory is the end of the last buffer touched, not the arena.
TEST(Command, PeakIsWhatWasTouched) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  uint32_t unused = plan.buffer("unused", {100});
  plan.launch("double4", {x, y});
  plan.output(unused);
  Running running(plan);
  uint64_t planned =
      zrt_program_planned_bytes(running.program.get(), ZRT_DEVICE);
  EXPECT_EQ(planned, plan.program.arenas[0]->bytes);
  EXPECT_EQ(running.session.counters().peak_bytes[ZRT_DEVICE], 0u);
  running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
  EXPECT_EQ(running.session.counters().peak_bytes[ZRT_DEVICE], 16u);
  running.step();
  EXPECT_EQ(running.session.counters().peak_bytes[ZRT_DEVICE], 64u + 16);
}

/// A gathered parameter counts from its gather to its release: two of 16 and
/// one of 32 bytes, of which the first is gone before the last comes.
TEST(Command, GatheredPeak) {
  PlanBuilder plan(2);
  uint32_t shard = plan.buffer("shard", {4});
  auto gathered = [&](const char *name, int64_t elements) {
    return plan.buffer(name, {elements}, fb::DType_F32, fb::Kind_Gathered);
  };
  uint32_t a = gathered("a", 4), b = gathered("b", 4), c = gathered("c", 8);
  plan.collective(fb::Op_AllGather, shard, a, 4, 2);
  plan.collective(fb::Op_AllGather, shard, b, 4, 2).release = {a};
  plan.collective(fb::Op_AllGather, shard, c, 8, 4).release = {b, c};
  plan.collective(fb::Op_AllGather, shard, a, 4, 2).release = {a};
  Running running(plan);
  EXPECT_EQ(running.session.counters().gathered_peak_bytes, 0u);
  running.step();
  running.step();
  EXPECT_EQ(running.session.counters().gathered_peak_bytes, 16u + 32);
}

TEST(Command, TimesAreByCommand) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y});
  Running running(plan);
  running.set<float>("x", 0, {1, 2, 3, 4});
  running.step();
  double ms = 0;
  EXPECT_EQ(zrt_session_command_ms(running.session.get(), 0, &ms, 1), ZRT_OK);
  EXPECT_GT(ms, 0.0);
  EXPECT_EQ(zrt_session_command_ms(running.session.get(), 1, &ms, 1),
            ZRT_ERROR_ARGUMENT);
  EXPECT_EQ(zrt_session_command_ms(running.session.get(), 0, &ms, 2),
            ZRT_ERROR_ARGUMENT);
}
