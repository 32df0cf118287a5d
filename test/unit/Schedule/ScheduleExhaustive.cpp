//===- ScheduleExhaustive.cpp - All schedules of a small step ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Depth first over states (what has begun, what is complete), with the states
// seen kept by their times: one that is no earlier in any time is not entered
// again. Only what can be proved to be no worse is left out: a wait for what is
// done comes at once.
//
//===----------------------------------------------------------------------===//

#include "ScheduleExhaustive.h"

#include <algorithm>
#include <map>

using namespace mlir::zero;

namespace {
using Mask = uint64_t;

class Search {
public:
  Search(const StepGraph &graph, std::vector<int32_t> dropped, int64_t limit,
         double bound, bool reorder, int64_t &statesLeft);

  bool run() { return visit(); }
  bool isComplete() const { return statesLeft > 0; }
  Schedule take() { return {std::move(steps), {}, std::move(dropped)}; }

private:
  int64_t liveBytes() const;
  bool isSeen();
  bool isTooLate() const;
  void findHeadsAndTails();
  bool visit();
  bool visitRun(int32_t task);
  bool visitStart(int32_t task);
  bool visitWait(int32_t task);

  const StepGraph &graph;
  std::vector<int32_t> dropped;
  const int64_t limit;
  const double bound;
  int64_t &statesLeft;
  int32_t numTasks;
  Mask all = 0;
  std::vector<Mask> before;  ///< by task, what it depends on
  std::vector<Mask> users;   ///< by buffer
  std::vector<bool> outside; ///< by buffer
  std::vector<ScheduleStep> steps;
  Mask begun = 0, done = 0;
  double now = 0;
  std::vector<double> free, left; ///< by channel; left: not yet begun
  std::vector<double> end;        ///< by task
  /// By task, seconds of compute that come before it can begin, and that come
  /// after it is complete.
  std::vector<double> head, tail;
  double allCompute = 0;
  std::vector<std::vector<int32_t>> byHead, byTail; ///< by channel
  std::map<std::pair<Mask, Mask>, std::vector<std::vector<double>>> seen;
};
} // namespace

Search::Search(const StepGraph &graph, std::vector<int32_t> droppedTasks,
               int64_t limit, double bound, bool reorder, int64_t &statesLeft)
    : graph(graph), dropped(std::move(droppedTasks)), limit(limit),
      bound(bound), statesLeft(statesLeft), numTasks(graph.tasks.size()),
      before(numTasks, 0), users(graph.buffers.size(), 0),
      outside(graph.buffers.size(), false), free(graph.channels.size(), 0),
      left(graph.channels.size(), 0), end(numTasks, 0) {
  std::vector<int32_t> kept = keptBuffers(graph, dropped);
  std::vector<Mask> writer(graph.buffers.size(), 0), readers = writer;
  Mask earlierCompute = 0;
  for (int32_t number = 0; number != numTasks; ++number) {
    if (std::count(dropped.begin(), dropped.end(), number))
      continue;
    const StepTask &task = graph.tasks[number];
    Mask self = Mask(1) << number;
    all |= self;
    left[task.channel] += task.seconds;
    for (int32_t read : task.reads) {
      int32_t buffer = kept[read];
      outside[buffer] = outside[buffer] || users[buffer] == 0;
      before[number] |= writer[buffer];
      readers[buffer] |= self;
      users[buffer] |= self;
    }
    for (int32_t write : task.writes) {
      int32_t buffer = kept[write];
      before[number] |= writer[buffer] | readers[buffer];
      writer[buffer] = self;
      readers[buffer] = 0;
      users[buffer] |= self;
    }
    before[number] &= ~self;
    if (task.channel == 0 && !reorder) {
      before[number] |= earlierCompute;
      earlierCompute = self;
    }
  }
  allCompute = left[0];
  findHeadsAndTails();
}

void Search::findHeadsAndTails() {
  head.assign(numTasks, 0);
  tail.assign(numTasks, 0);
  byHead.resize(free.size());
  for (int32_t task = 0; task != numTasks; ++task) {
    if (!(all >> task & 1))
      continue;
    byHead[graph.tasks[task].channel].push_back(task);
    // Compute in a row: what lies before the last of the tasks before.
    for (int32_t other = 0; other != task; ++other)
      if (before[task] >> other & 1) {
        bool computes = graph.tasks[other].channel == 0;
        double seconds = computes ? graph.tasks[other].seconds : 0;
        head[task] = std::max(head[task], head[other] + seconds);
      }
  }
  for (int32_t task = numTasks - 1; task >= 0; --task)
    for (int32_t other = 0; other != task; ++other)
      if (before[task] >> other & 1) {
        bool computes = graph.tasks[task].channel == 0;
        double seconds = computes ? graph.tasks[task].seconds : 0;
        tail[other] = std::max(tail[other], tail[task] + seconds);
      }
  byTail = byHead;
  for (size_t channel = 0; channel != free.size(); ++channel) {
    std::stable_sort(byHead[channel].begin(), byHead[channel].end(),
                     [&](int32_t a, int32_t b) { return head[a] < head[b]; });
    std::stable_sort(byTail[channel].begin(), byTail[channel].end(),
                     [&](int32_t a, int32_t b) { return tail[a] > tail[b]; });
  }
}

