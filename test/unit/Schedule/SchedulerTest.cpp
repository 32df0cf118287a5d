//===- SchedulerTest.cpp --------------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/Scheduler.h"

#include "gtest/gtest.h"
#include <random>

using namespace mlir::zero;

/// Layers forward and backward: gather, compute, gather again, gradient,
/// reduction, update.
static StepGraph layeredStep(int layers) {
  StepGraph g;
  g.channels = {"compute", "all_gather", "reduce_scatter"};
  auto buffer = [&](int64_t bytes, MemoryKind kind, bool resident = false) {
    g.buffers.push_back({bytes, kind, resident});
    return int32_t(g.buffers.size() - 1);
  };
  auto task = [&](TaskKind kind, int channel, double seconds,
                  std::initializer_list<int32_t> reads,
                  std::initializer_list<int32_t> writes) {
    StepTask t;
    t.kind = kind;
    t.channel = channel;
    t.seconds = seconds;
    t.latency = channel ? seconds / 10 : 0;
    t.reads = reads;
    t.writes = writes;
    g.tasks.push_back(t);
    return int32_t(g.tasks.size() - 1);
  };
  std::vector<int32_t> shard, acts, first, grads;
  acts.push_back(buffer(10, MemoryKind::Input, true));
  for (int i = 0; i < layers; ++i) {
    shard.push_back(buffer(10, MemoryKind::Parameter, true));
    int32_t full = buffer(100, MemoryKind::Gathered);
    first.push_back(task(TaskKind::AllGather, 1, 2, {shard[i]}, {full}));
    acts.push_back(buffer(20, MemoryKind::Activation));
    task(TaskKind::Compute, 0, 1, {full, acts[i]}, {acts[i + 1]});
  }
  int32_t d = buffer(20, MemoryKind::Activation);
  task(TaskKind::Compute, 0, 1, {acts[layers]}, {d});
  for (int i = layers - 1; i >= 0; --i) {
    int32_t full = buffer(100, MemoryKind::Gathered);
    int32_t g2 = task(TaskKind::AllGather, 1, 2, {shard[i]}, {full});
    g.tasks[g2].repeats = first[i];
    int32_t dx = buffer(20, MemoryKind::Activation);
    int32_t dw = buffer(100, MemoryKind::Gradient);
    int32_t dws = buffer(10, MemoryKind::Gradient);
    task(TaskKind::Compute, 0, 1, {d, full}, {dx});
    task(TaskKind::Compute, 0, 1, {d, acts[i]}, {dw});
    task(TaskKind::ReduceScatter, 2, 2, {dw}, {dws});
    grads.push_back(dws);
    d = dx;
  }
  for (int i = 0; i < layers; ++i)
    task(TaskKind::Compute, 0, 0.1, {grads[i], shard[layers - 1 - i]},
         {shard[layers - 1 - i]});
  return g;
}

TEST(Scheduler, Layers) {
  StepGraph g = layeredStep(8);
  EXPECT_EQ(checkSchedule(g, serialSchedule(g)), "");
  ScheduleResult r = scheduleStep(g, {});
  EXPECT_EQ(checkSchedule(g, r.schedule), "");
}
