//===- Barrier.h - Meeting point of the ranks -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reusable barrier for the rank threads of a session. It spins for a moment
// only where each rank can have a core of its own, then sleeps, so that more
// ranks than cores do not take each other's time; and it can be aborted, so
// that the failure of one rank leaves none waiting.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_BARRIER_H
#define ZERO_RT_COMM_BARRIER_H

#include <atomic>
#include <cstdint>
#include <exception>

namespace zrt {

/// Thrown out of a barrier when another rank has failed.
class Aborted : public std::exception {
public:
  const char *what() const noexcept override {
    return "another rank has failed";
  }
};

class Barrier {
public:
  explicit Barrier(uint32_t ranks);

  /// Returns when all ranks are here; throws Aborted once abort() was called.
  void wait();
  /// Releases every rank that waits now or later. Any thread may call it.
  void abort();

private:
  void sleepWhile(uint32_t seen);
  void wakeAll();

  const uint32_t ranks;
  const uint32_t spins;
  std::atomic<uint32_t> arrived{0};
  std::atomic<uint32_t> phase{0}; // changes when a barrier is complete
  std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> aborted{false};
};

} // namespace zrt

#endif // ZERO_RT_COMM_BARRIER_H
