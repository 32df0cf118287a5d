//===- AttentionDropout.cpp - Dropout of attention's rows -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See AttentionDropout.h. As in AttentionRows.cpp, each function is compiled
// for processors with and without AVX2.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/AttentionDropout.h"

#include "runtime/core/NarrowFloat.h"

#include <algorithm>

using namespace zrt;

#define ALWAYS_INLINE inline __attribute__((always_inline))

/// Blocks of four words that are drawn at a time.
static constexpr int64_t lanes = 16;
static constexpr int64_t wordsDrawn = 4 * lanes;

/// Words without their last eight bits of `lanes` blocks from `block`:
/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC 2011).
static ALWAYS_INLINE void drawNumbers(const Draw &draw, uint64_t block,
                                      uint32_t *numbers) {
  uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (int64_t lane = 0; lane < lanes; ++lane) {
    c0[lane] = uint32_t(block + uint64_t(lane));
    c1[lane] = uint32_t((block + uint64_t(lane)) >> 32);
    c2[lane] = uint32_t(draw.sample);
    c3[lane] = uint32_t(draw.sample >> 32);
  }
  uint32_t key0 = uint32_t(draw.key), key1 = uint32_t(draw.key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
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
  for (int64_t lane = 0; lane < lanes; ++lane) {
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
       first += wordsDrawn, block += lanes) {
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

static WIDE void dropWide(const Draw &draw, uint64_t offset,
                          float *probabilities, float *dropped, int64_t count) {
  drop(draw, offset, probabilities, dropped, count);
}

static WIDE void droppedGradWide(const Draw &draw, const float *marked,
                                 float *grad, int64_t count, float mean,
                                 float scale) {
  droppedGrad(draw, marked, grad, count, mean, scale);
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
