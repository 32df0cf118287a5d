//===- BarrierTest.cpp - Tests of the ranks' meeting point ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Many rounds, and release by abort.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Barrier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

using namespace zrt;

/// No thread leaves a barrier before all have arrived, round after round.
TEST(Barrier, HoldsEveryRound) {
  for (uint32_t ranks : {1, 2, 3, 5, 8}) {
    Barrier barrier(ranks);
    std::vector<int> round(ranks, 0);
    std::vector<std::thread> threads;
    bool wrong[8] = {};
    for (uint32_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        for (int step = 1; step <= 200; ++step) {
          round[rank] = step;
          barrier.wait();
          for (int other : round)
            wrong[rank] |= other != step;
          barrier.wait();
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    for (uint32_t rank = 0; rank < ranks; ++rank)
      EXPECT_FALSE(wrong[rank]) << "rank " << rank << " of " << ranks;
  }
}

/// Those who wait are released by an abort, and nobody waits after it.
TEST(Barrier, AbortReleasesAll) {
  for (int delay : {0, 20}) { // before and after the others fall asleep
    Barrier barrier(4);
    std::vector<std::thread> threads;
    bool aborted[3] = {};
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        try {
          barrier.wait();
        } catch (const Aborted &) {
          aborted[rank] = true;
        }
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    barrier.abort();
    for (std::thread &thread : threads)
      thread.join();
    for (bool released : aborted)
      EXPECT_TRUE(released);
    EXPECT_THROW(barrier.wait(), Aborted);
  }
}
