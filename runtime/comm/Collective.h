//===- Collective.h - Collectives among rank threads ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// all_gather, reduce_scatter and all_reduce in shared memory.
//
// A reduction adds the ranks' values of an element in the order 0, 1, ... N-1
// and then divides by N if it averages. Both reductions use one function for
// it, so that their bits agree, however tensors are put into buckets.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_COLLECTIVE_H
#define ZERO_RT_COMM_COLLECTIVE_H

#include "runtime/comm/Barrier.h"
#include "runtime/zplan_generated.h"

#include <cstdint>
#include <vector>

namespace zrt {

/// One tensor of a collective's bucket; the addresses are by rank.
struct CollectivePiece {
  fb::DType type;
  uint64_t elements; // of the whole tensor
  uint64_t chunk;    // of one rank
  std::vector<uint8_t *> sources;
  std::vector<uint8_t *> targets;
};

class Collective {
public:
  Collective(fb::Op op, bool average, std::vector<CollectivePiece> pieces)
      : op(op), average(average), pieces(std::move(pieces)) {}

  /// This rank's part; returns when no rank reads or writes for it any more.
  void run(uint32_t rank, Barrier &barrier) const;

  /// Bytes that a rank sends in the ring model, times the number of ranks.
  uint64_t bytesTimesRanks() const;
  /// The same for the padding that fills the last chunks.
  uint64_t paddingBytesTimesRanks() const;

private:
  void allGather(uint32_t rank) const;
  void reduceScatter(uint32_t rank) const;
  void reduceOwnPart(uint32_t rank) const;
  void copyOtherParts(uint32_t rank) const;

  fb::Op op;
  bool average;
  std::vector<CollectivePiece> pieces;
};

} // namespace zrt

#endif // ZERO_RT_COMM_COLLECTIVE_H
