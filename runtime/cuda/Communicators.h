//===- Communicators.h - Collectives among GPUs -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rank's NCCL communicators: one for each stream and set of grid axes that
// the plan's collectives use, all made when a session begins, in the order of
// the plan. NCCL never blocks: what it does not finish at once is polled, so
// that the failure or silence of another rank ends the wait.
//
// A reduction of bf16 or f16 is rounded by NCCL where it likes: the bits are
// not those of the host backend.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_COMMUNICATORS_H
#define ZERO_RT_CUDA_COMMUNICATORS_H

#include "runtime/cuda/RankMemory.h"
#include "runtime/cuda/Work.h"

#include <atomic>
#include <map>
#include <memory>
#include <nccl.h>
#include <utility>
#include <vector>

namespace zrt::cuda {

/// Tells the ranks of this process that all is over. Any thread.
class Cancel {
public:
  void set() { flag.store(true, std::memory_order_release); }
  bool isSet() const { return flag.load(std::memory_order_acquire); }
  /// Throws Aborted once it is set.
  void check() const;

private:
  std::atomic<bool> flag{false};
};

/// Sleeps between two looks of what polls: shortly at first.
class PollPause {
public:
  void operator()();

private:
  uint32_t looks = 0;
};

class Communicators {
public:
  /// None where the program sends nothing; `always`: one of all ranks in any
  /// case. On the rank's thread, on all ranks at the same time; `id` is the
  /// same on all. `timeoutSeconds` is the limit of each call's completion.
  Communicators(const Program &program, uint32_t rank, const ncclUniqueId &id,
                const std::vector<DeviceBlock> &arenas, bool always,
                double timeoutSeconds, const Cancel &cancel);
  /// Ends them; all ranks at the same time, unless abort() was called.
  ~Communicators();
  Communicators(const Communicators &) = delete;
  Communicators &operator=(const Communicators &) = delete;

  /// The work of a collective command. Throws Error.
  std::unique_ptr<Work> make(const Command &command, const RankMemory &memory);

  /// Throws Error once NCCL has found that a communicator is broken.
  void checkAsync() const;
  /// Ends everything under way, here alone; nothing may be enqueued later.
  void abort() noexcept;

  bool any() const { return !all.empty(); }
  /// Enqueues `bytes` bytes of rank `root` to the same place on all ranks.
  void broadcast(CUdeviceptr data, uint64_t bytes, uint32_t root,
                 CUstream stream);

  /// Whether any group of the program's collectives has several ranks.
  static bool needed(const Program &program);

private:
  struct Registration {
    ncclComm_t communicator;
    void *handle;
  };
  using Key = std::pair<uint32_t, std::vector<uint32_t>>; // stream, axes

  void createAll(const ncclUniqueId &id);
  ncclComm_t createWorld(const ncclUniqueId &id);
  ncclComm_t split(const std::vector<uint32_t> &axes);
  void registerArenas(ncclComm_t communicator,
                      const std::vector<DeviceBlock> &arenas);
  void settle(ncclComm_t communicator, const char *what) const;
  void finish() noexcept;

  friend class CollectiveWork;

  const Program &program;
  const uint32_t rank;
  const double timeoutSeconds;
  const Cancel &cancel;
  ncclComm_t world = nullptr;
  std::map<Key, ncclComm_t> byUse;
  std::vector<ncclComm_t> all; // in the order they were made
  std::vector<Registration> registrations;
  bool aborted = false;
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_COMMUNICATORS_H
