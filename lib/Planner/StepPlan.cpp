//===- StepPlan.cpp - Memory and traffic of a step -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See StepPlan.h; time is in StepTime.cpp.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/StepPlan.h"

#include "Types.h"

#include <algorithm>

using namespace llvm;
using namespace mlir::zero;

StringRef mlir::zero::precisionName(Precision precision) {
  static constexpr StringLiteral names[] = {"f32", "mixed", "bf16", "f8"};
  return names[static_cast<size_t>(precision)];
}

StringRef mlir::zero::recomputeName(Recompute recompute) {
  static constexpr StringLiteral names[] = {"none", "selective", "full"};
  return names[static_cast<size_t>(recompute)];
}

StateBytes mlir::zero::stateBytes(double params, int64_t shards, int64_t stage,
                                  Precision precision) {
  TypeBytes bytes = typeBytes(precision);
  double sharded = params / shards;
  return {bytes.parameter * (stage >= 3 ? sharded : params),
          bytes.gradient * (stage >= 2 ? sharded : params),
          bytes.optimizer * (stage >= 1 ? sharded : params)};
}

StepPlanner::StepPlanner(ModelShape shape, CostModel cost,
                         const Software &software)
    : shape(std::move(shape)), cost(std::move(cost)), software(software),
      layer(this->shape.layerParameters()) {}

int64_t mlir::zero::shardElements(const std::vector<ShapeParameter> &list,
                                  int64_t shards) {
  int64_t total = 0;
  for (const ShapeParameter &parameter : list) {
    int64_t rows = parameter.dims.front();
    int64_t chunk = (rows + shards - 1) / shards;
    total += chunk * (parameter.elements() / rows);
  }
  return total;
}

int64_t StepPlanner::layerBytes(const StepConfig &config) const {
  return shape.layerSize() * typeBytes(config.precision).parameter;
}

int64_t StepPlanner::savedBytes(const StepConfig &config,
                                Recompute recompute) const {
  int64_t tokens = config.batch * config.seq;
  int64_t d = shape.hidden, ffn = shape.ffn * shape.expertsUsed;
  // The layer's input is all that full recomputation needs.
  int64_t width = d;
  if (recompute != Recompute::Full)
    // The sum before the second norm; q, k, v; attention's result; what goes
    // into the activation function.
    width += 2 * d + d + 2 * shape.kvSize() + ffn * (shape.gated ? 2 : 1);
  if (recompute == Recompute::None)
    // Results of both norms and of the activation function.
    width += 2 * d + ffn;
  int64_t statistics = recompute == Recompute::Full ? 0 : shape.heads * 4;
  return tokens * (width * typeBytes(config.precision).activation + statistics);
}

MemoryParts StepPlanner::memory(const StepConfig &config) const {
  TypeBytes bytes = typeBytes(config.precision);
  std::vector<ShapeParameter> outer = shape.outerParameters(config.seq);
  int64_t whole = shape.size(config.seq);
  int64_t shard = shape.layers * shardElements(layer, config.shards()) +
                  shardElements(outer, config.shards());
  MemoryParts parts;
  parts.parameters = bytes.parameter * (config.stage >= 3 ? shard : whole);
  parts.gradients = bytes.gradient * (config.stage >= 2 ? shard : whole);
  parts.optimizer = bytes.optimizer * (config.stage >= 1 ? shard : whole);

  int64_t unit = shape.layerSize() * std::max<int64_t>(config.bucketLayers, 1);
  int64_t table = shape.outerSize(config.seq);
  if (config.stage >= 3 && config.shards() > 1) {
    int64_t window = std::min(unit * (1 + config.prefetch),
                              shape.layerSize() * shape.layers);
    int64_t kept = shape.layerSize() * config.keepLayers;
    parts.gathered += bytes.parameter * (window + kept + table);
  }
  // Gradients of the layer that runs and of the one that is reduced.
  if (config.stage >= 2 && config.shards() > 1)
    parts.gathered += bytes.gradient * std::max(2 * unit, table);

  int64_t again = config.recompute == Recompute::None ? 0
                  : config.recomputeLayers < 0
                      ? shape.layers
                      : std::min(config.recomputeLayers, shape.layers);
  int64_t all = savedBytes(config, Recompute::None);
  int64_t less = savedBytes(config, config.recompute);
  // The layer that runs has all of its activations and as many gradients.
  parts.activations = again * less + (shape.layers - again) * all + all;
  int64_t tokens = config.batch * config.seq;
  parts.logits = tokens * shape.vocab * 2 * bytes.activation;
  parts.inputs = tokens * 2 * sizeof(int64_t);
  if (config.offload.any())
    moveMemory(config, parts);
  return parts;
}

