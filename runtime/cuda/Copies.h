//===- Copies.h - Copy and fill commands ------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Within and between memory spaces: by the copy engines where the views are
// contiguous or rows of equal distance, by a kernel where they are not, and by
// the host in its own memory and from and to disk.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_COPIES_H
#define ZERO_RT_CUDA_COPIES_H

#include "runtime/cuda/DeviceKernels.h"
#include "runtime/cuda/HostWork.h"
#include "runtime/cuda/RankMemory.h"

#include <memory>

namespace zrt::cuda {

/// Makes the work of a rank's copy and fill commands.
class CopyMaker {
public:
  CopyMaker(const Program &program, uint32_t rank, RankMemory &memory,
            const DeviceKernels &kernels, HostFailure &failure);

  /// The command's work. Throws Error.
  std::unique_ptr<Work> make(size_t command) const;

private:
  std::unique_ptr<Work> fill(size_t command) const;
  std::unique_ptr<Work> copy(size_t command) const;
  std::unique_ptr<Work> diskCopy(size_t command) const;
  std::unique_ptr<Work> onHost(size_t command, const View &from,
                               const uint8_t *source) const;
  Tensor tensor(const Operand &operand) const;

  const Program &program;
  const uint32_t rank;
  RankMemory &memory;
  const DeviceKernels &kernels;
  HostFailure &failure;
  DeviceBlock zero; // what strided fills copy from
};

/// Consecutive bytes on a device become `value`, or are copied there.
class SetBytes : public Work {
public:
  SetBytes(CUdeviceptr to, uint64_t bytes, uint8_t value)
      : to(to), bytes(bytes), value(value) {}
  void enqueue(CUstream stream) override;

private:
  CUdeviceptr to;
  uint64_t bytes;
  uint8_t value;
};

/// Where the ends of a copy lie.
enum class Way { WithinDevice, ToDevice, ToHost };

class CopyBytes : public Work {
public:
  CopyBytes(Way way, CUdeviceptr from, CUdeviceptr to, uint64_t bytes)
      : way(way), from(from), to(to), bytes(bytes) {}
  void enqueue(CUstream stream) override;

private:
  Way way;
  CUdeviceptr from, to;
  uint64_t bytes;
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_COPIES_H
