//===- Collective.h - Collectives among rank threads ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// all_gather, reduce_scatter and all_reduce in shared memory, among the ranks
// of one group; a rank is known by its position in the group.
//
// A reduction adds the ranks' values of an element in the order of the group
// and then divides by its size if it averages; bf16 and f16 in f32, with one
// rounding at the end. Both reductions use one function for it, so that their
// bits agree, however tensors are put into buckets. Over two axes it is the
// reduction along the inner axis and then that along the outer one.
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

class Collective {
public:
  /// `barrier` is the group's on the collective's stream.
  Collective(fb::Op op, bool average, std::vector<CollectivePiece> pieces,
             Barrier &barrier)
      : op(op), average(average), pieces(std::move(pieces)), barrier(barrier) {}

  /// This rank's part; returns when no rank reads or writes for it any more.
  void run(uint32_t rank) const;

private:
  void allGather(uint32_t rank) const;
  void reduceScatter(uint32_t rank) const;
  void reduceOwnPart(uint32_t rank) const;
  void copyOtherParts(uint32_t rank) const;

  fb::Op op;
  bool average;
  std::vector<CollectivePiece> pieces;
  Barrier &barrier;
};

} // namespace zrt

#endif // ZERO_RT_COMM_COLLECTIVE_H
