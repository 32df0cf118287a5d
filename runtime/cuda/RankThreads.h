//===- RankThreads.h - A thread for each rank of a process ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks of one process work side by side, as NCCL expects. Their threads live
// as long as the session and sleep between its calls.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_RANKTHREADS_H
#define ZERO_RT_CUDA_RANKTHREADS_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace zrt::cuda {

class RankThreads {
public:
  explicit RankThreads(uint32_t count);
  ~RankThreads();
  RankThreads(const RankThreads &) = delete;
  RankThreads &operator=(const RankThreads &) = delete;

  /// Calls `body`, which does not throw, for each rank on its thread and
  /// returns when all are done.
  void run(const std::function<void(uint32_t rank)> &body);

private:
  void main(uint32_t rank);
  void stop();

  std::mutex mutex; // of all below
  std::condition_variable begin, end;
  const std::function<void(uint32_t)> *body = nullptr;
  uint64_t job = 0;
  uint32_t running = 0;
  bool ending = false;
  std::vector<std::thread> threads;
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_RANKTHREADS_H
