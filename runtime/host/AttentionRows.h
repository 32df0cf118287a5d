//===- AttentionRows.h - Rows of attention's scores -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What attention does between its products: a softmax, dropout and their
// gradients, a row at a time. The sums have a fixed order, so that all
// processors give the same bits; dropout draws by a counter, so that a row
// meets the same numbers wherever and how often it is computed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_ATTENTIONROWS_H
#define ZERO_RT_HOST_ATTENTIONROWS_H

#include <cstdint>

namespace zrt {

/// Replaces `count` scores by their softmax and returns the logarithm of the
/// sum of their exponentials. Scores that are all -infinity become zeros, and
/// the result is -infinity.
float softmaxRow(float *scores, int64_t count);

/// Replaces the gradient by the probabilities of one query, `grad`, by that by
/// its scores times `scale`; `mean` is the sum of the gradients weighted by the
/// probabilities.
void softmaxGradRow(const float *probabilities, float *grad, int64_t count,
                    float mean, float scale);

/// The sum of the products of two rows.
float dotRow(const float *lhs, const float *rhs, int64_t count);

/// What a sample draws, and what is done with it.
struct Draw {
  uint64_t key, sample;
  uint32_t bound; ///< numbers of 24 bits below it drop their element
  float factor;   ///< of the elements that stay
};

/// Puts `count` probabilities after dropout into `dropped`, which may be
/// `probabilities`; otherwise these get the sign bit where they are dropped.
/// The first one is element `offset` of the sample.
void dropRow(const Draw &draw, uint64_t offset, float *probabilities,
             float *dropped, int64_t count);

/// As softmaxGradRow, for probabilities with the marks of dropRow; `grad` is
/// the gradient by what it put into `dropped`.
void droppedGradRow(const Draw &draw, const float *marked, float *grad,
                    int64_t count, float mean, float scale);

} // namespace zrt

#endif // ZERO_RT_HOST_ATTENTIONROWS_H
