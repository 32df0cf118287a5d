//===- Modes.h - What zero-plan can do --------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per mode; each returns the exit status.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_PLAN_MODES_H
#define ZERO_TOOLS_ZERO_PLAN_MODES_H

#include "zero/Config/DeepSpeed.h"
#include "zero/Planner/Search.h"
#include "zero/Transforms/Offload.h"

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::zero {

/// Places the buffers of an instance and prints, last,
/// `height=... lower_bound=... ms=...`. 1 if the file is bad or the arena
/// exceeds `capacity` (negative: no limit).
int runAllocate(llvm::StringRef file, int64_t capacity);

/// What --model asks.
struct ModelQuestion {
  std::string model, shape; ///< a name, or sizes
  Machine machine;
  const Software *software = nullptr;
  SearchSpace space;
  std::vector<OffloadRule> offload; ///< for whole kinds, with ratios
  bool search = false;              ///< --auto
  size_t rows = 5;                  ///< plans that --auto shows
  bool json = false, stats = false;
  std::string report, trace; ///< files, empty: none
  std::vector<std::string> notes;
};

/// Plans a model that is known by its sizes. 1 if no plan fits.
int runModel(const ModelQuestion &question);

/// What a file asks: the plan of an .mlir step or an .onnx model.
struct PlanQuestion {
  std::string file, machine, loss, optimizer; ///< of .onnx: loss, optimizer
  std::map<std::string, int64_t> dims;        ///< symbolic sizes of .onnx
  std::optional<int64_t> ranks;               ///< absent: the file's, or 8
  bool search = false;                        ///< also grids of two axes
  std::vector<int64_t> grid;          ///< instead of ranks, if not empty
  std::optional<int64_t> stage;       ///< absent: all
  std::optional<int64_t> memoryBytes; ///< absent: the machine's
  /// What the backward pass computes again: none, selective, full or auto.
  std::string recompute;
  std::vector<std::string> offload;       ///< rules, or "auto" or "none"
  std::optional<int64_t> hostMemoryBytes; ///< absent: the machine's, if named
  bool disk = false;                      ///< there is one to offload to
  /// Of a config: how the step of an .onnx model is made, and micro-batches.
  RunSettings settings;
  bool json = false;
  std::string report, trace;
};

/// Compiles a file and says what its plan does. 1 if no plan fits.
int runPlan(const PlanQuestion &question);

/// Bytes of parameters, gradients and states by stage for `params` numbers.
int runState(double params, int64_t ranks, bool json);

/// Predicts the steps of a table of measured ones, on `machine` if it is not
/// null, else on what each row names; prints, last, `rows=...
/// median_abs_error_percent=... p95_abs_error_percent=...
/// pair_order_percent=...`.
int runValidate(llvm::StringRef file, const Machine *machine);

/// Times probes on this machine with `ranks` ranks of one thread, fits the cost
/// model to them and writes the machine file `output` (empty: to stdout). How
/// well it fits goes to stderr.
int runCalibrate(int64_t ranks, llvm::StringRef output);

} // namespace mlir::zero

#endif // ZERO_TOOLS_ZERO_PLAN_MODES_H
