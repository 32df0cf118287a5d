//===- MpiTransport.h - Data in messages of MPI ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transport "mpi": for processes on several machines, or on one that cannot
// share memory. MPI is used by all streams at once, each with communicators of
// its own, and is left when the group is.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_MPI_MPITRANSPORT_H
#define ZERO_RT_COMM_MPI_MPITRANSPORT_H

#include "runtime/comm/Transport.h"
#include "runtime/comm/mpi/MpiCollective.h"

#include <map>

namespace zrt::mpi {

class MpiTransport : public Transport {
public:
  /// Collective. Throws Error.
  MpiTransport(zrt_group &group, const Program &program);
  ~MpiTransport() override;

  const char *name() const override { return "mpi"; }
  uint8_t *arena(uint32_t, size_t) const override { return nullptr; }
  std::unique_ptr<CollectiveCall>
  makeCollective(CollectiveRequest request) override;
  void allGather(const void *data, uint64_t bytes, void *all) override;
  void toFirst(uint32_t from, void *data, uint64_t bytes) override;
  void abort() override { aborted.store(true); }
  std::atomic<uint32_t> *place() override { return nullptr; }

private:
  void await(std::vector<MPI_Request> &requests,
             const std::vector<uint32_t> &ranks);

  zrt_group &group;
  ProcessGroup &processes;
  const Program &program;
  std::atomic<bool> aborted{false};
  MPI_Comm all = MPI_COMM_NULL; // ranks as in the group
  /// By stream and axes: this rank's group.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>,
           std::shared_ptr<Communicator>>
      communicators;
};

} // namespace zrt::mpi

#endif // ZERO_RT_COMM_MPI_MPITRANSPORT_H
