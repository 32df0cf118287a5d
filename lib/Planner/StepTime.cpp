//===- StepTime.cpp - Seconds of a step ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Durations of layers and collectives; StepLoop puts them in order.
//
//===----------------------------------------------------------------------===//

#include "StepLoop.h"
#include "Types.h"

#include "zero/Cost/Processor.h"

#include <algorithm>

using namespace llvm;
using namespace mlir::zero;

namespace {
/// Durations for one model, machine and configuration.
class StepTimer {
public:
  StepTimer(const StepPlanner &planner, const StepConfig &config)
      : planner(planner), shape(planner.getShape()), cost(planner.getCost()),
        machine(cost.getMachine()), software(planner.getSoftware()),
        config(config), bytes(typeBytes(config.precision)),
        tokens(config.batch * config.seq) {}

  StepTimes times() const;

private:
  const StepPlanner &planner;
  const ModelShape &shape;
  const CostModel &cost;
  const Machine &machine;
  const Software &software;
  const StepConfig &config;
  TypeBytes bytes;
  int64_t tokens;

  double product(int64_t m, int64_t n, int64_t k, StringRef type) const;
  double memory(double bytes) const {
    return bytes / (machine.memoryBandwidth *
                    machine.constant("kernel_bandwidth_efficiency"));
  }
  double products() const;
  double attention() const;
  double elementwise() const;
  UnitTimes layer() const;
  UnitTimes head() const;
  double update() const;
  void collectives(UnitTimes &unit, int64_t elements) const;
  CopyTime copy(TaskKind kind, int64_t size) const {
    return size > 0 ? CopyTime{cost.copy(kind, size), size} : CopyTime();
  }
  void offload(UnitTimes &unit, int64_t whole, int64_t shard, bool states,
               bool gradients, bool parameters) const;
  void offloadLayers(UnitTimes &unit, int64_t first, int64_t count,
                     int64_t shard) const;
  void offloadSaved(UnitTimes &unit, int64_t size) const;
};
} // namespace

double StepTimer::product(int64_t m, int64_t n, int64_t k,
                          StringRef type) const {
  OpWork work;
  work.cls = OpWork::Matmul;
  work.batch = 1;
  work.m = m;
  work.n = n;
  work.k = k;
  work.flops = 2.0 * m * n * k;
  work.bytes = static_cast<double>(bytes.activation) *
               (static_cast<double>(m) * k + static_cast<double>(k) * n +
                static_cast<double>(m) * n);
  work.type = type;
  double seconds = cost.compute(work);
  return type == "f8" ? seconds / software.f8Products : seconds;
}

/// The products of one layer, forward.
double StepTimer::products() const {
  int64_t d = shape.hidden;
  double seconds = product(tokens, d + 2 * shape.kvSize(), d, bytes.product) +
                   product(tokens, d, d, bytes.product);
  // Tokens spread evenly over the experts.
  int64_t routed =
      std::max<int64_t>(tokens * shape.expertsUsed / shape.experts, 1);
  double expert =
      product(routed, shape.ffn, d, bytes.product) * (shape.gated ? 2 : 1) +
      product(routed, d, shape.ffn, bytes.product);
  return seconds + shape.experts * expert;
}

/// Attention of one layer, forward.
double StepTimer::attention() const {
  // Causal: half of the matrix.
  double flops = 2.0 * tokens * config.seq * shape.hidden;
  StringRef type = config.precision == Precision::F32 ? "f32" : "bf16";
  auto peak = machine.peakFlops.find(type.str());
  double rate = peak != machine.peakFlops.end()
                    ? peak->second
                    : machine.peakFlops.begin()->second;
  if (software.attention > 0)
    return flops / (rate * software.attention *
                    machine.constant("attention_efficiency"));
  double matrix = static_cast<double>(config.batch) * shape.heads * config.seq *
                  config.seq * bytes.activation;
  return 2 * flops / (rate * machine.matmulEfficiency) +
         memory(software.attentionPasses * matrix);
}

double StepTimer::elementwise() const {
  // Operands and results of norms, sums, and the activation function.
  int64_t width =
      12 * shape.hidden + (shape.gated ? 3 : 2) * shape.ffn * shape.expertsUsed;
  return memory(software.elementwise * tokens * bytes.activation * width);
}

UnitTimes StepTimer::layer() const {
  double product = products(), attend = attention(), rest = elementwise();
  double forward = product + attend + rest;
  UnitTimes unit;
  unit.forward = forward;
  // Backward has two products for each one, and five for attention's two.
  unit.backward = 2 * product + 2.5 * attend + 2 * rest;
  double part =
      config.recomputeLayers < 0
          ? 1.0
          : std::min(1.0, static_cast<double>(config.recomputeLayers) /
                              shape.layers);
  if (config.recompute == Recompute::Full)
    unit.recompute = part * software.fullRecompute * forward;
  else if (config.recompute == Recompute::Selective)
    unit.recompute = part * (software.selectiveProducts * product +
                             software.selectiveAttention * attend + rest);
  // A layer is never faster than its launches.
  unit.forward = std::max(unit.forward, software.layerSeconds);
  double passes = config.recompute == Recompute::Full ? 3 : 2;
  unit.backward =
      std::max(unit.backward, passes * software.layerSeconds - unit.recompute);
  return unit;
}

