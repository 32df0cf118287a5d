//===- DeviceMath.h - Math functions of device code -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GPUs have no libm. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_DEVICEMATH_H
#define ZERO_LIB_LOWERING_DEVICEMATH_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::zero {

/// Gives the math functions that `module` uses and NVPTX has no instruction for
/// a body: powers of a constant by an integer here, all others from CUDA's
/// libdevice, which is looked for only then. Errors are emitted at `loc`.
LogicalResult linkDeviceMath(llvm::Module &module, Location loc);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_DEVICEMATH_H
