//===- Passes.h - The autodiff passes ---------------------------*- C++ -*-===//
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

#ifndef ZERO_AUTODIFF_PASSES_H
#define ZERO_AUTODIFF_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::train {

#define GEN_PASS_DECL
#include "zero/Autodiff/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "zero/Autodiff/Passes.h.inc"

} // namespace mlir::train

#endif // ZERO_AUTODIFF_PASSES_H
