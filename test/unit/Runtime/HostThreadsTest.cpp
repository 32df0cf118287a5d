//===- HostThreadsTest.cpp - Tests of host work in parts ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every part runs once, on several threads, from several callers; a kernel's
// parts cover its elements.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/HostThreads.h"
#include "runtime/host/HostLaunch.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <ctime>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace zrt;
using namespace zrt::host;

TEST(HostThreads, EveryPartRunsOnce) {
  for (uint32_t count : {1, 2, 3, 5}) {
    HostThreads threads(count);
    EXPECT_EQ(threads.count(), count);
    for (uint32_t parts : {0, 1, 2, 7, 64}) {
      std::vector<int> runs(parts, 0);
      for (int job = 0; job < 20; ++job)
        threads.run(parts, [&](uint32_t part) { ++runs[part]; });
      EXPECT_EQ(runs, std::vector<int>(parts, 20));
    }
  }
}

// Three parts that wait for each other need three threads.
TEST(HostThreads, HelpersWorkBesideTheCaller) {
  HostThreads threads(3);
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::thread::id> present;
  threads.run(3, [&](uint32_t) {
    std::unique_lock<std::mutex> lock(mutex);
    present.insert(std::this_thread::get_id());
    changed.notify_all();
    changed.wait(lock, [&] { return present.size() == 3; });
  });
  EXPECT_EQ(present.count(std::this_thread::get_id()), 1u);
}

TEST(HostThreads, CallersTakeTurns) {
  HostThreads threads(2);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> callers;
  for (int &mine : wrong)
    callers.emplace_back([&] {
      for (int job = 0; job < 100; ++job) {
        std::vector<int> runs(3, 0);
        threads.run(3, [&](uint32_t part) {
          std::this_thread::yield();
          ++runs[part];
        });
        mine += runs != std::vector<int>(3, 1);
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

/// Processor seconds of this process.
static double processorTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

TEST(HostThreads, IdleHelpersSleep) {
  HostThreads threads(4);
  threads.run(4, [](uint32_t) {});
  double before = processorTime();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(processorTime() - before, 0.05);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

TEST(HostLaunch, PartsCoverTheElements) {
  for (int64_t split : {1, 3, 63, 64, 65, 257, 100000})
    for (uint32_t parts = 1; parts <= 9; ++parts) {
      int64_t reached = 0;
      for (uint32_t part = 0; part < parts; ++part) {
        Range range = getPart(split, part, parts);
        EXPECT_EQ(range.begin, reached);
        EXPECT_TRUE(range.end == split || range.end % 64 == 0);
        reached = range.end;
      }
      EXPECT_EQ(reached, split);
    }
}

// What is done before a thread has woken is one part.
TEST(HostLaunch, LittleIsNotCut) {
  EXPECT_EQ(countParts(1000, 8), 1u);
  EXPECT_EQ(countParts(1 << 15, 8), 2u);
  EXPECT_EQ(countParts(int64_t(1) << 40, 2), 8u);
  EXPECT_EQ(countParts(int64_t(1) << 40, 1), 1u);
}

static void countElements(void **buffers, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    ++static_cast<int *>(buffers[0])[i];
}

TEST(HostLaunch, EveryElementIsComputedOnce) {
  auto kernel =
      reinterpret_cast<Kernel>(reinterpret_cast<void *>(&countElements));
  HostThreads threads(3);
  std::vector<int> counts(100003, 0);
  void *buffers[] = {counts.data()};
  launchKernel(kernel, buffers, 100003, &threads);
  EXPECT_EQ(counts, std::vector<int>(100003, 1));
  launchKernel(kernel, buffers, 100003, nullptr);
  EXPECT_EQ(counts, std::vector<int>(100003, 2));
}

static void countCall(void **buffers) { ++*static_cast<int *>(buffers[0]); }

TEST(HostLaunch, WhatCannotBeCutRunsOnce) {
  HostThreads threads(3);
  int calls = 0;
  void *buffers[] = {&calls};
  launchKernel(countCall, buffers, 0, &threads);
  EXPECT_EQ(calls, 1);
}
