//===- Scheduler.cpp - Placing collectives under a memory budget ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Scheduler.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/Scheduler.h"
#include "ScheduleSearch.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir::zero;

/// The buffers of each space that are alive at its peak, largest first.
static void describePeaks(const StepGraph &graph, ScheduleResult &result) {
  std::vector<int32_t> kept = keptBuffers(graph, result.schedule.dropped);
  std::vector<int32_t> first(graph.buffers.size(), -1), last = first;
  std::vector<int32_t> bucketOf(graph.tasks.size(), -1);
  for (auto [number, bucket] : llvm::enumerate(result.schedule.buckets))
    bucketOf[bucket.front()] = number;
  for (int32_t number = 0, e = result.schedule.steps.size(); number != e;
       ++number) {
    int32_t leader = result.schedule.steps[number].task;
    llvm::ArrayRef<int32_t> members = leader;
    if (bucketOf[leader] >= 0)
      members = result.schedule.buckets[bucketOf[leader]];
    for (int32_t member : members) {
      for (int32_t buffer : graph.tasks[member].reads) {
        buffer = kept[buffer];
        first[buffer] = first[buffer] < 0 ? 0 : first[buffer];
        last[buffer] = number;
      }
      for (int32_t buffer : graph.tasks[member].writes) {
        buffer = kept[buffer];
        first[buffer] = first[buffer] < 0 ? number : first[buffer];
        last[buffer] = number;
      }
    }
  }
  auto describe = [&](MemorySpace space, int32_t peakStep,
                      std::vector<int32_t> &alive) {
    for (auto [number, buffer] : llvm::enumerate(graph.buffers))
      if (buffer.bytes && buffer.space == space &&
          (buffer.resident ||
           (first[number] >= 0 && first[number] <= peakStep &&
            peakStep <= last[number])))
        alive.push_back(number);
    llvm::stable_sort(alive, [&](int32_t a, int32_t b) {
      return graph.buffers[a].bytes > graph.buffers[b].bytes;
    });
  };
  describe(MemorySpace::Device, result.simulated.peakStep, result.peakBuffers);
  describe(MemorySpace::Host, result.simulated.hostPeakStep,
           result.hostPeakBuffers);
}

/// Whether the step takes something off the device and brings it back: it does
/// so for the memory.
static bool bringsBack(const StepGraph &graph) {
  std::vector<bool> away(graph.buffers.size());
  for (const StepTask &task : graph.tasks) {
    bool moves = task.kind == TaskKind::CopyIn ||
                 task.kind == TaskKind::DiskRead ||
                 task.kind == TaskKind::DiskWrite;
    bool any = task.kind == TaskKind::CopyOut ||
               (moves && llvm::any_of(task.reads, [&](int32_t buffer) {
                  return away[buffer];
                }));
    if (any && task.kind == TaskKind::CopyIn)
      return true;
    for (int32_t buffer : task.writes)
      away[buffer] = any && !graph.buffers[buffer].resident;
  }
  return false;
}

/// The memory of the device that a step with no budget may use, where it brings
/// back what it took away: what that frees is to be free at the peak. That is
/// an eighth of the way from the leanest schedule to the fastest.
static int64_t leanBudget(const std::vector<Trade> &front) {
  int64_t least = front.front().peak.device, most = least;
  for (const Trade &trade : front)
    least = std::min(least, trade.peak.device);
  return least + (most - least) / 8;
}

ScheduleResult mlir::zero::scheduleStep(const StepGraph &graph,
                                        const SchedulerOptions &options) {
  Search search(graph, options);
  // Each pass alone and then all together: never worse than any of them.
  bool SchedulerOptions::*passes[] = {
      &SchedulerOptions::prefetch, &SchedulerOptions::keepGathered,
      &SchedulerOptions::reorder, &SchedulerOptions::bucket};
  int allowed = 0;
  for (auto pass : passes) {
    if (!(options.*pass))
      continue;
    SchedulerOptions alone = options;
    for (auto other : passes)
      alone.*other = other == pass;
    search.explore(alone, 8);
    ++allowed;
  }
  if (allowed != 1)
    search.explore(options, 1);

  const std::vector<Trade> &front = search.getFront();
  ScheduleResult result;
  for (const Trade &trade : front)
    result.front.push_back({trade.seconds, trade.peak.device, trade.peak.host});
  auto above = [](int64_t bytes, int64_t budget) {
    return budget < 0 ? 0 : std::max<int64_t>(bytes - budget, 0);
  };
  auto missing = [&](const Trade &trade) {
    return Bytes{above(trade.peak.device, options.memoryBytes),
                 above(trade.peak.host, options.hostMemoryBytes)};
  };
  auto sum = [&](const Trade &trade) {
    Bytes bytes = missing(trade);
    return bytes.device + bytes.host;
  };
  // The first of those that miss the least: the fastest, where any fits.
  int64_t lean = -1;
  if (options.memoryBytes < 0 && bringsBack(graph))
    lean = leanBudget(front);
  auto rank = [&](const Trade &trade) {
    return std::make_pair(sum(trade), above(trade.peak.device, lean));
  };
  auto chosen = std::min_element(
      front.begin(), front.end(),
      [&](const Trade &a, const Trade &b) { return rank(a) < rank(b); });
  result.missingBytes = missing(*chosen).device;
  result.missingHostBytes = missing(*chosen).host;
  result.feasible = sum(*chosen) == 0;
  result.lowerBoundSeconds = search.getLowerBound();
  result.schedule = search.make(chosen->recipe);
  result.simulated = simulate(graph, result.schedule);
  describePeaks(graph, result);
  return result;
}
