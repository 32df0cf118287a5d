//===- Training.h - The loop of a training run ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a loaded program on data: initial values, micro-batches, what is printed
// and logged, checkpoints, saved weights. Uses only the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_TRAINING_H
#define ZERO_TOOLS_ZERO_RUN_TRAINING_H

#include "Checkpointing.h"
#include "CheckpointingState.h"
#include "Logs.h"
#include "Progress.h"
#include "RunGroup.h"
#include "RunOptions.h"
#include "StepLine.h"

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
  /// receives one-line texts. `group`: the processes, each with the rank of its
  /// number; null: all ranks are here. In a group all functions are called by
  /// all processes; process 0 alone writes and prints. All of it outlives the
  /// training. Throws std::runtime_error (as all functions here do).
  Training(const RunOptions &options, const zrt::Program &program,
           const std::string &initFolder,
           std::function<void(const std::string &)> warn,
           RunGroup *group = nullptr);

  /// Must come before run(); afterwards no file of initial values is needed.
  void setInitialValues();
  /// Runs the steps.
  void run();

  /// Writes parameters and buffers under their names, master copies where
  /// there are any.
  void saveWeights(const std::string &path);
  /// The same in Hugging Face's form, in files of at most `shardBytes`.
  void saveHuggingFace(const std::string &folder, uint64_t shardBytes);

  /// Floating-point operations that a rank could do in a second: with it the
  /// metrics have `mfu`.
  void setPeakFlops(double perSecond) { peakFlops = perSecond; }
  /// Device memory of a rank of the machine, in bytes, where the plan has no
  /// budget.
  void setDeviceMemory(double bytes) { deviceMemory = bytes; }

  /// SIGTERM ended the run: its state is saved, and the tool exits with
  /// Checkpointing::terminatedExitCode.
  bool terminated() const { return checkpoints->terminated(); }

  /// Of the last step.
  const zrt::StepMetrics &metrics() const { return current; }
  /// Its counters are those of the last step.
  const zrt::Session &runtime() const { return session; }

private:
  /// This process writes and prints.
  bool first() const { return !group || group->rank() == 0; }
  bool isLocal(uint32_t rank) const { return !group || group->rank() == rank; }

  void openData();
  void warnOfRate() const;
  void warnOfDisk() const;
  void checkOffloadPath() const;
  void checkOutputPaths() const;
  void giveWeights(const std::map<std::string, uint32_t> &saved);

  // The steps, in TrainingLoop.cpp.
  void openCheckpoints();
  void openLogs(int64_t resumedAt, int64_t samplesAtResume);
  int64_t firstSample(int64_t step, int64_t micro, uint32_t rank) const;
  void setInputs(int64_t step, int64_t micro);
  void runStep(int64_t step);
  void show(int64_t step);
  std::string nothingToDo() const;
  void printSummary() const;

  // What a step says, in TrainingMetrics.cpp.
  std::optional<double> output(const std::string &name) const;
  void readOutputs(int64_t step);
  void checkFinite(int64_t step);
  void checkLossScale(int64_t step) const;
  std::string badRank(uint32_t index) const;
  std::string badSample(int64_t step) const;
  std::string badSampleOf(int64_t step, size_t index) const;
  void fillSpeeds(double wallMs);
  void fillTraffic();
  void fillMemory();
  std::optional<double> memoryLimit() const;

  const RunOptions &options;
  const zrt::Program &program;
  const zrt_program_info info;
  const std::string initFolder;
  RunGroup *const group;
  std::function<void(const std::string &)> warn;
  zrt::Session session;
  std::unique_ptr<zrt::Dataset> data;
  std::vector<uint32_t> dataInputs; // of the program, in the dataset's order
  CheckpointOptions checkpointOptions;
  std::unique_ptr<Checkpointing> checkpoints;
  std::unique_ptr<zrt::MetricsFile> metricsFile;
  std::unique_ptr<Logs> logs;
  std::unique_ptr<StepLine> stepLine;
  Progress progress;
  zrt::StepMetrics current;
  mutable std::vector<uint8_t> scratch;
  const int64_t microBatches = info.micro_batches;
  /// Where this run began, and where it ends.
  int64_t startStep = 0, startSample = 0, numSteps = 0;
  int64_t seed = 0; // of random numbers
  int64_t skippedSteps = 0;
  int64_t tokensPerSample = 0; // 0: the inputs are no sequences of integers
  double firstLoss = 0, totalMs = 0, peakFlops = 0, deviceMemory = 0;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_TRAINING_H
