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

/// Pauses before the first sleep: who waits for a message that is on its way
/// does not sleep, who waits for another rank's compute hardly disturbs it.
static constexpr uint32_t pausesBeforeSleep = 2000;
static constexpr auto sleepTime = std::chrono::microseconds(50);

void zrt::mpi::check(int code, const char *what) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(ZRT_ERROR_EXECUTION, "MPI: ", what, ": ", text);
}

bool Waiting::pause() {
  if (aborted.load(std::memory_order_relaxed))
    throw Aborted();
  if (++idle < pausesBeforeSleep) {
    sched_yield();
    return true;
  }
  std::this_thread::sleep_for(sleepTime);
  return Clock::now() - begin < limit;
}
