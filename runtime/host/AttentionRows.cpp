//===- AttentionRows.cpp - Rows of attention's scores ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See AttentionRows.h. Each function is compiled twice, for processors with and
// without AVX2; they compute the same, as nothing is contracted or reordered.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/AttentionRows.h"

#include "runtime/core/NarrowFloat.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace zrt;

#define ALWAYS_INLINE inline __attribute__((always_inline))

/// Partial sums and maxima of a row.
static constexpr int64_t lanes = 16;
static constexpr float infinity = std::numeric_limits<float>::infinity();

/// exp of a number that is not positive, to two units in the last place; 0
/// below the logarithm of the smallest normal float. The reduction and the
/// polynomial are those of Cephes' expf.
static ALWAYS_INLINE float expOf(float x) {
  // Adding this leaves an integer in the last bits.
  constexpr float shift = 0x1.8p23f;
  float clamped = x < -88.0f ? -88.0f : x;
  float shifted = clamped * 1.44269504088896341f + shift;
  float n = shifted - shift;
  float r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  uint32_t power = (bitsOf(shifted) << 23) + 0x3F800000u;
  float result = p * floatOf(power);
  return x < -87.0f ? 0.0f : result;
}

template <typename Combine>
static ALWAYS_INLINE float joinLanes(float *partial, Combine combine) {
  for (int64_t width = lanes / 2; width > 0; width /= 2)
    for (int64_t lane = 0; lane < width; ++lane)
      partial[lane] = combine(partial[lane], partial[lane + width]);
  return partial[0];
}

static ALWAYS_INLINE float add(float a, float b) { return a + b; }
/// Not a number stays where it is second.
static ALWAYS_INLINE float larger(float a, float b) { return a > b ? a : b; }

static ALWAYS_INLINE float maxOf(const float *row, int64_t count) {
  float partial[lanes];
  for (float &lane : partial)
    lane = -infinity;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      partial[lane] = larger(row[i + lane], partial[lane]);
  for (int64_t lane = 0; i < count; ++i, ++lane)
    partial[lane] = larger(row[i], partial[lane]);
  return joinLanes(partial, larger);
}

static ALWAYS_INLINE float softmax(float *row, int64_t count) {
  float most = maxOf(row, count);
  if (most == -infinity) {
    for (int64_t i = 0; i < count; ++i)
      row[i] = row[i] == most ? 0.0f : row[i]; // not a number stays
    return -infinity;
  }
  float partial[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      float power = expOf(row[i + lane] - most);
      row[i + lane] = power;
      partial[lane] += power;
    }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    row[i] = expOf(row[i] - most);
    partial[lane] += row[i];
  }
  float sum = joinLanes(partial, add);
  float factor = 1.0f / sum;
  for (int64_t j = 0; j < count; ++j)
    row[j] *= factor;
  return most + std::log(sum);
}

static ALWAYS_INLINE void softmaxGrad(const float *probabilities, float *grad,
                                      int64_t count, float mean, float scale) {
  for (int64_t i = 0; i < count; ++i)
    grad[i] = probabilities[i] * (grad[i] - mean) * scale;
}

static ALWAYS_INLINE float dot(const float *lhs, const float *rhs,
                               int64_t count) {
  float partial[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      partial[lane] += lhs[i + lane] * rhs[i + lane];
  for (int64_t lane = 0; i < count; ++i, ++lane)
    partial[lane] += lhs[i] * rhs[i];
  return joinLanes(partial, add);
}

/// Blocks of four words that are drawn at a time: loops over fewer are unrolled
/// before they could become vectors.
static constexpr int64_t blocksDrawn = 32;
static constexpr int64_t wordsDrawn = 4 * blocksDrawn;

/// Words without their last eight bits of `blocksDrawn` blocks from `block`:
/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC 2011).
static ALWAYS_INLINE void drawNumbers(const Draw &draw, uint64_t block,
                                      uint32_t *numbers) {
  uint32_t c0[blocksDrawn], c1[blocksDrawn], c2[blocksDrawn], c3[blocksDrawn];
  for (int64_t lane = 0; lane < blocksDrawn; ++lane) {
    c0[lane] = uint32_t(block + uint64_t(lane));
    c1[lane] = uint32_t((block + uint64_t(lane)) >> 32);
    c2[lane] = uint32_t(draw.sample);
    c3[lane] = uint32_t(draw.sample >> 32);
  }
  uint32_t key0 = uint32_t(draw.key), key1 = uint32_t(draw.key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t lane = 0; lane < blocksDrawn; ++lane) {
      uint64_t first = uint64_t(c0[lane]) * 0xD2511F53u;
      uint64_t second = uint64_t(c2[lane]) * 0xCD9E8D57u;
      c0[lane] = uint32_t(second >> 32) ^ c1[lane] ^ key0;
      c1[lane] = uint32_t(second);
      c2[lane] = uint32_t(first >> 32) ^ c3[lane] ^ key1;
      c3[lane] = uint32_t(first);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int64_t lane = 0; lane < blocksDrawn; ++lane) {
    numbers[4 * lane] = c0[lane] >> 8;
    numbers[4 * lane + 1] = c1[lane] >> 8;
    numbers[4 * lane + 2] = c2[lane] >> 8;
    numbers[4 * lane + 3] = c3[lane] >> 8;
  }
}

