//===- CheckpointThreads.h - Transfers beside the work ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Saving and loading hash and copy one chunk while the disk has others. What a
// thread throws comes out where its job is waited for.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_CHECKPOINTTHREADS_H
#define ZERO_RUNTIME_IO_CHECKPOINTTHREADS_H

#include "runtime/io/Checkpoint.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace zrt {

/// Threads that do jobs in the background. None: start() does the job itself,
/// so that calls have one order.
class IoThreads {
public:
  explicit IoThreads(unsigned count);
  /// Drops jobs that have not begun and waits for those that have.
  ~IoThreads();

  unsigned count() const { return unsigned(lanes.size()); }
  /// Jobs of one lane are done one after another, in their order; lanes are
  /// counted modulo the number of threads. The future throws what the job
  /// throws; without threads start() does.
  std::future<void> start(size_t lane, std::function<void()> job);

private:
  struct Lane {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::packaged_task<void()>> jobs;
    bool ending = false;
    std::thread thread;

    void work();
    ~Lane();
  };
  std::vector<std::unique_ptr<Lane>> lanes;
};

/// The pieces that files are transferred in. They stay in the processor's cache
/// between the copy, the hash and the transfer.
constexpr size_t checkpointChunkBytes = checkpointBucketBytes / 4;
/// Chunks in memory at once: two buckets.
constexpr size_t checkpointChunks = 8;

/// A chunk, and the job that has it.
struct IoChunk {
  std::vector<uint8_t> bytes;
  std::future<void> busy;

  /// Until the job is done; throws what it threw.
  void wait() {
    if (busy.valid())
      busy.get();
  }
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_CHECKPOINTTHREADS_H
