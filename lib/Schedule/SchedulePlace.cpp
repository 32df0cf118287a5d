//===- SchedulePlace.cpp - Starts and waits of collectives ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See SchedulePlace.h.
//
//===----------------------------------------------------------------------===//

#include "SchedulePlace.h"
#include "ScheduleProfile.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>
#include <set>

using namespace mlir::zero;

namespace {
/// Writes a program from its first step to its last, and executes it.
class Placer {
public:
  Placer(const Problem &problem, const PlacePolicy &policy);

  /// `targets`: by collective that fetches, the place (as in `leastMemory`)
  /// from which it may start.
  Placement run(llvm::ArrayRef<int32_t> targets);

  /// By place, most bytes alive so far.
  std::vector<int64_t> profile;

private:
  struct Queue {
    size_t nextFetch = 0; ///< of problem.fetches
    double free = 0;
    std::vector<int32_t> drains; ///< in flight, in order; from `firstDrain`
    size_t firstDrain = 0;
    /// Ready to take data away, by their turn.
    std::set<std::pair<int32_t, int32_t>> ready;
  };

  void becomeReady(int32_t node);
  int64_t bytesToAllocate(int32_t node) const;
  void touch(int32_t node);
  void release(int32_t node);
  void emit(ScheduleStep::Action action, int32_t node);
  void finish(int32_t node);
  void start(int32_t node);
  void wait(int32_t node);
  bool waitForOldest();
  bool startAnyReady();
  bool mayStart(const Queue &queue, int32_t node, int32_t place) const;
  bool makeRoom(int64_t bytes);
  bool complete(int32_t node);
  void startReady(int32_t place);
  void startFetches(int32_t place, llvm::ArrayRef<int32_t> targets);
  bool runGap(int32_t place, llvm::ArrayRef<int32_t> targets);

  const Problem &problem;
  const PlacePolicy &policy;
  const int32_t numCompute;
  std::vector<int32_t> pending; ///< dependences not yet complete
  enum State : uint8_t { Waiting, InFlight, Done };
  std::vector<State> state;
  std::vector<double> end;
  std::vector<int32_t> usesLeft;
  std::vector<bool> live;
  std::vector<Queue> queues;
  std::vector<int32_t> turns; ///< by collective
  int32_t numReady = 0;       ///< so far
  double now = 0;
  int64_t bytes = 0;
  int32_t current = 0; ///< place of `profile`
  Placement result;
};
} // namespace

Placer::Placer(const Problem &problem, const PlacePolicy &policy)
    : profile(2 * problem.numCompute + 1, 0), problem(problem), policy(policy),
      numCompute(problem.numCompute), pending(problem.numNodes),
      state(problem.numNodes, Waiting), end(problem.numNodes, 0),
      usesLeft(problem.numUses), live(problem.graph.buffers.size()),
      queues(problem.graph.channels.size()),
      turns(problem.numNodes - problem.numCompute, 0) {
  for (auto [number, buffer] : llvm::enumerate(problem.graph.buffers))
    if (buffer.resident) {
      live[number] = true;
      bytes += buffer.bytes;
    }
  for (int32_t buffer : problem.outside) {
    live[buffer] = true;
    bytes += problem.graph.buffers[buffer].bytes;
  }
  for (int32_t node = 0; node != problem.numNodes; ++node) {
    pending[node] = problem.previous[node].size();
    if (!pending[node])
      becomeReady(node);
  }
  result.schedule.buckets = problem.decisions.buckets;
  result.schedule.dropped = problem.decisions.dropped;
  result.schedule.steps.reserve(2 * problem.numNodes - numCompute);
}

void Placer::becomeReady(int32_t node) {
  if (node < numCompute || problem.isFetch(node))
    return;
  int32_t &turn = turns[node - numCompute];
  turn = policy.urgentFirst ? problem.deadline[node - numCompute] : numReady++;
  queues[problem.channel[node]].ready.insert({turn, node});
}

int64_t Placer::bytesToAllocate(int32_t node) const {
  int64_t sum = 0;
  for (int32_t buffer : problem.uses[node])
    if (!live[buffer])
      sum += problem.graph.buffers[buffer].bytes;
  return sum;
}

void Placer::touch(int32_t node) {
  for (int32_t buffer : problem.uses[node])
    if (!live[buffer]) {
      live[buffer] = true;
      bytes += problem.graph.buffers[buffer].bytes;
    }
}

void Placer::release(int32_t node) {
  for (int32_t buffer : problem.uses[node])
    if (--usesLeft[buffer] == 0 && !problem.graph.buffers[buffer].resident) {
      live[buffer] = false;
      bytes -= problem.graph.buffers[buffer].bytes;
    }
}

