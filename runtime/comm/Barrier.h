//===- Barrier.h - Meeting point of the ranks -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reusable barrier for threads of several ranks. It can be aborted, so that
// the failure of one rank leaves none waiting.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_BARRIER_H
#define ZERO_RT_COMM_BARRIER_H

#include "runtime/comm/Futex.h"

namespace zrt {

class Barrier {
public:
  /// For `ranks` threads of the `threads` that run.
  Barrier(uint32_t ranks, uint32_t threads) : ranks(ranks), phase(threads) {}
  explicit Barrier(uint32_t ranks) : Barrier(ranks, ranks) {}

  /// Returns when all ranks are here; throws Aborted once abort() was called.
  void wait();
  /// Releases every rank that waits now or later. Any thread may call it.
  void abort();

private:
  const uint32_t ranks;
  std::atomic<uint32_t> arrived{0};
  WatchedNumber phase; // changes when a barrier is complete
  std::atomic<bool> aborted{false};
};

} // namespace zrt

#endif // ZERO_RT_COMM_BARRIER_H
