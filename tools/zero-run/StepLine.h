//===- StepLine.h - What a run prints of its steps --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A line as torchtitan's (components/metrics.py):
//
//   step: 10  loss:  4.1234  grad_norm:  1.2345  memory: 30.12GiB(38.10%)
//     tps: 5,762  tflops: 311.20  mfu: 31.47%
//
// and behind these what changed: the learning rate, the loss scale, how many
// steps were skipped. What a run does not know is left out.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_STEPLINE_H
#define ZERO_TOOLS_ZERO_RUN_STEPLINE_H

#include "runtime/io/Metrics.h"

#include <optional>
#include <string>
#include <vector>

namespace zero_tools {

struct StepLineOptions {
  /// Steps between lines; 0: no line.
  int64_t every = 10;
  uint32_t ranks = 1;
  /// Device memory of a rank in bytes that the peak is a share of.
  std::optional<double> memoryLimit;
  bool colors = false;
};

class StepLine {
public:
  explicit StepLine(const StepLineOptions &options) : options(options) {}

  /// Takes in a step, for the means since the last line. True when a line is
  /// due: at the first step that is added, at multiples of `every` and at the
  /// last step.
  bool add(const zrt::StepMetrics &metrics, bool last);

  /// The line of the step that was added last, without a newline. Speeds are
  /// means over the steps since the last line, of one rank.
  std::string format();

private:
  /// A piece of the line and the colour's code of ANSI terminals.
  struct Piece {
    const char *color;
    std::string text;
  };
  void addSpeeds(std::vector<Piece> &line) const;
  void addChanges(std::vector<Piece> &line);

  StepLineOptions options;
  zrt::StepMetrics current;
  bool any = false;
  // Sums since the last line.
  double seconds = 0, samples = 0, tokens = 0, operations = 0, peaks = 0;
  // What the last line said.
  std::optional<double> learningRate, lossScale;
  int64_t skipped = 0;
};

/// 5762 as "5,762".
std::string withThousands(double value);

/// "30.12GiB", "1.50MiB", "800B".
std::string formatBytes(double bytes);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_STEPLINE_H