static ALWAYS_INLINE void drop(const Draw &draw, uint64_t offset,
                               float *probabilities, float *dropped,
                               int64_t count) {
  uint32_t numbers[wordsDrawn];
  uint64_t block = offset / 4;
  // The first block may begin before the row.
  for (int64_t first = -int64_t(offset % 4); first < count;
       first += wordsDrawn, block += blocksDrawn) {
    drawNumbers(draw, block, numbers);
    int64_t end = std::min(first + wordsDrawn, count);
    for (int64_t i = std::max<int64_t>(first, 0); i < end; ++i) {
      bool stays = numbers[i - first] >= draw.bound;
      float probability = probabilities[i];
      probabilities[i] = stays ? probability : -probability;
      dropped[i] = stays ? probability * draw.factor : 0.0f;
    }
  }
}

static ALWAYS_INLINE void droppedGrad(const Draw &draw, const float *marked,
                                      float *grad, int64_t count, float mean,
                                      float scale) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = bitsOf(marked[i]);
    float probability = floatOf(bits & 0x7FFFFFFFu);
    float through = bits >> 31 ? 0.0f : grad[i] * draw.factor;
    grad[i] = probability * (through - mean) * scale;
  }
}

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
static bool isWide() {
  static const bool wide = __builtin_cpu_supports("avx2");
  return wide;
}
#else
#define WIDE
static bool isWide() { return false; }
#endif

static WIDE float softmaxWide(float *row, int64_t count) {
  return softmax(row, count);
}

static WIDE void softmaxGradWide(const float *probabilities, float *grad,
                                 int64_t count, float mean, float scale) {
  softmaxGrad(probabilities, grad, count, mean, scale);
}

static WIDE float dotWide(const float *lhs, const float *rhs, int64_t count) {
  return dot(lhs, rhs, count);
}

static WIDE void dropWide(const Draw &draw, uint64_t offset,
                          float *probabilities, float *dropped, int64_t count) {
  drop(draw, offset, probabilities, dropped, count);
}

static WIDE void droppedGradWide(const Draw &draw, const float *marked,
                                 float *grad, int64_t count, float mean,
                                 float scale) {
  droppedGrad(draw, marked, grad, count, mean, scale);
}

float zrt::softmaxRow(float *scores, int64_t count) {
  return isWide() ? softmaxWide(scores, count) : softmax(scores, count);
}

void zrt::softmaxGradRow(const float *probabilities, float *grad, int64_t count,
                         float mean, float scale) {
  if (isWide())
    softmaxGradWide(probabilities, grad, count, mean, scale);
  else
    softmaxGrad(probabilities, grad, count, mean, scale);
}

float zrt::dotRow(const float *lhs, const float *rhs, int64_t count) {
  return isWide() ? dotWide(lhs, rhs, count) : dot(lhs, rhs, count);
}

void zrt::dropRow(const Draw &draw, uint64_t offset, float *probabilities,
                  float *dropped, int64_t count) {
  if (isWide())
    dropWide(draw, offset, probabilities, dropped, count);
  else
    drop(draw, offset, probabilities, dropped, count);
}

void zrt::droppedGradRow(const Draw &draw, const float *marked, float *grad,
                         int64_t count, float mean, float scale) {
  if (isWide())
    droppedGradWide(draw, marked, grad, count, mean, scale);
  else
    droppedGrad(draw, marked, grad, count, mean, scale);
}
