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

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>
#include <set>

using namespace mlir::zero;

static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
/// Of those that wait for data from elsewhere, how many are looked at in a gap.
static constexpr int kMaxClaimed = 8;

Bytes Bytes::unlimited() { return {kUnlimited, kUnlimited}; }

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
  using Turns = std::set<std::pair<int32_t, int32_t>>;

  void findTurns();
  void findNeeds();
  int32_t takeTurn(int32_t node);
  void becomeReady(int32_t node);
  void becomeClaimed(int32_t node);
  Bytes bytesToAllocate(int32_t node) const;
  bool fits(int32_t node, Bytes besides = {}) const;
  int64_t neededByOthers(int32_t node) const;
  void changeNeed(int32_t host, int64_t change);
  void touch(int32_t node);
  void release(int32_t node);
  void emit(ScheduleStep::Action action, int32_t node);
  void finish(int32_t node);
  void start(int32_t node);
  void wait(int32_t node);
  bool waitForOldest();
  bool startAnyReady();
  bool mayStart(const Queue &queue, int32_t node, int32_t place) const;
  bool makeRoom(Bytes wanted);
  bool complete(int32_t node);
  bool advanceClaimed();
  bool settle(int32_t node);
  void startNeeded(int32_t node);
  void hurry(int32_t node, int32_t place);
  bool startClaimed();
  bool startDrains(Queue &queue, int32_t place);
  bool awaitsChain(int32_t place) const;
  int32_t pickFlying(int32_t place) const;
  bool runChains(int32_t place);
  void startReady(int32_t place);
  void startFetches(int32_t place, llvm::ArrayRef<int32_t> targets);
  bool runGap(int32_t place, llvm::ArrayRef<int32_t> targets);

  const Problem &problem;
  const PlacePolicy &policy;
  const int32_t numCompute;
  std::vector<int32_t> pending;       ///< dependences not yet complete
  std::vector<int32_t> pendingDrains; ///< of these, those that do not fetch
  enum State : uint8_t { Waiting, InFlight, Done };
  std::vector<State> state;
  std::vector<double> end;
  std::vector<int32_t> usesLeft;
  std::vector<bool> live;
  std::vector<Queue> queues;
  std::vector<int32_t> turns; ///< by collective
  int32_t numReady = 0;       ///< so far
  /// What takes data away and waits for nothing but what is fetched for it.
  Turns claimed;
  /// In flight, by their ends.
  std::set<std::pair<double, int32_t>> flying;
  /// By buffer in host memory: the compute there that it is for, or -1; by that
  /// compute, bytes it has yet to allocate, and all of these in order. Only
  /// where host memory has a limit.
  std::vector<int32_t> neededBy;
  std::vector<int64_t> needs;
  std::multiset<int64_t> sortedNeeds;
  std::vector<int32_t> hosts; ///< compute on the host, as it becomes ready
  size_t firstHost = 0;       ///< not done yet
  double now = 0;
  Bytes bytes;
  int32_t current = 0; ///< place of `profile`
  Placement result;
};
} // namespace

Placer::Placer(const Problem &problem, const PlacePolicy &policy)
    : profile(2 * problem.numCompute + 1, 0), problem(problem), policy(policy),
      numCompute(problem.numCompute), pending(problem.numNodes),
      pendingDrains(problem.numNodes, 0), state(problem.numNodes, Waiting),
      end(problem.numNodes, 0), usesLeft(problem.numUses),
      live(problem.graph.buffers.size()), queues(problem.graph.channels.size()),
      turns(problem.numNodes - problem.numCompute, 0) {
  for (auto [number, buffer] : llvm::enumerate(problem.graph.buffers))
    if (buffer.resident) {
      live[number] = true;
      bytes += Bytes::of(buffer);
    }
  for (int32_t buffer : problem.outside) {
    live[buffer] = true;
    bytes += Bytes::of(problem.graph.buffers[buffer]);
  }
  if (policy.longestFirst)
    findTurns();
  if (policy.limit.host != kUnlimited)
    findNeeds();
  for (int32_t node = 0; node != problem.numNodes; ++node) {
    pending[node] = problem.previous[node].size();
    for (int32_t before : problem.previous[node])
      pendingDrains[node] += before < numCompute || !problem.isFetch(before);
    if (!pending[node])
      becomeReady(node);
    else if (!pendingDrains[node])
      becomeClaimed(node);
  }
  result.schedule.buckets = problem.decisions.buckets;
  result.schedule.dropped = problem.decisions.dropped;
  result.schedule.steps.reserve(2 * problem.numNodes - numCompute);
}

