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
// **buffers, int64_t begin, int64_t end)`; for a GPU to PTX and the launches
// that each kernel is.
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
#include <array>
#include <cstdint>
#include <string>

namespace mlir::zero {

/// Unit attribute of a function on tensors that is compiled as a kernel.
using plan::kKernelAttr;

/// Array attribute of such a function: for each result the argument whose
/// storage it takes over, or -1. Absent: no result is in place.
inline constexpr llvm::StringLiteral kTiedAttr = "plan.tied";

/// Unit attribute of such a function whose last result is memory for
/// temporaries that may not fit on the stack.
inline constexpr llvm::StringLiteral kScratchResultAttr = "plan.scratch_result";

/// Unit attribute of kernels that the host's processor runs, and what compiling
/// them adds to those that can be run in parts.
using plan::kHostKernelAttr;
using plan::kSplitAttr;

/// The processors that kernels are compiled for.
struct KernelTarget {
  std::string cpu;                         ///< LLVM's name, e.g. "znver4"
  llvm::SmallVector<std::string> features; ///< LLVM's names, e.g. "avx512f"
  std::string gpu; ///< LLVM's name, e.g. "sm_90"; empty: `cpu` runs all kernels

  /// The processor of this machine.
  static KernelTarget host();

  /// "host", "host:CPU" or "cuda:sm_80", "cuda:sm_90", "cuda:sm_100": the GPU
  /// of a machine whose processor is this one. Emits an error at `loc`
  /// otherwise.
  static FailureOr<KernelTarget> parse(llvm::StringRef text, Location loc);

  /// What the .zplan says: "host:znver4", "cuda:sm_90".
  std::string str() const;

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

/// Compiles every function of `module` that carries `plan.kernel`, for a GPU
/// only those of them that carry `plan.host`, into `sharedObject`: an ELF
/// shared object whose only undefined symbols are libm's and libc's. Each
/// kernel NAME becomes `void NAME(void **buffers)`; the buffers are the
/// operands in order, then the results that are not tied, contiguous and
/// row-major. A kernel of the host that can be run in parts becomes `void
/// NAME(void **buffers, int64_t begin, int64_t end)`, and its function in
/// `module` gets `plan.split`: calls on disjoint ranges that cover [0, split)
/// give the bits of one call. Nothing else of `module` changes. No kernel:
/// `sharedObject` stays empty.
LogicalResult compileKernels(ModuleOp module, const KernelTarget &target,
                             std::string &sharedObject);

/// A launch of one function of the device code.
struct DeviceLaunch {
  std::string entry;
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1}; ///< x, y, z
  uint32_t sharedBytes = 0; ///< dynamic shared memory of a block
  /// For each argument, all pointers: the number of a buffer of the kernel as
  /// above, or -1: the kernel's scratch memory.
  llvm::SmallVector<int32_t> arguments;
};

/// What a kernel of the device is: launches in a row.
struct DeviceKernel {
  std::string name;
  llvm::SmallVector<DeviceLaunch> launches;
  /// Memory for what a launch leaves to the next, undefined before the first.
  uint64_t scratchBytes = 0;
};

/// Device code of a module.
struct DeviceCode {
  std::string ptx; ///< text with an entry for each launch
  llvm::SmallVector<DeviceKernel> kernels;
};

/// Compiles every function of `module` that carries `plan.kernel` and not
/// `plan.host` for the GPU of `target`. `module` does not change.
FailureOr<DeviceCode> compileDeviceKernels(ModuleOp module,
                                           const KernelTarget &target);

} // namespace mlir::zero

#endif // ZERO_LOWERING_KERNELS_H
