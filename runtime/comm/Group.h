//===- Group.h - What a zrt_group is --------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The processes of a run and how they exchange data, for sessions.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_GROUP_H
#define ZERO_RT_COMM_GROUP_H

#include "runtime/comm/ProcessGroup.h"

#include <algorithm>
#include <memory>
#include <string>

/// The type of the C interface.
struct zrt_group {
  std::unique_ptr<zrt::ProcessGroup> processes;
  /// "auto", "shm" or "mpi".
  std::string transport = "auto";
  /// What a transport's library has to do when the group is left; before the
  /// processes part.
  std::shared_ptr<void> library;
  /// Both above 0.
  double timeoutFactor = 100, timeoutMinSeconds = 30;

  /// How long a collective may take, in seconds, that the plan says takes
  /// `plannedSeconds` (below 0: it says nothing).
  double timeoutOf(double plannedSeconds) const {
    return std::max(timeoutMinSeconds, timeoutFactor * plannedSeconds);
  }

  // What the C interface has handed out.
  std::string received, failureText;
};

#endif // ZERO_RT_COMM_GROUP_H
