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

#include <cstdint>
#include <cstdio>
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
  /// Of the whole step over all ranks; the norm is taken before clipping and
  /// absent when the step computes none.
  double loss = 0;
  std::optional<double> gradNorm;
  double learningRate = 0;
  double stepMs = 0;
  double samplesPerSecond = 0;
  /// Only where inputs are sequences of integers.
  std::optional<double> tokensPerSecond;
  /// Only where the peak of the machine is known.
  std::optional<double> mfu;
  /// What one rank sends in the ring model; a part of an element's bytes
  /// ((N-1)/N of a bucket) need not be whole.
  double allGatherBytes = 0, reduceScatterBytes = 0, allReduceBytes = 0;
  double commPaddingBytes = 0;
  double exposedCommMs = 0;
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

/// A file of metrics; each line is in the file once write() returns, so that
/// a run that fails keeps what it measured.
class MetricsFile {
public:
  /// Creates or empties the file. Throws IoError.
  explicit MetricsFile(const std::string &path);
  MetricsFile(const MetricsFile &) = delete;
  MetricsFile &operator=(const MetricsFile &) = delete;
  ~MetricsFile();

  void write(const StepMetrics &metrics);

private:
  std::string path;
  std::FILE *file;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_METRICS_H