int64_t StepPlanner::keptParameters(const StepConfig &config) const {
  if (config.stage != 3)
    return 0;
  int64_t kept = std::min(config.keepLayers, shape.layers);
  bool outer = kept > 0 || software.keepOuter;
  return kept * shape.layerSize() + (outer ? shape.outerSize(config.seq) : 0);
}

TrafficParts StepPlanner::traffic(const StepConfig &config) const {
  TrafficParts parts;
  addCopies(config, parts);
  TypeBytes bytes = typeBytes(config.precision);
  int64_t shards = config.shards();
  int64_t layerShard = shardElements(layer, shards);
  int64_t outerShard = shardElements(shape.outerParameters(config.seq), shards);
  int64_t shard = shape.layers * layerShard + outerShard;
  int64_t once = shard * (shards - 1); // what a rank sends to gather all once
  if (config.stage == 0) {
    // Whole tensors over all ranks, each of them padded to chunks.
    int64_t all =
        shape.layers * shardElements(layer, config.ranks) +
        shardElements(shape.outerParameters(config.seq), config.ranks);
    parts.allReduce = 2 * all * (config.ranks - 1) * bytes.gradient;
    return parts;
  }
  if (config.stage == 3) {
    int64_t kept = std::min(config.keepLayers, shape.layers);
    int64_t again = (shape.layers - kept) * layerShard * (shards - 1);
    if (kept == 0 && !software.keepOuter)
      again += outerShard * (shards - 1);
    parts.allGather = config.accumulate * (once + again) * bytes.parameter;
  } else {
    parts.allGather = once * bytes.parameter;
  }
  int64_t reductions = config.stage == 1 ? 1 : config.accumulate;
  parts.reduceScatter = reductions * once * bytes.gradient;
  if (config.replicas > 1)
    parts.allReduce =
        2 * (shard / config.replicas * (config.replicas - 1)) * bytes.gradient;
  return parts;
}

std::string mlir::zero::checkConfig(const ModelShape &shape,
                                    const StepConfig &config) {
  auto range = [](StringRef name, int64_t value, int64_t low,
                  int64_t high) -> std::string {
    if (value >= low && value <= high)
      return {};
    return (name + " is " + Twine(value) + "; expected " + Twine(low) +
            (high == INT64_MAX ? Twine(" or more") : " to " + Twine(high)))
        .str();
  };
  std::string checks[] = {
      range("ranks", config.ranks, 1, 1 << 24),
      range("stage", config.stage, 0, 3),
      range("seq", config.seq, 1, 1 << 26),
      range("batch", config.batch, 1, 1 << 24),
      range("accumulate", config.accumulate, 1, 1 << 20),
      range("replicas", config.replicas, 1, config.ranks),
      range("keep-layers", config.keepLayers, 0, shape.layers),
      range("prefetch", config.prefetch, 0, shape.layers),
      range("bucket-layers", config.bucketLayers, 1, shape.layers),
      range("offloaded layers", config.offload.optimizer.layers, -1,
            shape.layers),
  };
  for (const std::string &check : checks)
    if (!check.empty())
      return check;
  // Bytes must fit into 64 bits.
  double width = 6.0 * shape.hidden + 2.0 * shape.kvSize() +
                 3.0 * shape.ffn * shape.expertsUsed + shape.vocab;
  double tokens = static_cast<double>(config.batch) * config.seq;
  if (tokens * width * shape.layers * 4 > 1e18)
    return ("batch " + Twine(config.batch) + " x seq " + Twine(config.seq) +
            " is more than can be planned")
        .str();
  if (config.ranks % config.replicas != 0)
    return ("grid has " + Twine(config.replicas) + " replicas on " +
            Twine(config.ranks) + " ranks; expected a divisor of the ranks")
        .str();
  return {};
}

double mlir::zero::tokensPerSecond(const StepConfig &config,
                                   const TimeParts &time) {
  double tokens = static_cast<double>(config.ranks) * config.accumulate *
                  config.batch * config.seq;
  return tokens / time.step;
}
