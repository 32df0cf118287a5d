//===- RematSearch.cpp - The front of recomputation -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lazy greedy walk: the limit on memory goes down in small parts, and at each
// the moves with the most excess taken off for a second are made until the peak
// is under it. A move drops one value, or all values inside of a layer.
//
//===----------------------------------------------------------------------===//

#include "RematMemory.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <queue>
#include <tuple>

using namespace mlir::zero;

/// The limit goes down by at least this part of the memory without any
/// recomputation: less on small graphs, where that costs little.
static int64_t partsOf(size_t numNodes) { return numNodes < 2000 ? 64 : 24; }

//===----------------------------------------------------------------------===//
// Choices by rule
//===----------------------------------------------------------------------===//

/// Only what the backward pass reads itself.
static std::vector<bool> keepWhatIsRead(const RematGraph &graph) {
  std::vector<bool> kept;
  for (const RematNode &node : graph.nodes)
    kept.push_back(!node.uses.empty());
  return kept;
}

/// By node, whether the forward pass of a later layer reads it.
static std::vector<bool> findBoundaries(const RematGraph &graph) {
  std::vector<bool> boundary(graph.nodes.size(), false);
  for (const RematNode &node : graph.nodes)
    for (RematUse operand : node.operands)
      if (graph.nodes[operand.by].layer != node.layer)
        boundary[operand.by] = true;
  return boundary;
}

RematPoint mlir::zero::evaluateRemat(const RematGraph &graph,
                                     std::vector<bool> kept) {
  RematMemory memory(graph);
  memory.evaluate(kept, /*keepProducts=*/false);
  return memory.take(kept);
}

RematPoint mlir::zero::rematNone(const RematGraph &graph) {
  return evaluateRemat(graph, keepWhatIsRead(graph));
}

