//===- EmitPtx.h - LLVM IR to PTX -------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last step of the compilation of device kernels, private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_EMITPTX_H
#define ZERO_LIB_LOWERING_EMITPTX_H

#include "zero/Lowering/Kernels.h"

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::zero {

/// LLVM's data layout of the GPU of `target`: a translation to LLVM IR aligns
/// accesses by it.
std::string getDeviceLayout(const KernelTarget &target, Location loc);

/// Optimizes `module`, whose entries have the calling convention PTX_Kernel,
/// for the GPU of `target` and prints it as PTX. Errors are emitted at `loc`.
LogicalResult emitPtx(llvm::Module &module, const KernelTarget &target,
                      Location loc, std::string &ptx);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_EMITPTX_H
