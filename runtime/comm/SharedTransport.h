//===- SharedTransport.h - Data in memory that processes share ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arenas of all processes are mapped by all, so collectives are those of
// threads (Collective.h) with barriers in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_SHAREDTRANSPORT_H
#define ZERO_RT_COMM_SHAREDTRANSPORT_H

#include "runtime/comm/SharedMemory.h"
#include "runtime/comm/Transport.h"

#include <deque>
#include <map>

namespace zrt {

class SharedTransport : public Transport {
public:
  /// Collective.
  SharedTransport(zrt_group &group, const Program &program);

  const char *name() const override { return "shm"; }
  uint8_t *arena(uint32_t rank, size_t index) const override {
    return memory.block(rank, index + 1);
  }
  std::unique_ptr<CollectiveCall>
  makeCollective(CollectiveRequest request) override;
  void allGather(const void *data, uint64_t bytes, void *all) override;
  void toFirst(uint32_t from, void *data, uint64_t bytes) override;
  void abort() override;
  std::atomic<uint32_t> *place() override;
  ~SharedTransport() override;

  /// Throws Late for the ranks of a group that have not come within `limit`.
  [[noreturn]] void failLate(const TimedOut &timedOut,
                             const std::vector<uint32_t> &group,
                             std::chrono::nanoseconds limit) const;

private:
  /// The first block of each process; behind it, in that of rank 0, the
  /// barriers.
  struct Control;
  Control &control(uint32_t rank) const;
  Barrier &barrierOf(const CollectiveRequest &request);
  void meet(Barrier &barrier, const std::vector<uint32_t> &group);
  static std::vector<uint64_t> blocksOf(const Program &program);

  ProcessGroup &processes;
  const zrt_group &group;
  const Program &program;
  SharedMemory memory;
  const uint32_t threads; // of all processes
  std::deque<Barrier> barriers;
  /// A communicator: this process's barrier of the collectives of one stream
  /// over the same axes.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, Barrier *> communicators;
  uint64_t taken = 0; // bytes of barriers behind the control block
  std::vector<uint32_t> everyone;
  Barrier *all;                     // of all processes
  std::vector<Barrier *> withFirst; // by rank: of it and rank 0
};

} // namespace zrt

#endif // ZERO_RT_COMM_SHAREDTRANSPORT_H
