//===- Rivals.cpp - How others place collectives -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Rivals.h.
//
//===----------------------------------------------------------------------===//

#include "Rivals.h"

#include "lib/Schedule/SchedulePlace.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir::zero;

namespace {
/// Collectives issued together. Places are those of compute tasks: before which
/// one it starts and is awaited.
struct Issue {
  std::vector<int32_t> members;
  int32_t ready = 0, need = 0; ///< when it can start, and has to be complete
  int32_t start = 0, wait = 0;
  bool fetches = true;
  bool afterWait = false; ///< starts after the waits of its place
  int64_t bytes = 0;
  double work = 0, latency = 0;

  double seconds() const { return work + latency; }
  double secondsWith(const Issue &other) const {
    return work + other.work + std::max(latency, other.latency);
  }
};

/// The collectives of a step, by what they do and in the order of the step.
struct Collectives {
  Collectives(const StepGraph &graph, std::vector<int32_t> dropped)
      : problem(graph, {graphOrder(graph), {}, std::move(dropped)}) {
    for (int32_t node = problem.numCompute; node != problem.numNodes; ++node) {
      const StepTask &task = graph.tasks[problem.task[node]];
      int32_t other = node - problem.numCompute;
      Issue issue;
      issue.members = {problem.task[node]};
      issue.ready = problem.ready[other];
      issue.need = problem.deadline[other];
      issue.fetches = problem.isFetch(node);
      for (int32_t buffer : issue.fetches ? task.writes : task.reads)
        issue.bytes += graph.buffers[buffer].bytes;
      issue.latency = task.latency;
      issue.work = task.seconds - task.latency;
      (issue.fetches ? gathers : reductions).push_back(std::move(issue));
    }
    llvm::stable_sort(gathers, [](const Issue &a, const Issue &b) {
      return a.need < b.need;
    });
    llvm::stable_sort(reductions, [](const Issue &a, const Issue &b) {
      return a.ready < b.ready;
    });
  }

  Problem problem;
  std::vector<Issue> gathers, reductions;
};
} // namespace

static void merge(Issue &into, const Issue &other) {
  into.work += other.work;
  into.latency = std::max(into.latency, other.latency);
  into.members.insert(into.members.end(), other.members.begin(),
                      other.members.end());
  into.ready = std::max(into.ready, other.ready);
  into.need = std::min(into.need, other.need);
  into.bytes += other.bytes;
}

/// Merges neighbours for which `join(bucket, next)` holds.
template <typename Join>
static std::vector<Issue> bucket(llvm::ArrayRef<Issue> issues, Join join) {
  std::vector<Issue> buckets;
  for (const Issue &issue : issues) {
    if (!buckets.empty() &&
        std::max(buckets.back().ready, issue.ready) <=
            std::min(buckets.back().need, issue.need) &&
        join(buckets.back(), issue))
      merge(buckets.back(), issue);
    else
      buckets.push_back(issue);
  }
  return buckets;
}

/// Each reduction starts when it is ready; its input is freed when the one
/// `behind` later starts.
static void placeReductions(std::vector<Issue> &reductions, size_t behind) {
  for (size_t i = 0; i != reductions.size(); ++i) {
    Issue &issue = reductions[i];
    issue.start = issue.ready;
    issue.wait = issue.need;
    if (i + behind < reductions.size())
      issue.wait = std::min(issue.need, reductions[i + behind].ready);
  }
}

