//===- HostLaunch.h - A kernel of the host, in parts ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Updates in host memory are elementwise: their kernels compute any range of
// the elements, and give the same bits however the ranges are cut.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_HOSTLAUNCH_H
#define ZERO_RT_HOST_HOSTLAUNCH_H

#include "runtime/core/KernelLibrary.h"
#include "runtime/host/HostThreads.h"

namespace zrt::host {

/// A kernel that computes elements [begin, end).
using SplitKernel = void (*)(void **buffers, int64_t begin, int64_t end);

/// Elements [begin, end).
struct Range {
  int64_t begin, end;
};

/// In how many parts `threads` threads compute `split` elements: 1 for what is
/// done before a thread has woken.
uint32_t countParts(int64_t split, uint32_t threads);

/// Part `part` of `parts` of [0, split). All but the last end at a multiple of
/// the elements in a cache line, so that no two threads write to the same.
Range getPart(int64_t split, uint32_t part, uint32_t parts);

/// Runs a launch: `kernel(buffers)` where `split` is 0, otherwise a SplitKernel
/// over [0, split) on `threads`, or on the caller alone where that is null.
void launchKernel(Kernel kernel, void **buffers, int64_t split,
                  HostThreads *threads);

} // namespace zrt::host

#endif // ZERO_RT_HOST_HOSTLAUNCH_H
