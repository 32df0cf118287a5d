//===- ScheduleBound.cpp - What no schedule can beat ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A channel is busy for the sum of its tasks; before its first one comes what
// that depends on, after its last one what depends on that.
//
//===----------------------------------------------------------------------===//

#include "ScheduleSearch.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

using namespace mlir::zero;

namespace {
/// Load of a channel, and the least that comes before and after any of its
/// tasks.
struct Load {
  double seconds = 0, saved = 0, latency = 0;
  double head = std::numeric_limits<double>::max(), tail = head;
};
} // namespace

/// By task, the longest chain of tasks that must be done before it begins.
static std::vector<double> longestBefore(const NodeLists &previous,
                                         llvm::ArrayRef<int32_t> sorted,
                                         llvm::ArrayRef<double> seconds) {
  std::vector<double> head(seconds.size(), 0);
  for (int32_t node : sorted)
    for (int32_t before : previous[node])
      head[node] = std::max(head[node], head[before] + seconds[before]);
  return head;
}

double mlir::zero::lowerBound(const StepGraph &graph,
                              const SchedulerOptions &options) {
  Problem problem(graph, {graphOrder(graph), {}, {}});
  // Nodes in the order of the graph, and the reverse.
  std::vector<int32_t> sorted;
  std::vector<double> seconds(problem.numNodes, 0);
  std::vector<Load> loads(graph.channels.size());
  for (auto [number, task] : llvm::enumerate(graph.tasks)) {
    int32_t node = problem.nodeOf[number];
    sorted.push_back(node);
    // A repeated gather need not happen, nor what serves it.
    if (options.keepGathered && (task.repeats >= 0 || task.serves >= 0))
      continue;
    seconds[node] = task.seconds;
    Load &load = loads[task.channel];
    load.seconds += task.seconds;
    if (options.bucket && task.channel != 0) {
      load.saved += task.latency;
      load.latency = std::max(load.latency, task.latency);
    }
  }
  std::vector<double> head = longestBefore(problem.previous, sorted, seconds);
  std::reverse(sorted.begin(), sorted.end());
  std::vector<double> tail = longestBefore(problem.next, sorted, seconds);

  double bound = 0;
  for (int32_t node : sorted) {
    if (seconds[node] <= 0)
      continue;
    bound = std::max(bound, head[node] + seconds[node] + tail[node]);
    Load &load = loads[problem.channel[node]];
    load.head = std::min(load.head, head[node]);
    load.tail = std::min(load.tail, tail[node]);
  }
  for (const Load &load : loads)
    if (load.seconds > 0)
      bound = std::max(bound, load.head + load.seconds - load.saved +
                                  load.latency + load.tail);
  return bound;
}
