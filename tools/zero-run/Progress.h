//===- Progress.h - The progress bar of a run -------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bar as tqdm's on the standard error, where that is a terminal:
//   step:  30%|###       | 30/100 [00:12<00:28,  2.45it/s, loss 2.31]
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_PROGRESS_H
#define ZERO_TOOLS_ZERO_RUN_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <string>

namespace zero_tools {

/// What the bar says.
struct ProgressState {
  int64_t done = 0, total = 0;
  /// Steps of this run and the seconds that they took: the speed.
  int64_t doneHere = 0;
  double seconds = 0;
  std::string note; // "loss 2.31"
};

/// The bar in at most `columns` columns; with block characters if `utf8`.
std::string formatProgress(const ProgressState &state, int columns, bool utf8);

/// "01:02", "1:00:02".
std::string formatDuration(double seconds);

class Progress {
public:
  Progress();
  /// Clears the bar.
  ~Progress();

  /// A run begins with `done` of `total` steps done.
  void begin(int64_t done, int64_t total);
  /// Draws the bar, at most ten times a second.
  void show(int64_t done, const std::string &note);
  /// To be called before anything else is printed.
  void clear();

private:
  using Clock = std::chrono::steady_clock;

  ProgressState state;
  int64_t first = 0;
  Clock::time_point start, drawn;
  bool terminal, utf8, visible = false, everDrawn = false;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_PROGRESS_H
