//===- ScheduleGraphs.h - Steps to schedule ---------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random small steps for the scheduler's tests.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_SCHEDULE_SCHEDULEGRAPHS_H
#define ZERO_TEST_UNIT_SCHEDULE_SCHEDULEGRAPHS_H

#include "zero/Cost/StepGraph.h"

#include <random>

namespace mlir::zero {

/// Builds steps task by task.
struct StepBuilder {
  StepGraph graph;

  int32_t buffer(int64_t bytes, MemoryKind kind, bool resident = false) {
    graph.buffers.push_back({bytes, kind, resident});
    return graph.buffers.size() - 1;
  }

  int32_t task(TaskKind kind, int32_t channel, double seconds,
               llvm::ArrayRef<int32_t> reads, llvm::ArrayRef<int32_t> writes) {
    StepTask task;
    task.kind = kind;
    task.channel = channel;
    task.seconds = seconds;
    task.reads.assign(reads.begin(), reads.end());
    task.writes.assign(writes.begin(), writes.end());
    graph.tasks.push_back(std::move(task));
    return graph.tasks.size() - 1;
  }
  int32_t run(double seconds, llvm::ArrayRef<int32_t> reads,
              llvm::ArrayRef<int32_t> writes) {
    return task(TaskKind::Compute, 0, seconds, reads, writes);
  }
};

/// What a random step looks like.
struct RandomShape {
  int layers = 3;
  bool regather = true;    ///< stage 3: gathers again for the backward pass
  bool replicate = false;  ///< all-reduces what was reduce-scattered
  bool lateUpdate = false; ///< updates after the backward pass
};

/// A training step with random sizes and times: by layer a gather, forward,
/// a gather again, two backward tasks, a reduction and an update.
inline StepGraph randomStep(std::mt19937 &random, RandomShape shape) {
  auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % (high - low + 1));
  };
  StepBuilder b;
  b.graph.channels = {"compute", "all_gather", "reduce_scatter", "all_reduce"};
  struct Layer {
    int32_t shard, full, firstGather, gradient;
    int64_t bytes;
    int seconds;
  };
  std::vector<Layer> layers(shape.layers);
  std::vector<int32_t> acts = {b.buffer(pick(1, 20), MemoryKind::Input, true)};
  for (Layer &layer : layers) {
    layer.bytes = 8 * pick(2, 15);
    layer.seconds = pick(2, 20);
    layer.shard = b.buffer(layer.bytes / 8, MemoryKind::Parameter, true);
    layer.full = b.buffer(layer.bytes, MemoryKind::Gathered);
    layer.firstGather = b.task(TaskKind::AllGather, 1, layer.seconds,
                               {layer.shard}, {layer.full});
    acts.push_back(b.buffer(pick(1, 40), MemoryKind::Activation));
    b.run(pick(1, 20), {acts[acts.size() - 2], layer.full}, {acts.back()});
  }
  int32_t gradient = b.buffer(pick(1, 40), MemoryKind::Activation);
  b.run(pick(1, 5), {acts.back()}, {gradient});
  auto update = [&](const Layer &layer) {
    b.run(pick(1, 3), {layer.gradient, layer.shard}, {layer.shard});
  };
  for (int i = shape.layers - 1; i >= 0; --i) {
    Layer &layer = layers[i];
    if (shape.regather) {
      int32_t again = b.buffer(layer.bytes, MemoryKind::Gathered);
      int32_t gather =
          b.task(TaskKind::AllGather, 1, layer.seconds, {layer.shard}, {again});
      b.graph.tasks[gather].repeats = layer.firstGather;
      layer.full = again;
    }
    int32_t whole = b.buffer(layer.bytes, MemoryKind::Gradient);
    int32_t before = b.buffer(pick(1, 40), MemoryKind::Activation);
    bool weightFirst = pick(0, 1);
    if (weightFirst)
      b.run(pick(1, 20), {gradient, acts[i]}, {whole});
    b.run(pick(1, 20), {gradient, layer.full}, {before});
    if (!weightFirst)
      b.run(pick(1, 20), {gradient, acts[i]}, {whole});
    gradient = before;
    layer.gradient = b.buffer(layer.bytes / 8, MemoryKind::Gradient);
    b.task(TaskKind::ReduceScatter, 2, pick(2, 20), {whole}, {layer.gradient});
    if (shape.replicate)
      b.task(TaskKind::AllReduce, 3, pick(1, 6), {layer.gradient},
             {layer.gradient});
    if (!shape.lateUpdate)
      update(layer);
  }
  if (shape.lateUpdate)
    for (const Layer &layer : layers)
      update(layer);
  return std::move(b.graph);
}

/// Compute tasks in a row with random uses, and random collectives that bring
/// data to them or take it away.
inline StepGraph randomTasks(std::mt19937 &random, int numCompute,
                             int numCollectives) {
  auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % (high - low + 1));
  };
  StepBuilder b;
  b.graph.channels = {"compute", "all_gather", "reduce_scatter", "copy_in"};
  std::vector<int32_t> made = {b.buffer(5, MemoryKind::Input, true)};
  std::vector<int32_t> fetched;
  for (int i = 0; i != numCompute; ++i) {
    // Collectives of this place.
    int count = pick(0, 2 * numCollectives / numCompute);
    std::vector<int32_t> reads;
    for (int c = 0; c != count && numCollectives; ++c, --numCollectives) {
      if (pick(0, 1)) {
        int32_t full = b.buffer(pick(5, 100), MemoryKind::Gathered);
        bool copy = pick(0, 3) == 0;
        b.task(copy ? TaskKind::CopyIn : TaskKind::AllGather, copy ? 3 : 1,
               pick(1, 20), {made[0]}, {full});
        reads.push_back(full);
        fetched.push_back(full);
      } else if (made.size() > 1) {
        int32_t reduced = b.buffer(pick(1, 10), MemoryKind::Gradient);
        b.task(TaskKind::ReduceScatter, 2, pick(1, 20),
               {made[pick(1, made.size() - 1)]}, {reduced});
        if (pick(0, 1))
          made.push_back(reduced);
      }
    }
    for (int c = pick(1, 2); c; --c)
      reads.push_back(
          made[pick(std::max<int>(0, made.size() - 4), made.size() - 1)]);
    if (!fetched.empty() && pick(0, 3) == 0)
      reads.push_back(fetched[pick(0, fetched.size() - 1)]);
    int32_t result = b.buffer(pick(5, 60), MemoryKind::Activation);
    b.run(pick(1, 20), reads, {result});
    made.push_back(result);
  }
  return std::move(b.graph);
}

} // namespace mlir::zero

#endif // ZERO_TEST_UNIT_SCHEDULE_SCHEDULEGRAPHS_H
