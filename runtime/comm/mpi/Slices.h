//===- Slices.h - A bucket in messages ------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors of a bucket, or the parts of them that concern one rank, as a row
// of messages of about the same size. All ranks cut alike, so that nobody has
// to say what a message holds.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_MPI_SLICES_H
#define ZERO_RT_COMM_MPI_SLICES_H

#include "runtime/comm/Collective.h"

namespace zrt::mpi {

/// Elements of one tensor, and where they are in the message.
struct SliceSpan {
  size_t piece;
  ElementRange range;
  uint64_t offset; // in bytes, a multiple of 64
};

struct Slice {
  std::vector<SliceSpan> spans;
  uint64_t bytes = 0;

  /// A message of one tensor is sent from where that is; others are packed.
  bool isPacked() const { return spans.size() > 1; }
};

/// The elements of a piece that a position is about.
using RangeOf = ElementRange (*)(const CollectivePiece &piece,
                                 uint32_t position);

/// Cuts what `rangeOf` says of all pieces into messages of at most `bytes`.
std::vector<Slice> cut(const std::vector<CollectivePiece> &pieces,
                       RangeOf rangeOf, uint32_t position, uint64_t bytes);

} // namespace zrt::mpi

#endif // ZERO_RT_COMM_MPI_SLICES_H
