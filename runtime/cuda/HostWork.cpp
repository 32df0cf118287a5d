//===- HostWork.cpp - Work of the host within a stream --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See HostWork.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/HostWork.h"

#include "runtime/cuda/Status.h"

#include <exception>

using namespace zrt;
using namespace zrt::cuda;

/// A checker of accesses that has taken the driver's place defines it: it
/// cannot see by itself what the host touches.
extern "C" __attribute__((weak)) void
fake_cuda_host_access(const void *address, uint64_t bytes, int write);

void HostFailure::record(size_t command, const std::string &what) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failed())
    return;
  where = command;
  text = what;
  isSet.store(true, std::memory_order_release);
}

void HostWork::run() noexcept {
  if (failure.failed())
    return;
  if (fake_cuda_host_access)
    for (const Use &use : uses)
      fake_cuda_host_access(use.address, use.bytes, use.write);
  try {
    body();
  } catch (const std::exception &error) {
    failure.record(command, error.what());
  } catch (...) {
    failure.record(command, "unknown exception");
  }
}

void HostWork::call(void *work) noexcept {
  static_cast<HostWork *>(work)->run();
}

void HostWork::enqueue(CUstream stream) {
  checkCuda(cuLaunchHostFunc(stream, call, this), "cuLaunchHostFunc");
}