/// The last product, the loss, and what a micro-batch costs beside its layers.
UnitTimes StepTimer::head() const {
  StringRef type = config.precision == Precision::F32 ? "f32" : "bf16";
  double logits = product(tokens, shape.vocab, shape.hidden, type);
  double loss = memory(software.lossPasses * 4.0 * tokens *
                       static_cast<double>(shape.vocab));
  UnitTimes unit;
  unit.forward = logits + loss / 2 + software.batchSeconds;
  unit.backward = 2 * logits + loss / 2;
  return unit;
}

double StepTimer::update() const {
  double elements = static_cast<double>(shape.size(config.seq)) /
                    (config.stage >= 1 ? config.shards() : 1);
  // The host updates the others.
  double layers = offloadedLayers(config.offload.optimizer, shape.layers);
  double there = config.offload.optimizer.layers < 0
                     ? 1
                     : layers * shape.layerSize() / shape.size(config.seq);
  elements *= 1 - there;
  // Adam reads and writes the parameter and both states, reads the gradient.
  double width = config.precision == Precision::Bf16 ? 14 : 28;
  return memory(software.update * width * elements) +
         software.updateLayerSeconds * (shape.layers - layers);
}

/// Collectives of a unit with `elements` parameters.
void StepTimer::collectives(UnitTimes &unit, int64_t elements) const {
  int64_t reduce =
      config.precision == Precision::Mixed || config.precision == Precision::F8
          ? software.reduceBytes
          : bytes.gradient;
  int64_t gathered = elements * bytes.parameter;
  int64_t reduced = elements * reduce;
  if (config.stage == 0) {
    RankGroup all = cost.group(config.ranks);
    unit.reduce = cost.collective(TaskKind::AllReduce, reduced, all);
    unit.reduceBytes = ringBytes(TaskKind::AllReduce, reduced, config.ranks);
    return;
  }
  RankGroup group = cost.group(config.shards());
  unit.gather = cost.collective(TaskKind::AllGather, gathered, group);
  unit.gatherBytes = ringBytes(TaskKind::AllGather, gathered, group.ranks);
  unit.reduce = cost.collective(TaskKind::ReduceScatter, reduced, group);
  unit.reduceBytes = ringBytes(TaskKind::ReduceScatter, reduced, group.ranks);
  if (config.replicas == 1)
    return;
  RankGroup across = cost.group(config.replicas, config.shards());
  int64_t shard = reduced / config.shards();
  unit.replicate = cost.collective(TaskKind::AllReduce, shard, across);
  unit.replicateBytes = ringBytes(TaskKind::AllReduce, shard, across.ranks);
}

/// Copies for `whole` parameters of which a rank updates `shard`.
void StepTimer::offload(UnitTimes &unit, int64_t whole, int64_t shard,
                        bool states, bool gradients, bool parameters) const {
  const StepOffload &asked = config.offload;
  int64_t held = config.stage >= 3 ? shard : whole;
  bool inPlace = config.stage == 0 || config.stage == 3 || config.shards() == 1;
  bool master = bytes.optimizer > 2 * bytes.parameter;
  if (states) {
    int64_t down = bytes.gradient;
    if (!master && !(parameters && inPlace))
      down += bytes.parameter;
    unit.gradDown = copy(TaskKind::CopyOut, shard * down);
    if (!parameters || !inPlace)
      unit.newUp = copy(TaskKind::CopyIn, shard * bytes.parameter);
    OpWork update; // states are read and written
    update.bytes = static_cast<double>(shard) *
                   (2 * bytes.optimizer + bytes.gradient + bytes.parameter +
                    (master ? 0 : bytes.parameter));
    unit.hostUpdate = cost.hostCompute(update);
    if (asked.optimizer.disk) {
      unit.stateRead = copy(TaskKind::DiskRead, shard * bytes.optimizer);
      unit.stateWrite = copy(TaskKind::DiskWrite, shard * bytes.optimizer);
    }
  } else if (gradients) {
    int64_t size = (config.stage >= 2 ? shard : whole) * bytes.gradient;
    unit.gradDown = copy(TaskKind::CopyOut, size);
    unit.gradUp = copy(TaskKind::CopyIn, size);
  }
  if (!parameters)
    return;
  unit.paramsUp = copy(TaskKind::CopyIn, held * bytes.parameter);
  if (!states || !inPlace)
    unit.newDown = copy(TaskKind::CopyOut, held * bytes.parameter);
  if (asked.parameters.disk) {
    unit.paramsRead = copy(TaskKind::DiskRead, held * bytes.parameter);
    unit.newWrite = copy(TaskKind::DiskWrite, held * bytes.parameter);
  }
}

