//===- bench-host-update.cpp - Updates in host memory beside a triad ------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   bench-host-update [MIB [THREADS [REPEATS [CPU]]]]
//
// For 1 to THREADS threads (2), the best of REPEATS (7) turns of each kernel on
// arrays of MIB (192) MiB an f32 tensor: GB/s, the ratio to the triad, and the
// seconds of a billion parameters. Compiled for CPU (native), a name of LLVM.
//
//===----------------------------------------------------------------------===//

#include "UpdateKernels.h"
#include "runtime/core/KernelLibrary.h"
#include "runtime/core/Memory.h"
#include "runtime/host/HostLaunch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sched.h>
#include <thread>

using namespace zero_bench;

/// The arrays in memory, one after the other as in an arena.
static constexpr Array kArrays[] = {
    Array::Parameter, Array::Gradient, Array::First, Array::Second,
    Array::Cast,      Array::A,        Array::B,     Array::C};

namespace {
/// What the kernels work on, touched once.
class Arrays {
public:
  explicit Arrays(int64_t parameters)
      : bytes(parameters * 4), memory(std::size(kArrays) * bytes, "arrays") {
    // Bytes that are a small positive number of each type.
    auto *words = reinterpret_cast<uint32_t *>(memory.data());
    for (size_t i = 0; i < std::size(kArrays) * parameters; ++i)
      words[i] = 0x3c003c00u + i % 256;
  }

  std::vector<void *> get(const UpdateKernel &kernel) {
    std::vector<void *> operands;
    for (Array array : kernel.operands)
      operands.push_back(array == Array::Rate   ? static_cast<void *>(&rate)
                         : array == Array::Step ? static_cast<void *>(&step)
                                                : find(array));
    return operands;
  }

private:
  void *find(Array array) {
    const Array *place =
        std::find(std::begin(kArrays), std::end(kArrays), array);
    return memory.data() + (place - kArrays) * bytes;
  }

  int64_t bytes;
  zrt::MemoryBlock memory;
  float rate = 1e-3f;
  int64_t step = 100;
};
} // namespace

static double measure(const UpdateKernel &kernel,
                      const zrt::KernelLibrary &library, Arrays &arrays,
                      int64_t parameters, zrt::host::HostThreads &threads) {
  std::vector<void *> operands = arrays.get(kernel);
  auto begin = std::chrono::steady_clock::now();
  zrt::host::launchKernel(library.find(kernel.name), operands.data(),
                          parameters / kernel.elementsPerParameter, &threads);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return time.count();
}

/// Gives each thread a processor of its own, as far as there are some.
static void pin(zrt::host::HostThreads &threads) {
  std::atomic<uint32_t> present{0};
  threads.run(threads.count(), [&](uint32_t part) {
    cpu_set_t processor;
    CPU_ZERO(&processor);
    CPU_SET(part % std::thread::hardware_concurrency(), &processor);
    sched_setaffinity(0, sizeof(processor), &processor);
    for (++present; present < threads.count();)
      std::this_thread::yield(); // else one thread might take two parts
  });
}

/// The best time of each kernel, in turn so that all see the same neighbours.
static std::vector<double> measureAll(const std::vector<UpdateKernel> &kernels,
                                      const zrt::KernelLibrary &library,
                                      Arrays &arrays, int64_t parameters,
                                      uint32_t threads, int repeats) {
  zrt::host::HostThreads pool(threads);
  pin(pool);
  std::vector<double> best(kernels.size(), 1e30);
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (size_t i = 0; i < kernels.size(); ++i)
      best[i] = std::min(
          best[i], measure(kernels[i], library, arrays, parameters, pool));
  return best;
}

static void print(const std::vector<UpdateKernel> &kernels,
                  const std::vector<double> &best, int64_t parameters,
                  uint32_t threads) {
  auto rate = [&](size_t i, bool allocates) {
    int64_t bytes = kernels[i].bytes + (allocates ? kernels[i].allocated : 0);
    return bytes * (parameters / kernels[i].elementsPerParameter) / best[i] /
           1e9;
  };
  for (size_t i = 0; i < kernels.size(); ++i)
    std::printf(
        "| %u | %s | %.1f | %.2f | %.1f | %.2f | %s |\n", threads,
        kernels[i].name.c_str(), rate(i, false),
        rate(i, false) / rate(0, false), rate(i, true),
        rate(i, true) / rate(0, true),
        i == 0
            ? ""
            : std::to_string(best[i] / parameters * 1e9).substr(0, 4).c_str());
  std::fflush(stdout);
}

int main(int argc, char **argv) {
  auto number = [&](int i, int64_t otherwise) {
    return argc > i ? std::max(1ll, std::atoll(argv[i])) : otherwise;
  };
  int64_t parameters = number(1, 192) << 18;
  auto most = static_cast<uint32_t>(number(2, 2));
  auto repeats = static_cast<int>(number(3, 7));
  std::vector<UpdateKernel> kernels = getUpdateKernels();
  zrt::KernelLibrary library(
      compileUpdateKernels(parameters, argc > 4 ? argv[4] : "native"));
  Arrays arrays(parameters);
  std::printf(
      "| threads | kernel | GB/s | of triad | GB/s with allocation | of "
      "triad | s for 1e9 parameters |\n"
      "|---:|---|---:|---:|---:|---:|---:|\n");
  for (uint32_t threads = 1; threads <= most; ++threads)
    print(kernels,
          measureAll(kernels, library, arrays, parameters, threads, repeats),
          parameters, threads);
}
