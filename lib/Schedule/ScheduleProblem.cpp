//===- ScheduleProblem.cpp - A step under decisions ----------------------===//
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

using namespace mlir::zero;
using llvm::ArrayRef;

void NodeLists::assign(int32_t numNodes,
                       ArrayRef<std::pair<int32_t, int32_t>> pairs) {
  begin.assign(numNodes + 1, 0);
  items.resize(pairs.size());
  for (auto [node, item] : pairs)
    ++begin[node + 1];
  for (int32_t node = 0; node != numNodes; ++node)
    begin[node + 1] += begin[node];
  std::vector<int32_t> place(begin.begin(), begin.end() - 1);
  for (auto [node, item] : pairs)
    items[place[node]++] = item;
}

Problem::Problem(const StepGraph &graph, Decisions decisions)
    : graph(graph), decisions(std::move(decisions)) {
  makeNodes();
  makeDependences();
  makeWindows();
}

void Problem::makeNodes() {
  int32_t numTasks = graph.tasks.size();
  nodeOf.assign(numTasks, -1);
  std::vector<bool> dropped = omittedTasks(graph, decisions.dropped);
  for (int32_t number : decisions.order) {
    if (dropped[number])
      continue;
    nodeOf[number] = task.size();
    task.push_back(number);
    channel.push_back(0);
    seconds.push_back(graph.tasks[number].seconds);
  }
  numCompute = task.size();
  for (const std::vector<int32_t> &bucket : decisions.buckets)
    for (int32_t member : bucket)
      nodeOf[member] = -2 - bucket.front();
  for (int32_t number = 0; number != numTasks; ++number) {
    if (graph.tasks[number].channel == 0 || dropped[number] ||
        nodeOf[number] != -1)
      continue;
    nodeOf[number] = task.size();
    task.push_back(number);
    channel.push_back(graph.tasks[number].channel);
    seconds.push_back(graph.tasks[number].seconds);
  }
  for (const std::vector<int32_t> &bucket : decisions.buckets) {
    for (int32_t member : bucket)
      nodeOf[member] = task.size();
    task.push_back(bucket.front());
    channel.push_back(graph.tasks[bucket.front()].channel);
    seconds.push_back(bucketSeconds(graph, bucket));
  }
  numNodes = task.size();
}

/// Dependences between nodes through buffers, and who uses which.
void Problem::makeDependences() {
  std::vector<int32_t> kept = keptBuffers(graph, decisions.dropped);
  size_t numBuffers = graph.buffers.size();
  std::vector<int32_t> writer(numBuffers, -1);
  std::vector<llvm::SmallVector<int32_t, 2>> readers(numBuffers);
  std::vector<std::pair<int32_t, int32_t>> edges, backEdges, used;
  std::vector<bool> written(numBuffers); // or alive from the beginning
  firstUser.assign(numBuffers, -1);
  auto depend = [&](int32_t from, int32_t to) {
    if (from < 0 || from == to)
      return;
    edges.push_back({from, to});
    backEdges.push_back({to, from});
  };
  for (int32_t number = 0, e = graph.tasks.size(); number != e; ++number) {
    int32_t node = nodeOf[number];
    if (node < 0)
      continue;
    const StepTask &task = graph.tasks[number];
    for (int32_t read : task.reads) {
      int32_t buffer = kept[read];
      if (!written[buffer]) {
        written[buffer] = true;
        if (!graph.buffers[buffer].resident)
          outside.push_back(buffer);
      }
      depend(writer[buffer], node);
      readers[buffer].push_back(node);
      used.push_back({node, buffer});
    }
    for (int32_t write : task.writes) {
      int32_t buffer = kept[write];
      if (!written[buffer] && !graph.buffers[buffer].resident)
        firstUser[buffer] = node;
      written[buffer] = true;
      if (readers[buffer].empty())
        depend(writer[buffer], node);
      for (int32_t reader : readers[buffer])
        depend(reader, node);
      readers[buffer].clear();
      writer[buffer] = node;
      used.push_back({node, buffer});
    }
  }
  next.assign(numNodes, edges);
  previous.assign(numNodes, backEdges);
  countUses(used);
}

