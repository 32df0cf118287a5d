//===- Training.h - The loop of a training run ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a loaded program on data: initial values, batches, metrics, saved
// weights. Uses only the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_TRAINING_H
#define ZERO_TOOLS_ZERO_RUN_TRAINING_H

#include "RunOptions.h"

#include "runtime/io/Dataset.h"
#include "runtime/io/Metrics.h"
#include "zero-rt/Session.h"

#include <functional>

namespace zero_tools {

/// Throws std::runtime_error with the runtime's message on failure.
void require(const zrt::Status &status);

class Training {
public:
  /// `initFolder` is where the plan's files with initial values lie. `warn`
  /// receives one-line texts. All of it outlives the training. Throws
  /// std::runtime_error (as all functions here do).
  Training(const RunOptions &options, const zrt::Program &program,
           const std::string &initFolder,
           std::function<void(const std::string &)> warn);
  ~Training();

  /// Sets the initial values and runs the steps.
  void run();

  /// Writes parameters and buffers under their names.
  void saveWeights(const std::string &path);

  /// Floating-point operations that a rank could do in a second: with it the
  /// metrics have `mfu`.
  void setPeakFlops(double perSecond) { peakFlops = perSecond; }

  /// Of the last step.
  const zrt::StepMetrics &metrics() const { return current; }
  /// Its counters are those of the last step.
  const zrt::Session &runtime() const { return session; }

private:
  void openData();
  void checkOutputPaths() const;
  void setInitialValues();
  bool setFrom(uint32_t index, zrt::TensorFile &file, const std::string &name);
  void warnOfUnused(const zrt::TensorFile &file, size_t used);
  void setInputs(int64_t step);
  void runStep(int64_t step);
  void readLoss(int64_t step);
  void fillMetrics(double wallMs);
  void showProgress(int64_t step);
  void clearProgress();

  const RunOptions &options;
  const zrt::Program &program;
  const zrt_program_info info;
  const std::string initFolder;
  std::function<void(const std::string &)> warn;
  zrt::Session session;
  std::unique_ptr<zrt::Dataset> data;
  std::vector<uint32_t> dataInputs; // of the program, in the dataset's order
  std::unique_ptr<zrt::MetricsFile> metricsFile;
  zrt::StepMetrics current;
  std::vector<uint8_t> scratch;
  int64_t numSteps = 0;
  int64_t tokensPerSample = 0; // 0: the inputs are no sequences of integers
  double firstLoss = 0, totalMs = 0, peakFlops = 0;
  bool terminal = false, progressShown = false;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_TRAINING_H
