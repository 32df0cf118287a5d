//===- Passes.h - the ZeRO passes -------------------------------*- C++ -*-===//
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

#ifndef ZERO_TRANSFORMS_PASSES_H
#define ZERO_TRANSFORMS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::zero {

/// Largest bucket in bytes unless an option says otherwise.
constexpr int64_t kDefaultBucketBytes = 25 * 1024 * 1024;

/// Ranks of the grid that is made where nobody asked for one.
constexpr int64_t kDefaultRanks = 8;

/// A number of ranks that nobody has asked for.
constexpr int64_t kUnsetRanks = -1;

/// Axes of a grid of two that the state is cut over: the last (hybrid sharding)
/// or both.
enum class ShardAxes { Inner, All };

#define GEN_PASS_DECL
#include "zero/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "zero/Transforms/Passes.h.inc"

} // namespace mlir::zero

#endif // ZERO_TRANSFORMS_PASSES_H
