//===- Collective.cpp - Collectives among rank threads --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Collective.h. Every rank writes only its own targets: its shard, its copy
// of the whole, or in an all_reduce first the part it adds up and then, from
// the others, the rest.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Collective.h"
#include "runtime/comm/Reduction.h"
#include "runtime/core/Layout.h"
#include "runtime/core/Memory.h"

#include <algorithm>

using namespace zrt;

ElementRange zrt::chunkOf(const CollectivePiece &piece, uint32_t position) {
  uint64_t begin = std::min(piece.elements, position * piece.chunk);
  return {begin, std::min(piece.elements, begin + piece.chunk)};
}

ElementRange zrt::partOf(const CollectivePiece &piece, uint32_t position) {
  uint64_t ranks = piece.sources.size();
  uint64_t part = (piece.elements + ranks - 1) / ranks;
  part = (part + 15) / 16 * 16;
  uint64_t begin = std::min(piece.elements, position * part);
  return {begin, std::min(piece.elements, begin + part)};
}

/// Bytes of all elements, each piece on cache lines of its own.
static uint64_t bytesOf(const std::vector<CollectivePiece> &pieces) {
  uint64_t bytes = 0;
  for (const CollectivePiece &piece : pieces)
    bytes += (piece.elements * elementBytes(piece.type) + 63) / 64 * 64;
  return bytes;
}

bool zrt::isSmall(const std::vector<CollectivePiece> &pieces, uint64_t bytes) {
  return bytesOf(pieces) <= bytes;
}

/// Up to here meeting costs more than adding up: in an all_reduce each rank
/// adds up all of it.
static constexpr uint64_t smallBytes = 8 << 10;

Collective::Collective(fb::Op op, bool average,
                       std::vector<CollectivePiece> made, Barrier &barrier,
                       std::chrono::nanoseconds limit)
    : op(op), average(average), pieces(std::move(made)), barrier(barrier),
      limit(limit) {
  if (op == fb::Op_AllReduce && isSmall(pieces, smallBytes))
    sums.assign(pieces.empty() ? 0 : pieces[0].sources.size(),
                std::vector<uint8_t>(bytesOf(pieces)));
}

static void reducePiece(const CollectivePiece &piece, ElementRange range,
                        bool average, uint8_t *out) {
  // One rank on its own storage has nothing to do.
  if (piece.sources.size() == 1 && piece.sources[0] == piece.targets[0])
    return;
  reduce({piece.type, piece.sources.data(), piece.sources.size(), piece.inner,
          average},
         range.begin, range.end, out);
}

void Collective::allGather(uint32_t rank) const {
  for (const CollectivePiece &piece : pieces) {
    uint64_t size = elementBytes(piece.type);
    for (uint32_t from = 0; from < piece.sources.size(); ++from) {
      ElementRange chunk = chunkOf(piece, from);
      uint64_t held = (chunk.end - chunk.begin) * size;
      uint8_t *to = piece.targets[rank] + from * piece.chunk * size;
      if (to != piece.sources[from])
        copyBytes(to, piece.sources[from], held);
      clearBytes(to + held, piece.chunk * size - held);
    }
  }
}

void Collective::reduceScatter(uint32_t rank) const {
  for (const CollectivePiece &piece : pieces) {
    uint64_t size = elementBytes(piece.type);
    ElementRange chunk = chunkOf(piece, rank);
    reducePiece(piece, chunk, average, piece.targets[rank]);
    uint64_t held = (chunk.end - chunk.begin) * size;
    clearBytes(piece.targets[rank] + held, piece.chunk * size - held);
  }
}

void Collective::reduceOwnPart(uint32_t rank) const {
  for (const CollectivePiece &piece : pieces) {
    ElementRange part = partOf(piece, rank);
    uint64_t begin = part.begin * elementBytes(piece.type);
    reducePiece(piece, part, average, piece.targets[rank] + begin);
  }
}

void Collective::copyOtherParts(uint32_t rank) const {
  for (const CollectivePiece &piece : pieces) {
    for (uint32_t from = 0; from < piece.targets.size(); ++from) {
      if (from == rank)
        continue;
      ElementRange part = partOf(piece, from);
      uint64_t begin = part.begin * elementBytes(piece.type);
      uint64_t bytes = part.end * elementBytes(piece.type) - begin;
      copyBytes(piece.targets[rank] + begin, piece.targets[from] + begin,
                bytes);
    }
  }
}

/// Every rank adds up everything, aside: others still read the sources.
void Collective::allReduceAtOnce(uint32_t rank) {
  uint8_t *sum = sums[rank].data();
  for (const CollectivePiece &piece : pieces) {
    reducePiece(piece, {0, piece.elements}, average, sum);
    sum += (piece.elements * elementBytes(piece.type) + 63) / 64 * 64;
  }
  barrier.wait(limit); // no source is read any more
  sum = sums[rank].data();
  for (const CollectivePiece &piece : pieces) {
    uint64_t bytes = piece.elements * elementBytes(piece.type);
    if (piece.sources.size() > 1 || piece.sources[0] != piece.targets[0])
      copyBytes(piece.targets[rank], sum, bytes);
    sum += (bytes + 63) / 64 * 64;
  }
}

void Collective::allReduce(uint32_t rank) {
  reduceOwnPart(rank);
  barrier.wait(limit);
  copyOtherParts(rank);
  barrier.wait(limit); // no target is read any more
}

void Collective::run(uint32_t rank) {
  barrier.wait(limit); // every source is complete, every target free
  if (op == fb::Op_AllReduce && !sums.empty())
    return allReduceAtOnce(rank);
  if (op == fb::Op_AllReduce)
    return allReduce(rank);
  if (op == fb::Op_AllGather)
    allGather(rank);
  else
    reduceScatter(rank);
  barrier.wait(limit); // no source is read any more
}
