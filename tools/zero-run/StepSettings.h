//===- StepSettings.h - Flags as settings of the step -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What zero-run's flags mean to the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_STEPSETTINGS_H
#define ZERO_TOOLS_ZERO_RUN_STEPSETTINGS_H

#include "../zero-compile/Compile.h"
#include "RunOptions.h"

#include "zero/Import/Import.h"

namespace zero_tools {

/// How the training step is made; its labels are the data's affair.
mlir::train::TrainStepOptions trainStepOptions(const RunOptions &options);

/// The same of a model that computes gradients itself, whose optimizer `found`
/// is, if it says one: flags and config go before it.
mlir::train::TrainStepOptions
trainStepOptions(const RunOptions &options,
                 const mlir::zero::FoundTraining &found);

/// What --memory says; nothing without it. Throws std::runtime_error.
std::optional<int64_t> budgetOf(const RunOptions &options);

/// The same of --host-memory.
std::optional<int64_t> hostBudgetOf(const RunOptions &options);

/// How a step is partitioned and scheduled.
CompileOptions compileOptions(const RunOptions &options);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_STEPSETTINGS_H
