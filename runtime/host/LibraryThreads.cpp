//===- LibraryThreads.cpp - Threads of library calls ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See LibraryThreads.h. The OpenMP runtime is the one that oneDNN brought,
// hence by name; GNU's entry points, which LLVM's runtime has as well.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/LibraryThreads.h"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>

using namespace zrt;

template <typename Function>
static Function *find(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

// ThreadSanitizer does not see how OpenMP's threads wait for each other.
#if defined(__SANITIZE_THREAD__)
#define ZRT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ZRT_THREAD_SANITIZER 1
#endif
#endif
#ifdef ZRT_THREAD_SANITIZER
static constexpr bool alone = true;
#else
static constexpr bool alone = false;
#endif

uint32_t zrt::countLibraryThreads() {
  static auto *count = find<int()>("omp_get_max_threads");
  return count && !alone ? uint32_t(std::max(1, count())) : 1;
}

namespace {
/// One job of several threads.
struct Job {
  int64_t tasks;
  const std::function<void(uint32_t, int64_t)> &body;
  std::atomic<int64_t> next{0};
  std::atomic<uint32_t> workers{0};
};
} // namespace

static void work(void *data) {
  auto &job = *static_cast<Job *>(data);
  uint32_t worker = job.workers++;
  for (int64_t task = job.next++; task < job.tasks; task = job.next++)
    job.body(worker, task);
}

void zrt::runOnLibraryThreads(
    uint32_t threads, int64_t tasks,
    const std::function<void(uint32_t worker, int64_t task)> &body) {
  using Parallel = void(void (*)(void *), void *, unsigned, unsigned);
  static auto *parallel = find<Parallel>("GOMP_parallel");
  Job job{tasks, body};
  if (parallel && !alone && threads > 1 && tasks > 1)
    parallel(&work, &job, unsigned(std::min<int64_t>(threads, tasks)), 0);
  else
    work(&job);
}
