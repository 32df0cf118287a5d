//===- StepGraph.cpp - Schedules and what they do ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See StepGraph.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/StepGraph.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

using namespace mlir::zero;
using llvm::ArrayRef;

std::vector<bool> mlir::zero::omittedTasks(const StepGraph &graph,
                                           ArrayRef<int32_t> dropped) {
  std::vector<bool> omitted(graph.tasks.size());
  for (int32_t task : dropped)
    omitted[task] = true;
  for (auto [number, task] : llvm::enumerate(graph.tasks))
    if (task.serves >= 0 && omitted[task.serves])
      omitted[number] = true;
  return omitted;
}

std::vector<int32_t> mlir::zero::keptBuffers(const StepGraph &graph,
                                             ArrayRef<int32_t> dropped) {
  std::vector<int32_t> kept(graph.buffers.size());
  for (int32_t buffer = 0, e = kept.size(); buffer != e; ++buffer)
    kept[buffer] = buffer;
  // In the order of the step: the earlier gather may be dropped itself.
  std::vector<int32_t> sorted(dropped.begin(), dropped.end());
  llvm::sort(sorted);
  for (int32_t task : sorted) {
    const StepTask &gather = graph.tasks[task];
    const StepTask &earlier = graph.tasks[gather.repeats];
    for (auto [written, stand] : llvm::zip(gather.writes, earlier.writes))
      kept[written] = kept[stand];
  }
  return kept;
}

double mlir::zero::bucketSeconds(const StepGraph &graph,
                                 ArrayRef<int32_t> members) {
  double seconds = 0, latency = 0;
  for (int32_t member : members) {
    const StepTask &task = graph.tasks[member];
    seconds += task.seconds - task.latency;
    latency = std::max(latency, task.latency);
  }
  return seconds + latency;
}

Schedule mlir::zero::serialSchedule(const StepGraph &graph) {
  Schedule schedule;
  for (int32_t task = 0, e = graph.tasks.size(); task != e; ++task) {
    if (graph.tasks[task].channel == 0) {
      schedule.steps.push_back({ScheduleStep::Run, task});
      continue;
    }
    schedule.steps.push_back({ScheduleStep::Start, task});
    schedule.steps.push_back({ScheduleStep::Wait, task});
  }
  return schedule;
}

//===----------------------------------------------------------------------===//
// Members of buckets
//===----------------------------------------------------------------------===//

namespace {
/// The tasks that a step of the program is about.
class Members {
public:
  Members(const StepGraph &graph, const Schedule &schedule)
      : bucketOf(graph.tasks.size(), -1), schedule(schedule),
        alone(graph.tasks.size()) {
    for (int32_t task = 0, e = alone.size(); task != e; ++task)
      alone[task] = task;
    for (auto [number, bucket] : llvm::enumerate(schedule.buckets))
      if (!bucket.empty())
        bucketOf[bucket.front()] = number;
  }

  ArrayRef<int32_t> operator[](int32_t task) const {
    if (bucketOf[task] >= 0)
      return schedule.buckets[bucketOf[task]];
    return ArrayRef<int32_t>(alone[task]);
  }

private:
  std::vector<int32_t> bucketOf;
  const Schedule &schedule;
  std::vector<int32_t> alone;
};
} // namespace

//===----------------------------------------------------------------------===//
// Simulation
//===----------------------------------------------------------------------===//

/// Times of all tasks.
static void simulateTime(const StepGraph &graph, const Schedule &schedule,
                         const Members &members, SimulatedStep &result) {
  result.tasks.assign(graph.tasks.size(), {});
  std::vector<double> channelFree(graph.channels.size(), 0);
  double now = 0;
  for (ScheduleStep step : schedule.steps) {
    const StepTask &task = graph.tasks[step.task];
    TaskTiming &timing = result.tasks[step.task];
    if (step.action == ScheduleStep::Run) {
      timing = {now, now + task.seconds, 0};
      now = timing.end;
      result.computeSeconds += task.seconds;
    } else if (step.action == ScheduleStep::Start) {
      double &free = channelFree[task.channel];
      double start = std::max(now, free);
      free = start + bucketSeconds(graph, members[step.task]);
      for (int32_t member : members[step.task])
        result.tasks[member] = {start, free, 0};
    } else if (timing.end > now) {
      timing.exposed = timing.end - now;
      result.exposedSeconds += timing.exposed;
      now = timing.end;
    }
  }
  result.seconds = now;
  for (double free : channelFree)
    result.seconds = std::max(result.seconds, free);
}

/// No step of a program.
static constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

