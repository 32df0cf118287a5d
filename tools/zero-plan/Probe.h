//===- Probe.h - Timing the commands of a plan ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a probe model and runs it on this machine, so that every command of
// its plan has both what it has to do and how long it took.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_PLAN_PROBE_H
#define ZERO_TOOLS_ZERO_PLAN_PROBE_H

#include "ProbeModel.h"

#include "zero/Cost/CostModel.h"

#include "llvm/Support/Error.h"

namespace mlir::zero {

/// One command, as planned and as timed.
struct ProbeSample {
  TaskKind kind = TaskKind::Compute;
  OpWork work;            ///< of compute
  int64_t wholeBytes = 0; ///< of a collective: the whole tensors
  double seconds = 0;     ///< median over steps, mean over ranks
};

/// Trains the probe for some steps at `stage` on `ranks` ranks of one thread,
/// nothing overlapped.
llvm::Expected<std::vector<ProbeSample>> runProbe(MLIRContext &context,
                                                  const ProbeShape &shape,
                                                  int64_t stage, int64_t ranks);

} // namespace mlir::zero

#endif // ZERO_TOOLS_ZERO_PLAN_PROBE_H
