//===- Plan.h - From a partitioned step to a .zplan -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last part of the compiler: a step function that the ZeRO passes have
// partitioned becomes a program of commands, and that a file for the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LOWERING_PLAN_H
#define ZERO_LOWERING_PLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include <string>

namespace mlir::zero {

class CostModel;
struct KernelTarget;

/// Adds the passes from a partitioned step to an allocated `plan.program`:
/// plan-bound-inputs, plan-outline-kernels, plan-lower, plan-allocate,
/// zero-verify; with `fuseEpilogues`, for a GPU, plan-fuse-epilogues before the
/// allocation.
void buildPlanPipeline(OpPassManager &pm, bool fuseEpilogues = false);

/// Registers buildPlanPipeline as --plan-pipeline.
void registerPlanPipeline();

/// Compiles the kernels of `module` for `target` and writes its program in the
/// .zplan format (runtime/zplan.fbs) to `bytes`. The module must hold exactly
/// one allocated `plan.program`; emits an error otherwise. With `cost` the file
/// also says when each command is predicted to run.
LogicalResult writeZplan(ModuleOp module, const KernelTarget &target,
                         std::string &bytes, const CostModel *cost = nullptr);

} // namespace mlir::zero

#endif // ZERO_LOWERING_PLAN_H
