//===- ProcessPlans.cpp - Programs that test collectives ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ProcessPlans.h.
//
//===----------------------------------------------------------------------===//

#include "ProcessPlans.h"

#include "runtime/core/Grid.h"

using namespace zrt;
using namespace zrt::test;

namespace {
/// Values of a rank, in which adding in another order changes bits.
std::vector<float> valuesOf(uint32_t rank, uint64_t step, int64_t count) {
  std::vector<float> values = numbers(rank * 7 + step + 1, size_t(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= (i + rank) % 3 ? 1.0f : 1e4f;
  return values;
}

} // namespace

const std::vector<GridCase> &zrt::test::gridCases() {
  static const std::vector<GridCase> cases = {
      {{1}, {}},    {{2}, {}},     {{3}, {}},     {{4}, {}},
      {{2, 2}, {}}, {{2, 2}, {0}}, {{2, 2}, {1}}, {{3, 2}, {0, 1}}};
  return cases;
}

PlanBuilder zrt::test::collectives(const GridCase &one, int64_t count) {
  const auto &[grid, axes] = one;
  uint32_t ranks = Grid(grid).groupSize({}), size = Grid(grid).groupSize(axes);
  PlanBuilder plan(ranks);
  plan.program.grid = grid;
  plan.streams(2, 2);
  int64_t part = (count + size - 1) / size;
  uint32_t x = plan.input("x", {count});
  for (fb::DType type :
       {fb::DType_F32, fb::DType_F64, fb::DType_BF16, fb::DType_F16}) {
    // Any bits are numbers; which ones is the same in both runs.
    int64_t elements = count * 4 / int64_t(elementBytes(type));
    int64_t shard = (elements + size - 1) / size;
    uint32_t in = plan.buffer("in", {elements}, type);
    plan.program.buffers[in]->offset = plan.program.buffers[x]->offset;
    uint32_t all = plan.buffer("all", {elements}, type);
    uint32_t own = plan.buffer("own", {shard}, type);
    uint32_t whole = plan.buffer("whole", {shard * size}, type);
    plan.collective(fb::Op_AllReduce, in, all, elements, elements, true).axes =
        axes;
    plan.collective(fb::Op_ReduceScatter, in, own, elements, shard).axes = axes;
    plan.collective(fb::Op_AllGather, own, whole, elements, shard).axes = axes;
    for (uint32_t buffer : {all, own, whole})
      plan.output(buffer);
  }
  uint32_t y = plan.buffer("y", {count}), s = plan.buffer("s", {part});
  fb::CommandT &reduce = plan.collective(fb::Op_AllReduce, x, y, count, count);
  reduce.axes = axes;
  place(reduce, 1, {}, 0);
  fb::CommandT &scatter =
      plan.collective(fb::Op_ReduceScatter, x, s, count, part);
  scatter.axes = axes;
  place(scatter, 2, {}, 1);
  plan.output(y);
  plan.output(s);
  return plan;
}

std::vector<std::vector<uint8_t>> zrt::test::outputsOf(Running &running,
                                                       uint32_t rank) {
  std::vector<std::vector<uint8_t>> all;
  for (uint32_t output = 0; output < running.program.info().num_outputs;
       ++output)
    all.push_back(running.get<uint8_t>(output, rank));
  return all;
}

void zrt::test::runSteps(Running &running, uint32_t ranks, int64_t count) {
  for (uint64_t step = 0; step < 2; ++step) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      running.set("x", int(rank), valuesOf(rank, step, count));
    running.step();
  }
}