/// Turns by the longest chain from a node to the end of the step.
void Placer::findTurns() {
  std::vector<double> chain(problem.numNodes, 0);
  std::vector<int32_t> left(problem.numNodes), sorted, others;
  for (int32_t node = 0; node != problem.numNodes; ++node)
    if (!(left[node] = problem.next[node].size()))
      sorted.push_back(node);
  for (size_t i = 0; i != sorted.size(); ++i) {
    int32_t node = sorted[i];
    for (int32_t after : problem.next[node])
      chain[node] = std::max(chain[node], chain[after]);
    chain[node] += problem.seconds[node];
    for (int32_t before : problem.previous[node])
      if (--left[before] == 0)
        sorted.push_back(before);
  }
  for (int32_t node = numCompute; node != problem.numNodes; ++node)
    others.push_back(node);
  llvm::stable_sort(others,
                    [&](int32_t a, int32_t b) { return chain[a] > chain[b]; });
  for (auto [turn, node] : llvm::enumerate(others))
    turns[node - numCompute] = turn;
}

/// What each compute on the host needs of host memory: what is brought there
/// for it, and what it writes.
void Placer::findNeeds() {
  neededBy.assign(problem.graph.buffers.size(), -1);
  needs.assign(problem.numNodes, 0);
  for (int32_t node = numCompute; node != problem.numNodes; ++node)
    if (problem.graph.tasks[problem.task[node]].kind == TaskKind::HostCompute)
      hosts.push_back(node);
  llvm::stable_sort(hosts, [&](int32_t a, int32_t b) {
    return problem.ready[a - numCompute] < problem.ready[b - numCompute];
  });
  for (int32_t host : hosts)
    for (int32_t buffer : problem.uses[host])
      if (!live[buffer] && neededBy[buffer] < 0) {
        neededBy[buffer] = host;
        needs[host] += Bytes::of(problem.graph.buffers[buffer]).host;
      }
  for (int32_t host : hosts)
    sortedNeeds.insert(needs[host]);
}

void Placer::changeNeed(int32_t host, int64_t change) {
  sortedNeeds.erase(sortedNeeds.find(needs[host]));
  needs[host] += change;
  sortedNeeds.insert(needs[host]);
}

/// Host memory that stays free while `node` takes some, so that whatever
/// compute on the host comes next can be done: the most that any needs. The
/// first of them may use it.
int64_t Placer::neededByOthers(int32_t node) const {
  if (sortedNeeds.empty() || firstHost == hosts.size())
    return 0;
  int64_t own = 0;
  int32_t owner = -1;
  for (int32_t buffer : problem.uses[node])
    if (!live[buffer] && neededBy[buffer] >= 0) {
      owner = neededBy[buffer];
      own += Bytes::of(problem.graph.buffers[buffer]).host;
    }
  if (owner == hosts[firstHost] || node == hosts[firstHost])
    return 0;
  int64_t most = *sortedNeeds.rbegin();
  if (owner < 0 || needs[owner] != most)
    return most;
  // Its own is less once it has this.
  int64_t second =
      sortedNeeds.size() > 1 ? *std::next(sortedNeeds.rbegin()) : 0;
  return std::max(most - own, second);
}

int32_t Placer::takeTurn(int32_t node) {
  int32_t &turn = turns[node - numCompute];
  if (policy.urgentFirst)
    turn = problem.deadline[node - numCompute];
  else if (!policy.longestFirst)
    turn = numReady++;
  return turn;
}

void Placer::becomeReady(int32_t node) {
  if (node < numCompute || problem.isFetch(node))
    return;
  claimed.erase({turns[node - numCompute], node});
  queues[problem.channel[node]].ready.insert({takeTurn(node), node});
}

/// All that is missing for `node` is fetched for it.
void Placer::becomeClaimed(int32_t node) {
  if (node >= numCompute && !problem.isFetch(node))
    claimed.insert({takeTurn(node), node});
}

Bytes Placer::bytesToAllocate(int32_t node) const {
  Bytes sum;
  for (int32_t buffer : problem.uses[node])
    if (!live[buffer])
      sum += Bytes::of(problem.graph.buffers[buffer]);
  return sum;
}

/// Whether `node` and `besides` fit, and what is done on the host after it.
bool Placer::fits(int32_t node, Bytes besides) const {
  Bytes wanted = bytesToAllocate(node);
  if (!(bytes + besides + wanted).isWithin(policy.limit))
    return false;
  return policy.limit.host == kUnlimited || wanted.host == 0 ||
         bytes.host + wanted.host + neededByOthers(node) <= policy.limit.host;
}

