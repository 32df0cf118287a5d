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

using namespace zrt;

void Barrier::wait() {
  uint32_t seen = phase.load();
  // After `phase`: whoever aborts later than this test changes it.
  if (aborted.load())
    throw Aborted();
  if (arrived.fetch_add(1) + 1 == ranks) {
    arrived.store(0);
    phase.increment();
  } else {
    phase.waitWhile(seen);
  }
  if (aborted.load())
    throw Aborted();
}

void Barrier::abort() {
  aborted.store(true);
  phase.increment();
}
