//===- ScheduleOrder.cpp - Orders of compute -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Orders of the compute tasks among equals. Each is a topological order of all
// tasks by a key of the task, made with a heap: n log n.
//
//===----------------------------------------------------------------------===//

#include "SchedulePlace.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <functional>
#include <queue>

using namespace mlir::zero;

std::vector<int32_t> mlir::zero::graphOrder(const StepGraph &graph) {
  std::vector<int32_t> order;
  for (int32_t task = 0, e = graph.tasks.size(); task != e; ++task)
    if (graph.tasks[task].channel == 0)
      order.push_back(task);
  return order;
}

using Heap = std::priority_queue<std::pair<int64_t, int32_t>,
                                 std::vector<std::pair<int64_t, int32_t>>,
                                 std::greater<>>;

/// Tasks of the compute channel by smallest key first, as dependences allow.
static std::vector<int32_t> orderByKey(const Problem &problem,
                                       llvm::ArrayRef<int64_t> keys) {
  std::vector<int32_t> pending(problem.numNodes), order;
  Heap heap;
  for (int32_t node = 0; node != problem.numNodes; ++node) {
    pending[node] = problem.previous[node].size();
    if (!pending[node])
      heap.push({keys[node], node});
  }
  while (!heap.empty()) {
    int32_t node = heap.top().second;
    heap.pop();
    if (node < problem.numCompute)
      order.push_back(problem.task[node]);
    for (int32_t after : problem.next[node])
      if (--pending[after] == 0)
        heap.push({keys[after], after});
  }
  return order;
}

/// Keys that keep the order of the graph; collectives take no turn.
static std::vector<int64_t> graphKeys(const Problem &problem) {
  std::vector<int64_t> keys(problem.numNodes, -1);
  for (int32_t node = 0; node != problem.numCompute; ++node)
    keys[node] = node;
  return keys;
}

namespace {
/// Greedy order that frees memory: a task that frees no less than it takes runs
/// as soon as it can, others in the order of the graph. Backwards in time, a
/// task that takes memory runs as late as it can.
class FreeingOrder {
public:
  FreeingOrder(const Problem &problem, bool backwards)
      : problem(problem), backwards(backwards),
        before(backwards ? problem.next : problem.previous),
        after(backwards ? problem.previous : problem.next),
        pending(problem.numNodes), usesLeft(problem.numUses),
        born(problem.graph.buffers.size()) {
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (int32_t node = 0; node != problem.numNodes; ++node)
      for (int32_t buffer : problem.uses[node])
        pairs.push_back({buffer, node});
    users.assign(problem.graph.buffers.size(), pairs);
  }

  std::vector<int32_t> run();

private:
  int64_t gain(int32_t node) const;
  void push(int32_t node);
  void finish(int32_t node);

  const Problem &problem;
  bool backwards;
  const NodeLists &before, &after;
  NodeLists users; ///< by buffer
  std::vector<int32_t> pending, usesLeft;
  std::vector<bool> born;
  Heap heap;
};
} // namespace

int64_t FreeingOrder::gain(int32_t node) const {
  int64_t freed = 0;
  for (int32_t buffer : problem.uses[node]) {
    if (problem.graph.buffers[buffer].resident ||
        problem.graph.buffers[buffer].space != MemorySpace::Device)
      continue;
    int64_t bytes = problem.graph.buffers[buffer].bytes;
    freed += (usesLeft[buffer] == 1 ? bytes : 0) - (born[buffer] ? 0 : bytes);
  }
  return freed;
}

void FreeingOrder::push(int32_t node) {
  int64_t place = backwards ? problem.numCompute - node : node;
  bool first = node >= problem.numCompute || gain(node) >= 0;
  heap.push({first ? place - problem.numNodes : place, node});
}

void FreeingOrder::finish(int32_t node) {
  pending[node] = -1;
  for (int32_t buffer : problem.uses[node]) {
    born[buffer] = true;
    // Its last user may now be one that frees memory.
    if (--usesLeft[buffer] == 1)
      for (int32_t user : users[buffer])
        if (pending[user] == 0)
          push(user);
  }
  for (int32_t other : after[node])
    if (--pending[other] == 0)
      push(other);
}

std::vector<int32_t> FreeingOrder::run() {
  std::vector<int32_t> order;
  for (int32_t node = 0; node != problem.numNodes; ++node) {
    pending[node] = before[node].size();
    if (!pending[node])
      push(node);
  }
  while (!heap.empty()) {
    int32_t node = heap.top().second;
    heap.pop();
    if (pending[node] < 0) // pushed twice
      continue;
    if (node < problem.numCompute)
      order.push_back(problem.task[node]);
    finish(node);
  }
  if (backwards)
    std::reverse(order.begin(), order.end());
  return order;
}

/// By node, when the reductions it depends on are done if memory is free; -1 if
/// it depends on none.
static std::vector<double> reductionsDone(const Problem &problem) {
  PlacePolicy policy;
  policy.limit = Bytes::unlimited();
  policy.lead = -1;
  std::vector<int64_t> least(2 * problem.numCompute + 1, 0);
  Placement placement = place(problem, least, policy);
  SimulatedStep simulated = simulate(problem.graph, placement.schedule);
  std::vector<double> done(problem.numNodes, -1);
  // In the order of the program, so that what comes before is known.
  for (ScheduleStep step : placement.schedule.steps) {
    if (step.action == ScheduleStep::Start)
      continue;
    int32_t node = problem.nodeOf[step.task];
    if (step.action == ScheduleStep::Wait && !problem.isFetch(node))
      done[node] = simulated.tasks[step.task].end;
    for (int32_t before : problem.previous[node])
      done[node] = std::max(done[node], done[before]);
  }
  return done;
}

std::vector<std::vector<int32_t>>
mlir::zero::otherOrders(const StepGraph &graph) {
  Problem problem(graph, {graphOrder(graph), {}, {}});
  std::vector<std::vector<int32_t>> orders;
  std::vector<double> done = reductionsDone(problem);
  int32_t numCompute = problem.numCompute;

  // Tasks that wait for reductions: last, in the order in which they can run.
  std::vector<int32_t> waiting;
  for (int32_t node = 0; node != numCompute; ++node)
    if (done[node] >= 0)
      waiting.push_back(node);
  llvm::stable_sort(waiting,
                    [&](int32_t a, int32_t b) { return done[a] < done[b]; });
  std::vector<int64_t> late = graphKeys(problem), early = late;
  for (auto [number, node] : llvm::enumerate(waiting)) {
    late[node] = numCompute + static_cast<int64_t>(number);
    auto reached = std::lower_bound(problem.idealTime.begin(),
                                    problem.idealTime.end(), done[node]);
    early[node] = reached - problem.idealTime.begin();
  }
  if (!waiting.empty()) {
    orders.push_back(orderByKey(problem, late));
    orders.push_back(orderByKey(problem, early));
  }

  // What a reduction waits for goes first.
  std::vector<int64_t> gradients = graphKeys(problem);
  for (int32_t node = 0; node != numCompute; ++node)
    for (int32_t after : problem.next[node])
      if (after >= numCompute && !problem.isFetch(after))
        gradients[node] = std::min<int64_t>(gradients[node], 0);
  orders.push_back(orderByKey(problem, gradients));
  orders.push_back(FreeingOrder(problem, false).run());
  orders.push_back(FreeingOrder(problem, true).run());
  return orders;
}
