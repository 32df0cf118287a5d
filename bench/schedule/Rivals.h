//===- Rivals.h - How others place collectives ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules by which other systems overlap communication, as far as they are
// published, on our step graphs and in our simulator. docs/scheduling.md says
// what each leaves out. Where a rule is not clear, the faster reading is taken.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_BENCH_SCHEDULE_RIVALS_H
#define ZERO_BENCH_SCHEDULE_RIVALS_H

#include "zero/Cost/StepGraph.h"

namespace mlir::zero {

/// FSDP2: one gather and one reduction a layer; gathers `depth` layers ahead of
/// compute; a reduction's input is freed when the next reduction starts.
Schedule scheduleFsdp2(const StepGraph &graph, int32_t depth);

/// DeepCompile: gathers as early as `memoryBytes` allow, fused with their
/// neighbours; the memory left keeps gathered parameters, the dearest to gather
/// first; reductions through a bucket that is used twice.
Schedule scheduleDeepCompile(const StepGraph &graph, int64_t memoryBytes);

/// Greedy bucketing: a bucket of gathers grows while the compute of the bucket
/// before hides it, one bucket ahead; reductions likewise.
Schedule scheduleGreedyBuckets(const StepGraph &graph);

} // namespace mlir::zero

#endif // ZERO_BENCH_SCHEDULE_RIVALS_H
