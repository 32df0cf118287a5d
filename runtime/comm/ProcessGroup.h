//===- ProcessGroup.h - The processes of a run ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processes that run one program together, each with one rank: how they find
// each other, agree, and learn that one of them has failed. Data of collectives
// takes other ways (Collective.h, NCCL, MPI); this is for a few kilobytes.
//
// Functions called "collective" are called by all processes in the same order.
// They throw PeerFailed once any process has failed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_PROCESSGROUP_H
#define ZERO_RT_COMM_PROCESSGROUP_H

#include "runtime/core/Error.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zrt {

/// Another process has failed, which has said why (or was lost, which rank 0
/// says): this one ends without a word of its own.
class PeerFailed : public Error {
public:
  explicit PeerFailed(const std::string &what) : Error(ZRT_ERROR_PEER, what) {}
};

class ProcessGroup {
public:
  virtual ~ProcessGroup() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  /// Among the processes of this machine.
  virtual uint32_t localRank() const = 0;
  virtual uint32_t localSize() const = 0;
  /// All processes run on one machine and can share memory.
  virtual bool oneMachine() const = 0;

  /// Collective: what each process gives, by rank.
  virtual std::vector<std::string> allGather(const std::string &bytes) = 0;
  /// Collective: what process 0 gives.
  virtual std::string broadcast(const std::string &bytes) = 0;
  /// Collective.
  virtual void barrier() = 0;

  /// Where this process is, for what others say when it is lost. Any thread.
  virtual void setPlace(const std::string &place) = 0;
  /// What finds out more of where a process is, also one that is lost; it must
  /// not call the group. Null: nothing does.
  virtual void
  describePlaces(std::function<std::string(uint32_t rank)> describe) {}
  /// Tells all processes that this one has failed; the first to say so wins.
  /// Returns at once. Any thread.
  virtual void reportFailure(const std::string &what) = 0;
  /// Called once, on a thread of the group, when another process has failed:
  /// to end waits. A later call replaces the function; null: none.
  virtual void onPeerFailure(std::function<void()> abort) = 0;
  /// Why the run has failed, in words; empty: it has not. Any thread.
  virtual std::string failure() const = 0;
  /// The rank that has failed first, or -1. Any thread.
  virtual int64_t failedRank() const { return failure().empty() ? -1 : 0; }
  /// This process is the one to say why. May wait for process 0 to answer.
  virtual bool printsFailure() { return rank() == 0; }
};

} // namespace zrt

#endif // ZERO_RT_COMM_PROCESSGROUP_H
