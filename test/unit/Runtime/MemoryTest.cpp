//===- MemoryTest.cpp - Tests of memory over a program's commands ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which buffers are alive at which command, by kind.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

using namespace zrt;
using namespace zrt::test;

namespace {
std::vector<zrt_memory> memoryOf(const PlanBuilder &plan) {
  std::string bytes = plan.bytes();
  Program program;
  Status failed = program.loadBytes(bytes.data(), bytes.size());
  EXPECT_FALSE(failed) << failed.message();
  std::vector<zrt_memory> memory;
  EXPECT_FALSE(program.memory(memory));
  zrt_memory one;
  EXPECT_EQ(zrt_program_memory(program.get(), &one, memory.size() + 1),
            ZRT_ERROR_ARGUMENT);
  return memory;
}

void copy(PlanBuilder &plan, uint32_t from, uint32_t to) {
  fb::CommandT &command = plan.command(fb::Op_Copy);
  plan.operand(command, from);
  plan.operand(command, to);
}

/// Column of one kind.
std::vector<uint64_t> bytesOf(const std::vector<zrt_memory> &memory,
                              zrt_kind kind) {
  std::vector<uint64_t> result;
  for (const zrt_memory &at : memory)
    result.push_back(at.bytes[kind]);
  return result;
}
using Bytes = std::vector<uint64_t>;
} // namespace

/// From the first use to the last; state, inputs and outputs for longer.
TEST(Memory, FromFirstUseToLast) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4}); // 16 bytes each
  uint32_t w = plan.parameter("w", {4}, false, fb::Init_Zeros).buffer;
  uint32_t a = plan.buffer("a", {4}), b = plan.buffer("b", {4});
  uint32_t g = plan.buffer("g", {4}, fb::DType_F32, fb::Kind_Gradient);
  plan.buffer("never used", {400});
  copy(plan, x, a); // a
  copy(plan, a, b); // a b
  copy(plan, a, g); // a b g
  copy(plan, g, w); // b g
  copy(plan, w, x); // b, an output
  plan.output(b);
  std::vector<zrt_memory> memory = memoryOf(plan);
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_ACTIVATION), (Bytes{16, 32, 32, 16, 16}));
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_GRADIENT), (Bytes{0, 0, 16, 16, 0}));
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_PARAMETER), Bytes(5, 16));
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_INPUT), Bytes(5, 16));
}

/// Storage that buffers share counts once, for the first kind.
TEST(Memory, SharedStorageCountsOnce) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4});
  uint32_t whole = plan.buffer("whole", {8});
  uint32_t shard = plan.chunkOf(whole, 4);
  plan.program.buffers[shard]->kind = fb::Kind_Gradient;
  copy(plan, x, shard);
  plan.collective(fb::Op_AllGather, shard, whole, 8, 4);
  copy(plan, shard, x);
  std::vector<zrt_memory> memory = memoryOf(plan);
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_GRADIENT), (Bytes{16, 16, 16}));
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_ACTIVATION), (Bytes{0, 16, 0}));
}

/// What a collective of another stream uses is held until compute waits for
/// it, over another stream's wait too; without one to the end.
TEST(Memory, HeldUntilTheWait) {
  PlanBuilder plan(1);
  plan.streams(2, 2);
  uint32_t x = plan.input("x", {4}), y = plan.input("y", {4});
  uint32_t a = plan.buffer("a", {4}), b = plan.buffer("b", {4});
  uint32_t c = plan.buffer("c", {4}, fb::DType_F32, fb::Kind_Gathered);
  copy(plan, x, a);                                                // 0: a
  place(plan.collective(fb::Op_AllReduce, a, b, 4, 4), 1, {}, 0);  // 1: a b
  copy(plan, x, y);                                                // 2: a b
  place(plan.collective(fb::Op_AllReduce, b, c, 4, 4), 2, {0}, 1); // 3
  copy(plan, x, y);                                                // 4
  copy(plan, c, y);                                                // 5: c
  place(*plan.program.commands.back(), 0, {1});
  copy(plan, x, y); // 6
  std::vector<zrt_memory> memory = memoryOf(plan);
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_ACTIVATION),
            (Bytes{16, 32, 32, 32, 32, 0, 0}));
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_GATHERED),
            (Bytes{0, 0, 0, 16, 16, 16, 0}));
  plan.program.commands[5]->wait = {};
  memory = memoryOf(plan);
  EXPECT_EQ(bytesOf(memory, ZRT_KIND_GATHERED),
            (Bytes{0, 0, 0, 16, 16, 16, 16}));
}

TEST(Memory, HostMemoryIsNotDeviceMemory) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {4}), a = plan.buffer("a", {4});
  copy(plan, x, a);
  plan.program.arenas[0]->space = fb::Space_Host;
  EXPECT_EQ(bytesOf(memoryOf(plan), ZRT_KIND_ACTIVATION), Bytes{0});
}
