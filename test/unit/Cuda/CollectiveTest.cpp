//===- CollectiveTest.cpp - Tests of collectives among GPUs ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

using namespace zrt;
using namespace zrt::test;

namespace {
/// One collective of `elements` elements, from an input to an output.
void addCollective(PlanBuilder &plan, fb::Op op, int64_t elements, int64_t size,
                   bool average, fb::DType type = fb::DType_F32) {
  int64_t chunk = (elements + size - 1) / size;
  std::string number = std::to_string(plan.program.buffers.size());
  int64_t from = op == fb::Op_AllGather ? chunk : elements;
  int64_t to = op == fb::Op_AllReduce   ? elements
               : op == fb::Op_AllGather ? chunk * size
                                        : chunk;
  if (op == fb::Op_AllReduce)
    chunk = elements;
  uint32_t source = plan.input("from" + number, {from}, type);
  uint32_t target = plan.buffer("to" + number, {to}, type);
  plan.collective(op, source, target, elements, chunk, average);
  plan.output(target);
}
} // namespace

/// Also where the last shard is shorter, empty, or its padding is not zero at
/// the source.
TEST(CudaCollective, GivesWhatTheHostGives) {
  for (uint32_t ranks : {1, 2, 3, 4})
    for (fb::Op op : {fb::Op_AllGather, fb::Op_ReduceScatter, fb::Op_AllReduce})
      for (int64_t elements : {12, 13, 2})
        for (bool average : {false, true}) {
          if (average && op == fb::Op_AllGather)
            continue;
          PlanBuilder plan(ranks);
          addCollective(plan, op, elements, ranks, average);
          expectSame(plan);
        }
}

TEST(CudaCollective, ReducesAllFloatingTypes) {
  for (fb::DType type : {fb::DType_F64, fb::DType_BF16, fb::DType_F16}) {
    PlanBuilder plan(3);
    addCollective(plan, fb::Op_AllReduce, 10, 3, true, type);
    addCollective(plan, fb::Op_ReduceScatter, 10, 3, false, type);
    expectSame(plan, type == fb::DType_F64 ? 1e-12 : 2e-2);
  }
}

TEST(CudaCollective, BucketsGoTogether) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4}), y = plan.input("y", {3});
  uint32_t toX = plan.buffer("to x", {8}), toY = plan.buffer("to y", {6});
  fb::CommandT &bucket = plan.collective(fb::Op_AllGather, x, toX, 8, 4, false);
  auto piece = std::make_unique<fb::PieceT>();
  piece->source = y;
  piece->target = toY;
  piece->elements = 5;
  piece->chunk = 3;
  bucket.pieces.push_back(std::move(piece));
  plan.output(toX);
  plan.output(toY);
  expectSame(plan);
}

TEST(CudaCollective, ShardsAreReducedInTheirPlace) {
  PlanBuilder plan(4);
  uint32_t x = plan.input("x", {8});
  uint32_t shard = plan.chunkOf(x, 2);
  plan.collective(fb::Op_ReduceScatter, x, shard, 8, 2, true);
  uint32_t whole = plan.buffer("whole", {8});
  plan.collective(fb::Op_AllGather, shard, whole, 8, 2);
  plan.output(whole);
  expectSame(plan);
}

/// Groups along either axis of a grid, and two streams with their own
/// communicators.
TEST(CudaCollective, GroupsAreThoseOfTheGrid) {
  for (std::vector<uint32_t> axes :
       {std::vector<uint32_t>{0}, {1}, {0, 1}, {}}) {
    PlanBuilder plan(4);
    plan.program.grid = {2, 2};
    plan.streams(1, 1);
    uint32_t x = plan.input("x", {6});
    uint32_t y = plan.buffer("y", {6}), z = plan.buffer("z", {6});
    plan.collective(fb::Op_AllReduce, x, y, 6, 6, true).axes = axes;
    place(*plan.program.commands.back(), 1, {}, 0);
    plan.collective(fb::Op_AllReduce, y, z, 6, 6).axes = {1};
    place(*plan.program.commands.back(), 0, {0});
    plan.output(y);
    plan.output(z);
    expectSame(plan);
  }
}
