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
#include "runtime/core/NarrowFloat.h"

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

static double widen(double value) { return value; }
static float widen(float value) { return value; }
static float widen(BFloat16 value) { return value.widen(); }
static float widen(Half value) { return value.widen(); }

static void round(double value, double &out) { out = value; }
static void round(float value, float &out) { out = value; }
static void round(float value, BFloat16 &out) { out = BFloat16::round(value); }
static void round(float value, Half &out) { out = Half::round(value); }

/// Adds `values` to `sum`, or starts it with them.
template <typename E, typename Sum>
static void accumulate(const E *values, uint64_t count, bool first, Sum *sum) {
  if (first)
    for (uint64_t i = 0; i < count; ++i)
      sum[i] = widen(values[i]);
  else
    for (uint64_t i = 0; i < count; ++i)
      sum[i] += widen(values[i]);
}

namespace {
/// Adds up elements of type E; narrow ones in f32, rounded where they are
/// stored.
template <typename E>
class Reduction {
public:
  Reduction(const CollectivePiece &piece, bool average)
      : piece(piece), average(average) {}

  /// Reduces a range into `out`, which may be one of the sources: a block is
  /// complete before it is stored.
  void run(Range range, E *out);

private:
  using Sum = decltype(widen(E()));
  void sumRow(uint64_t row, uint64_t begin, uint64_t count, E *out);
  void sumRows(uint64_t begin, uint64_t count, E *out);
  void divide(uint64_t count, uint64_t number);

  const CollectivePiece &piece;
  bool average;
  Sum sum[blockSize];
  E rowSum[blockSize];
};
} // namespace

template <typename E>
void Reduction<E>::divide(uint64_t count, uint64_t number) {
  for (uint64_t i = 0; average && i < count; ++i)
    sum[i] /= Sum(number);
}

/// The sum along the inner axis, one source after another.
template <typename E>
void Reduction<E>::sumRow(uint64_t row, uint64_t begin, uint64_t count,
                          E *out) {
  uint8_t *const *sources = piece.sources.data() + row * piece.inner;
  for (uint64_t source = 0; source < piece.inner; ++source)
    accumulate(reinterpret_cast<const E *>(sources[source]) + begin, count,
               /*first=*/source == 0, sum);
  divide(count, piece.inner);
  for (uint64_t i = 0; i < count; ++i)
    round(sum[i], out[i]);
}

/// The sum along both axes: of the rows' sums, rounded as one collective for
/// each axis would round them.
template <typename E>
void Reduction<E>::sumRows(uint64_t begin, uint64_t count, E *out) {
  uint64_t rows = piece.sources.size() / piece.inner;
  Sum total[blockSize];
  for (uint64_t row = 0; row < rows; ++row) {
    sumRow(row, begin, count, rowSum);
    accumulate(rowSum, count, /*first=*/row == 0, total);
  }
  std::copy_n(total, count, sum);
  divide(count, rows);
  for (uint64_t i = 0; i < count; ++i)
    round(sum[i], out[i]);
}

template <typename E>
void Reduction<E>::run(Range range, E *out) {
  // One rank on its own storage has nothing to do.
  if (piece.sources.size() == 1 && piece.sources[0] == piece.targets[0])
    return;
  bool oneRow = piece.sources.size() == piece.inner;
  for (uint64_t begin = range.begin; begin < range.end; begin += blockSize) {
    uint64_t count = std::min(blockSize, range.end - begin);
    E *to = out + (begin - range.begin);
    if (oneRow)
      sumRow(0, begin, count, to);
    else
      sumRows(begin, count, to);
  }
}

template <typename E>
static void reduceAs(const CollectivePiece &piece, Range range, bool average,
                     uint8_t *out) {
  Reduction<E>(piece, average).run(range, reinterpret_cast<E *>(out));
}

static void reduce(const CollectivePiece &piece, Range range, bool average,
                   uint8_t *out) {
  switch (piece.type) {
  case fb::DType_F64:
    return reduceAs<double>(piece, range, average, out);
  case fb::DType_BF16:
    return reduceAs<BFloat16>(piece, range, average, out);
  case fb::DType_F16:
    return reduceAs<Half>(piece, range, average, out);
  default:
    return reduceAs<float>(piece, range, average, out);
  }
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
