//===- Event.h - A point on a stream that others wait for -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An event of one rank. It remembers the step in which it was signalled last,
// so that nothing has to be reset between steps.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_EVENT_H
#define ZERO_RT_COMM_EVENT_H

#include "runtime/comm/Futex.h"

namespace zrt {

class Event {
public:
  explicit Event(uint32_t threads) : step(threads) {}

  /// Once in each step, whose number differs from the last one's and is
  /// not 0. What the thread did before is seen by those who wait.
  void signal(uint32_t number) { step.store(number); }
  /// Returns when the event is signalled in step `number`; throws Aborted once
  /// abort() was called.
  void wait(uint32_t number) {
    while (true) {
      // Before `aborted`: whoever aborts later than that test changes it.
      uint32_t seen = step.load();
      if (aborted.load())
        throw Aborted();
      if (seen == number)
        return;
      step.waitWhile(seen);
    }
  }
  /// Releases who waits now or later. Only after this no step may begin.
  void abort() {
    aborted.store(true);
    step.increment();
  }

private:
  WatchedNumber step;
  std::atomic<bool> aborted{false};
};

} // namespace zrt

#endif // ZERO_RT_COMM_EVENT_H
