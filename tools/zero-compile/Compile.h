//===- Compile.h - From a module to a plan ----------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The whole compiler as one call, for the tools that make plans: training step,
// ZeRO passes, plan, machine code.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_COMPILE_COMPILE_H
#define ZERO_TOOLS_ZERO_COMPILE_COMPILE_H

#include "zero/Autodiff/TrainStep.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace zero_tools {

struct CompileOptions {
  /// Absent when the module is a training step already.
  std::optional<mlir::train::TrainStepOptions> trainStep;
  /// The forward pass alone is the program.
  bool forward = false;
  /// Micro-batches of a step that the module is already. Absent: as it says.
  std::optional<int64_t> microBatches;
  /// Absent: as the module says if it is partitioned, else stage 0 on one rank.
  std::optional<int64_t> stage, ranks;
  /// Shape of a grid instead of a number of ranks; empty: none.
  std::vector<int64_t> grid;
  /// State is cut over all axes of the grid, not the last alone.
  bool shardAll = false;
  /// Most bytes of a rank's device memory; absent: what `machine` has, no limit
  /// if that is empty.
  std::optional<int64_t> memoryBytes;
  /// The machine whose times the schedule is made for: a preset or a .json
  /// file. Empty: this-cpu.
  std::string machine;
  /// What is scheduled: "none", "prefetch", "keep", "reorder", "bucket" or
  /// "joint". Absent: joint, or nothing if the module is partitioned already.
  std::optional<std::string> schedule;
  /// What the backward pass computes again: "none", "selective", "full", or
  /// "auto": what makes the fastest plan within the budget. Empty: none.
  std::string remat;
  /// What lives outside device memory: rules of the pass `zero-offload`, as in
  /// "optimizer=host" (the last that matches counts), or alone "none" or
  /// "auto": what makes the fastest plan within the budget. Empty: none.
  std::vector<std::string> offload;
  /// Most bytes of a rank's host arena; absent: a rank's part of what `machine`
  /// has, no limit if that is empty.
  std::optional<int64_t> hostMemoryBytes;
  /// There is a folder for a disk arena: "auto" may use it.
  bool offloadToDisk = false;
  /// "host" (this machine), "host:CPU" with LLVM's name of a processor, or
  /// "cuda:sm_80", "cuda:sm_90" or "cuda:sm_100" for GPUs of this machine.
  std::string target = "host";
};

/// Registers and loads all dialects that the compiler needs.
void prepareContext(mlir::MLIRContext &context);

/// Parses an .mlir or bytecode file.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(const std::string &path,
                                              mlir::MLIRContext &context);

/// The plan of `module`, which is consumed: a module with one `plan.program`
/// and its kernels. Its device arena is within the budget: since the schedule
/// counts bytes without the gaps between buffers, it is made again for less
/// until its arena fits; with `remat` and `offload` "auto" from each of several
/// levels of recomputation and of what is offloaded. A larger budget never
/// gives a slower plan. On failure an error has been emitted, which says how
/// many bytes are missing.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
compileWithinBudget(mlir::ModuleOp module, const CompileOptions &options);

/// Compiles `module`, which is consumed, to the bytes of a .zplan. On failure
/// an error has been emitted. `offloadChoice`: what `offload` "auto" chose, as
/// a sentence; empty without it.
mlir::LogicalResult compileToZplan(mlir::ModuleOp module,
                                   const CompileOptions &options,
                                   std::string &bytes,
                                   std::string *offloadChoice = nullptr);

/// Compiles the kernels of a planned module for a GPU: `text` is PTX and, as
/// comments before it, what each kernel launches. On failure an error has been
/// emitted.
mlir::LogicalResult printDeviceCode(mlir::ModuleOp planned,
                                    const CompileOptions &options,
                                    std::string &text);

/// The sentence of what `offload` "auto" chose for a planned module.
std::string getOffloadChoice(mlir::ModuleOp planned);

/// While it lives, keeps the first error as one line, `FILE:LINE: MESSAGE` or
/// `FILE: node 'NAME': MESSAGE`, and prints warnings as `TOOL: warning: ...`.
class OneLineErrors {
public:
  OneLineErrors(mlir::MLIRContext &context, std::string tool, std::string file);

  /// The first error's line; a text that says so when there was none.
  std::string error() const;

private:
  std::string tool, file, first;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_COMPILE_COMPILE_H
