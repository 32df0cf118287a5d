//===- StepOffload.cpp - What of a step lives elsewhere -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes in host memory and on disk, and what is copied for them.
//
//===----------------------------------------------------------------------===//

#include "Types.h"

#include <algorithm>

using namespace mlir::zero;

/// Buckets that copies hold at once: one that moves, one that is used.
static constexpr int64_t kWindow = 2;

int64_t StepPlanner::offloadedElements(const StepConfig &config,
                                       const OffloadShare &share,
                                       bool sharded) const {
  int64_t shards = sharded ? config.shards() : 1;
  int64_t elements =
      offloadedLayers(share, shape.layers) * shardElements(layer, shards);
  if (share.layers < 0)
    elements += shardElements(shape.outerParameters(config.seq), shards);
  return elements;
}

int64_t StepPlanner::offloadedActivations(const StepConfig &config,
                                          const OffloadShare &share) const {
  int64_t layers = offloadedLayers(share, shape.layers);
  int64_t again = config.recompute == Recompute::None ? 0
                  : config.recomputeLayers < 0
                      ? shape.layers
                      : std::min(config.recomputeLayers, shape.layers);
  // The first layers are those that recompute.
  int64_t less = std::max<int64_t>(again - (shape.layers - layers), 0);
  return less * savedBytes(config, config.recompute) +
         (layers - less) * savedBytes(config, Recompute::None);
}

void StepPlanner::moveMemory(const StepConfig &config,
                             MemoryParts &parts) const {
  TypeBytes bytes = typeBytes(config.precision);
  const StepOffload &offload = config.offload;
  auto move = [&](const OffloadShare &share, int64_t size, int64_t &from) {
    from -= size;
    (share.disk ? parts.disk : parts.host) += size;
  };
  int64_t states =
      offloadedElements(config, offload.optimizer, config.stage >= 1);
  move(offload.optimizer, states * bytes.optimizer, parts.optimizer);
  int64_t params =
      offloadedElements(config, offload.parameters, config.stage >= 3);
  move(offload.parameters, params * bytes.parameter, parts.parameters);
  int64_t saved = offloadedActivations(config, offload.activations);
  move(offload.activations, saved, parts.activations);
  int64_t leave =
      offloadedElements(config, leavingGradients(config), config.stage >= 2);
  parts.gradients -= leave * bytes.gradient;
  // Those that the host's update reads at once are gone again.
  int64_t kept =
      offloadedElements(config, offload.gradients, config.stage >= 2);
  if (config.accumulate == 1)
    kept = std::max<int64_t>(
        kept - offloadedElements(config, offload.optimizer, config.stage >= 2),
        0);
  (offload.gradients.disk ? parts.disk : parts.host) += kept * bytes.gradient;

  // Both ends of the copies.
  int64_t bucket = std::max<int64_t>(config.bucketLayers, 1);
  int64_t shard = bucket * shardElements(layer, config.shards());
  int64_t whole = bucket * shape.layerSize();
  auto window = [&](int64_t one, int64_t all) {
    return std::min(kWindow * one, all);
  };
  if (states) {
    int64_t both = window(shard, states) * (bytes.gradient + bytes.parameter);
    parts.staging += both;
    parts.host += both;
    if (offload.optimizer.disk)
      parts.host += window(shard, states) * bytes.optimizer;
  }
  if (params) {
    int64_t ahead =
        window(config.stage >= 3 ? shard : whole, params) * bytes.parameter;
    parts.staging += ahead;
    if (offload.parameters.disk)
      parts.host += ahead;
  }
  if (saved) {
    int64_t ahead =
        window(bucket * savedBytes(config, config.recompute), saved);
    parts.staging += ahead;
    if (offload.activations.disk)
      parts.host += ahead;
  }
}

void StepPlanner::addCopies(const StepConfig &config,
                            TrafficParts &parts) const {
  TypeBytes bytes = typeBytes(config.precision);
  const StepOffload &offload = config.offload;
  bool sharded = config.stage >= 1;
  int64_t states = offloadedElements(config, offload.optimizer, sharded);
  int64_t params =
      offloadedElements(config, offload.parameters, config.stage >= 3);
  // Where both are there, the update writes the parameter where it lives,
  // unless it is to be gathered first.
  const OffloadShare &smaller =
      offloadedLayers(offload.optimizer, shape.layers + 1) <
              offloadedLayers(offload.parameters, shape.layers + 1)
          ? offload.optimizer
          : offload.parameters;
  bool inPlace = config.stage == 0 || config.stage == 3 || config.shards() == 1;
  int64_t both = inPlace ? offloadedElements(config, smaller, sharded) : 0;
  bool master = bytes.optimizer > 2 * bytes.parameter;
  parts.toHost += states * bytes.gradient;
  if (!master) // the update reads the parameter itself
    parts.toHost += std::max<int64_t>(states - both, 0) * bytes.parameter;
  parts.toDevice += std::max<int64_t>(states - both, 0) * bytes.parameter;

  int64_t gradients =
      offloadedElements(config, offload.gradients, config.stage >= 2);
  int64_t alone = std::max<int64_t>(gradients - states, 0);
  if (config.accumulate > 1)
    parts.toHost += (config.accumulate - 1) * gradients * bytes.gradient;
  parts.toHost += alone * bytes.gradient;
  parts.toDevice += alone * bytes.gradient;

  int64_t kept =
      config.stage == 3
          ? std::min(keptParameters(config) / config.shards(), params)
          : 0;
  int64_t up = config.accumulate * (2 * params - kept) * bytes.parameter;
  parts.toDevice += up;
  parts.toHost += std::max<int64_t>(params - both, 0) * bytes.parameter;

  int64_t saved =
      config.accumulate * offloadedActivations(config, offload.activations);
  parts.toHost += saved;
  parts.toDevice += saved;

  if (offload.optimizer.disk) {
    parts.diskRead += states * bytes.optimizer;
    parts.diskWrite += states * bytes.optimizer;
  }
  if (offload.parameters.disk) {
    parts.diskRead += up;
    parts.diskWrite += params * bytes.parameter;
  }
  if (offload.activations.disk) {
    parts.diskRead += saved;
    parts.diskWrite += saved;
  }
}
