//===- Search.cpp - The fastest plan that fits ---------------------------===//
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

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <functional>
#include <tuple>

using namespace llvm;
using namespace mlir::zero;

int64_t mlir::zero::layersToKeep(const StepPlanner &planner,
                                 const StepConfig &config,
                                 int64_t memoryBytes) {
  if (config.stage != 3 || config.shards() == 1)
    return 0;
  StepConfig none = config;
  none.keepLayers = 0;
  int64_t left = memoryBytes - planner.memory(none).total();
  int64_t layers = left / std::max<int64_t>(planner.layerBytes(config), 1);
  // Whole buckets.
  layers -= layers % std::max<int64_t>(config.bucketLayers, 1);
  return std::clamp<int64_t>(layers, 0, planner.getShape().layers);
}

static std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> list;
  for (int64_t d = 1; d <= number / d; ++d)
    if (number % d == 0) {
      list.push_back(d);
      if (d != number / d)
        list.push_back(number / d);
    }
  llvm::sort(list);
  return list;
}

/// Micro-batches to try: as `space` says, those that divide its batch, or
/// powers of two and halfway between them.
static std::vector<int64_t> batches(const SearchSpace &space) {
  if (space.batch)
    return {*space.batch};
  if (space.globalBatch > 0)
    return space.globalBatch % space.base.ranks == 0
               ? divisors(space.globalBatch / space.base.ranks)
               : std::vector<int64_t>();
  std::vector<int64_t> list;
  for (int64_t size = 1; size <= 1024; size *= 2) {
    list.push_back(size);
    if (size >= 2)
      list.push_back(size + size / 2);
  }
  return list;
}

namespace {
/// A way to recompute: of how many layers.
struct Again {
  Recompute recompute;
  int64_t layers;
};
} // namespace

static std::vector<Again> recomputations(const SearchSpace &space,
                                         int64_t layers) {
  if (space.recompute)
    return {{*space.recompute, space.base.recomputeLayers}};
  std::vector<Again> list = {{Recompute::None, -1}, {Recompute::Selective, -1}};
  for (int64_t quarter = 1; quarter <= 4; ++quarter)
    if (layers * quarter / 4 > 0)
      list.push_back({Recompute::Full, layers * quarter / 4});
  return list;
}

/// Calls `visit` with each configuration of `space`, in a fixed order.
static void forEach(const StepPlanner &planner, const SearchSpace &space,
                    function_ref<void(const StepConfig &)> visit) {
  int64_t layers = planner.getShape().layers;
  std::vector<int64_t> stages = {0, 1, 2, 3};
  if (space.stage)
    stages = {*space.stage};
  std::vector<int64_t> grids = divisors(space.base.ranks);
  if (space.replicas)
    grids = {*space.replicas};
  std::vector<int64_t> sizes = batches(space);
  llvm::erase_if(sizes, [&](int64_t batch) {
    StepConfig config = space.base;
    config.batch = batch;
    config.accumulate = 1;
    return !checkConfig(planner.getShape(), config).empty();
  });
  std::vector<Again> agains = recomputations(space, layers);
  StepConfig config = space.base;
  for (int64_t stage : stages)
    for (int64_t replicas : grids) {
      // Stage 0 shards nothing: a grid changes nothing.
      if (stage == 0 && replicas > 1 && !space.replicas)
        continue;
      config.stage = stage;
      config.replicas = replicas;
      for (int64_t batch : sizes) {
        config.batch = batch;
        if (space.globalBatch > 0)
          config.accumulate = space.globalBatch / space.base.ranks / batch;
        for (const Again &again : agains)
          for (int64_t bucket : {1, 2, 4}) {
            if (bucket > layers || (stage == 0 && bucket > 1))
              continue;
            config.recompute = again.recompute;
            config.recomputeLayers = again.layers;
            config.bucketLayers = bucket;
            for (int64_t prefetch : {1, 2}) {
              if (stage != 3 && prefetch > 1)
                continue;
              config.prefetch = std::min(prefetch, layers);
              visit(config);
            }
          }
      }
    }
}

SearchResult mlir::zero::searchPlans(const StepPlanner &planner,
                                     const SearchSpace &space) {
  SearchResult result;
  auto before = [](const RankedPlan &a, const RankedPlan &b) {
    auto rank = [](const RankedPlan &p) {
      const StepConfig &c = p.config;
      return std::make_tuple(-p.tokensPerSecond, p.estimate.memory.total(),
                             c.stage, c.replicas, c.batch, c.bucketLayers,
                             c.prefetch, static_cast<int>(c.recompute),
                             c.recomputeLayers);
    };
    return rank(a) < rank(b);
  };
  forEach(planner, space, [&](const StepConfig &tried) {
    ++result.tried;
    StepConfig config = tried;
    config.keepLayers = 0;
    if (space.offload) {
      // With larger buckets or more gathers ahead even more would have to go.
      bool plain = config.bucketLayers == 1 && config.prefetch == 1;
      config.offload = {};
      if (plain && !space.fits(planner.memory(config)))
        config.offload = chooseOffload(planner, config, space, /*coarse=*/true)
                             .value_or(StepOffload());
    }
    MemoryParts memory = planner.memory(config);
    if (result.tried == 1 || memory.total() < result.smallestMemory.total()) {
      result.smallest = config;
      result.smallestMemory = memory;
    }
    if (!space.fits(memory))
      return;
    ++result.timed;
    config.keepLayers = layersToKeep(planner, config, space.memoryBytes);
    RankedPlan plan;
    plan.config = config;
    plan.estimate.time = planner.time(config);
    plan.tokensPerSecond = tokensPerSecond(config, plan.estimate.time);
    if (result.plans.size() == space.keep &&
        plan.tokensPerSecond < result.plans.back().tokensPerSecond)
      return;
    plan.estimate.memory = planner.memory(config);
    plan.estimate.traffic = planner.traffic(config);
    auto place = llvm::upper_bound(result.plans, plan, before);
    result.plans.insert(place, plan);
    if (result.plans.size() > space.keep)
      result.plans.pop_back();
  });
  return result;
}
