//===- Barrier.cpp - Meeting point of the ranks ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Barrier.h. Sleeping and waking are futex calls on the phase counter.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Barrier.h"

#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace zrt;

static void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Looks before sleeping: about a microsecond. On a busy machine a rank that
/// spins for longer keeps the one it waits for off the core.
static constexpr uint32_t looks = 100;

Barrier::Barrier(uint32_t ranks)
    : ranks(ranks),
      spins(ranks <= std::thread::hardware_concurrency() ? looks : 0) {}

void Barrier::sleepWhile(uint32_t seen) {
  // Counted before the kernel compares `phase`, and wakeAll() changes `phase`
  // before it reads the count: one of the two sees the other.
  sleepers.fetch_add(1);
  while (phase.load() == seen)
    syscall(SYS_futex, &phase, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  sleepers.fetch_sub(1);
}

void Barrier::wakeAll() {
  phase.fetch_add(1);
  if (sleepers.load())
    syscall(SYS_futex, &phase, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
            0);
}

void Barrier::wait() {
  uint32_t seen = phase.load();
  // After `phase`: whoever aborts later than this test changes it.
  if (aborted.load())
    throw Aborted();
  if (arrived.fetch_add(1) + 1 == ranks) {
    arrived.store(0);
    wakeAll();
  } else {
    for (uint32_t spin = 0; spin < spins && phase.load() == seen; ++spin)
      pauseCore();
    sleepWhile(seen);
  }
  if (aborted.load())
    throw Aborted();
}

void Barrier::abort() {
  aborted.store(true);
  wakeAll();
}
