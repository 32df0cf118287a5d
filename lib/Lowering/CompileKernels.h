//===- CompileKernels.h - Parts of kernel compilation -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the compilation of kernels for the host and for GPUs shares, private to
// this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_COMPILEKERNELS_H
#define ZERO_LIB_LOWERING_COMPILEKERNELS_H

#include "zero/Lowering/Kernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::zero {

/// The part of registerKernelDialects that only GPUs need.
void registerDeviceDialects(DialectRegistry &registry);

/// Loads what compilation needs into a context that may lack it.
void loadKernelDialects(MLIRContext *context);

/// A module with copies of the kernels of `module` that are `wanted`; `names`
/// gets their names. The copies are called NAME.body, which no function of libm
/// is.
OwningOpRef<ModuleOp>
cloneKernels(ModuleOp module, llvm::function_ref<bool(func::FuncOp)> wanted,
             llvm::SmallVectorImpl<std::string> &names);

/// Adds the passes from kernels on tensors to linalg and loops on buffers, with
/// at most `maxTemporaryBytes` of temporaries.
void addKernelsToBuffers(OpPassManager &pm, int64_t maxTemporaryBytes);

/// Adds the passes from those to the LLVM dialect of a processor; `expandHalf`
/// where it cannot convert f16.
void addKernelsToLLVM(OpPassManager &pm, bool expandHalf);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_COMPILEKERNELS_H