/// Bytes of one space alive at each step, from when buffers are used first and
/// last.
static void simulateSpace(const StepGraph &graph, ArrayRef<int32_t> first,
                          ArrayRef<int32_t> last, MemorySpace space,
                          int32_t numSteps, std::vector<int64_t> &liveBytes,
                          int64_t &peakBytes, int32_t &peakStep) {
  std::vector<int64_t> change(numSteps + 1, 0);
  int64_t live = 0;
  for (auto [number, buffer] : llvm::enumerate(graph.buffers)) {
    if (buffer.space != space)
      continue;
    if (buffer.resident) {
      live += buffer.bytes;
    } else if (first[number] != kNever) {
      change[first[number]] += buffer.bytes;
      change[last[number] + 1] -= buffer.bytes;
    }
  }
  liveBytes.resize(numSteps);
  peakBytes = live;
  for (int32_t number = 0; number != numSteps; ++number) {
    live += change[number];
    liveBytes[number] = live;
    if (live > peakBytes) {
      peakBytes = live;
      peakStep = number;
    }
  }
}

/// When buffers are used, and the bytes alive at each step.
static void simulateMemory(const StepGraph &graph, const Schedule &schedule,
                           const Members &members, SimulatedStep &result) {
  std::vector<int32_t> kept = keptBuffers(graph, schedule.dropped);
  int32_t numSteps = schedule.steps.size();
  std::vector<int32_t> first(graph.buffers.size(), kNever);
  std::vector<int32_t> last(graph.buffers.size(), -1);
  for (int32_t number = 0; number != numSteps; ++number) {
    ScheduleStep step = schedule.steps[number];
    for (int32_t member : members[step.task]) {
      const StepTask &task = graph.tasks[member];
      for (int32_t buffer : task.reads) {
        buffer = kept[buffer];
        if (first[buffer] == kNever) // from outside
          first[buffer] = 0;
        last[buffer] = number;
      }
      for (int32_t buffer : task.writes) {
        buffer = kept[buffer];
        first[buffer] = std::min(first[buffer], number);
        last[buffer] = number;
      }
    }
  }
  simulateSpace(graph, first, last, MemorySpace::Device, numSteps,
                result.liveBytes, result.peakBytes, result.peakStep);
  simulateSpace(graph, first, last, MemorySpace::Host, numSteps,
                result.liveHostBytes, result.hostPeakBytes,
                result.hostPeakStep);
  for (const StepBuffer &buffer : graph.buffers)
    if (buffer.space == MemorySpace::Disk)
      result.diskBytes += buffer.bytes;
}