void StepTimer::offloadSaved(UnitTimes &unit, int64_t size) const {
  unit.savedDown = copy(TaskKind::CopyOut, size);
  unit.savedUp = copy(TaskKind::CopyIn, size);
  if (config.offload.activations.disk) {
    unit.savedWrite = copy(TaskKind::DiskWrite, size);
    unit.savedRead = copy(TaskKind::DiskRead, size);
  }
}

/// Of the layers from `first` on, those that are offloaded: the last ones.
void StepTimer::offloadLayers(UnitTimes &unit, int64_t first, int64_t count,
                              int64_t shard) const {
  const StepOffload &asked = config.offload;
  auto here = [&](const OffloadShare &share) {
    int64_t from = shape.layers - offloadedLayers(share, shape.layers);
    return std::clamp<int64_t>(first + count - from, 0, count);
  };
  auto part = [&](int64_t layers, bool states, bool gradients,
                  bool parameters) {
    UnitTimes some;
    offload(some, layers * shape.layerSize(), layers * shard, states, gradients,
            parameters);
    return some;
  };
  UnitTimes states =
      part(here(asked.optimizer), true, false, here(asked.parameters) > 0);
  UnitTimes gradients = part(here(asked.gradients), false, true, false);
  UnitTimes parameters =
      part(here(asked.parameters), here(asked.optimizer) > 0, false, true);
  if (here(asked.optimizer)) {
    unit.gradDown = states.gradDown;
    unit.newUp = states.newUp;
    unit.hostUpdate = states.hostUpdate;
    unit.stateRead = states.stateRead;
    unit.stateWrite = states.stateWrite;
  } else if (here(asked.gradients)) {
    unit.gradDown = gradients.gradDown;
    unit.gradUp = gradients.gradUp;
  }
  if (here(asked.parameters)) {
    unit.paramsUp = parameters.paramsUp;
    unit.paramsRead = parameters.paramsRead;
    unit.newDown = parameters.newDown;
    unit.newWrite = parameters.newWrite;
  }
  int64_t again = config.recompute == Recompute::None ? 0
                  : config.recomputeLayers < 0        ? shape.layers
                                                      : config.recomputeLayers;
  int64_t saved = 0;
  for (int64_t layer = first + count - here(asked.activations);
       layer != first + count; ++layer)
    saved += planner.savedBytes(config, layer < again ? config.recompute
                                                      : Recompute::None);
  offloadSaved(unit, saved);
}

StepTimes StepTimer::times() const {
  StepTimes result;
  int64_t shards = config.stage >= 1 ? config.shards() : 1;
  int64_t layerShard = shardElements(shape.layerParameters(), shards);
  bool moves = config.offload.any();
  UnitTimes one = layer();
  int64_t perUnit = std::max<int64_t>(config.bucketLayers, 1);
  int64_t size = shape.layerSize();
  for (int64_t done = 0; done < shape.layers; done += perUnit) {
    int64_t count = std::min(perUnit, shape.layers - done);
    if (!result.units.empty() && count == perUnit && !moves) {
      result.units.push_back(result.units.front());
      continue;
    }
    UnitTimes unit;
    unit.forward = count * one.forward;
    unit.recompute = count * one.recompute;
    unit.backward = count * one.backward;
    collectives(unit, count * size);
    if (moves)
      offloadLayers(unit, done, count, layerShard);
    result.units.push_back(unit);
  }
  result.head = head();
  int64_t headSize = shape.tied ? 0 : shape.embeddingSize();
  if (headSize > 0)
    collectives(result.head, headSize);
  int64_t tableSize = shape.outerSize(config.seq) - headSize;
  collectives(result.embedding, tableSize);
  if (moves) {
    const StepOffload &asked = config.offload;
    auto outer = [&](UnitTimes &unit, int64_t elements, int64_t shard) {
      if (elements > 0)
        offload(unit, elements, shard, asked.optimizer.layers < 0,
                asked.gradients.layers < 0, asked.parameters.layers < 0);
    };
    int64_t headShard =
        headSize ? shardElements({{"", {shape.vocab, shape.hidden}}}, shards)
                 : 0;
    outer(result.head, headSize, headShard);
    outer(result.embedding, tableSize,
          shardElements(shape.outerParameters(config.seq), shards) - headShard);
  }
  // Reading the table, and adding gradients to it.
  double rows = memory(3.0 * tokens * shape.hidden * bytes.activation);
  result.embedding.forward = rows;
  result.embedding.backward = rows;
  result.update = update();
  return result;
}

TimeParts StepPlanner::time(const StepConfig &config,
                            std::vector<StepEvent> *events) const {
  StepTimes times = StepTimer(*this, config).times();
  StepLoop loop(times, config, software, cost.getMachine(), events);
  TimeParts parts = loop.run();
  double busy = parts.compute() + parts.gather + parts.reduce + parts.toHost +
                parts.toDevice + parts.host;
  parts.step = std::max(
      parts.step, processorSeconds(cost.getMachine(), config.ranks, busy));
  return parts;
}
