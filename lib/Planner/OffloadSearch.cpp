//===- OffloadSearch.cpp - What of a step is best moved away --------------===//
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

#include "Types.h"
#include "zero/Planner/Search.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir::zero;

/// Numbers of layers to try: none, parts of them, all, and negative for what is
/// outside of the layers as well.
static std::vector<int64_t> shares(int64_t layers, int64_t parts) {
  std::vector<int64_t> list = {0};
  for (int64_t part = 1; part <= parts; ++part)
    list.push_back(layers * part / parts);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  list.push_back(-1);
  return list;
}

/// Moves to disk what host memory has no room for: states first, which cross
/// the link to it once each way. False if it does not suffice.
static bool fitHost(const StepPlanner &planner, StepConfig &config,
                    const SearchSpace &space) {
  StepOffload &offload = config.offload;
  if (space.fits(planner.memory(config)))
    return true;
  if (!space.disk)
    return false;
  for (OffloadShare *share :
       {&offload.optimizer, &offload.parameters, &offload.activations}) {
    share->disk = share->layers != 0;
    if (space.fits(planner.memory(config)))
      return true;
  }
  return false;
}

std::optional<StepOffload> mlir::zero::chooseOffload(const StepPlanner &planner,
                                                     const StepConfig &asked,
                                                     const SearchSpace &space,
                                                     bool coarse) {
  int64_t layers = planner.getShape().layers;
  std::optional<StepOffload> best;
  double bestSeconds = 0;
  for (int64_t saved : shares(layers, coarse ? 1 : 4)) {
    if (saved < 0) // nothing outside of the layers
      continue;
    for (int64_t params : shares(layers, coarse ? 1 : 4))
      for (int64_t states : shares(layers, coarse ? 8 : layers)) {
        StepConfig config = asked;
        config.offload = {};
        config.offload.optimizer.layers = states;
        // Accumulators of what the host updates.
        if (config.accumulate > 1)
          config.offload.gradients.layers = states;
        config.offload.parameters.layers = params;
        config.offload.activations.layers = saved;
        if (!fitHost(planner, config, space))
          continue;
        if (coarse) // as the search does
          config.keepLayers = layersToKeep(planner, config, space.memoryBytes);
        double seconds = planner.time(config).step;
        bool nothing = states == 0 && params == 0 && saved == 0; // the first
        if (nothing && planner.isOnProcessor())
          return config.offload;
        if (!nothing) // where all fits, it has to be worth it
          seconds *= 1 + kWorthOffloading;
        if (best && seconds >= bestSeconds)
          continue;
        best = config.offload;
        bestSeconds = seconds;
      }
  }
  return best;
}

std::string mlir::zero::describeOffload(const StepPlanner &planner,
                                        const StepConfig &config) {
  const StepOffload &offload = config.offload;
  StringRef states =
      typeBytes(config.precision).optimizer == 12 ? "m, v, master" : "m, v";
  int64_t layers = planner.getShape().layers;
  std::string text;
  auto add = [&](const OffloadShare &share, StringRef what) {
    if (share.layers == 0)
      return;
    int64_t count = offloadedLayers(share, layers);
    text += (text.empty() ? "" : "; ") + what.str() + " of ";
    if (count == layers)
      text += "all layers";
    else if (count == 1)
      text += "layer " + std::to_string(layers - 1);
    else
      text += "layers " + std::to_string(layers - count) + "-" +
              std::to_string(layers - 1);
    text += share.disk ? " to disk" : "";
  };
  add(offload.optimizer, states);
  if (offload.gradients.layers != offload.optimizer.layers)
    add(offload.gradients, "gradients");
  add(offload.parameters, "parameters");
  add(offload.activations, "activations");
  return text;
}
