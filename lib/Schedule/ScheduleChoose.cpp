//===- ScheduleChoose.cpp - Buckets and kept gathers ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which collectives are issued together, and which gathers are not repeated.
//
//===----------------------------------------------------------------------===//

#include "SchedulePlace.h"
#include "ScheduleProfile.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

/// Bytes of a whole tensor: written by a gather, read by a reduction.
static int64_t wholeBytes(const StepGraph &graph, const StepTask &task) {
  int64_t read = 0, written = 0;
  for (int32_t buffer : task.reads)
    read += graph.buffers[buffer].bytes;
  for (int32_t buffer : task.writes)
    written += graph.buffers[buffer].bytes;
  return std::max(read, written);
}

namespace {
/// A bucket that grows.
struct Growing {
  std::vector<int32_t> members;
  int32_t ready = 0, deadline = 0;
  int64_t bytes = 0;
  double seconds = 0, latency = 0;
};
} // namespace

/// Whether `node` may join `bucket`, and should.
static bool joins(const Problem &problem, int32_t node, const Growing &bucket,
                  const BucketRule &rule) {
  const StepGraph &graph = problem.graph;
  const StepTask &task = graph.tasks[problem.task[node]];
  const StepTask &first = graph.tasks[bucket.members.front()];
  int32_t other = node - problem.numCompute;
  return task.kind == first.kind && task.bucketClass == first.bucketClass &&
         (!rule.sameUnit || (task.unit == first.unit && task.unit >= 0)) &&
         bucket.latency > rule.latencyShare * bucket.seconds &&
         bucket.bytes + wholeBytes(graph, task) <= rule.bytes &&
         std::max(bucket.ready, problem.ready[other]) <=
             std::min(bucket.deadline, problem.deadline[other]);
}

/// Appends buckets of `nodes`, which are on one channel and in the order in
/// which they will be issued.
static void bucketInOrder(const Problem &problem,
                          llvm::ArrayRef<int32_t> nodes,
                          const BucketRule &rule,
                          std::vector<std::vector<int32_t>> &buckets) {
  Growing bucket;
  auto close = [&] {
    if (bucket.members.size() > 1)
      buckets.push_back(bucket.members);
  };
  for (int32_t node : nodes) {
    int32_t number = problem.task[node], other = node - problem.numCompute;
    const StepTask &task = problem.graph.tasks[number];
    if (bucket.members.empty() || !joins(problem, node, bucket, rule)) {
      close();
      bucket = Growing();
      bucket.deadline = problem.numCompute;
    }
    bucket.members.push_back(number);
    bucket.ready = std::max(bucket.ready, problem.ready[other]);
    bucket.deadline = std::min(bucket.deadline, problem.deadline[other]);
    bucket.bytes += wholeBytes(problem.graph, task);
    bucket.latency = std::max(bucket.latency, task.latency);
    bucket.seconds += task.seconds - task.latency;
    if (bucket.members.size() == 1)
      bucket.seconds += task.latency;
  }
  close();
}

std::vector<std::vector<int32_t>>
mlir::zero::makeBuckets(const Problem &problem, const BucketRule &rule) {
  std::vector<std::vector<int32_t>> buckets;
  int32_t numCompute = problem.numCompute;
  std::vector<std::vector<int32_t>> drains(problem.graph.channels.size());
  for (int32_t node = numCompute; node != problem.numNodes; ++node)
    if (!problem.isFetch(node))
      drains[problem.channel[node]].push_back(node);
  for (std::vector<int32_t> &queue : drains) {
    llvm::stable_sort(queue, [&](int32_t a, int32_t b) {
      return problem.ready[a - numCompute] < problem.ready[b - numCompute];
    });
    bucketInOrder(problem, queue, rule, buckets);
  }
  for (const std::vector<int32_t> &queue : problem.fetches)
    bucketInOrder(problem, queue, rule, buckets);
  return buckets;
}

//===----------------------------------------------------------------------===//
// Kept gathers
//===----------------------------------------------------------------------===//

std::vector<Repeat> mlir::zero::findRepeats(const Problem &problem) {
  const StepGraph &graph = problem.graph;
  int32_t numCompute = problem.numCompute;
  // Places of the last use of each buffer.
  std::vector<int32_t> lastUse(graph.buffers.size(), -1);
  for (int32_t node = 0; node != problem.numNodes; ++node) {
    int32_t place = node < numCompute ? 2 * node + 1
                                      : 2 * problem.ready[node - numCompute];
    for (int32_t buffer : problem.uses[node])
      lastUse[buffer] = std::max(lastUse[buffer], place);
  }
  std::vector<Repeat> repeats;
  for (int32_t task = 0, e = graph.tasks.size(); task != e; ++task) {
    int32_t earlier = graph.tasks[task].repeats, node = problem.nodeOf[task];
    if (earlier < 0 || node < 0)
      continue;
    Repeat repeat{task, 2 * numCompute, 0, 0, 0};
    for (int32_t buffer : graph.tasks[earlier].writes) {
      repeat.first = std::min(repeat.first, lastUse[buffer] + 1);
      repeat.bytes += graph.buffers[buffer].bytes;
    }
    repeat.last = 2 * problem.deadline[node - numCompute];
    int32_t from = std::min(repeat.first / 2, numCompute);
    double held = problem.idealTime[repeat.last / 2] - problem.idealTime[from];
    repeat.worth = graph.tasks[task].seconds /
                   (std::max(held, 1e-9) * std::max<int64_t>(repeat.bytes, 1));
    repeats.push_back(repeat);
  }
  llvm::stable_sort(repeats, [](const Repeat &a, const Repeat &b) {
    return a.worth > b.worth;
  });
  return repeats;
}

std::vector<int32_t>
mlir::zero::chooseDropped(llvm::ArrayRef<Repeat> repeats,
                          llvm::ArrayRef<int64_t> least, int64_t limit) {
  MemoryProfile profile(least);
  std::vector<int32_t> dropped;
  for (const Repeat &repeat : repeats) {
    if (profile.max(repeat.first, repeat.last) + repeat.bytes > limit)
      continue;
    profile.add(repeat.first, repeat.last, repeat.bytes);
    dropped.push_back(repeat.task);
  }
  llvm::sort(dropped);
  return dropped;
}
