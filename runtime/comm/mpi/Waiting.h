//===- Waiting.h - Waiting for messages -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI is asked again and again whether messages have arrived, so that a wait
// can end: when another rank has failed, and when it takes too long.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_MPI_WAITING_H
#define ZERO_RT_COMM_MPI_WAITING_H

#include <atomic>
#include <chrono>
#include <mpi.h>

namespace zrt::mpi {

/// Throws Error where an MPI function has failed.
void check(int code, const char *what);

class Waiting {
public:
  /// `threads` are all of this machine that may wait or work at a time.
  Waiting(const std::atomic<bool> &aborted, std::chrono::nanoseconds limit,
          uint32_t threads);

  /// Something has arrived.
  void progress() { idle = 0; }
  /// Nothing has: lets others run in time, and later sleeps. Throws Aborted;
  /// false: it takes too long.
  bool pause();

  std::chrono::nanoseconds patience() const { return limit; }

private:
  using Clock = std::chrono::steady_clock;
  const std::atomic<bool> &aborted;
  const std::chrono::nanoseconds limit;
  const uint32_t looks; // pauses that do nothing
  uint32_t idle = 0;    // pauses in a row
  Clock::time_point begin = Clock::now();
};

} // namespace zrt::mpi

#endif // ZERO_RT_COMM_MPI_WAITING_H
