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
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
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
/// Processes are on cores of their own sooner: about as long as waking takes.
static constexpr uint32_t mostLooksAtShared = 1000;

static uint32_t looksOf(uint32_t threads, uint32_t most) {
  return threads <= std::thread::hardware_concurrency() ? most : 0;
}

WatchedNumber::WatchedNumber(uint32_t threads)
    : state(own), shared(false), looks(looksOf(threads, mostLooks)) {}

WatchedNumber::WatchedNumber(NumberState &shared, uint32_t threads)
    : state(shared), shared(true), looks(looksOf(threads, mostLooksAtShared)) {}

void WatchedNumber::wakeAll() {
  if (state.sleepers.load())
    syscall(SYS_futex, &state.number, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE,
            INT_MAX, nullptr, nullptr, 0);
}

void WatchedNumber::store(uint32_t value) {
  state.number.store(value);
  wakeAll();
}

void WatchedNumber::increment() {
  state.number.fetch_add(1);
  wakeAll();
}

/// Where processes share cores, letting the other run is faster than sleeping
/// until it wakes this one; behind a thread that computes it is not.
static constexpr uint32_t mostYields = 3;

/// Looks for a while; true if the number is still the same.
bool WatchedNumber::look(uint32_t seen) const {
  for (uint32_t look = 0; look < looks && load() == seen; ++look)
    pauseCore();
  for (uint32_t look = 0; shared && look < mostYields && load() == seen; ++look)
    sched_yield();
  return load() == seen;
}

void WatchedNumber::waitWhile(uint32_t seen) {
  if (!look(seen))
    return;
  // Counted before the kernel compares the number, and a writer changes the
  // number before it reads the count: one of the two sees the other.
  state.sleepers.fetch_add(1);
  while (load() == seen)
    syscall(SYS_futex, &state.number, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE,
            seen, nullptr, nullptr, 0);
  state.sleepers.fetch_sub(1);
}

bool WatchedNumber::waitWhile(uint32_t seen, std::chrono::nanoseconds limit) {
  if (!look(seen))
    return true;
  timespec time = {time_t(limit.count() / 1000000000),
                   long(limit.count() % 1000000000)};
  state.sleepers.fetch_add(1);
  // Woken too early, the caller waits again.
  if (load() == seen)
    syscall(SYS_futex, &state.number, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE,
            seen, &time, nullptr, 0);
  state.sleepers.fetch_sub(1);
  return load() != seen;
}
