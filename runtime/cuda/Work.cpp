//===- Work.cpp - What a command puts on a stream -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Work.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Work.h"

#include "runtime/cuda/Status.h"

using namespace zrt;
using namespace zrt::cuda;

/// What a block may use without being asked for.
static constexpr unsigned usualSharedBytes = 48 << 10;

KernelWork::KernelWork(std::vector<Launch> given) : launches(std::move(given)) {
  for (Launch &launch : launches) {
    std::vector<void *> addresses;
    for (CUdeviceptr &argument : launch.arguments)
      addresses.push_back(&argument);
    pointers.push_back(std::move(addresses));
    if (launch.sharedBytes > usualSharedBytes)
      checkCuda(
          cuFuncSetAttribute(launch.function,
                             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             int(launch.sharedBytes)),
          "kernel " + launch.name + " with " +
              std::to_string(launch.sharedBytes) + " bytes of shared memory");
  }
}

void KernelWork::enqueue(CUstream stream) {
  for (size_t index = 0; index < launches.size(); ++index) {
    Launch &launch = launches[index];
    checkCuda(cuLaunchKernel(launch.function, launch.grid[0], launch.grid[1],
                             launch.grid[2], launch.block[0], launch.block[1],
                             launch.block[2], launch.sharedBytes, stream,
                             pointers[index].data(), nullptr),
              "cuLaunchKernel");
  }
}
