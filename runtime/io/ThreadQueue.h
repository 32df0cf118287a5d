//===- ThreadQueue.h - Transfers on threads ---------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the system has no queue: as many threads as transfers may be under way,
// which wait for each with readAt and writeAt.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_THREADQUEUE_H
#define ZERO_RUNTIME_IO_THREADQUEUE_H

#include "runtime/io/FileSystem.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace zrt {

class ThreadQueue final : public TransferQueue {
public:
  /// Throws std::system_error when the system has no more threads.
  ThreadQueue(FileSystem &system, unsigned threads);
  ~ThreadQueue() override;

  int64_t begin(const Transfer &transfer) override;
  /// Throws what the file system has thrown.
  int64_t finish(uint64_t &tag, int64_t &result) override;

private:
  struct Answer {
    uint64_t tag;
    int64_t result;
    std::exception_ptr failure;
  };
  void work();
  Answer answer(const Transfer &transfer);
  void stop();

  FileSystem &system;
  std::mutex mutex; // of all below
  std::condition_variable begun, finished;
  std::deque<Transfer> waiting;
  std::deque<Answer> answers;
  bool ending = false;
  std::vector<std::thread> threads;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_THREADQUEUE_H
