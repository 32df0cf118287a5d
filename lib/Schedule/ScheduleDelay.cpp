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
static std::vector<double> findArrivals(const Schedule &schedule,
                                        const SimulatedStep &simulated) {
  std::vector<double> arrivals(schedule.steps.size() + 1, 0);
  double now = 0;
  for (auto [number, step] : llvm::enumerate(schedule.steps)) {
    arrivals[number] = now;
    if (step.action == ScheduleStep::Run)
      now = simulated.tasks[step.task].end;
    else if (step.action == ScheduleStep::Wait)
      now = std::max(now, simulated.tasks[step.task].end);
  }
  arrivals.back() = now;
  return arrivals;
}

static bool bringsData(const StepTask &task) {
  return task.kind == TaskKind::AllGather || task.kind == TaskKind::CopyIn;
}

/// By step, before which step it goes. Only times that nobody waits for change.
static std::vector<int32_t> findPlaces(const StepGraph &graph,
                                       const Schedule &schedule,
                                       const SimulatedStep &simulated) {
  std::vector<double> arrivals = findArrivals(schedule, simulated);
  int32_t numSteps = schedule.steps.size();
  std::vector<int32_t> places(numSteps);
  std::vector<int32_t> waitOf(graph.tasks.size(), 0);
  // By channel, what the next collective there demands of those before it.
  std::vector<double> nextStart(graph.channels.size(), arrivals.back());
  std::vector<int32_t> nextPlace(graph.channels.size(), numSteps);
  for (int32_t number = numSteps - 1; number >= 0; --number) {
    ScheduleStep step = schedule.steps[number];
    places[number] = number;
    if (step.action == ScheduleStep::Wait)
      waitOf[step.task] = number;
    if (step.action != ScheduleStep::Start)
      continue;
    const StepTask &task = graph.tasks[step.task];
    const TaskTiming &timing = simulated.tasks[step.task];
    int32_t wait = waitOf[step.task];
    double start = timing.start;
    if (bringsData(task)) {
      double done = std::min(std::max(arrivals[wait], timing.end),
                             nextStart[task.channel]);
      start = std::max(start, done - (timing.end - timing.start));
      // The last step that is reached by then.
      auto after = std::upper_bound(arrivals.begin() + number,
                                    arrivals.begin() + wait + 1, start);
      int32_t latest = after - arrivals.begin() - 1;
      places[number] = std::min(std::max(latest, number),
                                nextPlace[task.channel]);
    } else {
      auto reached = std::lower_bound(arrivals.begin() + number + 1,
                                      arrivals.begin() + wait, timing.end);
      places[wait] = reached - arrivals.begin();
    }
    nextStart[task.channel] = start;
    nextPlace[task.channel] = places[number];
  }
  return places;
}

void mlir::zero::delayStarts(const StepGraph &graph, Schedule &schedule) {
  SimulatedStep simulated = simulate(graph, schedule);
  std::vector<int32_t> places = findPlaces(graph, schedule, simulated);
  // Before one step: what was advanced, then what was delayed, then the step.
  std::vector<std::pair<int64_t, int32_t>> keys;
  keys.reserve(places.size());
  for (auto [number, place] : llvm::enumerate(places)) {
    int64_t rank = place < static_cast<int32_t>(number)   ? 0
                   : place > static_cast<int32_t>(number) ? 1
                                                          : 2;
    keys.push_back({3 * int64_t(place) + rank, number});
  }
  llvm::sort(keys);
  std::vector<ScheduleStep> steps;
  steps.reserve(keys.size());
  for (auto [key, number] : keys)
    steps.push_back(schedule.steps[number]);
  schedule.steps = std::move(steps);
}
