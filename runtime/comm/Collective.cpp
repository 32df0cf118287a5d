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
#include "runtime/core/Layout.h"

#include <algorithm>
#include <cstring>

using namespace zrt;

namespace {
/// A part of a tensor, in elements.
struct Range {
  uint64_t begin, end;
};
} // namespace

/// The elements whose shard a rank holds.
static Range chunkOf(const CollectivePiece &piece, uint32_t rank) {
  uint64_t begin = std::min(piece.elements, rank * piece.chunk);
  return {begin, std::min(piece.elements, begin + piece.chunk)};
}

/// The elements that a rank adds up in an all_reduce: equal parts that begin
/// on cache lines.
static Range partOf(const CollectivePiece &piece, uint32_t rank) {
  uint64_t ranks = piece.sources.size();
  uint64_t part = (piece.elements + ranks - 1) / ranks;
  part = (part + 15) / 16 * 16;
  uint64_t begin = std::min(piece.elements, rank * part);
  return {begin, std::min(piece.elements, begin + part)};
}

constexpr uint64_t blockSize = 1024;

/// Adds `count` elements of one source after another into `block`, from element
/// `begin` on, and divides by their number if `average`.
template <typename T>
static void sumSources(uint8_t *const *sources, uint64_t number, uint64_t begin,
                       uint64_t count, bool average, T *block) {
  std::copy_n(reinterpret_cast<const T *>(sources[0]) + begin, count, block);
  for (uint64_t source = 1; source < number; ++source) {
    const T *next = reinterpret_cast<const T *>(sources[source]) + begin;
    for (uint64_t i = 0; i < count; ++i)
      block[i] += next[i];
  }
  if (average)
    for (uint64_t i = 0; i < count; ++i)
      block[i] /= T(number);
}

/// Reduces a range of elements into `out`, which may be one of the sources: a
/// block is complete before it is stored.
template <typename T>
static void reduceRange(const CollectivePiece &piece, Range range, bool average,
                        T *out) {
  T block[blockSize], row[blockSize];
  uint64_t ranks = piece.sources.size(), rows = ranks / piece.inner;
  // One rank on its own storage has nothing to do.
  if (ranks == 1 && piece.sources[0] == piece.targets[0])
    return;
  for (uint64_t begin = range.begin; begin < range.end; begin += blockSize) {
    uint64_t count = std::min(blockSize, range.end - begin);
    uint8_t *const *sources = piece.sources.data();
    sumSources(sources, piece.inner, begin, count, average, block);
    for (uint64_t outer = 1; outer < rows; ++outer) {
      sumSources(sources + outer * piece.inner, piece.inner, begin, count,
                 average, row);
      for (uint64_t i = 0; i < count; ++i)
        block[i] += row[i];
    }
    if (average && rows > 1)
      for (uint64_t i = 0; i < count; ++i)
        block[i] /= T(rows);
    std::copy_n(block, count, out + (begin - range.begin));
  }
}

static void reduce(const CollectivePiece &piece, Range range, bool average,
                   uint8_t *out) {
  if (piece.type == fb::DType_F64)
    reduceRange(piece, range, average, reinterpret_cast<double *>(out));
  else
    reduceRange(piece, range, average, reinterpret_cast<float *>(out));
}

void Collective::allGather(uint32_t rank) const {
  for (const CollectivePiece &piece : pieces) {
    uint64_t size = elementBytes(piece.type);
    for (uint32_t from = 0; from < piece.sources.size(); ++from) {
      Range chunk = chunkOf(piece, from);
      uint64_t held = (chunk.end - chunk.begin) * size;
      uint8_t *to = piece.targets[rank] + from * piece.chunk * size;
      if (to != piece.sources[from])
        std::memcpy(to, piece.sources[from], held);
      std::memset(to + held, 0, piece.chunk * size - held);
    }
  }
}

void Collective::reduceScatter(uint32_t rank) const {
  for (const CollectivePiece &piece : pieces) {
    uint64_t size = elementBytes(piece.type);
    Range chunk = chunkOf(piece, rank);
    reduce(piece, chunk, average, piece.targets[rank]);
    uint64_t held = (chunk.end - chunk.begin) * size;
    std::memset(piece.targets[rank] + held, 0, piece.chunk * size - held);
  }
}

void Collective::reduceOwnPart(uint32_t rank) const {
  for (const CollectivePiece &piece : pieces) {
    Range part = partOf(piece, rank);
    uint64_t begin = part.begin * elementBytes(piece.type);
    reduce(piece, part, average, piece.targets[rank] + begin);
  }
}

void Collective::copyOtherParts(uint32_t rank) const {
  for (const CollectivePiece &piece : pieces) {
    for (uint32_t from = 0; from < piece.targets.size(); ++from) {
      if (from == rank)
        continue;
      Range part = partOf(piece, from);
      uint64_t begin = part.begin * elementBytes(piece.type);
      uint64_t bytes = part.end * elementBytes(piece.type) - begin;
      std::memcpy(piece.targets[rank] + begin, piece.targets[from] + begin,
                  bytes);
    }
  }
}

void Collective::run(uint32_t rank) const {
  barrier.wait(); // every source is complete, every target free
  if (op == fb::Op_AllGather) {
    allGather(rank);
  } else if (op == fb::Op_ReduceScatter) {
    reduceScatter(rank);
  } else {
    reduceOwnPart(rank);
    barrier.wait();
    copyOtherParts(rank);
  }
  barrier.wait(); // no source is read any more
}
