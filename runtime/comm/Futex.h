//===- Futex.h - Sleeping on a number in memory ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number that threads watch: they look at it for a while, where each can have
// a core of its own, and then sleep until it changes. The threads
// may be of several processes that share the number's memory.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_FUTEX_H
#define ZERO_RT_COMM_FUTEX_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>

namespace zrt {

/// Thrown out of a barrier or an event when another thread has failed.
class Aborted : public std::exception {
public:
  const char *what() const noexcept override {
    return "another rank has failed";
  }
};

/// The number and how many sleep; zeros at first.
struct NumberState {
  std::atomic<uint32_t> number{0};
  std::atomic<uint32_t> sleepers{0};
};

class WatchedNumber {
public:
  /// For threads of this process; `threads` are all that may run at the same
  /// time.
  explicit WatchedNumber(uint32_t threads);
  /// In memory that processes share.
  WatchedNumber(NumberState &shared, uint32_t threads);

  uint32_t load() const { return state.number.load(); }
  void store(uint32_t value);
  void increment();
  /// Returns once the number is another than `seen`.
  void waitWhile(uint32_t seen);
  /// The same, but not for longer than about `limit`, and until woken: false
  /// if it is `seen` then.
  bool waitWhile(uint32_t seen, std::chrono::nanoseconds limit);
  /// Whoever sleeps looks at the number again.
  void wakeAll();

private:
  bool look(uint32_t seen) const;

  NumberState own;
  NumberState &state;
  const bool shared;
  const uint32_t looks;
};

} // namespace zrt

#endif // ZERO_RT_COMM_FUTEX_H
