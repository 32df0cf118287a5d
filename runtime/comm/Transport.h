//===- Transport.h - How data gets from process to process ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The data plane of a group of processes on the host, one rank each: memory
// that all of them map ("shm", SharedTransport.h), or messages ("mpi", in a
// library of its own). Both give the bits that threads of one process give.
//
// A function marked "collective" is called by all processes in the same order.
// A wait ends with Aborted after abort(), and with Late when another process
// takes too long.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TRANSPORT_H
#define ZERO_RT_COMM_TRANSPORT_H

#include "runtime/comm/Collective.h"
#include "runtime/comm/Group.h"
#include "runtime/core/Program.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace zrt {

/// Other ranks have not come in time; says which, and where they are if that is
/// known.
class Late : public Error {
public:
  explicit Late(const std::string &what) : Error(ZRT_ERROR_EXECUTION, what) {}
};

/// A collective command as one group executes it. The pieces have the addresses
/// of the ranks whose memory this process reaches; the others are null.
struct CollectiveRequest {
  const Command &command;
  const std::vector<uint32_t> &group; ///< ranks, by position
  uint32_t number;                    ///< of the group among those of the axes
  std::vector<CollectivePiece> pieces;
};

class Transport {
public:
  virtual ~Transport() = default;

  /// "shm" or "mpi".
  virtual const char *name() const = 0;
  /// Where an arena of a rank lies; null: in memory that only its own process
  /// has, which that makes itself.
  virtual uint8_t *arena(uint32_t rank, size_t index) const = 0;

  /// Collective: what runs a command in the group of this process.
  virtual std::unique_ptr<CollectiveCall>
  makeCollective(CollectiveRequest request) = 0;

  /// Collective, between steps: `bytes` of each rank, by rank, into `all`.
  virtual void allGather(const void *data, uint64_t bytes, void *all) = 0;
  /// Collective, between steps: `data` of rank `from` into that of rank 0. It
  /// is not used in other processes.
  virtual void toFirst(uint32_t from, void *data, uint64_t bytes) = 0;

  /// Ends all waits of this process, now and later. Any thread.
  virtual void abort() = 0;

  /// Where this process is in its step, for what others say when it is late:
  /// to be set to the compute stream's command + 1, and to 0 between steps.
  /// Null: nobody would see it.
  virtual std::atomic<uint32_t> *place() = 0;
};

/// Collective: the transport that the group asks for. Throws Error.
std::unique_ptr<Transport> makeTransport(zrt_group &group,
                                         const Program &program);

/// "command 7 (all_gather) from fc1", for messages.
std::string commandText(const Program &program, size_t index);

/// What a library of a transport exports under `kMakeTransport`.
using MakeTransport = Transport *(zrt_group &group, const Program &program);
constexpr const char *kMakeTransport = "zrt_make_transport";

/// "rank 2 has not come within 30 s".
std::string lateText(const std::string &who, std::chrono::nanoseconds limit);
/// How long what is planned may take in a group.
std::chrono::nanoseconds limitOf(const zrt_group &group, double plannedSeconds);

} // namespace zrt

#endif // ZERO_RT_COMM_TRANSPORT_H
