//===- HostThreads.h - Threads that share one rank's host work --*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pool that lives as long as its rank. Between jobs its threads sleep: the
// streams need the processors.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_HOSTTHREADS_H
#define ZERO_RT_HOST_HOSTTHREADS_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace zrt::host {

/// The calling thread and its helpers.
class HostThreads {
public:
  /// Work on one part of a job; does not throw.
  using Body = std::function<void(uint32_t part)>;

  /// Starts `threads` - 1 helpers; throws Error when the system has no more.
  explicit HostThreads(uint32_t threads);
  ~HostThreads();
  HostThreads(const HostThreads &) = delete;
  HostThreads &operator=(const HostThreads &) = delete;

  /// Threads that work on a job, the caller among them.
  uint32_t count() const { return static_cast<uint32_t>(helpers.size()) + 1; }

  /// Calls `body` for parts 0 to `parts` - 1, each once, on whichever thread is
  /// free, and returns when all are done. Callers of several threads take
  /// turns.
  void run(uint32_t parts, const Body &body);

private:
  void help();
  void work(std::unique_lock<std::mutex> &lock);
  void stop();

  std::mutex turn;
  std::mutex mutex; // of all below
  std::condition_variable begin, end;
  const Body *body = nullptr;
  uint32_t next = 0, parts = 0, unfinished = 0;
  bool ending = false;
  std::vector<std::thread> helpers;
};

} // namespace zrt::host

#endif // ZERO_RT_HOST_HOSTTHREADS_H