void Placer::touch(int32_t node) {
  for (int32_t buffer : problem.uses[node])
    if (!live[buffer]) {
      Bytes size = Bytes::of(problem.graph.buffers[buffer]);
      live[buffer] = true;
      bytes += size;
      if (!neededBy.empty() && neededBy[buffer] >= 0)
        changeNeed(neededBy[buffer], -size.host);
    }
}

void Placer::release(int32_t node) {
  for (int32_t buffer : problem.uses[node])
    if (--usesLeft[buffer] == 0 && !problem.graph.buffers[buffer].resident) {
      live[buffer] = false;
      bytes -= Bytes::of(problem.graph.buffers[buffer]);
    }
}

void Placer::emit(ScheduleStep::Action action, int32_t node) {
  result.schedule.steps.push_back({action, problem.task[node]});
  result.peak.device = std::max(result.peak.device, bytes.device);
  result.peak.host = std::max(result.peak.host, bytes.host);
  profile[current] = std::max(profile[current], bytes.device);
}

void Placer::finish(int32_t node) {
  state[node] = Done;
  release(node);
  while (firstHost != hosts.size() && state[hosts[firstHost]] == Done)
    ++firstHost;
  bool fetches = node >= numCompute && problem.isFetch(node);
  for (int32_t after : problem.next[node]) {
    bool lastDrain = !fetches && --pendingDrains[after] == 0;
    if (--pending[after] == 0)
      becomeReady(after);
    else if (lastDrain)
      becomeClaimed(after);
  }
}

void Placer::start(int32_t node) {
  Queue &queue = queues[problem.channel[node]];
  touch(node);
  emit(ScheduleStep::Start, node);
  queue.free = std::max(queue.free, now) + problem.seconds[node];
  end[node] = queue.free;
  state[node] = InFlight;
  flying.insert({end[node], node});
  if (problem.isFetch(node))
    return;
  queue.drains.push_back(node);
  queue.ready.erase({turns[node - numCompute], node});
}

void Placer::wait(int32_t node) {
  now = std::max(now, end[node]);
  flying.erase({end[node], node});
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
      if (fits(node)) {
        start(node);
        return true;
      }
  return false;
}

/// Gets on with what waits for data from elsewhere. Returns false if nothing
/// does.
bool Placer::advanceClaimed() {
  if (claimed.empty() || policy.serial)
    return false;
  if (startClaimed())
    return true;
  if (flying.empty())
    return false;
  wait(flying.begin()->second);
  return true;
}

/// Frees memory until `wanted` more bytes fit.
bool Placer::makeRoom(Bytes wanted) {
  while (!(bytes + wanted).isWithin(policy.limit))
    if (!waitForOldest() && !startAnyReady() && !advanceClaimed())
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
      if (state[node] == Waiting)
        start(node);
      if (state[node] == Done)
        return true;
    }
  }
  wait(node);
  return true;
}

/// Whether one that is ready starts in the gap before `place`.
bool Placer::mayStart(const Queue &queue, int32_t node, int32_t place) const {
  Bytes next;
  if (place != numCompute && policy.lateDrains)
    next = bytesToAllocate(place);
  double soon = place != numCompute ? problem.seconds[place] : 0;
  return fits(node, next) && ((!policy.urgentFirst && !policy.longestFirst) ||
                              queue.free <= now + soon);
}

/// Awaits what `node` depends on and what is done by now. Returns whether it
/// can begin.
bool Placer::settle(int32_t node) {
  for (int32_t before : problem.previous[node])
    if (before >= numCompute && state[before] == InFlight && end[before] <= now)
      wait(before);
  return pending[node] == 0;
}

/// Stands still for what the gather `node` waits for, where it would otherwise
/// be later than that.
void Placer::hurry(int32_t node, int32_t place) {
  double latest = now;
  for (int32_t before : problem.previous[node]) {
    if (before < numCompute || state[before] == Done)
      continue;
    if (state[before] != InFlight)
      return;
    latest = std::max(latest, end[before]);
  }
  double until = problem.idealTime[problem.need[node - numCompute]] -
                 problem.idealTime[place];
  double late = problem.seconds[place] + problem.seconds[node] - until;
  if (latest - now >= late)
    return;
  for (int32_t before : problem.previous[node])
    if (before >= numCompute && state[before] == InFlight)
      wait(before);
}

/// Fetches for those that wait for nothing else. Returns whether any began or
/// is ready now.
bool Placer::startClaimed() {
  bool changed = false;
  int looked = 0;
  llvm::SmallVector<int32_t, kMaxClaimed> first;
  for (auto [turn, node] : claimed) {
    first.push_back(node);
    if (++looked == kMaxClaimed)
      break;
  }
  for (int32_t node : first) {
    if (policy.serial)
      return complete(node);
    for (int32_t before : problem.previous[node])
      if (before >= numCompute && state[before] == Waiting && settle(before) &&
          fits(before)) {
        start(before);
        changed = true;
      }
    changed |= settle(node);
  }
  return changed;
}

