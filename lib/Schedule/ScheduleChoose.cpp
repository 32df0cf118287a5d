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
  double work = 0, latency = 0; ///< seconds; work comes without latency
  double need = 0;              ///< when its first member is needed
  /// Places looked at, and the most bytes alive there.
  int32_t first = 0, last = -1;
  int64_t highest = 0;
};

/// Makes buckets of collectives on one channel, in the order in which they are
/// issued; of reductions, in the opposite order and with time running
/// backwards: what is ready last is "needed" first.
class BucketMaker {
public:
  BucketMaker(const Problem &problem, llvm::ArrayRef<int64_t> least,
              llvm::ArrayRef<int32_t> nodes, bool backwards,
              const BucketRule &rule)
      : problem(problem), least(least), nodes(nodes), backwards(backwards),
        rule(rule) {}

  void run(std::vector<std::vector<int32_t>> &buckets);

private:
  const StepTask &taskOf(int32_t node) const {
    return problem.graph.tasks[problem.task[node]];
  }
  double needOf(int32_t node) const;
  bool mayJoin(int32_t node) const;
  bool fits(int32_t node);
  bool shouldJoin(int32_t node, double lateness) const;
  double make(double lateness);
  double leastLateness();

  const Problem &problem;
  llvm::ArrayRef<int64_t> least;
  llvm::ArrayRef<int32_t> nodes;
  bool backwards;
  const BucketRule &rule;
  Growing bucket;
  double busy = 0;      ///< seconds of the buckets before
  int32_t previous = 0; ///< where the bucket before is needed
  std::vector<std::vector<int32_t>> made;
};
} // namespace

/// When the channel has to be done with `node` so that compute never waits.
double BucketMaker::needOf(int32_t node) const {
  int32_t other = node - problem.numCompute;
  if (backwards)
    return problem.idealTime.back() - problem.idealTime[problem.ready[other]];
  return problem.idealTime[problem.deadline[other]];
}

bool BucketMaker::mayJoin(int32_t node) const {
  const StepTask &task = taskOf(node);
  const StepTask &first = problem.graph.tasks[bucket.members.front()];
  int32_t other = node - problem.numCompute;
  // A gather and its repetition in one bucket would only waste memory.
  return task.repeats < bucket.members.front() && task.kind == first.kind &&
         task.bucketClass == first.bucketClass &&
         bucket.bytes + wholeBytes(problem.graph, task) <= rule.bytes &&
         std::max(bucket.ready, problem.ready[other]) <=
             std::min(bucket.deadline, problem.deadline[other]);
}

/// Whether the bucket with `node` is small enough for the memory that is free
/// from when it is likely to begin to when its last member is used, or, of
/// reductions, while gradients wait for each other.
bool BucketMaker::fits(int32_t node) {
  if (rule.parts <= 0)
    return true;
  int32_t other = node - problem.numCompute;
  int32_t first = 2 * (backwards ? problem.ready[other] : previous);
  int32_t last = 2 * (backwards ? bucket.ready : problem.deadline[other]);
  // It only grows: each place is looked at once.
  auto look = [&](int32_t from, int32_t to) {
    for (int32_t place = from; place <= to; ++place)
      bucket.highest = std::max(bucket.highest, least[place]);
  };
  if (bucket.first > bucket.last) {
    look(first, last);
  } else {
    look(first, bucket.first - 1);
    look(bucket.last + 1, last);
  }
  bucket.first = first;
  bucket.last = std::max(last, bucket.last);
  int64_t bytes = bucket.bytes + wholeBytes(problem.graph, taskOf(node));
  return bytes * rule.parts <= rule.limit - bucket.highest;
}

bool BucketMaker::shouldJoin(int32_t node, double lateness) const {
  const StepTask &task = taskOf(node);
  switch (rule.kind) {
  case BucketRule::None:
    return false;
  case BucketRule::Unit:
    return task.unit >= 0 &&
           task.unit == problem.graph.tasks[bucket.members.front()].unit;
  case BucketRule::Share:
    return bucket.latency > rule.share * (bucket.latency + bucket.work);
  case BucketRule::Lateness:
    return busy + std::max(bucket.latency, task.latency) + bucket.work +
               task.seconds - task.latency <=
           bucket.need + lateness;
  }
  return false;
}

/// Makes the buckets. Returns by how much the latest is late.
double BucketMaker::make(double lateness) {
  made.clear();
  bucket = Growing();
  busy = 0;
  previous = 0;
  double latest = 0;
  auto close = [&] {
    busy += bucket.latency + bucket.work;
    previous = bucket.deadline;
    if (!bucket.members.empty())
      latest = std::max(latest, busy - bucket.need);
    if (bucket.members.size() > 1)
      made.push_back(bucket.members);
    bucket = Growing();
  };
  for (int32_t node : nodes) {
    int32_t other = node - problem.numCompute;
    if (!bucket.members.empty() &&
        !(mayJoin(node) && shouldJoin(node, lateness) && fits(node)))
      close();
    if (bucket.members.empty()) {
      bucket.deadline = problem.numCompute;
      bucket.need = needOf(node);
    }
    const StepTask &task = taskOf(node);
    bucket.members.push_back(problem.task[node]);
    bucket.ready = std::max(bucket.ready, problem.ready[other]);
    bucket.deadline = std::min(bucket.deadline, problem.deadline[other]);
    bucket.bytes += wholeBytes(problem.graph, task);
    bucket.latency = std::max(bucket.latency, task.latency);
    bucket.work += task.seconds - task.latency;
  }
  close();
  return latest;
}

/// Growing each bucket as far as it is not later than a limit is best for that
/// limit: fewer buckets cover more. So the least limit is found by halving.
double BucketMaker::leastLateness() {
  double high = make(0), low = 0;
  for (int step = 0; step != 12 && high - low > 1e-3 * high; ++step) {
    double middle = (low + high) / 2;
    double latest = make(middle);
    if (latest <= middle * (1 + 1e-9))
      high = latest;
    else
      low = middle;
  }
  return high;
}

void BucketMaker::run(std::vector<std::vector<int32_t>> &buckets) {
  make(rule.kind == BucketRule::Lateness ? leastLateness() * (1 + 1e-9) : 0);
  for (std::vector<int32_t> &members : made) {
    if (backwards)
      std::reverse(members.begin(), members.end());
    buckets.push_back(std::move(members));
  }
}

std::vector<std::vector<int32_t>>
mlir::zero::makeBuckets(const Problem &problem, llvm::ArrayRef<int64_t> least,
                        const BucketRule &rule) {
  std::vector<std::vector<int32_t>> buckets;
  int32_t numCompute = problem.numCompute;
  std::vector<std::vector<int32_t>> drains(problem.graph.channels.size());
  for (int32_t node = numCompute; node != problem.numNodes; ++node)
    if (!problem.isFetch(node))
      drains[problem.channel[node]].push_back(node);
  for (std::vector<int32_t> &queue : drains) {
    llvm::stable_sort(queue, [&](int32_t a, int32_t b) {
      return problem.ready[a - numCompute] > problem.ready[b - numCompute];
    });
    BucketMaker(problem, least, queue, true, rule).run(buckets);
  }
  for (const std::vector<int32_t> &queue : problem.fetches)
    BucketMaker(problem, least, queue, false, rule).run(buckets);
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
    int32_t place =
        node < numCompute ? 2 * node + 1 : 2 * problem.ready[node - numCompute];
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

std::vector<int32_t> mlir::zero::chooseDropped(llvm::ArrayRef<Repeat> repeats,
                                               llvm::ArrayRef<int64_t> least,
                                               int64_t limit) {
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
