//===- StepPlan.h - Memory, traffic and time of a step ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts a training step of a model that is known by its sizes. The formulas
// are explained in docs/planning.md. Needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PLANNER_STEPPLAN_H
#define ZERO_PLANNER_STEPPLAN_H

#include "zero/Cost/CostModel.h"
#include "zero/Planner/ModelShape.h"
#include "zero/Planner/Software.h"
#include "zero/Report/Timeline.h"

namespace mlir::zero {

/// Types of parameters, gradients and optimizer states. Adam has two states.
enum class Precision : uint8_t {
  F32,   ///< all of it in f32
  Mixed, ///< bf16 parameters and gradients, f32 master and states
  Bf16,  ///< all of it in bf16
  F8     ///< as Mixed, products in f8
};

enum class Recompute : uint8_t {
  None,
  Selective, ///< elementwise ops of each layer again
  Full       ///< each layer again from its input
};

llvm::StringRef precisionName(Precision precision);
llvm::StringRef recomputeName(Recompute recompute);

/// What of a kind lives outside device memory: that of the last layers, to
/// which the backward pass comes first.
struct OffloadShare {
  int64_t layers = 0; ///< negative: all, and what is outside of the layers
  bool disk = false;  ///< else in host memory

  bool operator==(const OffloadShare &o) const {
    return layers == o.layers && disk == o.disk;
  }
};

/// Where the tensors of a step live. Parameters whose optimizer state is in
/// host memory are updated there; their gradients go down as soon as they are
/// reduced, so without micro-batches they free their memory too.
struct StepOffload {
  OffloadShare optimizer, gradients, parameters, activations;

  bool any() const {
    return optimizer.layers || gradients.layers || parameters.layers ||
           activations.layers;
  }
  bool operator==(const StepOffload &o) const {
    return optimizer == o.optimizer && gradients == o.gradients &&
           parameters == o.parameters && activations == o.activations;
  }
};

/// How a step is run.
struct StepConfig {
  int64_t ranks = 8;
  int64_t replicas = 1; ///< first axis of the grid; ranks/replicas shard
  int64_t stage = 3;
  int64_t seq = 2048;
  int64_t batch = 1; ///< samples of a micro-batch and rank
  int64_t accumulate = 1;
  Precision precision = Precision::Mixed;
  Recompute recompute = Recompute::None;
  int64_t recomputeLayers = -1; ///< of those, how many; negative: all
  int64_t prefetch = 1; ///< gathers that run ahead of the compute, in buckets
  int64_t bucketLayers = 1; ///< layers of one gather
  /// Layers that stay gathered until backward; if any do, so do the embedding
  /// and the head.
  int64_t keepLayers = 0;
  StepOffload offload;

  int64_t shards() const { return ranks / replicas; }
};

/// Bytes of one rank, of device memory unless said otherwise.
struct MemoryParts {
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t gathered = 0;    ///< whole parameters and gradients, for a while
  int64_t activations = 0; ///< saved, and of the layer that runs
  int64_t logits = 0;
  int64_t inputs = 0;
  int64_t staging = 0;        ///< device ends of copies from and to the host
  int64_t host = 0, disk = 0; ///< outside of device memory

  int64_t state() const { return parameters + gradients + optimizer; }
  int64_t total() const {
    return state() + gathered + activations + logits + inputs + staging;
  }
};

/// Bytes that one rank sends in a step, ring model.
struct TrafficParts {
  int64_t allGather = 0, reduceScatter = 0, allReduce = 0;
  /// Copies of one rank.
  int64_t toHost = 0, toDevice = 0, diskRead = 0, diskWrite = 0;
  /// Of collectives.
  int64_t total() const { return allGather + reduceScatter + allReduce; }
};

/// Seconds of a step. `exposed` parts are where compute stands still.
struct TimeParts {
  double step = 0;
  double forward = 0, backward = 0, recompute = 0, head = 0, update = 0;
  double slowdown = 0; ///< compute that collectives beside it cost
  double exposedGather = 0, exposedReduce = 0;
  double exposedOffload = 0;     ///< waiting for copies or the host
  double gather = 0, reduce = 0; ///< busy time of the channels
  double toHost = 0, toDevice = 0, diskRead = 0, diskWrite = 0, host = 0;

