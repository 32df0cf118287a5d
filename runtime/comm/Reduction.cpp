//===- Reduction.cpp - Sums over ranks ------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Reduction.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Reduction.h"
#include "runtime/core/NarrowFloat.h"

#include <algorithm>

using namespace zrt;

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
  explicit Reduction(const ReductionSources &sources) : sources(sources) {}

  /// A block is complete before it is stored.
  void run(uint64_t begin, uint64_t end, E *out);

private:
  using Sum = decltype(widen(E()));
  void sumRow(uint64_t row, uint64_t begin, uint64_t count, E *out);
  void sumRows(uint64_t begin, uint64_t count, E *out);
  void divide(uint64_t count, uint64_t number);

  const ReductionSources &sources;
  Sum sum[blockSize];
  E rowSum[blockSize];
};
} // namespace

template <typename E>
void Reduction<E>::divide(uint64_t count, uint64_t number) {
  for (uint64_t i = 0; sources.average && i < count; ++i)
    sum[i] /= Sum(number);
}

/// The sum along the inner axis, one source after another.
template <typename E>
void Reduction<E>::sumRow(uint64_t row, uint64_t begin, uint64_t count,
                          E *out) {
  const uint8_t *const *addresses = sources.addresses + row * sources.inner;
  for (uint64_t source = 0; source < sources.inner; ++source)
    accumulate(reinterpret_cast<const E *>(addresses[source]) + begin, count,
               /*first=*/source == 0, sum);
  divide(count, sources.inner);
  for (uint64_t i = 0; i < count; ++i)
    round(sum[i], out[i]);
}

/// The sum along both axes: of the rows' sums, rounded as one collective for
/// each axis would round them.
template <typename E>
void Reduction<E>::sumRows(uint64_t begin, uint64_t count, E *out) {
  uint64_t rows = sources.count / sources.inner;
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
void Reduction<E>::run(uint64_t begin, uint64_t end, E *out) {
  bool oneRow = sources.count == sources.inner;
  for (uint64_t at = begin; at < end; at += blockSize) {
    uint64_t count = std::min(blockSize, end - at);
    E *to = out + (at - begin);
    if (oneRow)
      sumRow(0, at, count, to);
    else
      sumRows(at, count, to);
  }
}

template <typename E>
static void reduceAs(const ReductionSources &sources, uint64_t begin,
                     uint64_t end, uint8_t *out) {
  Reduction<E>(sources).run(begin, end, reinterpret_cast<E *>(out));
}

void zrt::reduce(const ReductionSources &sources, uint64_t begin, uint64_t end,
                 uint8_t *out) {
  switch (sources.type) {
  case fb::DType_F64:
    return reduceAs<double>(sources, begin, end, out);
  case fb::DType_BF16:
    return reduceAs<BFloat16>(sources, begin, end, out);
  case fb::DType_F16:
    return reduceAs<Half>(sources, begin, end, out);
  default:
    return reduceAs<float>(sources, begin, end, out);
  }
}
