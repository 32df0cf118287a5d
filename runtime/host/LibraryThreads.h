//===- LibraryThreads.h - Threads of library calls --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The OpenMP threads that oneDNN's calls of this thread use, for work of ours:
// no processor is asked for twice, and oneDNN's functions called from there
// compute alone.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_LIBRARYTHREADS_H
#define ZERO_RT_HOST_LIBRARYTHREADS_H

#include <cstdint>
#include <functional>

namespace zrt {

/// How many threads library calls of the calling thread have.
uint32_t countLibraryThreads();

/// Calls `body` for tasks 0 to `tasks` - 1, each once, on at most `threads`
/// threads; `worker` is the number of the one that calls. `body` must not
/// throw.
void runOnLibraryThreads(
    uint32_t threads, int64_t tasks,
    const std::function<void(uint32_t worker, int64_t task)> &body);

} // namespace zrt

#endif // ZERO_RT_HOST_LIBRARYTHREADS_H
