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
#include "SchedulePlace.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

using namespace mlir::zero;

namespace {
/// A point of the front and its schedule.
struct Candidate {
  double seconds = 0;
  int64_t peakBytes = 0;
  Schedule schedule;
};
} // namespace

static void addCandidate(const StepGraph &graph, Schedule schedule,
                         std::vector<Candidate> &front) {
  SimulatedStep simulated = simulate(graph, schedule);
  for (const Candidate &other : front)
    if (other.seconds <= simulated.seconds &&
        other.peakBytes <= simulated.peakBytes)
      return;
  llvm::erase_if(front, [&](const Candidate &other) {
    return simulated.seconds <= other.seconds &&
           simulated.peakBytes <= other.peakBytes;
  });
  Candidate candidate{simulated.seconds, simulated.peakBytes,
                      std::move(schedule)};
  auto place = llvm::partition_point(front, [&](const Candidate &other) {
    return other.seconds < candidate.seconds;
  });
  front.insert(place, std::move(candidate));
}

/// Walks down from unlimited memory.
static void walk(const StepGraph &graph, const Problem &problem,
                 std::vector<Candidate> &front) {
  std::vector<int64_t> least = leastMemory(problem);
  int64_t lowest = *std::max_element(least.begin(), least.end());
  PlacePolicy policy;
  policy.limit = std::numeric_limits<int64_t>::max();
  while (true) {
    Placement placement = place(problem, least, policy);
    if (!placement.feasible)
      return;
    delayStarts(graph, placement.schedule);
    int64_t peak = simulate(graph, placement.schedule).peakBytes;
    addCandidate(graph, std::move(placement.schedule), front);
    policy.limit = peak - std::max<int64_t>(1, (peak - lowest) / 16);
  }
}

static void describePeak(const StepGraph &graph, ScheduleResult &result) {
  std::vector<int32_t> kept = keptBuffers(graph, result.schedule.dropped);
  int32_t peakStep = result.simulated.peakStep;
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
  for (auto [number, buffer] : llvm::enumerate(graph.buffers))
    if (buffer.bytes && (buffer.resident || (first[number] >= 0 &&
                                             first[number] <= peakStep &&
                                             peakStep <= last[number])))
      result.peakBuffers.push_back(number);
  llvm::stable_sort(result.peakBuffers, [&](int32_t a, int32_t b) {
    return graph.buffers[a].bytes > graph.buffers[b].bytes;
  });
}

ScheduleResult mlir::zero::scheduleStep(const StepGraph &graph,
                                        const SchedulerOptions &options) {
  std::vector<Candidate> front;
  addCandidate(graph, serialSchedule(graph), front);
  if (options.prefetch) {
    Decisions decisions;
    for (int32_t task = 0, e = graph.tasks.size(); task != e; ++task)
      if (graph.tasks[task].channel == 0)
        decisions.order.push_back(task);
    walk(graph, Problem(graph, decisions), front);
  }
  ScheduleResult result;
  for (const Candidate &candidate : front)
    result.front.push_back({candidate.seconds, candidate.peakBytes});
  const Candidate *chosen = &front.back();
  for (const Candidate &candidate : llvm::reverse(front))
    if (options.memoryBytes < 0 || candidate.peakBytes <= options.memoryBytes)
      chosen = &candidate;
  result.feasible =
      options.memoryBytes < 0 || chosen->peakBytes <= options.memoryBytes;
  if (!result.feasible)
    result.missingBytes = chosen->peakBytes - options.memoryBytes;
  result.schedule = chosen->schedule;
  result.simulated = simulate(graph, result.schedule);
  describePeak(graph, result);
  return result;
}
