//===- HostGraphs.h - Steps that use host memory and disks ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random steps of which something is offloaded, for the scheduler's tests.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_SCHEDULE_HOSTGRAPHS_H
#define ZERO_TEST_UNIT_SCHEDULE_HOSTGRAPHS_H

#include "ScheduleGraphs.h"

namespace mlir::zero {

/// What of a random step lies outside the device.
struct HostShape {
  int layers = 3;
  bool optimizer = true;    ///< updated on the host
  bool disk = false;        ///< and its state lies on disk
  bool parameters = false;  ///< copied to the device before they are gathered
  bool activations = false; ///< copied to the host until the backward pass
};

/// Channels of `hostStep`.
enum HostChannel : int32_t {
  kGather = 1,
  kScatter,
  kToHost,
  kToDevice,
  kDiskRead,
  kDiskWrite,
  kHost
};

/// Builds a training step: by layer a gather, forward, backward, a reduction,
/// and an update where the state lies. Seconds are those of a disk of 1, links
/// of 4, a host of 8 and a network of 8 bytes a second.
class HostStepBuilder {
public:
  HostStepBuilder(std::mt19937 &random, HostShape shape)
      : random(random), shape(shape), layers(shape.layers) {
    b.graph.channels = {"compute",   "all_gather", "reduce_scatter", "to_host",
                        "to_device", "disk_read",  "disk_write",     "host"};
  }

  StepGraph build();

private:
  struct Layer {
    int32_t shard, full, act, stored, gradient, state;
    int64_t bytes; ///< of the shard
  };

  int pick(int low, int high) {
    return low + static_cast<int>(random() % (high - low + 1));
  }
  int32_t buffer(int64_t bytes, MemoryKind kind,
                 MemorySpace space = MemorySpace::Device,
                 bool resident = false) {
    int32_t number = b.buffer(bytes, kind, resident);
    b.graph.buffers[number].space = space;
    return number;
  }
  int32_t copy(TaskKind kind, int32_t from, int32_t to) {
    static constexpr struct {
      TaskKind kind;
      int32_t channel;
      double bytesPerSecond;
    } links[] = {{TaskKind::CopyOut, kToHost, 4},
                 {TaskKind::CopyIn, kToDevice, 4},
                 {TaskKind::DiskRead, kDiskRead, 1},
                 {TaskKind::DiskWrite, kDiskWrite, 1}};
    for (auto link : links)
      if (link.kind == kind)
        return b.task(kind, link.channel,
                      b.graph.buffers[from].bytes / link.bytesPerSecond + 1,
                      {from}, {to});
    return -1;
  }
  int32_t gather(Layer &layer);
  void forward(Layer &layer, int32_t input);
  int32_t backward(Layer &layer, int32_t gradient);
  void update(Layer &layer);

  std::mt19937 &random;
  HostShape shape;
  StepBuilder b;
  std::vector<Layer> layers;
};

inline int32_t HostStepBuilder::gather(Layer &layer) {
  int32_t shard = layer.shard;
  if (shape.parameters) {
    shard = buffer(layer.bytes, MemoryKind::Parameter);
    copy(TaskKind::CopyIn, layer.shard, shard);
  }
  int32_t full = buffer(layer.bytes * 4, MemoryKind::Gathered);
  b.task(TaskKind::AllGather, kGather, layer.bytes * 4 / 8.0 + 1, {shard},
         {full});
  return full;
}

inline void HostStepBuilder::forward(Layer &layer, int32_t input) {
  int32_t full = gather(layer);
  layer.act = buffer(pick(4, 40), MemoryKind::Activation);
  b.run(pick(4, 30), {input, full}, {layer.act});
  if (!shape.activations)
    return;
  layer.stored = buffer(b.graph.buffers[layer.act].bytes,
                        MemoryKind::Activation, MemorySpace::Host);
  copy(TaskKind::CopyOut, layer.act, layer.stored);
}

inline int32_t HostStepBuilder::backward(Layer &layer, int32_t gradient) {
  int32_t full = gather(layer), act = layer.act;
  if (shape.activations) {
    act = buffer(b.graph.buffers[act].bytes, MemoryKind::Activation);
    copy(TaskKind::CopyIn, layer.stored, act);
  }
  int32_t before = buffer(pick(4, 40), MemoryKind::Activation);
  int32_t whole = buffer(layer.bytes * 4, MemoryKind::Gradient);
  b.run(pick(4, 30), {gradient, act}, {whole});
  b.run(pick(4, 30), {gradient, full}, {before});
  layer.gradient = buffer(layer.bytes, MemoryKind::Gradient);
  b.task(TaskKind::ReduceScatter, kScatter, layer.bytes * 4 / 8.0 + 1, {whole},
         {layer.gradient});
  return before;
}

inline void HostStepBuilder::update(Layer &layer) {
  if (!shape.optimizer) {
    b.run(pick(1, 3), {layer.gradient, layer.shard}, {layer.shard});
    return;
  }
  int32_t gradient =
      buffer(layer.bytes, MemoryKind::Gradient, MemorySpace::Host);
  copy(TaskKind::CopyOut, layer.gradient, gradient);
  int32_t state = layer.state;
  if (shape.disk) {
    state =
        buffer(layer.bytes * 4, MemoryKind::OptimizerState, MemorySpace::Host);
    copy(TaskKind::DiskRead, layer.state, state);
  }
  int32_t fresh = layer.shard;
  if (!shape.parameters)
    fresh = buffer(layer.bytes, MemoryKind::Parameter, MemorySpace::Host);
  int32_t task = b.task(TaskKind::HostCompute, kHost, layer.bytes * 10 / 8.0,
                        {state, gradient}, {state, fresh});
  b.graph.tasks[task].bucketClass = task;
  if (shape.disk)
    copy(TaskKind::DiskWrite, state, layer.state);
  if (!shape.parameters)
    copy(TaskKind::CopyIn, fresh, layer.shard);
}

inline StepGraph HostStepBuilder::build() {
  int32_t input = buffer(pick(1, 20), MemoryKind::Input, MemorySpace::Device,
                         /*resident=*/true);
  for (Layer &layer : layers) {
    layer.bytes = pick(2, 16);
    layer.shard =
        buffer(layer.bytes, MemoryKind::Parameter,
               shape.parameters ? MemorySpace::Host : MemorySpace::Device,
               /*resident=*/true);
    MemorySpace space = !shape.optimizer ? MemorySpace::Device
                        : shape.disk     ? MemorySpace::Disk
                                         : MemorySpace::Host;
    layer.state = buffer(layer.bytes * 4, MemoryKind::OptimizerState, space,
                         /*resident=*/true);
  }
  for (Layer &layer : layers) {
    forward(layer, input);
    input = layer.act;
  }
  int32_t gradient = buffer(pick(4, 40), MemoryKind::Activation);
  b.run(pick(1, 5), {layers.back().act}, {gradient});
  for (size_t i = layers.size(); i-- > 0;) {
    gradient = backward(layers[i], gradient);
    update(layers[i]);
  }
  // The end of the step reads what outlives it.
  std::vector<int32_t> lasting = {gradient};
  for (const Layer &layer : layers) {
    lasting.push_back(layer.shard);
    lasting.push_back(layer.state);
  }
  b.run(0, lasting, {});
  return std::move(b.graph);
}

inline StepGraph hostStep(std::mt19937 &random, HostShape shape) {
  return HostStepBuilder(random, shape).build();
}

} // namespace mlir::zero

#endif // ZERO_TEST_UNIT_SCHEDULE_HOSTGRAPHS_H