int64_t Search::liveBytes() const {
  int64_t bytes = 0;
  for (size_t buffer = 0; buffer != users.size(); ++buffer) {
    bool alive =
        (outside[buffer] || (users[buffer] & begun)) && (users[buffer] & ~done);
    if (alive || graph.buffers[buffer].resident)
      bytes += graph.buffers[buffer].bytes;
  }
  return bytes;
}

bool Search::isSeen() {
  std::vector<double> times = {now};
  times.insert(times.end(), free.begin(), free.end());
  for (int32_t task = 0; task != numTasks; ++task)
    if ((begun & ~done) >> task & 1)
      times.push_back(end[task]);
  auto &others = seen[{begun, done}];
  for (const std::vector<double> &other : others) {
    bool noLater = true;
    for (size_t i = 0; i != times.size(); ++i)
      noLater &= other[i] <= times[i];
    if (noLater)
      return true;
  }
  others.push_back(std::move(times));
  return false;
}

/// Bounds of one channel as if memory were free: its tasks by urgency, all
/// ready now; and by readiness, none urgent.
bool Search::isTooLate() const {
  double computed = allCompute - left[0];
  if (now + left[0] >= bound)
    return true;
  for (size_t channel = 1; channel != free.size(); ++channel) {
    double time = std::max(now, free[channel]), urgent = time;
    double leastTail = bound;
    for (int32_t task : byTail[channel])
      if (!(begun >> task & 1)) {
        urgent += graph.tasks[task].seconds;
        leastTail = tail[task];
        if (urgent + tail[task] >= bound)
          return true;
      }
    if (leastTail == bound)
      continue;
    for (int32_t task : byHead[channel])
      if (!(begun >> task & 1))
        time = std::max(time, now + head[task] - computed) +
               graph.tasks[task].seconds;
    if (time + leastTail >= bound)
      return true;
  }
  for (int32_t task = 0; task != numTasks; ++task)
    if (((begun & ~done) >> task & 1) && end[task] + tail[task] >= bound)
      return true;
  return false;
}

bool Search::visitRun(int32_t task) {
  Mask self = Mask(1) << task;
  begun |= self;
  bool found = false;
  if (liveBytes() <= limit) {
    done |= self;
    double seconds = graph.tasks[task].seconds;
    now += seconds;
    left[0] -= seconds;
    steps.push_back({ScheduleStep::Run, task});
    found = visit();
    if (!found)
      steps.pop_back();
    left[0] += seconds;
    now -= seconds;
    done &= ~self;
  }
  begun &= ~self;
  return found;
}

bool Search::visitStart(int32_t task) {
  Mask self = Mask(1) << task;
  int32_t channel = graph.tasks[task].channel;
  double seconds = graph.tasks[task].seconds;
  begun |= self;
  bool found = false;
  if (liveBytes() <= limit) {
    double oldFree = free[channel];
    end[task] = free[channel] = std::max(now, oldFree) + seconds;
    left[channel] -= seconds;
    steps.push_back({ScheduleStep::Start, task});
    found = visit();
    if (!found)
      steps.pop_back();
    left[channel] += seconds;
    free[channel] = oldFree;
  }
  begun &= ~self;
  return found;
}

bool Search::visitWait(int32_t task) {
  Mask self = Mask(1) << task;
  double oldNow = now;
  now = std::max(now, end[task]);
  done |= self;
  steps.push_back({ScheduleStep::Wait, task});
  bool found = visit();
  if (!found)
    steps.pop_back();
  done &= ~self;
  now = oldNow;
  return found;
}

bool Search::visit() {
  if (done == all)
    return true;
  if (statesLeft <= 0 || isTooLate() || isSeen())
    return false;
  --statesLeft;
  Mask inFlight = begun & ~done;
  for (int32_t task = 0; task != numTasks; ++task)
    if ((inFlight >> task & 1) && end[task] <= now)
      return visitWait(task);
  for (int32_t task = 0; task != numTasks; ++task) {
    if (!((all & ~begun) >> task & 1) || (before[task] & ~done))
      continue;
    if (graph.tasks[task].channel == 0 ? visitRun(task) : visitStart(task))
      return true;
  }
  for (int32_t task = 0; task != numTasks; ++task)
    if ((inFlight >> task & 1) && visitWait(task))
      return true;
  return false;
}

ExhaustiveResult mlir::zero::searchFaster(const StepGraph &graph,
                                          int64_t memoryBytes, double seconds,
                                          bool reorder, bool keepGathered,
                                          int64_t maxStates) {
  std::vector<int32_t> repeats;
  for (int32_t task = 0, e = graph.tasks.size(); task != e; ++task)
    if (keepGathered && graph.tasks[task].repeats >= 0)
      repeats.push_back(task);
  ExhaustiveResult result;
  for (Mask set = 0; set != Mask(1) << repeats.size(); ++set) {
    std::vector<int32_t> dropped;
    for (size_t i = 0; i != repeats.size(); ++i)
      if (set >> i & 1)
        dropped.push_back(repeats[i]);
    Search search(graph, dropped, memoryBytes, seconds, reorder, maxStates);
    result.found = search.run();
    result.complete = search.isComplete();
    if (result.found) {
      result.schedule = search.take();
      return result;
    }
    if (!result.complete)
      return result;
  }
  return result;
}
