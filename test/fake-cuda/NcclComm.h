//===- NcclComm.h - A communicator, as one rank sees it -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_NCCLCOMM_H
#define ZERO_TEST_FAKECUDA_NCCLCOMM_H

#include "test/fake-cuda/NcclRoom.h"

#include <nccl.h>

#include <atomic>
#include <memory>
#include <string>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake_cuda {

/// Shared by the handle and the work that is under way.
struct Member {
  std::shared_ptr<Room> room;
  int communicator = 0; ///< in the room; -1: a split has not come so far
  int rank = 0, size = 0;
  int device = 0;
  unsigned number = 0; ///< of the device's communicators, from 1
  std::atomic<bool> aborted{false};
  std::atomic<int> asyncError{ncclSuccess}; ///< that was injected
  uint64_t operations = 0;                  ///< that have begun; worker's
  uint64_t calls = 0;                       ///< that were put on a stream

  Board &board() { return room->board(communicator); }
};

using MemberPtr = std::shared_ptr<Member>;

/// "rank 1 of communicator 2".
std::string memberText(const Member &member);

/// Null: no such communicator, or one that is not ready; *result says which.
MemberPtr readyMember(ncclComm_t handle, const char *function,
                      ncclResult_t &result);

/// An error of a call: printed, kept for ncclGetLastError.
ncclResult_t refuseNccl(ncclResult_t code, const char *function,
                        const std::string &why);

/// An injected error of this call; "hang" and "async" are left to the caller.
ncclResult_t injectedNccl(const char *function, std::string &kind);

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_NCCLCOMM_H
