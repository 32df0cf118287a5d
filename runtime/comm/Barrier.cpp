//===- Barrier.cpp - Meeting point of the ranks ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Barrier.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Barrier.h"

#include <algorithm>

using namespace zrt;
using std::chrono::nanoseconds;

void Barrier::wait(nanoseconds limit) {
  uint32_t seen = phase.load();
  // After `phase`: whoever aborts later than this test changes it.
  if (aborted.load())
    throw Aborted();
  if (shared)
    countOwn();
  if (arrived.fetch_add(1) + 1 == ranks) {
    arrived.store(0);
    phase.increment();
  } else if (shared) {
    waitForProcesses(seen, limit);
  } else {
    phase.waitWhile(seen);
  }
  if (aborted.load())
    throw Aborted();
}

/// Another process must not see a phase end because this one gives up: so an
/// abort only wakes, and who was about to sleep then looks again soon.
void Barrier::waitForProcesses(uint32_t seen, nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  constexpr nanoseconds oneSleep = std::chrono::milliseconds(50);
  Clock::time_point begin = Clock::now();
  while (!phase.waitWhile(seen, std::min(oneSleep, limit))) {
    if (aborted.load())
      throw Aborted();
    if (Clock::now() - begin >= limit)
      throw TimedOut(late());
  }
}

/// Only this process writes its number, and only who gives up reads it.
void Barrier::countOwn() {
  std::atomic<uint32_t> &own = shared->came()[position];
  own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// The positions that have come less often than this one.
std::vector<uint32_t> Barrier::late() const {
  std::vector<uint32_t> result;
  uint32_t own = shared->came()[position].load();
  for (uint32_t other = 0; other < ranks; ++other)
    if (shared->came()[other].load() != own)
      result.push_back(other);
  return result;
}

void Barrier::abort() {
  aborted.store(true);
  if (shared)
    phase.wakeAll();
  else
    phase.increment();
}
