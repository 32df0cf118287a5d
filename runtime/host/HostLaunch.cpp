//===- HostLaunch.cpp - A kernel of the host, in parts --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See HostLaunch.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/HostLaunch.h"

#include <algorithm>

using namespace zrt;
using namespace zrt::host;

/// Elements of which a vector, and a cache line, of each type is a part.
static constexpr int64_t grain = 64;
/// Least elements of a part: some ten microseconds of an update.
static constexpr int64_t leastElements = 1 << 14;
/// A thread that wakes late leaves its parts to the others.
static constexpr int64_t partsPerThread = 4;

uint32_t zrt::host::countParts(int64_t split, uint32_t threads) {
  int64_t most = threads == 1 ? 1 : threads * partsPerThread;
  return static_cast<uint32_t>(
      std::clamp<int64_t>(split / leastElements, 1, most));
}

Range zrt::host::getPart(int64_t split, uint32_t part, uint32_t parts) {
  int64_t grains = (split + grain - 1) / grain;
  int64_t each = (grains + parts - 1) / parts * grain;
  return {std::min<int64_t>(part * each, split),
          std::min<int64_t>((part + 1) * each, split)};
}

void zrt::host::launchKernel(Kernel kernel, void **buffers, int64_t split,
                             HostThreads *threads) {
  if (split == 0)
    return kernel(buffers);
  auto inParts =
      reinterpret_cast<SplitKernel>(reinterpret_cast<void *>(kernel));
  uint32_t parts = threads ? countParts(split, threads->count()) : 1;
  if (parts == 1)
    return inParts(buffers, 0, split);
  threads->run(parts, [&](uint32_t part) {
    Range range = getPart(split, part, parts);
    inParts(buffers, range.begin, range.end);
  });
}
