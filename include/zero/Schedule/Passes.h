//===- Passes.h - the scheduling passes -------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declarations and registration of the passes of Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_PASSES_H
#define ZERO_SCHEDULE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::zero {

/// A memory budget that nobody has given: that of the machine where one is
/// named, else none.
constexpr int64_t kUnsetMemory = -1;

/// Of a module: the most bytes of host memory that one rank holds at a time,
/// where it holds any; see kPlannedPeakAttr for those of the device.
constexpr StringLiteral kPlannedHostPeakAttr = "zero.planned_host_peak";

/// Largest bucket that the scheduler makes unless an option says otherwise.
constexpr int64_t kDefaultScheduleBucketBytes = int64_t(256) << 20;

/// What is computed again in the backward pass; see `train-remat`.
enum class RematMode { None, Selective, Full, Budget };

#define GEN_PASS_DECL
#include "zero/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "zero/Schedule/Passes.h.inc"

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_PASSES_H
