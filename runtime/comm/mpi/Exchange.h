//===- Exchange.h - Messages between the ranks of a group -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank has a lane to and one from each other rank of its group. A lane
// moves a row of slices, a few at a time.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_MPI_EXCHANGE_H
#define ZERO_RT_COMM_MPI_EXCHANGE_H

#include "runtime/comm/mpi/Slices.h"
#include "runtime/comm/mpi/Waiting.h"

#include <functional>
#include <vector>

namespace zrt::mpi {

/// Messages of a lane that are under way at the same time.
constexpr size_t laneDepth = 3;

struct Lane {
  Lane(uint32_t peer, bool sends, const std::vector<Slice> &slices)
      : peer(peer), sends(sends), slices(&slices) {}

  uint32_t peer; // position
  bool sends;
  const std::vector<Slice> *slices;
  /// Where a slice is sent from, once it is there, or received to.
  std::function<uint8_t *(size_t slice)> place;
  /// After a slice has arrived, or has left; may be empty.
  std::function<void(size_t slice)> done;
  /// Slices that may be under way now or be done; empty: all.
  std::function<size_t()> allowed;

  size_t posted = 0, finished = 0;
  MPI_Request requests[laneDepth];

  bool isDone() const { return finished == slices->size(); }
};

/// Moves all slices of all lanes, and calls `meanwhile` (may be empty) when the
/// first are under way. Throws Error and Aborted; the positions that have not
/// sent or taken theirs in time, if there are some.
std::vector<uint32_t> exchange(MPI_Comm communicator, int tag,
                               std::vector<Lane> &lanes, Waiting waiting,
                               const std::function<void()> &meanwhile = {});

} // namespace zrt::mpi

#endif // ZERO_RT_COMM_MPI_EXCHANGE_H