SimulatedStep mlir::zero::simulate(const StepGraph &graph,
                                   const Schedule &schedule) {
  SimulatedStep result;
  Members members(graph, schedule);
  simulateTime(graph, schedule, members, result);
  simulateMemory(graph, schedule, members, result);
  return result;
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

namespace {
/// Executes a program on versions of buffers: a version is the task that wrote
/// it, -1 for what was there before the step.
class Checker {
public:
  Checker(const StepGraph &graph, const Schedule &schedule)
      : graph(graph), schedule(schedule),
        numTasks(static_cast<int32_t>(graph.tasks.size())) {}

  std::string check();

private:
  enum State : uint8_t { Pending, InFlight, Done, Dropped, Follower };

  std::string name(int32_t task) const {
    const std::string &label = graph.tasks[task].label;
    return "task " + std::to_string(task) +
           (label.empty() ? "" : " (" + label + ")");
  }
  std::string checkDropped();
  std::string checkBuckets();
  void expectVersions();
  std::string begin(int32_t task);
  void finish(int32_t task);
  std::string execute(ScheduleStep step, const Members &members);
  std::string checkEnd() const;

  const StepGraph &graph;
  const Schedule &schedule;
  int32_t numTasks;
  std::vector<State> state;
  std::vector<int32_t> kept;
  /// By task and place in `reads`, which version is expected.
  std::vector<llvm::SmallVector<int32_t, 4>> expected;
  std::vector<int32_t> finalVersion; ///< by buffer
  std::vector<int32_t> version;      ///< by buffer, as the program goes on
  std::vector<int32_t> readers;      ///< by buffer, tasks in flight
  std::vector<int32_t> writer;       ///< by buffer, task in flight or -1
};
} // namespace

std::string Checker::checkDropped() {
  for (int32_t task : schedule.dropped) {
    if (task < 0 || task >= numTasks)
      return "dropped task " + std::to_string(task) + " does not exist";
    int32_t earlier = graph.tasks[task].repeats;
    if (earlier < 0 || earlier >= task)
      return "dropped " + name(task) + " repeats no earlier gather";
    if (graph.tasks[task].writes.size() != graph.tasks[earlier].writes.size())
      return "dropped " + name(task) + " writes other buffers than " +
             name(earlier);
    if (state[task] == Dropped)
      return name(task) + " is dropped twice";
    state[task] = Dropped;
  }
  for (auto [task, omitted] :
       llvm::enumerate(omittedTasks(graph, schedule.dropped)))
    if (omitted)
      state[task] = Dropped;
  return "";
}

std::string Checker::checkBuckets() {
  for (const std::vector<int32_t> &bucket : schedule.buckets) {
    if (bucket.empty())
      return "a bucket is empty";
    for (int32_t member : bucket) {
      if (member < 0 || member >= numTasks)
        return "task " + std::to_string(member) + " of a bucket does not exist";
      const StepTask &task = graph.tasks[member];
      const StepTask &first = graph.tasks[bucket.front()];
      if (task.channel == 0)
        return name(member) + " computes and cannot be in a bucket";
      if (task.kind != first.kind || task.channel != first.channel ||
          task.bucketClass != first.bucketClass)
        return name(member) + " cannot share a bucket with " +
               name(bucket.front());
      if (state[member] == Dropped)
        return name(member) + " is dropped and in a bucket";
    }
  }
  std::vector<bool> seen(numTasks);
  for (const std::vector<int32_t> &bucket : schedule.buckets)
    for (int32_t member : bucket) {
      if (seen[member])
        return name(member) + " is in two buckets";
      seen[member] = true;
      if (member != bucket.front())
        state[member] = Follower;
    }
  return "";
}

/// What each task reads if tasks run in the order of the graph.
void Checker::expectVersions() {
  std::vector<int32_t> now(graph.buffers.size(), -1);
  expected.resize(numTasks);
  for (int32_t number = 0; number != numTasks; ++number) {
    if (state[number] == Dropped)
      continue;
    const StepTask &task = graph.tasks[number];
    for (int32_t buffer : task.reads)
      expected[number].push_back(now[kept[buffer]]);
    for (int32_t buffer : task.writes)
      now[kept[buffer]] = number;
  }
  finalVersion = std::move(now);
}

std::string Checker::begin(int32_t number) {
  const StepTask &task = graph.tasks[number];
  for (auto [place, read] : llvm::enumerate(task.reads)) {
    int32_t buffer = kept[read];
    if (writer[buffer] >= 0)
      return name(number) + " reads buffer " + std::to_string(buffer) +
             " before the wait for " + name(writer[buffer]);
    int32_t want = expected[number][place];
    if (version[buffer] != want)
      return name(number) + " reads buffer " + std::to_string(buffer) +
             (want < 0 ? " after it was overwritten by " + name(version[buffer])
                       : " not as " + name(want) + " wrote it");
  }
  for (int32_t written : task.writes) {
    int32_t buffer = kept[written];
    if (readers[buffer] || writer[buffer] >= 0)
      return name(number) + " writes buffer " + std::to_string(buffer) +
             " while a task in flight uses it";
  }
  if (task.channel == 0)
    return "";
  for (int32_t read : task.reads)
    ++readers[kept[read]];
  for (int32_t written : task.writes)
    writer[kept[written]] = number;
  return "";
}

void Checker::finish(int32_t number) {
  const StepTask &task = graph.tasks[number];
  for (int32_t read : task.reads)
    if (task.channel != 0)
      --readers[kept[read]];
  for (int32_t written : task.writes) {
    writer[kept[written]] = -1;
    version[kept[written]] = number;
  }
}

std::string Checker::execute(ScheduleStep step, const Members &members) {
  if (step.task < 0 || step.task >= numTasks)
    return "task " + std::to_string(step.task) + " does not exist";
  bool computes = graph.tasks[step.task].channel == 0;
  State &now = state[step.task];
  if (now == Dropped)
    return name(step.task) + " is dropped and must not run";
  if (now == Follower)
    return name(step.task) + " is not the first of its bucket";
  if (computes != (step.action == ScheduleStep::Run))
    return name(step.task) +
           (computes ? " computes: it runs, it is not started or awaited"
                     : " has its own channel: it is started, not run");
  if (step.action == ScheduleStep::Wait) {
    if (now != InFlight)
      return name(step.task) + " is awaited but not in flight";
  } else {
    if (now != Pending)
      return name(step.task) + " runs twice";
    for (int32_t member : members[step.task])
      if (std::string error = begin(member); !error.empty())
        return error;
    now = InFlight;
  }
  if (step.action != ScheduleStep::Start) {
    for (int32_t member : members[step.task])
      finish(member);
    now = Done;
  }
  return "";
}

std::string Checker::checkEnd() const {
  for (int32_t task = 0; task != numTasks; ++task) {
    if (state[task] == InFlight)
      return name(task) + " is never awaited";
    if (state[task] == Pending)
      return name(task) + " never runs";
  }
  for (auto [buffer, want] : llvm::enumerate(finalVersion))
    if (kept[buffer] == static_cast<int32_t>(buffer) && version[buffer] != want)
      return "buffer " + std::to_string(buffer) + " ends as " +
             name(version[buffer]) + " wrote it, not as " + name(want) + " did";
  return "";
}

std::string Checker::check() {
  state.assign(numTasks, Pending);
  if (std::string error = checkDropped(); !error.empty())
    return error;
  if (std::string error = checkBuckets(); !error.empty())
    return error;
  kept = keptBuffers(graph, schedule.dropped);
  expectVersions();
  version.assign(graph.buffers.size(), -1);
  readers.assign(graph.buffers.size(), 0);
  writer.assign(graph.buffers.size(), -1);
  Members members(graph, schedule);
  for (ScheduleStep step : schedule.steps)
    if (std::string error = execute(step, members); !error.empty())
      return error;
  return checkEnd();
}

std::string mlir::zero::checkSchedule(const StepGraph &graph,
                                      const Schedule &schedule) {
  return Checker(graph, schedule).check();
}