void Placer::emit(ScheduleStep::Action action, int32_t node) {
  result.schedule.steps.push_back({action, problem.task[node]});
  result.peakBytes = std::max(result.peakBytes, bytes);
  profile[current] = std::max(profile[current], bytes);
}

void Placer::finish(int32_t node) {
  state[node] = Done;
  release(node);
  for (int32_t after : problem.next[node])
    if (--pending[after] == 0)
      becomeReady(after);
}

void Placer::start(int32_t node) {
  Queue &queue = queues[problem.channel[node]];
  touch(node);
  emit(ScheduleStep::Start, node);
  queue.free = std::max(queue.free, now) + problem.seconds[node];
  end[node] = queue.free;
  state[node] = InFlight;
  if (problem.isFetch(node))
    return;
  queue.drains.push_back(node);
  queue.ready.erase({turns[node - numCompute], node});
}

void Placer::wait(int32_t node) {
  now = std::max(now, end[node]);
  emit(ScheduleStep::Wait, node);
  finish(node);
}

/// Waits for the collective in flight that is done first, of those that take
/// data away. Returns false if there is none.
bool Placer::waitForOldest() {
  int32_t oldest = -1;
  for (Queue &queue : queues) {
    while (queue.firstDrain != queue.drains.size() &&
           state[queue.drains[queue.firstDrain]] == Done)
      ++queue.firstDrain;
    if (queue.firstDrain == queue.drains.size())
      continue;
    int32_t node = queue.drains[queue.firstDrain];
    if (oldest < 0 || end[node] < end[oldest])
      oldest = node;
  }
  if (oldest < 0)
    return false;
  wait(oldest);
  return true;
}

/// Starts one that is ready and that fits. Returns false if there is none.
bool Placer::startAnyReady() {
  for (Queue &queue : queues)
    for (auto [turn, node] : queue.ready)
      if (bytes + bytesToAllocate(node) <= policy.limit) {
        start(node);
        return true;
      }
  return false;
}

/// Frees memory until `wanted` more bytes fit.
bool Placer::makeRoom(int64_t wanted) {
  while (bytes + wanted > policy.limit)
    if (!waitForOldest() && !startAnyReady())
      return false;
  return true;
}

/// Starts and awaits `node` after what it depends on.
bool Placer::complete(int32_t node) {
  if (state[node] == Done)
    return true;
  if (state[node] == Waiting) {
    for (int32_t before : problem.previous[node])
      if (before >= numCompute && !complete(before))
        return false;
    if (state[node] == Done)
      return true;
    if (state[node] == Waiting) {
      if (pending[node] || !makeRoom(bytesToAllocate(node)))
        return false;
      start(node);
    }
  }
  wait(node);
  return true;
}

/// Whether one that is ready starts in the gap before `place`.
bool Placer::mayStart(const Queue &queue, int32_t node, int32_t place) const {
  int64_t wanted = bytesToAllocate(node);
  if (place != numCompute && policy.lateDrains)
    wanted += bytesToAllocate(place);
  double soon = place != numCompute ? problem.seconds[place] : 0;
  return bytes + wanted <= policy.limit &&
         (!policy.urgentFirst || queue.free <= now + soon);
}

/// Starts whatever takes data away, and awaits what is done: that frees memory
/// and costs no time.
void Placer::startReady(int32_t place) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Queue &queue : queues) {
      while (queue.firstDrain != queue.drains.size()) {
        int32_t node = queue.drains[queue.firstDrain];
        if (state[node] == InFlight && !policy.serial && end[node] > now)
          break;
        if (state[node] == InFlight)
          wait(node);
        ++queue.firstDrain;
        changed = true;
      }
      while (!queue.ready.empty()) {
        int32_t node = queue.ready.begin()->second;
        if (!mayStart(queue, node, place))
          break;
        start(node);
        changed = true;
        if (policy.serial)
          break;
      }
    }
  }
}

/// Starts gathers whose time has come and that fit.
void Placer::startFetches(int32_t place, llvm::ArrayRef<int32_t> targets) {
  for (auto [channel, queue] : llvm::enumerate(queues)) {
    llvm::ArrayRef<int32_t> fetches = problem.fetches[channel];
    for (; queue.nextFetch != fetches.size(); ++queue.nextFetch) {
      int32_t node = fetches[queue.nextFetch];
      if (state[node] != Waiting)
        continue;
      if (targets[node - numCompute] > place || pending[node])
        break;
      int64_t wanted = bytesToAllocate(node);
      if (bytes + wanted > policy.limit &&
          (!policy.fetchFirst || !makeRoom(wanted)))
        break;
      start(node);
    }
  }
}

