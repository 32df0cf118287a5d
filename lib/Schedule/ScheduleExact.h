//===- ScheduleExact.h - Branch and bound for small steps -------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Places the collectives of a step of at most 64 nodes by branch and bound.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_SCHEDULEEXACT_H
#define ZERO_LIB_SCHEDULE_SCHEDULEEXACT_H

#include "SchedulePlace.h"

namespace mlir::zero {

/// Looks for a placement within `limit` bytes that takes less than `bound`
/// seconds; each state visited takes one from `statesLeft`, and the search ends
/// when none is left. If it ends before that, there is no such placement.
Placement placeExactly(const Problem &problem, Bytes limit, double bound,
                       int64_t &statesLeft);

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_SCHEDULEEXACT_H
