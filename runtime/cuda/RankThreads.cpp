//===- RankThreads.cpp - A thread for each rank of a process --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See RankThreads.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/RankThreads.h"

using namespace zrt::cuda;

RankThreads::RankThreads(uint32_t count) {
  try {
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back(&RankThreads::main, this, rank);
  } catch (...) {
    stop();
    throw;
  }
}

RankThreads::~RankThreads() { stop(); }

void RankThreads::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  begin.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void RankThreads::main(uint32_t rank) {
  std::unique_lock<std::mutex> lock(mutex);
  for (uint64_t done = 0;; ++done) {
    begin.wait(lock, [&] { return ending || job > done; });
    if (ending)
      return;
    lock.unlock();
    (*body)(rank);
    lock.lock();
    if (--running == 0)
      end.notify_all();
  }
}

void RankThreads::run(const std::function<void(uint32_t rank)> &given) {
  std::unique_lock<std::mutex> lock(mutex);
  body = &given;
  running = uint32_t(threads.size());
  ++job;
  begin.notify_all();
  end.wait(lock, [&] { return running == 0; });
}
