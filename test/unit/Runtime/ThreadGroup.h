//===- ThreadGroup.h - A group of processes that are threads --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads that play processes: each has a group, a session and one rank of its
// own. What processes share they share too, so that sanitizers see all of it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_THREADGROUP_H
#define ZERO_TEST_UNIT_RUNTIME_THREADGROUP_H

#include "runtime/comm/Group.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace zrt::test {

/// Where the threads meet.
class ThreadHub {
public:
  explicit ThreadHub(uint32_t size)
      : size(size), given(size), aborts(size), oneMachine(true) {}

  /// What each gives, by rank; throws PeerFailed once one has failed.
  std::vector<std::string> meet(uint32_t rank, const std::string &bytes);
  void fail(uint32_t rank, const std::string &what);
  void setAbort(uint32_t rank, std::function<void()> abort);
  std::string failure();

  const uint32_t size;

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> given, last;
  uint32_t arrived = 0;
  uint64_t round = 0;
  std::string why;
  std::vector<std::function<void()>> aborts;

public:
  bool oneMachine;
};

/// A zrt_group of one thread.
zrt_group makeGroup(ThreadHub &hub, uint32_t rank);

/// Runs `body` on one thread for each of `size` processes. An exception is the
/// process's failure, which the group is told; the texts of all, by rank: "" of
/// one that has succeeded.
std::vector<std::string>
runProcesses(uint32_t size,
             const std::function<void(zrt_group &group, uint32_t rank)> &body,
             double timeoutSeconds = 60);

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_RUNTIME_THREADGROUP_H
