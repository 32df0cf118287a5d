//===- Futex.h - Sleeping on a number in memory ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number that threads watch: they look at it for about a microsecond, where
// each can have a core of its own, and then sleep until it changes.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_FUTEX_H
#define ZERO_RT_COMM_FUTEX_H

#include <atomic>
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

class WatchedNumber {
public:
  /// `threads` are all that may run at the same time.
  explicit WatchedNumber(uint32_t threads);

  uint32_t load() const { return number.load(); }
  void store(uint32_t value);
  void increment();
  /// Returns once the number is another than `seen`.
  void waitWhile(uint32_t seen);

private:
  void wakeAll();

  std::atomic<uint32_t> number{0};
  std::atomic<uint32_t> sleepers{0};
  uint32_t looks;
};

} // namespace zrt

#endif // ZERO_RT_COMM_FUTEX_H
