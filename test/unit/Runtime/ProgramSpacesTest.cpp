//===- ProgramSpacesTest.cpp - Tests of what may lie where ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program whose commands reach into a memory that their processor does not
// work in is refused when it is loaded.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

using namespace zrt;
using namespace zrt::test;

namespace {
void copy(PlanBuilder &plan, uint32_t from, uint32_t to) {
  fb::CommandT &command = plan.command(fb::Op_Copy);
  plan.operand(command, from);
  plan.operand(command, to);
}

/// Buffers 0 and 1 on the device, 2 and 3 on the host, 4 on disk; commands: a
/// copy down each step, a launch on the host (2), copies up (3, 4), a fill (5).
PlanBuilder everywhere() {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.in(fb::Space_Host);
  uint32_t h = plan.buffer("h", {4}), k = plan.buffer("k", {4});
  plan.in(fb::Space_Disk);
  uint32_t d = plan.parameter("d", {4}, false, fb::Init_Zeros).buffer;
  copy(plan, x, h);
  copy(plan, h, d);
  fb::CommandT &launch = plan.launch("double4", {h, k});
  launch.host = true;
  launch.split = 4;
  copy(plan, d, h);
  copy(plan, k, y);
  plan.operand(plan.command(fb::Op_Fill), k);
  plan.output(y);
  return plan;
}

template <typename Change>
std::string errorAfter(Change change) {
  PlanBuilder plan = everywhere();
  change(plan);
  return loadError(plan);
}
} // namespace

TEST(ProgramSpaces, AreAccepted) {
  EXPECT_EQ(errorAfter([](PlanBuilder &) {}), "");
}

TEST(ProgramSpaces, EachProcessorHasItsMemory) {
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.commands[2]->host = false;
            }),
            "command 2 (launch double4): takes h, which is in host memory; the "
            "device works in device memory");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.commands[2]->operands[1]->buffer = 1;
            }),
            "command 2 (launch double4): takes y, which is in device memory; "
            "the host's processor works in host memory");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.collective(fb::Op_AllGather, 2, 1, 4, 2);
            }),
            "command 6 (all_gather): takes h, which is in host memory; a "
            "collective works in device memory");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.commands[5]->host = true;
            }),
            "command 5 (fill): is for the host's processor, which only "
            "launches kernels");
  EXPECT_EQ(errorAfter(
                [](PlanBuilder &plan) { plan.program.commands[5]->split = 2; }),
            "command 5 (fill): runs in 2 parts; only kernels are cut, into 0 "
            "or more");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.commands[2]->split = -1;
            }),
            "command 2 (launch double4): runs in -1 parts; only kernels are "
            "cut, into 0 or more");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.commands[2]->split = INT64_MAX;
            }),
            "command 2 (launch double4): runs in 9223372036854775807 parts, "
            "but writes 4 elements");
}

TEST(ProgramSpaces, ADiskIsOnlyCopied) {
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.commands[0]->operands[1]->buffer = 4;
            }),
            "command 0 (copy): copies x in device memory to d in disk memory; "
            "a disk is copied from and to host memory only");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.commands[5]->operands[0]->buffer = 4;
            }),
            "command 5 (fill): takes d, which is on disk; a disk is only "
            "copied from and to");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              for (auto &operand : plan.program.commands[1]->operands) {
                operand->sizes = {2};
                operand->strides = {2};
              }
            }),
            "command 1 (copy): copies a strided view from or to a disk");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) { plan.output(4); }),
            "output d: takes d, which is on disk; a disk is only copied from "
            "and to");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) { plan.input("z", {4}); }),
            "input z: takes z, which is on disk; a disk is only copied from "
            "and to");
}

TEST(ProgramSpaces, DisksHaveBlocks) {
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.arenas[2]->alignment = 64;
            }),
            "arena 2: alignment 64 of a disk; expected its blocks', 4096");
  EXPECT_EQ(errorAfter([](PlanBuilder &plan) {
              plan.program.arenas[2]->bytes += 64;
              plan.program.buffers[4]->offset += 64;
            }),
            "buffer d: begins inside a block of the disk (offset 64; blocks "
            "have 4096 bytes)");
}

/// Two ranks, of which each reads its half of what is on disk.
TEST(ProgramSpaces, RanksReadPartsOfADisk) {
  auto withHalves = [](bool write) {
    PlanBuilder plan = everywhere();
    uint32_t half = plan.chunkOf(4, 2);
    plan.program.buffers[half]->padding_bytes = 0;
    fb::CommandT &copy = plan.command(fb::Op_Copy);
    plan.operand(copy, write ? 3 : half, 0, {2}, {1});
    plan.operand(copy, write ? half : 3, 0, {2}, {1});
    return loadError(plan);
  };
  EXPECT_EQ(withHalves(/*write=*/false), "");
  EXPECT_EQ(withHalves(/*write=*/true),
            "command 6 (copy): writes a rank's part of d.chunk, which is on "
            "disk; what is written there are whole buffers");
}
