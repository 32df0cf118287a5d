//===- Waiting.cpp - Waiting for messages ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Waiting.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Waiting.h"

#include "runtime/comm/Futex.h"
#include "runtime/core/Error.h"

#include <sched.h>
#include <thread>

using namespace zrt;
using namespace zrt::mpi;

/// Who waits for a message that is on its way looks for it, where each thread
/// can have a core of its own; then lets others run; and who waits for another
/// rank's compute sleeps and hardly disturbs it.
static constexpr uint32_t mostLooks = 4000, mostYields = 20;
static constexpr auto sleepTime = std::chrono::microseconds(50);

void zrt::mpi::check(int code, const char *what) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(ZRT_ERROR_EXECUTION, "MPI: ", what, ": ", text);
}

/// The library asks the file system each time.
static uint32_t cores() {
  static const uint32_t count = std::thread::hardware_concurrency();
  return count;
}

Waiting::Waiting(const std::atomic<bool> &aborted,
                 std::chrono::nanoseconds limit, uint32_t threads)
    : aborted(aborted), limit(limit),
      looks(threads <= cores() ? mostLooks : 0) {}

bool Waiting::pause() {
  if (aborted.load(std::memory_order_relaxed))
    throw Aborted();
  if (++idle < looks)
    return true;
  if (idle < looks + mostYields) {
    sched_yield();
    return true;
  }
  std::this_thread::sleep_for(sleepTime);
  return Clock::now() - begin < limit;
}
