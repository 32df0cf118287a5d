//===- Metrics.h - One line of JSON a step ----------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is measured in a training step, and the file of JSON lines that it goes
// to.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_METRICS_H
#define ZERO_RUNTIME_IO_METRICS_H

#include "runtime/io/LogFile.h"

#include <cstdint>
#include <optional>
#include <string>

namespace zrt {

/// Bytes in each memory space of a rank.
struct SpaceBytes {
  uint64_t device = 0, host = 0, disk = 0;
};

struct StepMetrics {
  /// Counts from 1.
  int64_t step = 0;
  /// Micro-batches that the step was computed of, and samples of all steps so
  /// far, over all ranks.
  int64_t microBatches = 1, samplesSeen = 0;
  /// Passes through the data so far.
  double epoch = 0;
  /// Of the whole step over all ranks; the largest of a rank's own losses.
  double loss = 0;
  std::optional<double> maxLoss;
  /// Before clipping; absent when the step computes none.
  std::optional<double> gradNorm;
  /// After clipping; absent when the step does not clip to a norm.
  std::optional<double> gradNormClipped;
  double learningRate = 0;
  /// What the step multiplied its loss by; absent without loss scaling.
  std::optional<double> lossScale;
  /// The gradients were not finite and the step changed nothing; absent when
  /// the step does not check. Steps of this run that were skipped so far.
  std::optional<bool> skipped;
  int64_t skippedSteps = 0;
  /// Wall-clock time, and the part of it that went into reading data.
  double stepMs = 0, dataMs = 0;
  double samplesPerSecond = 0;
  /// Only where inputs are sequences of integers. The second is of all steps
  /// so far.
  std::optional<double> tokensPerSecond;
  int64_t tokensSeen = 0;
  /// Of matrix products and convolutions of one rank, in 10^12 operations per
  /// second; absent where the plan counts none.
  std::optional<double> teraflops;
  /// Only where the peak of the machine is known.
  std::optional<double> mfu;
  /// What one rank sends in the ring model; a part of an element's bytes
  /// ((N-1)/N of a bucket) need not be whole.
  double allGatherBytes = 0, reduceScatterBytes = 0, allReduceBytes = 0;
  double commPaddingBytes = 0;
  double exposedCommMs = 0;
  /// What one rank copies between memory spaces, the mean of the ranks; time in
  /// such copies, and in what the host computes of a step.
  double toHostBytes = 0, toDeviceBytes = 0, diskReadBytes = 0,
         diskWriteBytes = 0;
  double transferMs = 0, hostMs = 0;
  SpaceBytes peak, plannedPeak;
  /// Gathered parameters alive at once: measured, and the plan's window.
  uint64_t gatheredBytes = 0, plannedGatheredBytes = 0;
  /// State of one rank that outlives the use of a value, by kind, and the
  /// padding beside it: the mean of the ranks, whose last shards are shorter.
  double parameterBytes = 0, gradientBytes = 0, optimizerBytes = 0;
  double statePaddingBytes = 0;
};

/// The metrics as one line of JSON, without a newline.
std::string formatMetrics(const StepMetrics &metrics);

/// A file of metrics; each line is in the file once write() returns.
class MetricsFile {
public:
  /// Creates the file. Of one that exists all before the first step after
  /// `resumedAt` stays, 0: nothing; `warn` names lines that are none of a step.
  /// Throws IoError.
  explicit MetricsFile(const std::string &path, int64_t resumedAt = 0,
                       const LogFile::Warn &warn = nullptr);

  void write(const StepMetrics &metrics);

private:
  LogFile file;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_METRICS_H
