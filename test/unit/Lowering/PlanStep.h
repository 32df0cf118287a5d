//===- PlanStep.h - A step with collectives in flight -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps of ZeRO stage 3 for tests of plans, scheduled by hand: every gather is
// begun one layer early, every reduction is awaited one layer late.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_LOWERING_PLANSTEP_H
#define ZERO_TEST_UNIT_LOWERING_PLANSTEP_H

#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

/// The step of `layers` square products on 4 ranks; `hsdp`: on 2 replicas of 4.
std::string makeStep(int layers, bool hsdp);

/// A module with the allocated program of `step`, and the dialects loaded into
/// `context`. Null after an error.
mlir::OwningOpRef<mlir::ModuleOp> makePlan(const std::string &step,
                                           mlir::MLIRContext &context);

/// The only program of `module`.
mlir::plan::ProgramOp programOf(mlir::ModuleOp module);

#endif // ZERO_TEST_UNIT_LOWERING_PLANSTEP_H
