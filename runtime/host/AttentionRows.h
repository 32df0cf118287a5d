//===- AttentionRows.h - Rows of attention's scores -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What attention does between its products: masks, a softmax and its gradient,
// a row at a time. The sums have a fixed order, so that all processors give the
// same bits.
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

} // namespace zrt

#endif // ZERO_RT_HOST_ATTENTIONROWS_H
