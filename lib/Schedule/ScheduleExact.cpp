//===- ScheduleExact.cpp - Branch and bound for small steps --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state is which nodes have begun and which are complete, with the times of
// the channels. From a state, compute runs its next task, a collective starts,
// or compute stands still until the next collective in flight is done. States
// that are later in every time than one seen before are left out, and so are
// those from which no channel can keep the bound even if memory were free, or
// where what was gathered early does not fit beside what compute surely holds.
//
//===----------------------------------------------------------------------===//

#include "ScheduleExact.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <functional>
#include <map>

using namespace mlir::zero;

namespace {
using Mask = uint64_t;

class BranchAndBound {
public:
  BranchAndBound(const Problem &problem, Bytes limit, double bound,
                 int64_t &statesLeft);

  Placement run();

private:
  static Mask bit(int32_t node) { return Mask(1) << node; }
  Bytes bytesBegun(int32_t node) const;
  Bytes bytesEnded(int32_t node) const;
  void findHeld();
  bool blocksCompute(int32_t node) const;
  bool isSeen();
  bool isLate() const;
  bool isChannelLate(llvm::ArrayRef<int32_t> nodes, int32_t channel) const;
  bool visit();
  bool visitRun();
  bool visitStart(int32_t node);
  bool visitWait(int32_t node);

  const Problem &problem;
  const Bytes limit;
  const double bound;
  int64_t &statesLeft;
  Mask all;
  std::vector<Mask> before;                     ///< by node
  std::vector<Mask> users;                      ///< by buffer
  std::vector<std::vector<int32_t>> byDeadline; ///< by channel
  /// By place, bytes of the device that compute surely holds.
  std::vector<int64_t> held;
  std::vector<int64_t> fetched; ///< by node, bytes that are held until used
  // The state.
  Mask begun = 0, done = 0;
  int32_t place = 0; ///< next compute task
  double now = 0;
  std::vector<double> free, end;
  Bytes bytes;
  std::vector<ScheduleStep> steps;
  std::map<std::pair<Mask, Mask>, std::vector<std::vector<double>>> seen;
};
} // namespace

BranchAndBound::BranchAndBound(const Problem &problem, Bytes limit,
                               double bound, int64_t &statesLeft)
    : problem(problem), limit(limit), bound(bound), statesLeft(statesLeft),
      all(problem.numNodes == 64 ? ~Mask(0) : bit(problem.numNodes) - 1),
      before(problem.numNodes, 0), users(problem.graph.buffers.size(), 0),
      byDeadline(problem.graph.channels.size()),
      free(problem.graph.channels.size(), 0), end(problem.numNodes, 0) {
  for (int32_t node = 0; node != problem.numNodes; ++node) {
    for (int32_t other : problem.previous[node])
      before[node] |= bit(other);
    for (int32_t buffer : problem.uses[node])
      users[buffer] |= bit(node);
    if (node >= problem.numCompute)
      byDeadline[problem.channel[node]].push_back(node);
  }
  for (std::vector<int32_t> &nodes : byDeadline)
    llvm::stable_sort(nodes, [&](int32_t a, int32_t b) {
      return problem.deadline[a - problem.numCompute] <
             problem.deadline[b - problem.numCompute];
    });
  findHeld();
  for (auto [number, buffer] : llvm::enumerate(problem.graph.buffers))
    if (buffer.resident)
      bytes += Bytes::of(buffer);
  for (int32_t buffer : problem.outside)
    bytes += Bytes::of(problem.graph.buffers[buffer]);
}

/// A buffer is held at least between its uses by compute.
void BranchAndBound::findHeld() {
  held.assign(problem.numCompute + 1, 0);
  fetched.assign(problem.numNodes, 0);
  Mask compute =
      problem.numCompute == 64 ? ~Mask(0) : bit(problem.numCompute) - 1;
  for (auto [number, buffer] : llvm::enumerate(problem.graph.buffers)) {
    if (buffer.space != MemorySpace::Device)
      continue;
    if (buffer.resident) {
      held[0] += buffer.bytes;
      continue;
    }
    Mask places = users[number] & compute;
    if (!places)
      continue;
    held[llvm::countr_zero(places)] += buffer.bytes;
    held[64 - llvm::countl_zero(places)] -= buffer.bytes;
    int32_t first = problem.firstUser[number];
    if (first >= problem.numCompute && problem.isFetch(first))
      fetched[first] += buffer.bytes;
  }
  for (int32_t place = 0; place != problem.numCompute; ++place)
    held[place + 1] += held[place];
}

/// Whether with `node`, which fetches, begun now, some compute task before its
/// deadline cannot run.
bool BranchAndBound::blocksCompute(int32_t node) const {
  int32_t last = problem.deadline[node - problem.numCompute];
  for (int32_t next = place; next < last; ++next) {
    int64_t sum = held[next] + fetched[node];
    for (int32_t other = problem.numCompute; other != problem.numNodes; ++other)
      if ((begun & bit(other)) &&
          problem.deadline[other - problem.numCompute] > next)
        sum += fetched[other];
    if (sum > limit.device)
      return true;
  }
  return false;
}

/// Bytes that `node` brings to life.
Bytes BranchAndBound::bytesBegun(int32_t node) const {
  Bytes sum;
  for (int32_t buffer : problem.uses[node])
    if (problem.firstUser[buffer] == node)
      sum += Bytes::of(problem.graph.buffers[buffer]);
  return sum;
}

/// Bytes that are dead once `node` is complete.
Bytes BranchAndBound::bytesEnded(int32_t node) const {
  Bytes sum;
  for (int32_t buffer : problem.uses[node])
    if (!(users[buffer] & ~done & ~bit(node)) &&
        !problem.graph.buffers[buffer].resident)
      sum += Bytes::of(problem.graph.buffers[buffer]);
  return sum;
}

