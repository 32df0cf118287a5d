//===- Futex.cpp - Sleeping on a number in memory -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Futex.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Futex.h"

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

/// Looks before sleeping: about a microsecond. On a busy machine a thread that
/// spins for longer keeps the one it waits for off the core.
static constexpr uint32_t mostLooks = 100;

WatchedNumber::WatchedNumber(uint32_t threads)
    : looks(threads <= std::thread::hardware_concurrency() ? mostLooks : 0) {}

void WatchedNumber::wakeAll() {
  if (sleepers.load())
    syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
            0);
}

void WatchedNumber::store(uint32_t value) {
  number.store(value);
  wakeAll();
}

void WatchedNumber::increment() {
  number.fetch_add(1);
  wakeAll();
}

void WatchedNumber::waitWhile(uint32_t seen) {
  for (uint32_t look = 0; look < looks && number.load() == seen; ++look)
    pauseCore();
  if (number.load() != seen)
    return;
  // Counted before the kernel compares the number, and a writer changes the
  // number before it reads the count: one of the two sees the other.
  sleepers.fetch_add(1);
  while (number.load() == seen)
    syscall(SYS_futex, &number, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  sleepers.fetch_sub(1);
}
