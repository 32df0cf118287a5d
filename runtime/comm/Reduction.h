//===- Reduction.h - Sums over ranks --------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one function that adds up what ranks give, wherever it comes from: the
// memory of other ranks, or messages. It adds the values of an element in the
// order of the group and then divides by its size if it averages; bf16 and f16
// in f32, with one rounding at the end. Over two axes it is the reduction along
// the inner axis and then that along the outer one, each rounded.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_REDUCTION_H
#define ZERO_RT_COMM_REDUCTION_H

#include "runtime/zplan_generated.h"

#include <cstdint>

namespace zrt {

/// What is added up: one address for each rank of a group, of the first element
/// of something.
struct ReductionSources {
  fb::DType type;
  const uint8_t *const *addresses; // `count` of them
  uint64_t count;
  uint64_t inner; // ranks in a row along the inner axis; `count`: one axis
  bool average;
};

/// Reduces elements [begin, end) of the sources into `out`, which may be where
/// these elements of a source are.
void reduce(const ReductionSources &sources, uint64_t begin, uint64_t end,
            uint8_t *out);

} // namespace zrt

#endif // ZERO_RT_COMM_REDUCTION_H