bool BranchAndBound::isSeen() {
  std::vector<double> times = {now};
  times.insert(times.end(), free.begin(), free.end());
  for (int32_t node = problem.numCompute; node != problem.numNodes; ++node)
    if ((begun & ~done) & bit(node))
      times.push_back(end[node]);
  auto &others = seen[{begun, done}];
  auto noLater = [&](const std::vector<double> &other) {
    return std::equal(other.begin(), other.end(), times.begin(),
                      std::less_equal<>());
  };
  if (llvm::any_of(others, noLater))
    return true;
  others.push_back(std::move(times));
  return false;
}

/// Two bounds for what has not begun on a channel: all ready now, the most
/// urgent first; and each as soon as compute can have made it ready, with the
/// least that follows any.
bool BranchAndBound::isChannelLate(llvm::ArrayRef<int32_t> nodes,
                                   int32_t channel) const {
  const std::vector<double> &ideal = problem.idealTime;
  double total = ideal.back(), slack = now - ideal[place];
  double urgent = std::max(now, free[channel]), first = bound, sum = 0;
  double tail = 0;
  for (int32_t node : nodes) {
    int32_t other = node - problem.numCompute;
    tail = total - ideal[problem.deadline[other]];
    if (begun & bit(node)) {
      if (!(done & bit(node)) && end[node] + tail >= bound)
        return true;
      continue;
    }
    urgent += problem.seconds[node];
    sum += problem.seconds[node];
    first = std::min(first, ideal[problem.ready[other]] + slack);
    if (urgent + tail >= bound)
      return true;
  }
  return sum > 0 && std::max(first, urgent - sum) + sum + tail >= bound;
}

bool BranchAndBound::isLate() const {
  if (now + problem.idealTime.back() - problem.idealTime[place] >= bound)
    return true;
  for (auto [channel, nodes] : llvm::enumerate(byDeadline))
    if (isChannelLate(nodes, channel))
      return true;
  return false;
}

bool BranchAndBound::visitRun() {
  Bytes begins = bytesBegun(place);
  if (!(bytes + begins).isWithin(limit))
    return false;
  Bytes ends = bytesEnded(place);
  Mask self = bit(place);
  begun |= self, done |= self;
  bytes += begins;
  bytes -= ends;
  now += problem.seconds[place];
  end[place] = now;
  steps.push_back({ScheduleStep::Run, problem.task[place++]});
  if (visit())
    return true;
  steps.pop_back();
  now -= problem.seconds[--place];
  bytes += ends;
  bytes -= begins;
  begun &= ~self, done &= ~self;
  return false;
}

bool BranchAndBound::visitStart(int32_t node) {
  Bytes begins = bytesBegun(node);
  if (!(bytes + begins).isWithin(limit) ||
      (problem.isFetch(node) && blocksCompute(node)))
    return false;
  double &channelFree = free[problem.channel[node]];
  double oldFree = channelFree;
  begun |= bit(node);
  bytes += begins;
  end[node] = channelFree = std::max(now, oldFree) + problem.seconds[node];
  steps.push_back({ScheduleStep::Start, problem.task[node]});
  if (visit())
    return true;
  steps.pop_back();
  channelFree = oldFree;
  bytes -= begins;
  begun &= ~bit(node);
  return false;
}

bool BranchAndBound::visitWait(int32_t node) {
  Bytes ends = bytesEnded(node);
  double oldNow = now;
  now = std::max(now, end[node]);
  done |= bit(node);
  bytes -= ends;
  steps.push_back({ScheduleStep::Wait, problem.task[node]});
  if (visit())
    return true;
  steps.pop_back();
  bytes += ends;
  done &= ~bit(node);
  now = oldNow;
  return false;
}

bool BranchAndBound::visit() {
  if (done == all)
    return now < bound;
  if (statesLeft <= 0 || isLate() || isSeen())
    return false;
  --statesLeft;
  int32_t first = -1; // in flight, done first
  for (int32_t node = problem.numCompute; node != problem.numNodes; ++node)
    if (((begun & ~done) & bit(node)) && (first < 0 || end[node] < end[first]))
      first = node;
  if (first >= 0 && end[first] <= now)
    return visitWait(first);
  bool canRun = place != problem.numCompute && !(before[place] & ~done);
  // What takes data away goes first, then what brings it, just in time or not.
  for (bool fetch : {false, true})
    for (llvm::ArrayRef<int32_t> nodes : byDeadline)
      for (int32_t node : nodes)
        if (!(begun & bit(node)) && !(before[node] & ~done) &&
            problem.isFetch(node) == fetch && visitStart(node))
          return true;
  return (canRun && visitRun()) || (first >= 0 && visitWait(first));
}

Placement BranchAndBound::run() {
  Placement placement;
  if (!bytes.isWithin(limit) || !visit())
    return placement;
  placement.feasible = true;
  placement.schedule.steps = std::move(steps);
  placement.schedule.buckets = problem.decisions.buckets;
  placement.schedule.dropped = problem.decisions.dropped;
  placement.seconds = now;
  placement.ends.assign(problem.graph.tasks.size(), 0);
  for (int32_t node = 0; node != problem.numNodes; ++node)
    placement.ends[problem.task[node]] = end[node];
  return placement;
}

Placement mlir::zero::placeExactly(const Problem &problem, Bytes limit,
                                   double bound, int64_t &statesLeft) {
  return BranchAndBound(problem, limit, bound, statesLeft).run();
}