  double compute() const {
    return forward + backward + recompute + head + update;
  }
  double exposed() const {
    return exposedGather + exposedReduce + exposedOffload;
  }
};

/// Something that a channel does during a step.
struct StepEvent {
  llvm::StringRef channel, what; ///< "all_gather", "layer"
  TaskKind kind = TaskKind::Compute;
  int64_t unit = -1; ///< bucket of layers; -1: outside of them
  double begin = 0, end = 0, exposed = 0;
  int64_t sentBytes = 0;
};

/// What is known about a step before it runs.
struct StepEstimate {
  MemoryParts memory;
  TrafficParts traffic;
  TimeParts time;
};

/// Bytes of parameters, gradients and states of a rank by the formulas of the
/// stages for `params` numbers (arXiv 1910.02054, table 1).
struct StateBytes {
  double parameters = 0, gradients = 0, optimizer = 0;
  double total() const { return parameters + gradients + optimizer; }
};
StateBytes stateBytes(double params, int64_t shards, int64_t stage,
                      Precision precision);

/// Predicts steps of one model on one machine; what does not depend on the
/// configuration is computed once.
class StepPlanner {
public:
  StepPlanner(ModelShape shape, CostModel cost, const Software &software);

  MemoryParts memory(const StepConfig &config) const;
  TrafficParts traffic(const StepConfig &config) const;
  /// With `events`, also what each channel does, in the order of its starts.
  TimeParts time(const StepConfig &config,
                 std::vector<StepEvent> *events = nullptr) const;
  StepEstimate estimate(const StepConfig &config) const {
    return {memory(config), traffic(config), time(config)};
  }

  /// Bytes that a plan may use.
  int64_t capacity() const {
    return cost.getMachine().memoryBytes - cost.getMachine().reservedBytes;
  }

  /// Whether the device is the host's processor.
  bool isOnProcessor() const {
    return cost.getMachine().constant("processor_cores") > 0;
  }
  /// Bytes of a layer's whole parameters in compute precision, and of the
  /// activations that backward reads of it.
  int64_t layerBytes(const StepConfig &config) const;
  int64_t savedBytes(const StepConfig &config, Recompute recompute) const;
  /// Parameters that stay gathered from forward to backward.
  int64_t keptParameters(const StepConfig &config) const;
  /// Elements of a rank's parameters, whole or its shards, that `share` says.
  int64_t offloadedElements(const StepConfig &config, const OffloadShare &share,
                            bool sharded) const;
  /// Bytes of activations that backward reads of the layers of `share`.
  int64_t offloadedActivations(const StepConfig &config,
                               const OffloadShare &share) const;

  const ModelShape &getShape() const { return shape; }
  const CostModel &getCost() const { return cost; }
  const Software &getSoftware() const { return software; }

private:
  void moveMemory(const StepConfig &config, MemoryParts &parts) const;
  void addCopies(const StepConfig &config, TrafficParts &parts) const;

  ModelShape shape;
  CostModel cost;
  const Software &software;
  std::vector<ShapeParameter> layer;
};

/// Empty, or why a configuration makes no sense for a model.
std::string checkConfig(const ModelShape &shape, const StepConfig &config);

/// One step of one rank for pictures: spans, memory by kind, parameters.
Timeline predictedTimeline(const StepPlanner &planner, const StepConfig &config,
                           int64_t memoryBytes);

/// Tokens of all ranks per second.
double tokensPerSecond(const StepConfig &config, const TimeParts &time);

} // namespace mlir::zero

#endif // ZERO_PLANNER_STEPPLAN_H
