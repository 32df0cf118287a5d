//===- EmitObject.h - LLVM IR to an ELF shared object -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last step of kernel compilation, private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_EMITOBJECT_H
#define ZERO_LIB_LOWERING_EMITOBJECT_H

#include "zero/Lowering/Kernels.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::zero {

/// Optimizes `module` for `target`, adds to each function NAME.body of `names`
/// (pointers to buffers in, nothing out) an entry `void NAME(void **)`, and
/// links an ELF shared object. Errors are emitted at `loc`.
LogicalResult emitSharedObject(llvm::Module &module,
                               llvm::ArrayRef<std::string> names,
                               const KernelTarget &target, Location loc,
                               std::string &sharedObject);

/// Runs LLVM's passes at -O3.
void optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_EMITOBJECT_H