/// Awaits what is done on a channel, and starts what is ready. Returns whether
/// there was any.
bool Placer::startDrains(Queue &queue, int32_t place) {
  bool changed = false;
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
  return changed;
}

/// Starts whatever takes data away, and awaits what is done: that frees memory
/// and costs no time.
void Placer::startReady(int32_t place) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Queue &queue : queues)
      changed |= startDrains(queue, place);
    if (!claimed.empty())
      changed |= startClaimed();
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
      if (targets[node - numCompute] > place)
        break;
      if (pending[node] && !settle(node) && place / 2 != numCompute)
        hurry(node, place / 2);
      if (pending[node])
        break;
      if (!fits(node) &&
          (!policy.fetchFirst || !makeRoom(bytesToAllocate(node))))
        break;
      if (state[node] == Waiting)
        start(node);
    }
  }
}

/// Starts `node`, if it fetches, or what it waits for.
void Placer::startNeeded(int32_t node) {
  if (state[node] != Waiting || !problem.isFetch(node))
    return;
  for (int32_t before : problem.previous[node])
    if (before >= numCompute)
      startNeeded(before);
  if (settle(node) && state[node] == Waiting && fits(node))
    start(node);
}

/// Whether what the compute task at `place` waits for is not in flight and
/// takes data away, or depends on something that is not complete; at the end,
/// whether anything is left.
bool Placer::awaitsChain(int32_t place) const {
  auto isOpen = [&](int32_t node) {
    return node >= numCompute && state[node] != Done;
  };
  if (place == numCompute)
    return true;
  return llvm::any_of(problem.previous[place], [&](int32_t node) {
    return isOpen(node) && state[node] == Waiting &&
           (!problem.isFetch(node) ||
            llvm::any_of(problem.previous[node], isOpen));
  });
}

/// Of those in flight, the first to be done, if compute at `place` has to wait
/// for any of them; -1 otherwise.
int32_t Placer::pickFlying(int32_t place) const {
  for (auto [time, node] : flying)
    if (problem.deadline[node - numCompute] <= place)
      return flying.begin()->second;
  return -1;
}

/// While compute stands still before `place`: as each task is done, those that
/// follow it begin, so that chains run beside each other.
bool Placer::runChains(int32_t place) {
  while (awaitsChain(place)) {
    startReady(place);
    if (place != numCompute)
      for (int32_t before : problem.previous[place])
        if (before >= numCompute)
          startNeeded(before);
    int32_t node = pickFlying(place);
    if (node >= 0) {
      wait(node);
      continue;
    }
    bool any = false;
    for (int32_t before = numCompute; before != problem.numNodes; ++before) {
      if (state[before] == Done ||
          problem.deadline[before - numCompute] > place)
        continue;
      if (!complete(before))
        return false;
      any = true;
      break;
    }
    if (!any)
      return true;
  }
  return true;
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
        state[before] == Waiting && !pending[before] && fits(before))
      start(before);
  if (!policy.serial && !runChains(place))
    return false;
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
  if (policy.serial)
    while (done && waitForOldest())
      startReady(numCompute);
  else
    done = done && runChains(numCompute);
  for (int32_t node = numCompute; done && node != problem.numNodes; ++node)
    done = complete(node);
  result.feasible = done && result.peak.isWithin(policy.limit);
  result.seconds = now;
  result.ends.assign(problem.graph.tasks.size(), 0);
  for (int32_t node = 0; node != problem.numNodes; ++node)
    result.ends[problem.task[node]] = end[node];
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

/// The placement that overlaps nothing; `profile` is its memory.
static Placement placeSerially(const Problem &problem,
                               std::vector<int64_t> &profile) {
  PlacePolicy policy;
  policy.limit = Bytes::unlimited();
  policy.serial = true;
  Placer placer(problem, policy);
  std::vector<int32_t> targets(problem.numNodes - problem.numCompute,
                               std::numeric_limits<int32_t>::max());
  Placement placement = placer.run(targets);
  profile = std::move(placer.profile);
  return placement;
}

std::vector<int64_t> mlir::zero::leastMemory(const Problem &problem) {
  std::vector<int64_t> profile;
  placeSerially(problem, profile);
  return profile;
}

int64_t mlir::zero::leastHostMemory(const Problem &problem) {
  std::vector<int64_t> profile;
  return placeSerially(problem, profile).peak.host;
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
