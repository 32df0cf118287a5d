//===- RematMemory.cpp - Memory and time of one choice --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass over the nodes from the last to the first decides what is computed
// again and where; a second one adds up the ranges in the program that results.
//
//===----------------------------------------------------------------------===//

#include "RematMemory.h"

#include <algorithm>
#include <limits>

using namespace mlir::zero;

static constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

RematMemory::RematMemory(const RematGraph &graph)
    : graph(graph), numNodes(graph.nodes.size()),
      otherAt(graph.numSteps + 1, 0), otherBefore(graph.numSteps + 1, 0),
      state(numNodes), first(numNodes), lastStep(numNodes), lastNode(numNodes),
      readers(numNodes), joins(numNodes), stepPosition(graph.numSteps),
      nodePosition(numNodes) {
  for (const RematRange &range : graph.others) {
    otherAt[range.first] += range.bytes;
    otherAt[range.last + 1] -= range.bytes;
    // Just before a step: what was there at the step before, and stays.
    if (range.last > range.first) {
      otherBefore[range.first + 1] += range.bytes;
      otherBefore[range.last + 1] -= range.bytes;
    }
  }
  for (int32_t step = 1; step <= graph.numSteps; ++step) {
    otherAt[step] += otherAt[step - 1];
    otherBefore[step] += otherBefore[step - 1];
  }
}

/// What is computed again, and between which uses each value is needed.
void RematMemory::decide(const std::vector<bool> &kept, bool keepProducts) {
  for (int32_t i = 0; i != numNodes; ++i) {
    const RematNode &node = graph.nodes[i];
    first[i] = node.uses.empty() ? kNever : node.uses.front().by;
    lastStep[i] = node.uses.empty() ? -1 : node.uses.back().by;
    lastNode[i] = numNodes;
    readers[i] = node.uses.size();
    joins[i] = node.uses.size() == 1 && node.uses.front().joins;
  }
  totalSeconds = 0;
  for (int32_t i = numNodes; i-- != 0;) {
    const RematNode &node = graph.nodes[i];
    bool keep = kept[i] || node.pinned || (keepProducts && node.product);
    state[i] = first[i] == kNever ? Unneeded : keep ? Held : Recomputed;
    if (state[i] != Recomputed)
      continue;
    totalSeconds += node.seconds;
    for (RematUse operand : node.operands) {
      int32_t o = operand.by;
      joins[o] = readers[o]++ == 0 && operand.joins;
      // Before one step, later nodes come last; they have been here already.
      if (first[i] > lastStep[o]) {
        lastStep[o] = first[i];
        lastNode[o] = i;
      }
      first[o] = std::min(first[o], first[i]);
    }
  }
}

/// Numbers the steps and what is computed again before each, in order.
void RematMemory::placeAgain() {
  std::vector<int32_t> &count = stepPosition;
  std::fill(count.begin(), count.end(), 0);
  for (int32_t i = 0; i != numNodes; ++i)
    if (state[i] == Recomputed)
      ++count[first[i]];
  int32_t next = 0;
  for (int32_t &entry : count) {
    int32_t here = entry;
    entry = next; // of the first one before the step
    next += here + 1;
  }
  for (int32_t i = 0; i != numNodes; ++i)
    if (state[i] == Recomputed)
      nodePosition[i] = stepPosition[first[i]]++;
  change.assign(next + 1, 0);
}

void RematMemory::addRanges() {
  auto add = [&](int32_t from, int32_t to, int64_t bytes) {
    change[from] += bytes;
    change[to + 1] -= bytes;
  };
  for (int32_t i = 0; i != numNodes; ++i) {
    const RematNode &node = graph.nodes[i];
    int32_t begin = positionOf(node.step), end = positionOf(node.lastForward);
    int32_t last = -1;
    if (state[i] != Unneeded)
      last = lastNode[i] == numNodes ? positionOf(lastStep[i])
                                     : nodePosition[lastNode[i]];
    if (state[i] == Held)
      end = std::max(end, last);
    if (state[i] == Held || !node.joinsForward)
      add(begin, end, node.bytes);
    if (state[i] == Recomputed && !joins[i])
      add(nodePosition[i], last, node.bytes);
  }
}

void RematMemory::addUp() {
  level.assign(graph.numSteps, 0);
  int64_t live = 0;
  int32_t position = 0;
  peakBytes = 0;
  for (int32_t step = 0; step != graph.numSteps; ++step) {
    for (; position != positionOf(step); ++position) {
      live += change[position];
      level[step] = std::max(level[step], live + otherBefore[step]);
    }
    live += change[position++];
    level[step] = std::max(level[step], live + otherAt[step]);
    peakBytes = std::max(peakBytes, level[step]);
  }
}

void RematMemory::evaluate(const std::vector<bool> &kept, bool keepProducts) {
  decide(kept, keepProducts);
  placeAgain();
  addRanges();
  addUp();
}

double RematMemory::excess(int64_t limit) const {
  double sum = 0;
  for (int64_t bytes : level)
    sum += std::max<int64_t>(0, bytes - limit);
  return sum;
}

RematPoint RematMemory::take(const std::vector<bool> &kept) const {
  RematPoint point;
  point.kept = kept;
  point.place.assign(numNodes, -1);
  point.recomputed.assign(numNodes, false);
  for (int32_t i = 0; i != numNodes; ++i) {
    if (state[i] == Held)
      point.kept[i] = true;
    if (state[i] != Recomputed)
      continue;
    point.recomputed[i] = true;
    point.place[i] = first[i];
  }
  point.peakBytes = peakBytes;
  point.seconds = totalSeconds;
  return point;
}
