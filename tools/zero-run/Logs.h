//===- Logs.h - Metrics under the names of other systems --------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The files of --log: the metrics of each step under exactly the names that one
// other system gives them, so that its dashboards and scripts work on them.
//   hf          Trainer of transformers (integrations, rewrite_logs)
//   deepspeed   runtime/engine.py and monitor/; its axis counts samples
//   torchtitan  components/metrics.py
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_LOGS_H
#define ZERO_TOOLS_ZERO_RUN_LOGS_H

#include "runtime/io/Metrics.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zero_tools {

/// A value under its name; empty where the run does not have it.
struct NamedMetric {
  std::string name;
  std::optional<double> value;
};

/// A step's metrics under the names of `system` ("hf", "deepspeed",
/// "torchtitan"): always the same names in the same order. `memoryLimit` is the
/// device memory of a rank in bytes, of which torchtitan's shares are.
std::vector<NamedMetric> namedMetrics(const std::string &system,
                                      const zrt::StepMetrics &metrics,
                                      uint32_t ranks,
                                      std::optional<double> memoryLimit);

/// "step", or "samples" where the system counts these.
std::string axisName(const std::string &system);
int64_t axisValue(const std::string &system, const zrt::StepMetrics &metrics);

/// A field of a line of comma-separated values (RFC 4180): in quotes where it
/// has to be. Control characters become spaces, so that a name cannot end the
/// line, and what a spreadsheet would take for a formula gets a quote before
/// it.
std::string csvField(std::string text);

/// The file of "csv" in the logs' folder.
constexpr const char *csvName = "metrics.csv";

struct LogOptions {
  /// "csv" and "tensorboard".
  std::vector<std::string> kinds;
  /// Is created; the parent folder of the last part too.
  std::string folder;
  std::string names; // the system
  uint32_t ranks = 1;
  std::optional<double> memoryLimit;
  /// Where a run continues: what the files have of later steps goes. 0: a new
  /// run, which begins new files. The axis' values are those of that step.
  int64_t resumedAt = 0, samplesAtResume = 0;
  /// Receives one-line texts, about lines of a file that is continued.
  std::function<void(const std::string &)> warn;
};

class Logs {
public:
  /// Creates the files in the folder. Throws zrt::IoError.
  explicit Logs(const LogOptions &options);
  ~Logs();

  /// Throws zrt::IoError.
  void write(const zrt::StepMetrics &metrics);

private:
  class Sink;
  class CsvSink;
  class TensorBoardSink;

  LogOptions options;
  std::vector<std::unique_ptr<Sink>> sinks;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_LOGS_H