/// The program: at each place waits for reductions, then their starts, then the
/// starts and waits of gathers.
static Schedule emit(const Problem &problem, llvm::ArrayRef<Issue> gathers,
                     llvm::ArrayRef<Issue> reductions) {
  Schedule schedule;
  schedule.dropped = problem.decisions.dropped;
  std::vector<std::pair<std::pair<int32_t, int32_t>, ScheduleStep>> steps;
  for (llvm::ArrayRef<Issue> list : {gathers, reductions})
    for (const Issue &issue : list) {
      int32_t first = issue.members.front();
      if (issue.members.size() > 1)
        schedule.buckets.push_back(issue.members);
      int32_t startRank = !issue.fetches ? 1 : issue.afterWait ? 4 : 2;
      if (issue.start == issue.wait)
        startRank = issue.fetches ? 2 : 0;
      steps.push_back({{issue.start, startRank}, {ScheduleStep::Start, first}});
      steps.push_back(
          {{issue.wait, issue.fetches ? 3 : 0}, {ScheduleStep::Wait, first}});
    }
  for (int32_t place = 0; place != problem.numCompute; ++place)
    steps.push_back(
        {{place, 5}, {ScheduleStep::Run, problem.decisions.order[place]}});
  llvm::stable_sort(
      steps, [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[place, step] : steps)
    schedule.steps.push_back(step);
  return schedule;
}

Schedule mlir::zero::scheduleFsdp2(const StepGraph &graph, int32_t depth) {
  Collectives all(graph, {});
  auto sameLayer = [&](const Issue &a, const Issue &b) {
    const StepTask &first = graph.tasks[a.members.front()];
    const StepTask &next = graph.tasks[b.members.front()];
    return first.unit == next.unit && (first.repeats < 0) == (next.repeats < 0);
  };
  std::vector<Issue> gathers = bucket(all.gathers, sameLayer);
  std::vector<Issue> reductions = bucket(all.reductions, sameLayer);
  for (size_t i = 0; i != gathers.size(); ++i) {
    Issue &issue = gathers[i];
    issue.wait = issue.need;
    size_t ahead = std::min<size_t>(i, depth);
    issue.start = std::max(issue.ready, gathers[i - ahead].need);
    // Backward, the hook waits for its own layer first.
    issue.afterWait = graph.tasks[issue.members.front()].repeats >= 0;
  }
  placeReductions(reductions, 1);
  return emit(all.problem, gathers, reductions);
}

//===----------------------------------------------------------------------===//
// DeepCompile
//===----------------------------------------------------------------------===//

/// Places gathers as early as memory allows; `least` is the memory by place
/// without any of them early.
static std::vector<Issue> hoist(const Collectives &all,
                                llvm::ArrayRef<int64_t> least,
                                int64_t memoryBytes) {
  constexpr int64_t mostPending = 4'000'000'000, mostFused = 1'000'000'000;
  std::vector<Issue> placed, pending; // pending: the last first
  int64_t pendingBytes = 0;
  auto flush = [&](int32_t place) {
    std::reverse(pending.begin(), pending.end());
    auto pays = [&](const Issue &a, const Issue &b) {
      return 1.2 * std::max(a.seconds(), b.seconds()) > a.secondsWith(b) &&
             a.bytes + b.bytes < mostFused;
    };
    for (Issue &issue : bucket(pending, pays)) {
      issue.start = std::max(issue.ready, std::min(place, issue.need));
      issue.wait = issue.need;
      placed.push_back(std::move(issue));
    }
    pending.clear();
    pendingBytes = 0;
  };
  size_t left = all.gathers.size();
  for (int32_t place = all.problem.numCompute - 1; place >= 0; --place) {
    int64_t live = std::max(least[2 * place], least[2 * place + 1]);
    if (live + pendingBytes > memoryBytes || pendingBytes > mostPending)
      flush(place + 1);
    for (; left != 0 && all.gathers[left - 1].need == place; --left) {
      pending.push_back(all.gathers[left - 1]);
      pendingBytes += pending.back().bytes;
    }
  }
  flush(0);
  llvm::stable_sort(placed, [](const Issue &a, const Issue &b) {
    return a.start < b.start || (a.start == b.start && a.need < b.need);
  });
  return placed;
}

static Schedule deepCompile(const StepGraph &graph, int64_t memoryBytes,
                            std::vector<int32_t> dropped) {
  Collectives all(graph, std::move(dropped));
  std::vector<Issue> gathers =
      hoist(all, leastMemory(all.problem), memoryBytes);
  auto fits = [](const Issue &a, const Issue &b) {
    return a.bytes + b.bytes <= 1'000'000'000;
  };
  std::vector<Issue> reductions = bucket(all.reductions, fits);
  placeReductions(reductions, 2);
  return emit(all.problem, gathers, reductions);
}

Schedule mlir::zero::scheduleDeepCompile(const StepGraph &graph,
                                         int64_t memoryBytes) {
  int64_t usable = memoryBytes / 10 * 9;
  Schedule schedule = deepCompile(graph, usable, {});
  int64_t left = usable - simulate(graph, schedule).peakBytes;
  std::vector<std::pair<double, int32_t>> repeats;
  for (auto [number, task] : llvm::enumerate(graph.tasks)) {
    int64_t bytes = 0;
    for (int32_t buffer : task.writes)
      bytes += graph.buffers[buffer].bytes;
    if (task.repeats >= 0)
      repeats.push_back({-task.seconds / bytes, number});
  }
  llvm::sort(repeats);
  std::vector<int32_t> dropped;
  for (auto [worth, number] : repeats) {
    for (int32_t buffer : graph.tasks[number].writes)
      left -= graph.buffers[buffer].bytes;
    if (left < 0)
      break;
    dropped.push_back(number);
  }
  if (dropped.empty())
    return schedule;
  return deepCompile(graph, usable, std::move(dropped));
}

//===----------------------------------------------------------------------===//
// Greedy buckets
//===----------------------------------------------------------------------===//

Schedule mlir::zero::scheduleGreedyBuckets(const StepGraph &graph) {
  constexpr int64_t mostBytes = 2'000'000'000;
  Collectives all(graph, {});
  const std::vector<double> &time = all.problem.idealTime;
  // What hides a bucket of gathers: compute from the need of the one before.
  int32_t before = 0, current = 0;
  auto hides = [&](const Issue &a, const Issue &b) {
    if (a.members.size() == 1) {
      before = current;
      current = a.need;
    }
    return a.bytes + b.bytes <= mostBytes &&
           a.secondsWith(b) <= time[current] - time[before];
  };
  std::vector<Issue> gathers = bucket(all.gathers, hides);
  for (size_t i = 0; i != gathers.size(); ++i) {
    gathers[i].wait = gathers[i].need;
    gathers[i].start = std::max(gathers[i].ready, i ? gathers[i - 1].need : 0);
  }
  // What hides a bucket of reductions: as much compute as it spans itself.
  int32_t first = 0;
  auto hidesReduction = [&](const Issue &a, const Issue &b) {
    if (a.members.size() == 1)
      first = a.ready;
    return a.bytes + b.bytes <= mostBytes &&
           (a.ready == b.ready ||
            a.secondsWith(b) > time[b.ready] - time[first]);
  };
  std::vector<Issue> reductions = bucket(all.reductions, hidesReduction);
  placeReductions(reductions, 1);
  return emit(all.problem, gathers, reductions);
}
