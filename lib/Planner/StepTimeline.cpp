//===- StepTimeline.cpp - Pictures of a step that was planned ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the events of a step into a timeline.
//
//===----------------------------------------------------------------------===//

#include "Types.h"
#include "zero/Planner/StepPlan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <map>

using namespace llvm;
using namespace mlir::zero;

namespace {
/// Bytes by time and kind, as differences.
class MemoryCurve {
public:
  MemoryCurve(const StepPlanner &planner, const StepConfig &config)
      : planner(planner), config(config), bytes(typeBytes(config.precision)) {}

  void add(const StepEvent &event);
  std::vector<TimelineMemory> points(double end) const;

private:
  const StepPlanner &planner;
  const StepConfig &config;
  TypeBytes bytes;
  std::map<double, std::array<int64_t, kNumMemoryKinds>> changes;
  std::map<int64_t, int64_t> gathered; ///< by unit

  void change(double time, MemoryKind kind, int64_t delta) {
    changes[time][static_cast<size_t>(kind)] += delta;
  }
  /// Layers of a unit; the last one may have fewer.
  int64_t layers(int64_t unit) const {
    int64_t all = planner.getShape().layers, each = config.bucketLayers;
    return std::min(each, all - unit * each);
  }
  int64_t saved(int64_t unit) const {
    int64_t again = config.recomputeLayers < 0 ? planner.getShape().layers
                                               : config.recomputeLayers;
    int64_t first = unit * config.bucketLayers, total = 0;
    for (int64_t layer = first; layer != first + layers(unit); ++layer)
      total += planner.savedBytes(config, layer < again ? config.recompute
                                                        : Recompute::None);
    return total;
  }
  void addCompute(const StepEvent &event);
};
} // namespace

void MemoryCurve::addCompute(const StepEvent &event) {
  int64_t whole = planner.savedBytes(config, Recompute::None);
  bool forward = event.what == "forward", backward = event.what == "backward";
  if (event.unit < 0 && event.what.starts_with("head")) {
    int64_t logits = planner.memory(config).logits;
    if (event.what == "head")
      change(event.begin, MemoryKind::Activation, logits);
    else
      change(event.end, MemoryKind::Activation, -logits);
    return;
  }
  if (event.unit < 0 || (!forward && !backward && event.what != "recompute"))
    return;
  if (forward)
    change(event.begin, MemoryKind::Activation, saved(event.unit));
  // What the layer that runs holds for itself.
  change(event.begin, MemoryKind::Activation, whole);
  change(event.end, MemoryKind::Activation, -whole);
  if (backward) {
    change(event.end, MemoryKind::Activation, -saved(event.unit));
    if (config.stage >= 2)
      change(event.begin, MemoryKind::Gradient,
             layers(event.unit) * planner.getShape().layerSize() *
                 bytes.gradient);
  }
  int64_t units = (planner.getShape().layers + config.bucketLayers - 1) /
                  config.bucketLayers;
  int64_t kept =
      (config.keepLayers + config.bucketLayers - 1) / config.bucketLayers;
  if (backward || (forward && event.unit < units - kept)) {
    change(event.end, MemoryKind::Gathered, -gathered[event.unit]);
    gathered[event.unit] = 0;
  }
}

void MemoryCurve::add(const StepEvent &event) {
  if (event.kind == TaskKind::Compute)
    return addCompute(event);
  int64_t elements =
      event.unit >= 0 ? layers(event.unit) * planner.getShape().layerSize() : 0;
  if (event.kind == TaskKind::AllGather && event.unit >= 0) {
    change(event.begin, MemoryKind::Gathered, elements * bytes.parameter);
    gathered[event.unit] = elements * bytes.parameter;
  } else if (event.kind == TaskKind::ReduceScatter && event.unit >= 0 &&
             config.stage >= 2) {
    change(event.end, MemoryKind::Gradient, -elements * bytes.gradient);
  }
}