RematPoint mlir::zero::rematPerLayer(const RematGraph &graph) {
  std::vector<bool> kept = findBoundaries(graph);
  int32_t last = graph.nodes.empty() ? 0 : graph.nodes.back().layer;
  for (auto [i, node] : llvm::enumerate(graph.nodes))
    if (node.layer == last)
      kept[i] = !node.uses.empty();
  return evaluateRemat(graph, std::move(kept));
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

namespace {
/// Values that are dropped together.
using Move = llvm::SmallVector<int32_t, 1>;

class RematSearch {
public:
  explicit RematSearch(const RematGraph &graph)
      : graph(graph), memory(graph), kept(keepWhatIsRead(graph)) {}

  RematFront run();

private:
  void makeMoves();
  void walk(bool keepProducts);
  bool descend(int64_t limit, bool keepProducts);
  bool makeBestMoves(int64_t limit, bool keepProducts);
  double rate(const Move &move, int64_t limit, bool keepProducts);
  bool drop(const Move &move);
  void evaluate(bool keepProducts);
  void giveBack(int64_t limit);
  void record();

  const RematGraph &graph;
  RematMemory memory;
  std::vector<bool> kept;
  std::vector<Move> moves;
  std::vector<RematPoint> points; ///< all that were reached
  // Of `kept`:
  int64_t peak = 0;
  double seconds = 0, excess = 0;
};
} // namespace

/// One for each value, and one for each layer.
void RematSearch::makeMoves() {
  std::vector<bool> boundary = findBoundaries(graph);
  Move layer;
  for (int32_t i = 0, e = graph.nodes.size(); i != e; ++i) {
    if (i && graph.nodes[i].layer != graph.nodes[i - 1].layer) {
      if (layer.size() > 1)
        moves.push_back(layer);
      layer.clear();
    }
    if (graph.nodes[i].pinned)
      continue;
    moves.push_back({i});
    if (!boundary[i])
      layer.push_back(i);
  }
  if (layer.size() > 1)
    moves.push_back(layer);
}

void RematSearch::evaluate(bool keepProducts) {
  memory.evaluate(kept, keepProducts);
  peak = memory.peak();
  seconds = memory.seconds();
}

/// Drops what `move` is about. False if nothing was kept of it.
bool RematSearch::drop(const Move &move) {
  bool any = false;
  for (int32_t node : move) {
    any |= kept[node];
    kept[node] = false;
  }
  return any;
}

/// Excess over `limit` that `move` takes off for a second; 0 if none.
double RematSearch::rate(const Move &move, int64_t limit, bool keepProducts) {
  Move were;
  for (int32_t node : move)
    if (kept[node])
      were.push_back(node);
  if (!drop(were))
    return 0;
  memory.evaluate(kept, keepProducts);
  double gain = excess - memory.excess(limit);
  double cost = memory.seconds() - seconds;
  for (int32_t node : were)
    kept[node] = true;
  constexpr double least = 1e-12; // seconds; some values cost nothing
  return gain <= 0 ? 0 : gain / std::max(cost, least);
}

/// Makes the moves of the best rates, each rate as of when it is made. False if
/// there were none.
bool RematSearch::makeBestMoves(int64_t limit, bool keepProducts) {
  struct Entry {
    double rate;
    int32_t move;
    int64_t round;
    bool operator<(const Entry &o) const {
      return rate != o.rate ? rate < o.rate : move > o.move;
    }
  };
  std::priority_queue<Entry> queue;
  for (int32_t i = 0, e = moves.size(); i != e; ++i)
    if (double now = rate(moves[i], limit, keepProducts))
      queue.push({now, i, 0});
  int64_t round = 0;
  while (peak > limit && !queue.empty()) {
    Entry top = queue.top();
    queue.pop();
    if (top.round != round) {
      top.rate = rate(moves[top.move], limit, keepProducts);
      top.round = round;
      if (top.rate)
        queue.push(top);
      continue;
    }
    drop(moves[top.move]);
    evaluate(keepProducts);
    excess = memory.excess(limit);
    ++round;
  }
  return round != 0;
}

/// Drops values until the peak is within `limit`; false where that fails.
bool RematSearch::descend(int64_t limit, bool keepProducts) {
  evaluate(keepProducts);
  excess = memory.excess(limit);
  while (peak > limit && makeBestMoves(limit, keepProducts))
    ;
  // Products that are needed now, and were only kept by rule.
  evaluate(keepProducts);
  kept = memory.take(kept).kept;
  return peak <= limit;
}

/// Keeps again what fits into `limit`, what is dearest to compute first.
void RematSearch::giveBack(int64_t limit) {
  std::vector<int32_t> order;
  for (int32_t i = 0, e = graph.nodes.size(); i != e; ++i)
    if (memory.isRecomputed(i))
      order.push_back(i);
  llvm::stable_sort(order, [&](int32_t a, int32_t b) {
    return graph.nodes[a].seconds > graph.nodes[b].seconds;
  });
  for (int32_t node : order) {
    kept[node] = true;
    memory.evaluate(kept, /*keepProducts=*/false);
    if (memory.peak() <= limit && memory.seconds() <= seconds) {
      peak = memory.peak();
      seconds = memory.seconds();
    } else {
      kept[node] = false;
    }
  }
  evaluate(/*keepProducts=*/false);
}

void RematSearch::record() {
  evaluate(/*keepProducts=*/false);
  points.push_back(memory.take(kept));
}

void RematSearch::walk(bool keepProducts) {
  int64_t part = std::max<int64_t>(
      points.front().peakBytes / partsOf(graph.nodes.size()), 1);
  for (int64_t limit = peak - part; limit > 0;
       limit = std::min(limit, peak) - part) {
    bool reached = descend(limit, keepProducts);
    giveBack(reached ? limit : peak);
    record();
    if (!reached)
      return;
  }
}

RematFront RematSearch::run() {
  makeMoves();
  record();
  walk(/*keepProducts=*/true);
  walk(/*keepProducts=*/false);
  points.push_back(rematPerLayer(graph));
  kept = points.back().kept;
  evaluate(/*keepProducts=*/false);
  giveBack(peak);
  record();

  llvm::stable_sort(points, [](const RematPoint &a, const RematPoint &b) {
    return std::tie(a.seconds, a.peakBytes) < std::tie(b.seconds, b.peakBytes);
  });
  RematFront front;
  for (RematPoint &point : points)
    if (front.points.empty() || point.peakBytes < front.points.back().peakBytes)
      front.points.push_back(std::move(point));
  for (auto [number, point] : llvm::enumerate(front.points)) {
    bool repeatsProduct = false;
    for (auto [i, node] : llvm::enumerate(graph.nodes))
      repeatsProduct |= node.product && point.recomputed[i];
    if (!repeatsProduct)
      front.selective = number;
  }
  return front;
}

RematFront mlir::zero::rematFront(const RematGraph &graph) {
  return RematSearch(graph).run();
}

size_t RematFront::within(int64_t bytes) const {
  for (auto [number, point] : llvm::enumerate(points))
    if (point.peakBytes <= bytes)
      return number;
  return points.size() - 1;
}
