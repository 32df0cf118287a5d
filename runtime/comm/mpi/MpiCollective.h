//===- MpiCollective.h - Collectives by messages --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// all_gather, reduce_scatter and all_reduce among processes that share no
// memory: each rank sends every other what that needs, in slices. A rank adds
// up its part itself, in the order of the group with the code that threads use
// (Reduction.h), so the bits are the same; it does so while the next slices are
// on their way.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_MPI_MPICOLLECTIVE_H
#define ZERO_RT_COMM_MPI_MPICOLLECTIVE_H

#include "runtime/comm/mpi/Exchange.h"

#include <memory>

namespace zrt::mpi {

/// The group's messages on one stream, and room that its collectives use in
/// turn.
struct Communicator {
  MPI_Comm handle = MPI_COMM_NULL;
  std::vector<uint8_t> room;
};

class MpiCollective : public CollectiveCall {
public:
  /// The pieces have this rank's addresses at its `position`. `ranks` are the
  /// group's, for messages.
  MpiCollective(const MpiCollective &) = delete; // its lanes point to it
  MpiCollective(fb::Op op, bool average, std::vector<CollectivePiece> pieces,
                uint32_t position, std::vector<uint32_t> ranks,
                std::shared_ptr<Communicator> communicator,
                const std::atomic<bool> &aborted,
                std::chrono::nanoseconds limit, uint32_t threads);

  /// Throws Late when others take too long.
  void run(uint32_t position) override;

private:
  uint8_t *targetOf(const SliceSpan &span) const;
  const uint8_t *wholeSourceOf(const SliceSpan &span) const;
  const uint8_t *ownPartOf(const SliceSpan &span) const;
  uint8_t *roomOf(size_t lane, size_t slice) const;
  uint8_t *packed(const Slice &slice, uint8_t *room, bool whole) const;
  void unpack(const Slice &slice, const uint8_t *room) const;
  void makeReduceLanes();
  void makeGatherLanes();
  void reduceArrived();
  void reduceSlice(size_t index) const;
  void copyOwnChunks() const;
  void clearPadding() const;
  void move(std::vector<Lane> &lanes, int tag,
            const std::function<void()> &meanwhile);

  const fb::Op op;
  const bool average;
  const std::vector<CollectivePiece> pieces;
  const uint32_t position;
  const std::vector<uint32_t> ranks;
  const std::shared_ptr<Communicator> communicator;
  const std::atomic<bool> &aborted;
  const std::chrono::nanoseconds limit;
  const uint32_t threads; // see Waiting
  const bool atOnce;      // a small all_reduce: one message to each rank
  std::vector<std::vector<Slice>> slices; // what is of each position
  uint64_t messageRoom = 0;               // bytes of one message
  std::vector<Lane> reduceLanes, gatherLanes;
  size_t reduced = 0; // slices, in this run
};

} // namespace zrt::mpi

#endif // ZERO_RT_COMM_MPI_MPICOLLECTIVE_H
