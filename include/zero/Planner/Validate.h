//===- Validate.h - Predictions beside measured steps -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads published training steps and says how far the model is from them.
//
// A file is CSV with a header. Columns, in any order (others are ignored):
//   d_model, layers, heads, seq, gpus, micro_batch, gpu     needed
//   step_s, or step_ms, or tokens_per_s_per_gpu             one of them needed
//   grad_accum, or global_batch                             default 1
//   source or framework, model, kv_heads, ffn, gated, vocab, tied_embeddings,
//   gpus_per_node, inter_node, precision, pure_low_precision, sharding,
//   activation_checkpointing, params                        optional
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PLANNER_VALIDATE_H
#define ZERO_PLANNER_VALIDATE_H

#include "zero/Planner/StepPlan.h"

namespace mlir::zero {

/// A measured step.
struct MeasuredStep {
  int64_t line = 0; ///< of the file
  std::string source, model, gpu;
  std::string machine; ///< preset that stands for `gpu`
  std::string note;    ///< what had to be assumed
  ModelShape shape;
  StepConfig config;
  const Software *software = nullptr;
  int64_t ranksPerNode = 0; ///< 0: as the machine
  double lineRate = 0;      ///< network, bytes/s of a rank; 0: as the machine
  int64_t params = 0;       ///< as published; 0 if it is not
  double seconds = 0;
};

/// Reads a file. Errors name file, line, column, what was found and what is
/// expected. A gpu that no preset stands for is one, unless `anyMachine`.
llvm::Expected<std::vector<MeasuredStep>>
readMeasuredSteps(llvm::StringRef path, bool anyMachine = false);

/// Name of a row that does not depend on its place in a file.
uint64_t measuredStepHash(const MeasuredStep &step);

/// The machine constants were fitted on this row; see bench/fit_machines.cpp.
bool isFittedStep(const MeasuredStep &step);

/// Seconds that the model expects on `machine`.
double predictStep(const MeasuredStep &step, Machine machine,
                   const Software &software);

/// How good predictions are.
struct ErrorSummary {
  int64_t rows = 0;
  double medianPercent = 0, p95Percent = 0, maxPercent = 0; ///< absolute
  double biasPercent = 0;                                   ///< mean, signed
};
ErrorSummary summarizeErrors(std::vector<double> relativeErrors);

/// Of the pairs of one model on one machine whose times differ, the part that
/// is predicted in the same order, in percent (100 if there are no pairs).
double pairOrderPercent(llvm::ArrayRef<MeasuredStep> steps,
                        llvm::ArrayRef<double> predicted);

} // namespace mlir::zero

#endif // ZERO_PLANNER_VALIDATE_H
