//===- Passes.h - Lowering passes -------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes from a partitioned step to the plan and from a kernel on tensors
// to loops on buffers.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LOWERING_PASSES_H
#define ZERO_LOWERING_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::zero {

#define GEN_PASS_DECL
#include "zero/Lowering/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "zero/Lowering/Passes.h.inc"

} // namespace mlir::zero

#endif // ZERO_LOWERING_PASSES_H
