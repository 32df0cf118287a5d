//===- NcclCollective.h - What a collective does with its data ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_NCCLCOLLECTIVE_H
#define ZERO_TEST_FAKECUDA_NCCLCOLLECTIVE_H

#include "test/fake-cuda/NcclRoom.h"
#include "test/fake-cuda/Queue.h"

#include <nccl.h>

#include <string>
#include <vector>

namespace fake_cuda {

enum class Collective : int32_t {
  AllGather,
  AllReduce,
  Broadcast,
  Reduce,
  ReduceScatter
};

/// One call of a rank.
struct Operation {
  Call call;
  Address send, receive;
};

uint64_t typeBytes(int32_t type);
std::string callText(const Call &call);

/// Bytes that a rank sends and receives; 0: the buffer is not used.
uint64_t sendBytes(const Call &call, int rank, int size);
uint64_t receiveBytes(const Call &call, int rank, int size);

/// The result of a rank, from the data that all sent.
void computeResult(const Call &call, int rank,
                   const std::vector<const char *> &sent, char *result);

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_NCCLCOLLECTIVE_H
