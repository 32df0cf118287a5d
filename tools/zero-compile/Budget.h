//===- Budget.h - The fastest plan within a budget --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whole plans of one step with several schedules, recomputations and places of
// its tensors.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_COMPILE_BUDGET_H
#define ZERO_TOOLS_ZERO_COMPILE_BUDGET_H

#include "Compile.h"

#include "zero/Cost/CostModel.h"

namespace zero_tools {

/// Most bytes of one rank, by memory space; negative: no limit.
struct Budgets {
  int64_t device = -1, host = -1;
};

/// The fastest plan of `module`, a training step, that is within `budgets`; it
/// is consumed. Recomputation and offload are as `options` says. On failure an
/// error has been emitted, which says how many bytes are missing.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
planWithin(mlir::ModuleOp module, const CompileOptions &options,
           const Budgets &budgets, const mlir::zero::CostModel &cost);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_COMPILE_BUDGET_H
