//===- Explain.cpp - What limits a step, in words ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Search.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/Search.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace mlir::zero;

std::string mlir::zero::formatBytes(double bytes) {
  static constexpr StringLiteral units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return formatv(unit ? "{0:f2} {1}" : "{0:f0} {1}", bytes, units[unit]).str();
}

std::string mlir::zero::formatSeconds(double seconds) {
  if (seconds >= 1)
    return formatv("{0:f3} s", seconds).str();
  if (seconds >= 1e-3)
    return formatv("{0:f2} ms", seconds * 1e3).str();
  return formatv("{0:f1} us", seconds * 1e6).str();
}

static std::string percent(double part, double whole) {
  return formatv("{0:f1} %", whole > 0 ? 100 * part / whole : 0.0).str();
}

static std::string largestMemory(const MemoryParts &memory) {
  std::pair<int64_t, StringRef> parts[] = {
      {memory.parameters, "parameters"},
      {memory.gradients, "gradients"},
      {memory.optimizer, "optimizer states"},
      {memory.gathered, "gathered parameters and gradients"},
      {memory.activations, "activations"},
      {memory.logits, "logits"}};
  auto largest = std::max_element(
      std::begin(parts), std::end(parts),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  return formatBytes(largest->first) + " are " + largest->second.str();
}

/// Exposed gathers: how much longer a gather is than the compute beside it.
static std::string explainGather(const StepPlanner &planner,
                                 const StepConfig &config,
                                 const TimeParts &time) {
  const ModelShape &shape = planner.getShape();
  RankGroup group = planner.getCost().group(config.shards());
  double gather = planner.getCost().collective(
      TaskKind::AllGather, planner.layerBytes(config), group);
  double forward = time.forward / (shape.layers * config.accumulate);
  std::string text =
      formatv("All-gathers are exposed for {0} ({1} of the step)",
              formatSeconds(time.exposedGather),
              percent(time.exposedGather, time.step));
  if (config.stage < 3)
    return text + ": updated parameters are gathered after the update.";
  text += formatv(": a layer's gather takes {0}, its forward pass {1}",
                  formatSeconds(gather), formatSeconds(forward));
  if (gather > forward && forward > 0)
    text += formatv(
        "; a micro-batch of {0} samples would hide it",
        static_cast<int64_t>(std::ceil(config.batch * gather / forward)));
  return text + ".";
}

/// "Offloading m, v of layers 8-31 saves 9.1 GiB, costs 3 % of the step."
static std::string explainOffload(const StepPlanner &planner,
                                  const StepConfig &config,
                                  const StepEstimate &estimate) {
  StepConfig none = config;
  none.offload = {};
  double without = planner.time(none).step;
  const TimeParts &time = estimate.time;
  int64_t saved = planner.memory(none).total() - estimate.memory.total();
  double percent = 100 * (time.step / without - 1);
  std::string cost = percent < 0.05
                         ? "nothing"
                         : formatv("{0:f1} % of the step", percent).str();
  std::string text =
      formatv("Offloading {0} saves {1}, costs {2}: {3} of host memory, copies "
              "stall it for {4}; links are busy for {5} down and {6} up, the "
              "host for {7}",
              describeOffload(planner, config), formatBytes(saved), cost,
              formatBytes(estimate.memory.host),
              formatSeconds(time.exposedOffload), formatSeconds(time.toHost),
              formatSeconds(time.toDevice), formatSeconds(time.host));
  if (time.diskRead + time.diskWrite > 0)
    text += formatv(", the disk for {0} and {1}", formatSeconds(time.diskRead),
                    formatSeconds(time.diskWrite));
  return text + ".";
}

std::vector<std::string> mlir::zero::explainStep(const StepPlanner &planner,
                                                 const StepConfig &config,
                                                 const StepEstimate &estimate,
                                                 int64_t memoryBytes) {
  const TimeParts &time = estimate.time;
  std::vector<std::string> notes;
  double exposed = time.exposed();
  if (exposed > time.compute())
    notes.push_back(formatv("Communication limits the step: compute stands "
                            "still for {0} of {1} ({2}).",
                            formatSeconds(exposed), formatSeconds(time.step),
                            percent(exposed, time.step)));
  else
    notes.push_back(
        formatv("Compute limits the step: {0} of {1} ({2}); forward {3}, "
                "backward {4}, recomputation {5}, head and loss {6}, update "
                "{7}.",
                formatSeconds(time.compute()), formatSeconds(time.step),
                percent(time.compute(), time.step), formatSeconds(time.forward),
                formatSeconds(time.backward), formatSeconds(time.recompute),
                formatSeconds(time.head), formatSeconds(time.update)));
  if (time.exposedGather > 0.01 * time.step)
    notes.push_back(explainGather(planner, config, time));
  if (time.exposedReduce > 0.01 * time.step)
    notes.push_back(formatv(
        "Reductions of gradients are exposed for {0} ({1} of the step): {2} "
        "beside {3} of backward.",
        formatSeconds(time.exposedReduce),
        percent(time.exposedReduce, time.step), formatSeconds(time.reduce),
        formatSeconds(time.backward)));
  if (time.slowdown > 0.01 * time.step)
    notes.push_back(formatv(
        "Collectives beside compute slow it down by {0} ({1}).",
        formatSeconds(time.slowdown), percent(time.slowdown, time.step)));
  if (config.offload.any())
    notes.push_back(explainOffload(planner, config, estimate));
  int64_t total = estimate.memory.total();
  notes.push_back(formatv("Memory: {0} of {1} ({2}); {3}.", formatBytes(total),
                          formatBytes(memoryBytes), percent(total, memoryBytes),
                          largestMemory(estimate.memory)));
  return notes;
}

std::vector<std::string> mlir::zero::waysToFit(const StepPlanner &planner,
                                               const StepConfig &config,
                                               int64_t memoryBytes) {
  std::vector<std::string> ways;
  auto offer = [&](const StepConfig &other, const Twine &what) {
    int64_t total = planner.memory(other).total();
    if (total <= memoryBytes)
      ways.push_back((what + " needs " + formatBytes(total)).str());
    return total <= memoryBytes;
  };
  for (int64_t stage = config.stage + 1; stage <= 3; ++stage) {
    StepConfig other = config;
    other.stage = stage;
    if (offer(other, "stage " + Twine(stage)))
      break;
  }
  for (Recompute recompute : {Recompute::Selective, Recompute::Full}) {
    StepConfig other = config;
    other.recompute = recompute;
    other.recomputeLayers = -1;
    if (recompute > config.recompute &&
        offer(other, "recompute " + recomputeName(recompute)))
      break;
  }
  for (int64_t batch = config.batch / 2; batch >= 1; batch /= 2) {
    StepConfig other = config;
    other.batch = batch;
    if (offer(other, "a micro-batch of " + Twine(batch)))
      break;
  }
  if (!config.offload.any()) {
    StepConfig other = config;
    other.offload.optimizer.layers = -1;
    if (!offer(other, "optimizer state in host memory (--offload)")) {
      other.offload.parameters.layers = -1;
      offer(other, "optimizer state and parameters in host memory (--offload)");
    }
  }
  if (config.replicas > 1) {
    StepConfig other = config;
    other.replicas = 1;
    offer(other, "one replica, sharded over all ranks,");
  }
  StepConfig all = config;
  all.stage = 3;
  all.recompute = Recompute::Full;
  all.recomputeLayers = -1;
  all.batch = 1;
  all.keepLayers = 0;
  all.replicas = 1;
  if (ways.empty())
    offer(all, "stage 3 with full recomputation and a micro-batch of 1");
  // More ranks shard further; what is not sharded stays.
  for (int64_t ranks = config.ranks * 2;
       ways.empty() && ranks <= config.ranks * 4096 && ranks <= (1 << 24);
       ranks *= 2) {
    all.ranks = ranks;
    if (offer(all, "stage 3 with full recomputation, a micro-batch of 1 and " +
                       Twine(ranks) + " ranks"))
      break;
  }
  return ways;
}
