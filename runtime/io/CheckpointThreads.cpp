//===- CheckpointThreads.cpp - Transfers beside the work ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A queue for each thread.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/CheckpointThreads.h"

using namespace zrt;

IoThreads::IoThreads(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    lanes.push_back(std::make_unique<Lane>());
    Lane *lane = lanes.back().get();
    lane->thread = std::thread([lane] { lane->work(); });
  }
}

IoThreads::~IoThreads() = default;

void IoThreads::Lane::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return ending || !jobs.empty(); });
    if (ending)
      return;
    std::packaged_task<void()> job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

IoThreads::Lane::~Lane() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  changed.notify_one();
  if (thread.joinable())
    thread.join();
}

std::future<void> IoThreads::start(size_t lane, std::function<void()> job) {
  if (lanes.empty()) {
    job();
    return {};
  }
  Lane &chosen = *lanes[lane % lanes.size()];
  std::packaged_task<void()> task(std::move(job));
  std::future<void> done = task.get_future();
  {
    std::lock_guard<std::mutex> lock(chosen.mutex);
    chosen.jobs.push_back(std::move(task));
  }
  chosen.changed.notify_one();
  return done;
}
