//===- Work.h - What a command puts on a stream -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Commands on the addresses of one rank. All is prepared when a session begins;
// enqueueing allocates nothing and does not wait, so it may be captured.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_WORK_H
#define ZERO_RT_CUDA_WORK_H

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

namespace zrt::cuda {

/// A command, ready to run. Of one rank's thread; the context is current.
class Work {
public:
  virtual ~Work() = default;
  /// Throws Error.
  virtual void enqueue(CUstream stream) = 0;
};

/// A function of the device code on its arguments.
class KernelWork : public Work {
public:
  struct Launch {
    std::string name; // for messages
    CUfunction function;
    unsigned grid[3], block[3], sharedBytes;
    std::vector<CUdeviceptr> arguments;
  };
  explicit KernelWork(std::vector<Launch> launches);
  void enqueue(CUstream stream) override;

private:
  std::vector<Launch> launches;
  std::vector<std::vector<void *>> pointers; // to the arguments, by launch
};

/// Nothing.
class NoWork : public Work {
public:
  void enqueue(CUstream) override {}
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_WORK_H
