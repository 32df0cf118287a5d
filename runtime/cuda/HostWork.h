//===- HostWork.h - Work of the host within a stream ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches on the host's processor, copies from and to disk and whatever else
// the host does when a stream has come so far. The driver calls it on a thread
// of its own, from which no error can be thrown: the first one is kept.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_HOSTWORK_H
#define ZERO_RT_CUDA_HOSTWORK_H

#include "runtime/cuda/Work.h"

#include <atomic>
#include <functional>
#include <mutex>

namespace zrt::cuda {

/// The first error of a rank's work on the host.
class HostFailure {
public:
  void record(size_t command, const std::string &what);
  /// Work that comes after an error is left out.
  bool failed() const { return isSet.load(std::memory_order_acquire); }
  /// Once there is one: its command and text.
  size_t command() const { return where; }
  const std::string &what() const { return text; }

private:
  std::mutex mutex;
  std::atomic<bool> isSet{false};
  size_t where = 0;
  std::string text;
};

class HostWork : public Work {
public:
  /// Memory that the work reads or writes.
  struct Use {
    const void *address;
    uint64_t bytes;
    bool write;
  };
  /// `body` may throw; it must not call the driver.
  HostWork(HostFailure &failure, size_t command, std::vector<Use> uses,
           std::function<void()> body)
      : failure(failure), command(command), uses(std::move(uses)),
        body(std::move(body)) {}
  void enqueue(CUstream stream) override;

private:
  static void call(void *work) noexcept;
  void run() noexcept;

  HostFailure &failure;
  size_t command;
  std::vector<Use> uses;
  std::function<void()> body;
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_HOSTWORK_H
