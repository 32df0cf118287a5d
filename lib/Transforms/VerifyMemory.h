//===- VerifyMemory.h - rules of where values lie ---------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of zero-verify.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_TRANSFORMS_VERIFYMEMORY_H
#define ZERO_LIB_TRANSFORMS_VERIFYMEMORY_H

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::zero {

/// Checks that the device computes and communicates on values in its memory and
/// the host on values in the host's, that transfers find values where they say,
/// and that state is assigned what lies where it does. Emits what is wrong.
LogicalResult verifyMemory(FunctionOpInterface func, SymbolTable &symbols);

} // namespace mlir::zero

#endif // ZERO_LIB_TRANSFORMS_VERIFYMEMORY_H
