//===- ScheduleDelay.cpp - Just in time ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves starts and waits where they cost the least memory and no time.
//
//===----------------------------------------------------------------------===//

#include "SchedulePlace.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir::zero;

/// When the compute channel arrives at each step.
static std::vector<double> findArrivals(const Placement &placement) {
  const std::vector<ScheduleStep> &steps = placement.schedule.steps;
  std::vector<double> arrivals(steps.size() + 1, 0);
  double now = 0;
  for (auto [number, step] : llvm::enumerate(steps)) {
    arrivals[number] = now;
    if (step.action != ScheduleStep::Start)
      now = std::max(now, placement.ends[step.task]);
  }
  arrivals.back() = now;
  return arrivals;
}

/// By node, the first step that begins something that depends on it.
static std::vector<int32_t> findUses(const Problem &problem,
                                     llvm::ArrayRef<ScheduleStep> steps) {
  std::vector<int32_t> uses(problem.numNodes, steps.size());
  for (int32_t number = steps.size() - 1; number >= 0; --number)
    if (steps[number].action != ScheduleStep::Wait)
      for (int32_t before :
           problem.previous[problem.nodeOf[steps[number].task]])
        uses[before] = number;
  return uses;
}

/// By step, before which step it goes. Only times that nobody waits for change.
static std::vector<int32_t> findPlaces(const Problem &problem,
                                       const Placement &placement) {
  const std::vector<ScheduleStep> &steps = placement.schedule.steps;
  std::vector<double> arrivals = findArrivals(placement);
  std::vector<int32_t> uses = findUses(problem, steps);
  int32_t numSteps = steps.size();
  std::vector<int32_t> places(numSteps);
  std::vector<int32_t> waitOf(problem.graph.tasks.size(), 0);
  // By channel, what the next collective there demands of those before it.
  size_t numChannels = problem.graph.channels.size();
  std::vector<double> nextStart(numChannels, arrivals.back());
  std::vector<int32_t> nextPlace(numChannels, numSteps);
  for (int32_t number = numSteps - 1; number >= 0; --number) {
    ScheduleStep step = steps[number];
    places[number] = number;
    int32_t node = problem.nodeOf[step.task];
    if (step.action == ScheduleStep::Wait) {
      // What is awaited early, though nothing needs it yet, is awaited later.
      if (problem.isFetch(node) &&
          placement.ends[step.task] <= arrivals[number] &&
          arrivals[number] < arrivals[uses[node]])
        places[number] = uses[node];
      waitOf[step.task] = places[number];
    }
    if (step.action != ScheduleStep::Start)
      continue;
    int32_t wait = waitOf[step.task];
    int32_t channel = problem.channel[node];
    double end = placement.ends[step.task];
    double start = end - problem.seconds[node];
    if (problem.isFetch(node)) {
      double done = std::min(std::max(arrivals[wait], end), nextStart[channel]);
      start = std::max(start, done - problem.seconds[node]);
      // The last step that is reached by then.
      auto after = std::upper_bound(arrivals.begin() + number,
                                    arrivals.begin() + wait + 1, start);
      int32_t latest = after - arrivals.begin() - 1;
      places[number] = std::min(std::max(latest, number), nextPlace[channel]);
    } else {
      auto reached = std::lower_bound(arrivals.begin() + number + 1,
                                      arrivals.begin() + wait, end);
      places[wait] = reached - arrivals.begin();
    }
    nextStart[channel] = start;
    nextPlace[channel] = places[number];
  }
  return places;
}

Bytes mlir::zero::peakBytes(const Problem &problem, const Schedule &schedule) {
  const std::vector<StepBuffer> &buffers = problem.graph.buffers;
  Bytes bytes, peak;
  for (const StepBuffer &buffer : buffers)
    if (buffer.resident)
      bytes += Bytes::of(buffer);
  for (int32_t buffer : problem.outside)
    bytes += Bytes::of(buffers[buffer]);
  std::vector<int32_t> usesLeft = problem.numUses;
  auto look = [&] {
    peak.device = std::max(peak.device, bytes.device);
    peak.host = std::max(peak.host, bytes.host);
  };
  look();
  for (ScheduleStep step : schedule.steps) {
    int32_t node = problem.nodeOf[step.task];
    if (step.action != ScheduleStep::Wait)
      for (int32_t buffer : problem.uses[node])
        if (problem.isBornBy(buffer, node))
          bytes += Bytes::of(buffers[buffer]);
    look();
    if (step.action != ScheduleStep::Start)
      for (int32_t buffer : problem.uses[node])
        if (--usesLeft[buffer] == 0 && !buffers[buffer].resident)
          bytes -= Bytes::of(buffers[buffer]);
  }
  return peak;
}

void mlir::zero::delayStarts(const Problem &problem, Placement &placement) {
  std::vector<ScheduleStep> &steps = placement.schedule.steps;
  std::vector<int32_t> places = findPlaces(problem, placement);
  // Before one step: what was advanced, then what was delayed, then the step.
  std::vector<std::pair<int32_t, int32_t>> keys;
  keys.reserve(places.size());
  for (auto [number, place] : llvm::enumerate(places)) {
    int32_t rank = place < static_cast<int32_t>(number)   ? 0
                   : place > static_cast<int32_t>(number) ? 1
                                                          : 2;
    keys.push_back({3 * place + rank, number});
  }
  NodeLists sorted;
  sorted.assign(3 * places.size() + 3, keys);
  std::vector<ScheduleStep> moved;
  moved.reserve(steps.size());
  for (int32_t number : sorted.items)
    moved.push_back(steps[number]);
  steps = std::move(moved);
  placement.peak = peakBytes(problem, placement.schedule);
}
