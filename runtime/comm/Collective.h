//===- Collective.h - Collectives in memory that ranks share --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// all_gather, reduce_scatter and all_reduce among the ranks of one group, each
// of which can read the memory of the others: threads, or processes that share
// their arenas. A rank is known by its position in the group.
//
// Both reductions use one function (Reduction.h), so that their bits agree,
// however tensors are put into buckets.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_COLLECTIVE_H
#define ZERO_RT_COMM_COLLECTIVE_H

#include "runtime/comm/Barrier.h"
#include "runtime/zplan_generated.h"

#include <cstdint>
#include <vector>

namespace zrt {

/// One tensor of a collective's bucket; the addresses are by position.
struct CollectivePiece {
  fb::DType type;
  uint64_t elements; // of the whole tensor
  uint64_t chunk;    // of one rank
  std::vector<uint8_t *> sources;
  std::vector<uint8_t *> targets;
  /// Ranks in a row that lie along the innermost axis; all of a group over one
  /// axis. A reduction adds these first.
  uint64_t inner;
};

struct ElementRange {
  uint64_t begin, end;
};

/// The elements whose shard a rank holds.
ElementRange chunkOf(const CollectivePiece &piece, uint32_t position);
/// The elements that a rank adds up in an all_reduce: equal parts that begin
/// on cache lines.
ElementRange partOf(const CollectivePiece &piece, uint32_t position);
/// Whether a bucket has at most `bytes`.
bool isSmall(const std::vector<CollectivePiece> &pieces, uint64_t bytes);

/// A collective of a program in one group, executed once in each step.
class CollectiveCall {
public:
  virtual ~CollectiveCall() = default;

  /// The part of the rank at `position`; returns when no rank reads or writes
  /// for it any more. Throws Aborted when another rank has failed.
  virtual void run(uint32_t position) = 0;
};

class Collective : public CollectiveCall {
public:
  /// `barrier` is the group's on the collective's stream; it waits for `limit`.
  Collective(fb::Op op, bool average, std::vector<CollectivePiece> pieces,
             Barrier &barrier,
             std::chrono::nanoseconds limit = std::chrono::nanoseconds::max());

  /// Throws TimedOut as the barrier does.
  void run(uint32_t position) override;

private:
  void allGather(uint32_t rank) const;
  void reduceScatter(uint32_t rank) const;
  void allReduce(uint32_t rank);
  void allReduceAtOnce(uint32_t rank);
  void reduceOwnPart(uint32_t rank) const;
  void copyOtherParts(uint32_t rank) const;

  fb::Op op;
  bool average;
  std::vector<CollectivePiece> pieces;
  Barrier &barrier;
  std::chrono::nanoseconds limit;
  /// Of a small all_reduce, what each rank has added up; else empty.
  std::vector<std::vector<uint8_t>> sums;
};

} // namespace zrt

#endif // ZERO_RT_COMM_COLLECTIVE_H
