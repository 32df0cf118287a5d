//===- HostThreads.cpp - Threads that share one rank's host work ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See HostThreads.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/HostThreads.h"
#include "runtime/core/Error.h"

#include <system_error>

using namespace zrt;
using namespace zrt::host;

HostThreads::HostThreads(uint32_t threads) {
  try {
    while (count() < threads)
      helpers.emplace_back([this] { help(); });
  } catch (const std::system_error &error) {
    uint32_t started = count();
    stop();
    // no test: takes a system without threads.
    fail(ZRT_ERROR_MEMORY, "cannot start ", threads,
         " threads for a rank's host work, only ", started, ": ", error.what());
  }
}

HostThreads::~HostThreads() { stop(); }

void HostThreads::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  begin.notify_all();
  for (std::thread &helper : helpers)
    helper.join();
}

/// Takes parts as long as there are some; `lock` is held between them.
void HostThreads::work(std::unique_lock<std::mutex> &lock) {
  while (next < parts) {
    uint32_t part = next++;
    const Body &job = *body;
    lock.unlock();
    job(part);
    lock.lock();
    if (--unfinished == 0)
      end.notify_one();
  }
}

void HostThreads::help() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    begin.wait(lock, [&] { return ending || next < parts; });
    if (ending)
      return;
    work(lock);
  }
}

void HostThreads::run(uint32_t count, const Body &job) {
  std::lock_guard<std::mutex> one(turn);
  std::unique_lock<std::mutex> lock(mutex);
  body = &job;
  next = 0;
  parts = unfinished = count;
  if (count > 1)
    begin.notify_all();
  work(lock);
  end.wait(lock, [&] { return unfinished == 0; });
}
