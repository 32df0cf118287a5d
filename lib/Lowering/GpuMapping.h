//===- GpuMapping.h - From buffers to launches ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the mapping of kernels to a GPU joins the pipeline of kernels. Private
// to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_GPUMAPPING_H
#define ZERO_LIB_LOWERING_GPUMAPPING_H

#include "mlir/Pass/PassManager.h"

namespace mlir::zero {

/// Unit attribute of a kernel's last argument if it is scratch memory.
inline constexpr llvm::StringLiteral kScratchAttr = "plan.scratch";

/// Adds the passes that turn bufferized kernels (functions on memrefs with
/// linalg and loops) into functions of nothing but gpu.launch.
void addGpuMapping(OpPassManager &module);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_GPUMAPPING_H