/// Everything between two compute tasks.
bool Placer::runGap(int32_t place, llvm::ArrayRef<int32_t> targets) {
  current = 2 * place;
  startFetches(2 * place, targets);
  startReady(place);
  if (place == numCompute)
    return true;
  current = 2 * place + 1;
  startFetches(2 * place + 1, targets);
  // Start all before the first wait: the next waits on the channel anyway.
  for (int32_t before : problem.previous[place])
    if (before >= numCompute && problem.isFetch(before) &&
        state[before] == Waiting && !pending[before] &&
        bytes + bytesToAllocate(before) <= policy.limit)
      start(before);
  for (int32_t before : problem.previous[place])
    if (before >= numCompute && !complete(before))
      return false;
  return makeRoom(bytesToAllocate(place));
}

Placement Placer::run(llvm::ArrayRef<int32_t> targets) {
  for (int32_t place = 0; place != numCompute; ++place) {
    if (!runGap(place, targets))
      return std::move(result);
    touch(place);
    emit(ScheduleStep::Run, place);
    now += problem.seconds[place];
    end[place] = now;
    finish(place);
  }
  bool done = runGap(numCompute, targets);
  while (done && waitForOldest())
    startReady(numCompute);
  for (int32_t node = numCompute; done && node != problem.numNodes; ++node)
    done = complete(node);
  result.feasible =
      done && bytes <= policy.limit && result.peakBytes <= policy.limit;
  result.seconds = now;
  result.ends.assign(problem.graph.tasks.size(), 0);
  for (int32_t node = 0; node != problem.numNodes; ++node)
    result.ends[problem.task[node]] = end[node];
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

std::vector<int64_t> mlir::zero::leastMemory(const Problem &problem) {
  PlacePolicy policy;
  policy.limit = std::numeric_limits<int64_t>::max();
  policy.serial = true;
  Placer placer(problem, policy);
  std::vector<int32_t> targets(problem.numNodes - problem.numCompute,
                               std::numeric_limits<int32_t>::max());
  placer.run(targets);
  return std::move(placer.profile);
}

/// By collective that fetches, the last place in the order before which it may
/// start so that nothing stalls if nothing else does.
static std::vector<int32_t> latestStarts(const Problem &problem, double lead) {
  int32_t numCompute = problem.numCompute;
  std::vector<int32_t> latest(problem.numNodes - numCompute, 0);
  if (lead < 0)
    return latest;
  for (const std::vector<int32_t> &queue : problem.fetches) {
    double next = std::numeric_limits<double>::max();
    for (int32_t node : llvm::reverse(queue)) {
      int32_t deadline = problem.deadline[node - numCompute];
      double seconds = problem.seconds[node];
      next = std::min(next, problem.idealTime[deadline]) - seconds;
      auto after = std::upper_bound(problem.idealTime.begin(),
                                    problem.idealTime.begin() + deadline + 1,
                                    next - lead * seconds);
      int64_t place = after - problem.idealTime.begin() - 1;
      latest[node - numCompute] = std::max<int64_t>(place, 0);
    }
  }
  return latest;
}

/// By collective that fetches, the first place from which its bytes fit beside
/// the least memory and all gathers needed before it.
static std::vector<int32_t> findTargets(const Problem &problem,
                                        llvm::ArrayRef<int64_t> least,
                                        const PlacePolicy &policy) {
  int32_t numCompute = problem.numCompute;
  std::vector<int32_t> targets = latestStarts(problem, policy.lead);
  std::vector<int32_t> all;
  for (const std::vector<int32_t> &queue : problem.fetches)
    all.insert(all.end(), queue.begin(), queue.end());
  llvm::stable_sort(all, [&](int32_t a, int32_t b) {
    return problem.deadline[a - numCompute] < problem.deadline[b - numCompute];
  });
  MemoryProfile profile(least);
  std::vector<int32_t> previous(problem.fetches.size(), 0);
  for (int32_t node : all) {
    int64_t bytes = 0;
    for (int32_t buffer : problem.uses[node])
      if (problem.isBornBy(buffer, node))
        bytes += problem.graph.buffers[buffer].bytes;
    int32_t gap = 2 * problem.deadline[node - numCompute];
    int32_t fits = profile.lastAbove(gap, policy.limit - bytes) + 1;
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

Placement mlir::zero::place(const Problem &problem,
                            llvm::ArrayRef<int64_t> least,
                            const PlacePolicy &policy) {
  std::vector<int32_t> targets(problem.numNodes - problem.numCompute,
                               std::numeric_limits<int32_t>::max());
  if (!policy.serial)
    targets = findTargets(problem, least, policy);
  return Placer(problem, policy).run(targets);
}
