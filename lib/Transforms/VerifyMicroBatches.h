//===- VerifyMicroBatches.h - steps of several micro-batches ----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of zero-verify about micro-batches.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_TRANSFORMS_VERIFYMICROBATCHES_H
#define ZERO_LIB_TRANSFORMS_VERIFYMICROBATCHES_H

#include "StepInfo.h"

namespace mlir::zero {

/// Checks the functions of `module` that read state, of any number of
/// micro-batches.
LogicalResult verifyMicroBatches(ModuleOp module, SymbolTable &symbols);

} // namespace mlir::zero

#endif // ZERO_LIB_TRANSFORMS_VERIFYMICROBATCHES_H
