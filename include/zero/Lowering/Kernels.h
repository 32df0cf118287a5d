//===- Kernels.h - Compilation of kernels to machine code -------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From functions on tensors with the attribute `plan.kernel` to an ELF shared
// object with one function `void NAME(void **buffers)` each, or `void NAME(void
// **buffers, int64_t begin, int64_t end)`.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LOWERING_KERNELS_H
#define ZERO_LOWERING_KERNELS_H

#include "dialects/Plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::zero {

/// Unit attribute of a function on tensors that is compiled as a kernel.
using plan::kKernelAttr;

/// Array attribute of such a function: for each result the argument whose
/// storage it takes over, or -1. Absent: no result is in place.
inline constexpr llvm::StringLiteral kTiedAttr = "plan.tied";

/// Unit attribute of kernels that the host's processor runs, and what compiling
/// them adds to those that can be run in parts.
using plan::kHostKernelAttr;
using plan::kSplitAttr;

/// The processor that kernels are compiled for.
struct KernelTarget {
  std::string cpu;                         ///< LLVM's name, e.g. "znver4"
  llvm::SmallVector<std::string> features; ///< LLVM's names, e.g. "avx512f"

  /// The processor of this machine.
  static KernelTarget host();

  /// A processor by LLVM's name with its default features; emits an error at
  /// `loc` when LLVM knows no such x86-64 processor. "native" is the host.
  static FailureOr<KernelTarget> named(llvm::StringRef cpu, Location loc);
};

/// Registers what `compileKernels` and the passes of this folder need of the
/// upstream dialects: their bufferization and their translation to LLVM IR.
void registerKernelDialects(DialectRegistry &registry);

/// Adds the passes that turn kernels on tensors into the LLVM dialect; with
/// `expandHalf` for a processor that cannot convert f16.
void buildKernelPipeline(OpPassManager &pm, bool expandHalf = false);

/// Registers `buildKernelPipeline` as --kernel-to-llvm-pipeline.
void registerKernelPipeline();

/// Compiles every function of `module` that carries `plan.kernel` into
/// `sharedObject`: an ELF shared object whose only undefined symbols are libm's
/// and libc's. Each kernel NAME becomes `void NAME(void **buffers)`; the
/// buffers are the operands in order, then the results that are not tied,
/// contiguous and row-major. A kernel of the host that can be run in parts
/// becomes `void NAME(void **buffers, int64_t begin, int64_t end)`, and its
/// function in `module` gets `plan.split`: calls on disjoint ranges that cover
/// [0, split) give the bits of one call. Nothing else of `module` changes.
LogicalResult compileKernels(ModuleOp module, const KernelTarget &target,
                             std::string &sharedObject);

} // namespace mlir::zero

#endif // ZERO_LOWERING_KERNELS_H
