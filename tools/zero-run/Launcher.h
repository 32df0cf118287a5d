//===- Launcher.h - All processes of a run on this machine ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `--processes N`: this process starts N others, waits for them, and ends when
// they have. Nothing of them outlives it, however it ends.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_LAUNCHER_H
#define ZERO_TOOLS_ZERO_RUN_LAUNCHER_H

#include "LaunchSettings.h"

#include <atomic>

namespace zero_tools {

/// Memory that all of them share.
struct LaunchBoard {
  /// The failure of the run has been printed.
  std::atomic<bool> printed{false};
  /// A signal has asked the launcher to end all.
  std::atomic<bool> ending{false};
  /// The processes look at `ending` after each step, and save their state
  /// before they end: no signal needs to be passed on.
  std::atomic<bool> saves{false};
  /// Processes that have met the others: those notice a loss by themselves.
  std::atomic<uint32_t> joined{0};
};

/// In each of the new processes: which one it is.
struct Launched {
  LaunchSettings settings;
  /// In process 0: a socket that listens on the port.
  int listener = 0;
  LaunchBoard *board = nullptr;
  /// A temporary folder that the launcher removes; empty: there is none.
  std::string folder;
};

/// Returns in the new processes; in the launcher *exitCode is set when all have
/// ended: 0, 1, 143 after SIGTERM, 130 after SIGINT. To be called before there
/// are threads. Throws std::runtime_error.
std::optional<Launched> launchProcesses(uint32_t count, int &exitCode);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_LAUNCHER_H
