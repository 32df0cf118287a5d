//===- AttentionDropout.h - Dropout of attention's rows ---------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operation `dropout` of the train dialect on rows of probabilities, and
// its derivative. Numbers come from a counter: a row draws the same ones
// wherever and how often it is computed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_ATTENTIONDROPOUT_H
#define ZERO_RT_HOST_ATTENTIONDROPOUT_H

#include <cstdint>

namespace zrt {

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

#endif // ZERO_RT_HOST_ATTENTIONDROPOUT_H
