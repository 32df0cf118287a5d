//===- PtxFlow.cpp - Where divergent threads meet again -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Immediate post-dominators over basic blocks, by the iterative algorithm of
// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxDecode.h"

#include <algorithm>
#include <utility>

using namespace fake_cuda::ptx;

namespace {
/// Blocks of instructions; the last number is the exit of the function.
struct Graph {
  std::vector<uint32_t> begins;
  std::vector<std::vector<uint32_t>> successors;
  uint32_t exit = 0;
};
} // namespace

static Graph makeGraph(const std::vector<Flow> &flows) {
  std::vector<bool> isLeader(flows.size() + 1);
  isLeader[0] = true;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (flows[i].targets.empty() && flows[i].fallsThrough)
      continue;
    isLeader[i + 1] = true;
    for (uint32_t target : flows[i].targets)
      isLeader[target] = true;
  }
  Graph graph;
  std::vector<uint32_t> blockOf(flows.size() + 1);
  for (size_t i = 0; i < flows.size(); ++i) {
    if (isLeader[i])
      graph.begins.push_back(i);
    blockOf[i] = graph.begins.size() - 1;
  }
  graph.exit = blockOf[flows.size()] = graph.begins.size();
  graph.successors.resize(graph.exit + 1);
  for (size_t i = 0; i < flows.size(); ++i) {
    if (!isLeader[i + 1] && i + 1 < flows.size())
      continue;
    auto &next = graph.successors[blockOf[i]];
    for (uint32_t target : flows[i].targets)
      next.push_back(blockOf[target]);
    if (flows[i].fallsThrough)
      next.push_back(blockOf[i + 1]);
    if (next.empty())
      next.push_back(graph.exit);
  }
  return graph;
}

/// Blocks in postorder of the reversed graph, the exit last.
static std::vector<uint32_t>
postorder(const std::vector<std::vector<uint32_t>> &edges, uint32_t root) {
  std::vector<uint32_t> order;
  std::vector<bool> seen(edges.size());
  std::vector<std::pair<uint32_t, size_t>> path{{root, 0}};
  seen[root] = true;
  while (!path.empty()) {
    auto &[node, next] = path.back();
    if (next == edges[node].size()) {
      order.push_back(node);
      path.pop_back();
      continue;
    }
    uint32_t to = edges[node][next++];
    if (!seen[to]) {
      seen[to] = true;
      path.push_back({to, 0});
    }
  }
  return order;
}

/// Of each block; the exit's is itself, kNone: the exit cannot be reached.
static std::vector<uint32_t> postDominators(const Graph &graph) {
  std::vector<std::vector<uint32_t>> predecessors(graph.exit + 1);
  for (uint32_t block = 0; block < graph.exit; ++block)
    for (uint32_t next : graph.successors[block])
      predecessors[next].push_back(block);
  std::vector<uint32_t> order = postorder(predecessors, graph.exit);
  std::vector<uint32_t> rank(graph.exit + 1), dominator(graph.exit + 1, kNone);
  for (size_t i = 0; i < order.size(); ++i)
    rank[order[i]] = i;
  dominator[graph.exit] = graph.exit;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto block = order.rbegin() + 1; block < order.rend(); ++block) {
      uint32_t found = kNone;
      for (uint32_t other : graph.successors[*block]) {
        if (dominator[other] == kNone)
          continue;
        uint32_t mine = found == kNone ? other : found;
        while (mine != other) {
          while (rank[mine] < rank[other])
            mine = dominator[mine];
          while (rank[other] < rank[mine])
            other = dominator[other];
        }
        found = mine;
      }
      changed |= std::exchange(dominator[*block], found) != found;
    }
  }
  return dominator;
}

std::vector<uint32_t>
fake_cuda::ptx::findMeetings(const std::vector<Flow> &flows) {
  std::vector<uint32_t> meetings(flows.size(), kNone);
  if (flows.empty())
    return meetings;
  Graph graph = makeGraph(flows);
  std::vector<uint32_t> dominator = postDominators(graph);
  for (uint32_t block = 0; block < graph.exit; ++block) {
    uint32_t last =
        block + 1 < graph.exit ? graph.begins[block + 1] - 1 : flows.size() - 1;
    uint32_t meeting = dominator[block];
    if (meeting != kNone && meeting != graph.exit)
      meetings[last] = graph.begins[meeting];
  }
  return meetings;
}
