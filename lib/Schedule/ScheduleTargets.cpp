//===- ScheduleTargets.cpp - When what is fetched may start --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Just in time, and where memory allows it: before a program is written.
//
//===----------------------------------------------------------------------===//

#include "SchedulePlace.h"
#include "ScheduleProfile.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

using namespace mlir::zero;

/// All that fetch, in the order in which what they bring is needed; what others
/// are fetched from comes before them.
static std::vector<int32_t> allFetches(const Problem &problem) {
  int32_t numCompute = problem.numCompute;
  std::vector<int32_t> all;
  for (const std::vector<int32_t> &queue : problem.fetches)
    all.insert(all.end(), queue.begin(), queue.end());
  llvm::stable_sort(all, [&](int32_t a, int32_t b) {
    a -= numCompute, b -= numCompute;
    return std::make_pair(problem.need[a], problem.depth[a]) <
           std::make_pair(problem.need[b], problem.depth[b]);
  });
  return all;
}

/// By collective that fetches, the last place in the order before which it may
/// start so that nothing stalls if nothing else does.
static std::vector<int32_t> latestStarts(const Problem &problem, double lead) {
  int32_t numCompute = problem.numCompute;
  std::vector<int32_t> latest(problem.numNodes - numCompute, 0);
  if (lead < 0)
    return latest;
  std::vector<double> next(problem.fetches.size(),
                           std::numeric_limits<double>::max());
  std::vector<int32_t> all = allFetches(problem);
  for (int32_t node : llvm::reverse(all)) {
    int32_t need = problem.need[node - numCompute];
    double due = problem.idealTime[need], seconds = problem.seconds[node];
    for (int32_t after : problem.next[node])
      if (after >= numCompute && problem.isFetch(after))
        due = std::min(due, problem.idealTime[latest[after - numCompute]]);
    double &start = next[problem.channel[node]];
    start = std::min(start, due) - seconds;
    auto after = std::upper_bound(problem.idealTime.begin(),
                                  problem.idealTime.begin() + need + 1,
                                  start - lead * seconds);
    int64_t place = after - problem.idealTime.begin() - 1;
    latest[node - numCompute] = std::max<int64_t>(place, 0);
  }
  return latest;
}

std::vector<int32_t> mlir::zero::findTargets(const Problem &problem,
                                             llvm::ArrayRef<int64_t> least,
                                             const PlacePolicy &policy) {
  int32_t numCompute = problem.numCompute;
  std::vector<int32_t> targets = latestStarts(problem, policy.lead);
  MemoryProfile profile(least);
  std::vector<int32_t> previous(problem.fetches.size(), 0);
  for (int32_t node : allFetches(problem)) {
    int64_t bytes = 0;
    for (int32_t buffer : problem.uses[node])
      if (problem.isBornBy(buffer, node))
        bytes += Bytes::of(problem.graph.buffers[buffer]).device;
    int32_t gap = 2 * problem.need[node - numCompute];
    int32_t fits = 0;
    if (bytes)
      fits = profile.lastAbove(gap, policy.limit.device - bytes) + 1;
    int32_t &before = previous[problem.channel[node]];
    int32_t &target = targets[node - numCompute];
    target = std::max(
        {2 * target, fits, before, 2 * problem.ready[node - numCompute]});
    target = std::min(target, gap + 1);
    profile.add(target, gap, bytes);
    before = target;
  }
  return targets;
}