/// A buffer counts once per node.
void Problem::countUses(ArrayRef<std::pair<int32_t, int32_t>> used) {
  NodeLists all;
  all.assign(numNodes, used);
  numUses.assign(graph.buffers.size(), 0);
  std::vector<int32_t> lastNode(graph.buffers.size(), -1);
  uses.items.reserve(used.size());
  uses.begin.reserve(numNodes + 1);
  for (int32_t node = 0; node != numNodes; ++node) {
    uses.begin.push_back(uses.items.size());
    for (int32_t buffer : all[node])
      if (lastNode[buffer] != node) {
        lastNode[buffer] = node;
        ++numUses[buffer];
        uses.items.push_back(buffer);
      }
  }
  uses.begin.push_back(uses.items.size());
}

static bool bringsData(TaskKind kind) {
  return kind == TaskKind::AllGather || kind == TaskKind::CopyIn ||
         kind == TaskKind::DiskRead;
}

/// Which collectives fetch, and when what they bring can be used. `sorted`
/// respects their dependences.
void Problem::findFetches(ArrayRef<int32_t> sorted) {
  need.assign(deadline.begin(), deadline.end());
  depth.assign(numNodes - numCompute, 0);
  for (int32_t node : sorted)
    for (int32_t before : previous[node])
      if (before >= numCompute)
        depth[node - numCompute] =
            std::max(depth[node - numCompute], depth[before - numCompute] + 1);
  auto takesMemory = [&](int32_t buffer) {
    return !graph.buffers[buffer].resident && graph.buffers[buffer].bytes > 0;
  };
  auto isOther = [&](int32_t other) { return other >= numCompute; };
  for (int32_t node : llvm::reverse(sorted)) {
    int32_t number = node - numCompute;
    bool endsChain = llvm::any_of(previous[node], isOther) &&
                     llvm::none_of(graph.tasks[task[node]].writes, takesMemory);
    bool feeds = llvm::any_of(next[node], isOther);
    fetch[number] = bringsData(graph.tasks[task[node]].kind) && !endsChain &&
                    (deadline[number] < numCompute || feeds);
    if (!fetch[number] || !feeds)
      continue;
    int32_t first = numCompute;
    for (int32_t after : next[node])
      first = std::min(first, after < numCompute ? after
                              : isFetch(after)   ? need[after - numCompute]
                                                 : ready[after - numCompute]);
    need[number] = std::max(first, ready[number]);
  }
}

/// When each collective may start and has to be complete.
void Problem::makeWindows() {
  int32_t numOthers = numNodes - numCompute;
  idealTime.assign(numCompute + 1, 0);
  for (int32_t place = 0; place != numCompute; ++place)
    idealTime[place + 1] = idealTime[place] + seconds[place];
  fetch.assign(numOthers, false);
  ready.assign(numOthers, 0);
  deadline.assign(numOthers, numCompute);
  // Collectives that depend on collectives: in an order that respects it.
  std::vector<int32_t> pending(numOthers, 0), sorted;
  for (int32_t node = numCompute; node != numNodes; ++node) {
    for (int32_t before : previous[node])
      pending[node - numCompute] += before >= numCompute;
    if (!pending[node - numCompute])
      sorted.push_back(node);
  }
  for (size_t i = 0; i != sorted.size(); ++i) {
    int32_t &earliest = ready[sorted[i] - numCompute];
    for (int32_t before : previous[sorted[i]])
      earliest =
          std::max(earliest, before < numCompute ? before + 1
                                                 : ready[before - numCompute]);
    for (int32_t after : next[sorted[i]])
      if (after >= numCompute && --pending[after - numCompute] == 0)
        sorted.push_back(after);
  }
  valid = static_cast<int32_t>(sorted.size()) == numOthers;
  for (int32_t node : llvm::reverse(sorted)) {
    int32_t &latest = deadline[node - numCompute];
    for (int32_t after : next[node])
      latest = std::min(
          latest, after < numCompute ? after : deadline[after - numCompute]);
    valid &= ready[node - numCompute] <= latest;
  }
  findFetches(sorted);
  for (int32_t node = 0; node != numCompute; ++node)
    for (int32_t before : previous[node])
      valid &= before >= numCompute || before < node;
  fetches.assign(graph.channels.size(), {});
  for (int32_t node = numCompute; node != numNodes; ++node)
    if (isFetch(node))
      fetches[channel[node]].push_back(node);
  for (std::vector<int32_t> &queue : fetches)
    llvm::stable_sort(queue, [&](int32_t a, int32_t b) {
      a -= numCompute, b -= numCompute;
      return std::make_tuple(need[a], ready[a], task[a + numCompute]) <
             std::make_tuple(need[b], ready[b], task[b + numCompute]);
    });
}
