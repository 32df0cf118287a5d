//===- Pipelines.h - the ZeRO pipeline --------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of zero/Transforms and zero/Schedule in the order that makes a
// step of one rank.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PIPELINES_H
#define ZERO_PIPELINES_H

#include "zero/Schedule/Passes.h"
#include "zero/Transforms/Passes.h"

#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::zero {

/// What the pipeline is asked for.
struct ZeroOptions {
  /// ZeRO stage, 0 to 3.
  int64_t stage = 3;
  /// Number of ranks; without it, and without `grid`, the module's grid or one
  /// of 8 ranks.
  int64_t ranks = kUnsetRanks;
  /// Shape of the grid instead of a number of ranks.
  SmallVector<int64_t> grid;
  /// Axes of a grid of two that the state is cut over.
  ShardAxes shardAxes = ShardAxes::Inner;
  /// What the backward pass computes again, and for `Budget` the most bytes of
  /// values; see the pass `train-remat`.
  RematMode remat = RematMode::None;
  int64_t rematBytes = kUnsetMemory;
  /// Largest bucket; 0 for no limit.
  int64_t bucketBytes = kDefaultBucketBytes;
  /// Stage 3: keep a unit gathered that the backward needs at once. Where the
  /// schedule decides what stays gathered, this is part of it.
  bool keepAdjacent = true;
  /// What lives outside device memory: rules of the pass `zero-offload`, or
  /// alone "none", or "auto": what the budgets need; then whether there is a
  /// disk to use.
  std::vector<std::string> offload;
  bool offloadToDisk = false;
  /// Budget in bytes of one rank's host memory.
  int64_t hostMemoryBytes = kUnsetMemory;
  /// Whether collectives are scheduled at all; see the pass `zero-schedule` for
  /// the rest.
  bool schedule = true;
  int64_t memoryBytes = kUnsetMemory;
  std::string machine;
  bool prefetch = true, keepGathered = true, reorder = true, bucket = true;
};

/// Which decisions a schedule is made of.
enum class ScheduleMode { None, Prefetch, Keep, Reorder, Bucket, Joint };

/// "none", "prefetch", "keep", "reorder", "bucket" or "joint".
std::optional<ScheduleMode> parseScheduleMode(StringRef name);

/// Allows the decisions of `mode`, and only these; joint is all of them.
void setScheduleMode(ZeroOptions &options, ScheduleMode mode);

/// The first of the ZeRO passes: after them the module has symbols, a grid and
/// units, and is whole. They change nothing when run again.
void buildZeroPreparation(OpPassManager &pm, const ZeroOptions &options);

/// Adds the ZeRO passes to a pass manager over modules.
void buildZeroPipeline(OpPassManager &pm, const ZeroOptions &options);

/// Registers the pipeline as `zero-pipeline`.
void registerZeroPipelines();

} // namespace mlir::zero

#endif // ZERO_PIPELINES_H
