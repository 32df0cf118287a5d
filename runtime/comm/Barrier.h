//===- Barrier.h - Meeting point of the ranks -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reusable barrier for threads of several ranks, which may be in several
// processes. It can be aborted, so that the failure of one rank leaves none
// waiting.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_BARRIER_H
#define ZERO_RT_COMM_BARRIER_H

#include "runtime/comm/Futex.h"

#include <utility>
#include <vector>

namespace zrt {

/// Thrown out of a barrier when others have not come in time.
class TimedOut : public std::exception {
public:
  explicit TimedOut(std::vector<uint32_t> late) : late(std::move(late)) {}
  const char *what() const noexcept override { return "others are late"; }

  const std::vector<uint32_t> late; ///< positions
};

/// Where processes meet, in memory that they share; zeros at first.
struct BarrierState {
  /// What one for so many processes takes.
  static constexpr uint64_t bytes(uint32_t processes) {
    uint64_t bytes = sizeof(BarrierState) + 4 * uint64_t(processes);
    return (bytes + 63) / 64 * 64;
  }
  /// How often each process has come: behind this struct.
  std::atomic<uint32_t> *came() {
    return reinterpret_cast<std::atomic<uint32_t> *>(this + 1);
  }

  alignas(64) std::atomic<uint32_t> arrived;
  NumberState phase; // changes when a barrier is complete
};

class Barrier {
public:
  /// For `ranks` threads of the `threads` that run.
  Barrier(uint32_t ranks, uint32_t threads)
      : ranks(ranks), arrived(own), phase(threads) {}
  explicit Barrier(uint32_t ranks) : Barrier(ranks, ranks) {}
  /// For `ranks` processes, of which each has a Barrier of its own and is at
  /// `position`.
  Barrier(BarrierState &state, uint32_t ranks, uint32_t position,
          uint32_t threads)
      : ranks(ranks), arrived(state.arrived), phase(state.phase, threads),
        shared(&state), position(position) {}

  /// Returns when all ranks are here; throws Aborted once abort() was called,
  /// and TimedOut, among processes, if it takes longer than `limit`.
  void wait(std::chrono::nanoseconds limit = std::chrono::nanoseconds::max());
  /// Releases every rank of this process that waits now or later. Any thread
  /// may call it.
  void abort();

private:
  void waitForProcesses(uint32_t seen, std::chrono::nanoseconds limit);
  void countOwn();
  std::vector<uint32_t> late() const;

  const uint32_t ranks;
  std::atomic<uint32_t> own{0};
  std::atomic<uint32_t> &arrived;
  WatchedNumber phase;
  std::atomic<bool> aborted{false};
  BarrierState *const shared = nullptr; // null: threads of one process
  const uint32_t position = 0;
};

} // namespace zrt

#endif // ZERO_RT_COMM_BARRIER_H
