//===- SchedulePlace.h - Starts and waits of collectives --------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Once the order of compute, the buckets and the dropped gathers are decided:
// places starts and waits under a limit of memory. See docs/scheduling.md.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_SCHEDULEPLACE_H
#define ZERO_LIB_SCHEDULE_SCHEDULEPLACE_H

#include "zero/Cost/StepGraph.h"

namespace mlir::zero {

/// Bytes by memory space. What lies on disk has no limit.
struct Bytes {
  int64_t device = 0, host = 0;

  static Bytes unlimited();
  /// Those of one buffer.
  static Bytes of(const StepBuffer &buffer) {
    return {buffer.space == MemorySpace::Device ? buffer.bytes : 0,
            buffer.space == MemorySpace::Host ? buffer.bytes : 0};
  }
  Bytes &operator+=(Bytes other) {
    device += other.device;
    host += other.host;
    return *this;
  }
  Bytes &operator-=(Bytes other) {
    device -= other.device;
    host -= other.host;
    return *this;
  }
  friend Bytes operator+(Bytes a, Bytes b) { return a += b; }
  bool isWithin(Bytes limit) const {
    return device <= limit.device && host <= limit.host;
  }
};

/// What is decided before collectives are placed.
struct Decisions {
  std::vector<int32_t> order; ///< tasks of the compute channel
  std::vector<std::vector<int32_t>> buckets;
  std::vector<int32_t> dropped;
};

/// Lists of numbers, one per node, in one array.
struct NodeLists {
  std::vector<int32_t> begin, items;

  llvm::ArrayRef<int32_t> operator[](int32_t node) const {
    return llvm::ArrayRef<int32_t>(items).slice(begin[node],
                                                begin[node + 1] - begin[node]);
  }
  /// From pairs (node, item).
  void assign(int32_t numNodes,
              llvm::ArrayRef<std::pair<int32_t, int32_t>> pairs);
};

/// A step under decisions. Nodes are the compute tasks, in their order, and
/// then the collectives, a bucket being one.
struct Problem {
  Problem(const StepGraph &graph, Decisions decisions);

  bool isFetch(int32_t node) const { return fetch[node - numCompute]; }

  /// `buffer` is alive no earlier than `node` starts.
  bool isBornBy(int32_t buffer, int32_t node) const {
    return firstUser[buffer] == node;
  }

