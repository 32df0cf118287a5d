//===- Search.h - The fastest plan that fits --------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tries all stages, grids, batches, recomputations and buckets; a plan that
// does not fit is never ranked. Needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PLANNER_SEARCH_H
#define ZERO_PLANNER_SEARCH_H

#include "zero/Planner/StepPlan.h"

#include <optional>

namespace mlir::zero {

/// What a search may not change, and its limits.
struct SearchSpace {
  StepConfig base;         ///< ranks, seq, precision, and fixed choices
  int64_t memoryBytes = 0; ///< budget of a rank
  /// Samples of a step on all ranks; 0: any, with `base.accumulate`.
  int64_t globalBatch = 0;
  std::optional<int64_t> stage, replicas, batch;
  std::optional<Recompute> recompute;
  /// What is offloaded is searched for, not that of `base`.
  bool offload = false;
  int64_t hostBytes = -1; ///< budget of a rank's host memory; negative: none
  bool disk = false;      ///< there is one to offload to
  size_t keep = 10;       ///< plans to return

  bool fits(const MemoryParts &memory) const {
    return memory.total() <= memoryBytes &&
           (hostBytes < 0 || memory.host <= hostBytes);
  }
};

/// A plan that fits.
struct RankedPlan {
  StepConfig config;
  StepEstimate estimate;
  double tokensPerSecond = 0;
};

struct SearchResult {
  std::vector<RankedPlan> plans; ///< fastest first
  int64_t tried = 0;             ///< configurations
  int64_t timed = 0;             ///< of these, that fit
  StepConfig smallest;           ///< needs the least memory of all
  MemoryParts smallestMemory;
};

/// Deterministic: of equally fast plans, the one with the least memory.
SearchResult searchPlans(const StepPlanner &planner, const SearchSpace &space);

/// Layers that stay gathered from forward to backward: as many as fit.
int64_t layersToKeep(const StepPlanner &planner, const StepConfig &config,
                     int64_t memoryBytes);

constexpr double kWorthOffloading = 0.02;

/// Of what may be offloaded in `config` the fastest that fits `space`:
/// optimizer state layer by layer (`coarse`: by eighths), parameters and
/// activations by quarters (or all), in host memory as far as that goes. Which
/// are compared does not depend on the budgets, so more memory is never slower.
/// Where the step fits as it is, only what is predicted faster by more than
/// `kWorthOffloading`, on a host that is a processor of its own, is offloaded.
/// Nothing if nothing fits.
std::optional<StepOffload> chooseOffload(const StepPlanner &planner,
                                         const StepConfig &config,
                                         const SearchSpace &space, bool coarse);

/// "m, v, master of layers 8-31; all parameters on disk".
std::string describeOffload(const StepPlanner &planner,
                            const StepConfig &config);

/// What would make a plan fit that does not: other choices of the same step,
/// each with the bytes it would need, in words.
std::vector<std::string> waysToFit(const StepPlanner &planner,
                                   const StepConfig &config,
                                   int64_t memoryBytes);

/// What limits a step, in sentences with numbers.
std::vector<std::string> explainStep(const StepPlanner &planner,
                                     const StepConfig &config,
                                     const StepEstimate &estimate,
                                     int64_t memoryBytes);

/// "12.3 GiB", "2.83 s".
std::string formatBytes(double bytes);
std::string formatSeconds(double seconds);

} // namespace mlir::zero

#endif // ZERO_PLANNER_SEARCH_H
