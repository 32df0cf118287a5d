//===- Plan.h - The plan dialect --------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The executable form of a step: arenas with byte offsets, buffers, commands.
// See PlanOps.td for what each op means.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_PLAN_PLAN_H
#define DIALECTS_PLAN_PLAN_H

// GCC needs these two before the generated op headers.
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::plan {

/// Name of the stream that commands without one run on.
constexpr llvm::StringLiteral kComputeStream = "compute";

} // namespace mlir::plan

#include "dialects/Plan/PlanDialect.h.inc"
#include "dialects/Plan/PlanEnums.h.inc"
#include "dialects/Plan/PlanInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"

namespace mlir::plan {

/// Name of the unit attribute on functions that are compiled as kernels.
constexpr llvm::StringLiteral kKernelAttr = "plan.kernel";

/// Name of the unit attribute on kernels that the host's processor runs, in
/// host memory.
constexpr llvm::StringLiteral kHostKernelAttr = "plan.host";

/// Name of the integer attribute on kernels that may be run in parts: of
/// [0, N), each part being a range.
constexpr llvm::StringLiteral kSplitAttr = "plan.split";

/// What lies on a disk, or moves from or to it, lies in whole blocks of so many
/// bytes: disks are read and written past the system's cache (O_DIRECT).
constexpr int64_t kDiskBlockBytes = 4096;

/// Bytes of the elements of `type`, which has a static shape; an i1 takes one.
int64_t sizeInBytes(ShapedType type);

/// Bytes of one element of `type` in memory; an i1 takes one.
int64_t elementBytes(Type type);

} // namespace mlir::plan

#endif // DIALECTS_PLAN_PLAN_H