std::vector<TimelineMemory> MemoryCurve::points(double end) const {
  MemoryParts parts = planner.memory(config);
  TimelineMemory now;
  auto at = [&](MemoryKind kind) -> int64_t & {
    return now.bytes[static_cast<size_t>(kind)];
  };
  at(MemoryKind::Parameter) = parts.parameters;
  at(MemoryKind::Gradient) = parts.gradients;
  at(MemoryKind::OptimizerState) = parts.optimizer;
  at(MemoryKind::Input) = parts.inputs;
  if (config.stage == 3 && config.shards() > 1)
    at(MemoryKind::Gathered) =
        planner.getShape().outerSize(config.seq) * bytes.parameter;
  std::vector<TimelineMemory> points = {now};
  for (const auto &[time, deltas] : changes) {
    now.time = time;
    for (size_t kind = 0; kind != kNumMemoryKinds; ++kind)
      now.bytes[kind] += deltas[kind];
    points.push_back(now);
  }
  now.time = std::max(end, now.time);
  points.push_back(now);
  return points;
}

static void addParameters(const StepPlanner &planner, const StepConfig &config,
                          Timeline &timeline) {
  const ModelShape &shape = planner.getShape();
  TypeBytes bytes = typeBytes(config.precision);
  auto add = [&](const ShapeParameter &parameter, const Twine &prefix,
                 StringRef gathered) {
    TimelineParameter row;
    row.name = (prefix + parameter.name).str();
    row.shape = parameter.dims;
    row.shard = parameter.dims;
    if (config.stage >= 1)
      row.shard[0] = (row.shard[0] + config.shards() - 1) / config.shards();
    row.type = bytes.parameter == 4 ? "f32" : "bf16";
    row.gathered = gathered.str();
    int64_t shard = ShapeParameter{"", row.shard}.elements();
    int64_t whole = parameter.elements();
    row.bytes = bytes.parameter * (config.stage >= 3 ? shard : whole) +
                bytes.gradient * (config.stage >= 2 ? shard : whole) +
                bytes.optimizer * shard;
    timeline.parameters.push_back(std::move(row));
  };
  bool sharded = config.stage == 3 && config.shards() > 1;
  StringRef outside = config.stage == 0 ? "never" : "after the update";
  if (sharded)
    outside =
        planner.keptParameters(config) > 0 ? "kept for backward" : "twice";
  for (const ShapeParameter &parameter : shape.outerParameters(config.seq))
    add(parameter, "", outside);
  for (int64_t layer = 0; layer != shape.layers; ++layer)
    for (const ShapeParameter &parameter : shape.layerParameters())
      add(parameter, "layer" + Twine(layer) + ".",
          !sharded                                    ? outside
          : layer >= shape.layers - config.keepLayers ? "kept for backward"
                                                      : "twice");
}

Timeline mlir::zero::predictedTimeline(const StepPlanner &planner,
                                       const StepConfig &config,
                                       int64_t memoryBytes) {
  std::vector<StepEvent> events;
  TimeParts time = planner.time(config, &events);
  Timeline timeline;
  timeline.source = "predicted";
  timeline.model = planner.getShape().name;
  timeline.machine = planner.getCost().getMachine().name;
  timeline.ranks = config.ranks;
  if (config.replicas > 1)
    timeline.grid = {config.replicas, config.shards()};
  else
    timeline.grid = {config.ranks};
  timeline.stage = config.stage;
  timeline.budgetBytes = memoryBytes;
  timeline.plannedPeak = planner.memory(config).total();
  timeline.stepSeconds = time.step;
  timeline.exposedSeconds = time.exposed();
  MemoryCurve curve(planner, config);
  for (const StepEvent &event : events) {
    TimelineSpan span;
    span.channel = event.channel.str();
    span.name = event.unit < 0
                    ? event.what.str()
                    : formatv("{0} {1}", event.what, event.unit).str();
    span.kind = event.kind;
    span.start = event.begin;
    span.end = event.end;
    span.exposed = event.exposed;
    span.sentBytes = event.sentBytes;
    if (event.exposed > 0)
      span.reason = "compute needs it, and had nothing else to do";
    timeline.spans.push_back(std::move(span));
    curve.add(event);
  }
  timeline.memory = curve.points(time.step);
  for (const TimelineMemory &point : timeline.memory) {
    int64_t sum = 0;
    for (int64_t bytes : point.bytes)
      sum += bytes;
    timeline.lowerBound = std::max(timeline.lowerBound, sum);
  }
  // The picture has no more than the plan allows for.
  timeline.plannedPeak = std::max(timeline.plannedPeak, timeline.lowerBound);
  addParameters(planner, config, timeline);
  return timeline;
}