  const StepGraph &graph;
  Decisions decisions;
  bool valid = true; ///< false: a bucket or the order contradicts a dependence
  int32_t numCompute = 0, numNodes = 0;
  std::vector<int32_t> task;   ///< by node; of a bucket: its first member
  std::vector<int32_t> nodeOf; ///< by task; -1 if dropped
  std::vector<int32_t> channel;
  std::vector<double> seconds;
  NodeLists next, previous;     ///< dependences
  NodeLists uses;               ///< buffers, each once
  std::vector<int32_t> numUses; ///< by buffer
  /// By buffer, the node that writes it first; -1 if it is alive from the
  /// beginning.
  std::vector<int32_t> firstUser;
  std::vector<int32_t> outside;  ///< buffers alive from the beginning
  std::vector<double> idealTime; ///< by place in the order, nothing stalls
  /// By collective: brings data to where it is used and does so just in time
  /// (an all-gather, a copy to the device), or takes it away as soon as it can
  /// (a reduction). What brings updated state back from the host ends a chain
  /// that takes data away, and takes no memory: it is not waited with either.
  std::vector<bool> fetch;
  /// By collective: first place in the order before which it may start, and the
  /// one before which it must be complete; `numCompute` is the end.
  std::vector<int32_t> ready, deadline;
  /// By collective that fetches: the place in the order before which what it
  /// brings can be used.
  std::vector<int32_t> need;
  /// By collective: how many are done before it, one after the other.
  std::vector<int32_t> depth;
  /// By channel, the collectives that fetch in the order of their need.
  std::vector<std::vector<int32_t>> fetches;

private:
  void makeNodes();
  void makeDependences();
  void countUses(llvm::ArrayRef<std::pair<int32_t, int32_t>> used);
  void makeWindows();
  void findFetches(llvm::ArrayRef<int32_t> sorted);
};

/// How to place.
struct PlacePolicy {
  Bytes limit;         ///< most bytes alive
  bool serial = false; ///< overlap nothing
  /// How many times the time a gather needs it may start ahead of its latest
  /// start; negative for as early as memory allows.
  double lead = 0;
  /// A gather whose time has come makes compute wait for a reduction that
  /// holds the memory it needs.
  bool fetchFirst = false;
  /// Reductions start when their channel is about to be free, the one needed
  /// first before others; otherwise as soon as they are ready.
  bool urgentFirst = false;
  /// Reductions start only if the next compute task fits beside them.
  bool lateDrains = false;
  /// Of what is ready, the longest chain to the end goes first, when its
  /// channel is about to be free.
  bool longestFirst = false;
};

/// A program and what it does.
struct Placement {
  bool feasible = false;
  Schedule schedule;
  double seconds = 0;
  Bytes peak;
  std::vector<double> ends; ///< by task, if it is the first of its bucket
};

/// Most bytes alive by place if nothing overlaps: 2p for the gap before the
/// p-th compute task, 2p + 1 for the task. The least memory at every place, of
/// the device.
std::vector<int64_t> leastMemory(const Problem &problem);

/// Most bytes of host memory alive if nothing overlaps.
int64_t leastHostMemory(const Problem &problem);

/// By collective that fetches, the first place (as in `leastMemory`) from which
/// its bytes fit beside the least memory and all gathers needed before it, but
/// no sooner than is in time.
std::vector<int32_t> findTargets(const Problem &problem,
                                 llvm::ArrayRef<int64_t> least,
                                 const PlacePolicy &policy);

/// Places all collectives. `least` is `leastMemory(problem)`.
Placement place(const Problem &problem, llvm::ArrayRef<int64_t> least,
                const PlacePolicy &policy);

/// Most bytes alive while a program for `problem` runs, as `simulate` counts.
Bytes peakBytes(const Problem &problem, const Schedule &schedule);

/// Delays starts of gathers and advances waits for reductions as far as no time
/// changes: the least memory of the same timing. Updates the peak.
void delayStarts(const Problem &problem, Placement &placement);

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// The compute tasks as the graph has them.
std::vector<int32_t> graphOrder(const StepGraph &graph);

/// Other orders worth a try, all of which respect the uses of buffers: tasks
/// that wait for reductions last, or as soon as these are done; memory freed
/// early; memory taken late; gradients early.
std::vector<std::vector<int32_t>> otherOrders(const StepGraph &graph);

/// How collectives are put into buckets.
struct BucketRule {
  enum Kind : uint8_t {
    None,
    Unit,    ///< all of a layer
    Share,   ///< until latency is less than `share` of the bucket's time
    Lateness ///< as large as makes nothing later than it has to be
  };
  Kind kind = None;
  double share = 0;
  int64_t bytes = 0; ///< the most
  /// A bucket takes at most one of `parts` parts of the memory that is free,
  /// under `limit`, while it is in use; 0 for no such limit.
  double parts = 0;
  int64_t limit = 0;
};

/// Buckets of collectives that neighbour each other in `problem`, which has
/// none.
std::vector<std::vector<int32_t>> makeBuckets(const Problem &problem,
                                              llvm::ArrayRef<int64_t> least,
                                              const BucketRule &rule);

/// A repeated gather and what dropping it costs.
struct Repeat {
  int32_t task;
  int32_t first, last; ///< places (see `leastMemory`) its bytes are held in
  int64_t bytes;
  double worth; ///< seconds saved per byte and second held
};

/// Repeated gathers, the most worth dropping first.
std::vector<Repeat> findRepeats(const Problem &problem);

/// The first of `repeats` whose bytes fit beside the least memory.
std::vector<int32_t> chooseDropped(llvm::ArrayRef<Repeat> repeats,
                                   llvm::ArrayRef<int64_t> least,
                                   int64_t limit);

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_SCHEDULEPLACE_H
