//===- SharedMemory.h - Memory that the processes of a machine share ------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each process makes a file in memory that has no name (memfd) and hands it to
// the others over a socket that has no place in the file system, so nothing is
// left behind however a process ends.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_SHAREDMEMORY_H
#define ZERO_RT_COMM_SHAREDMEMORY_H

#include "runtime/comm/ProcessGroup.h"
#include "runtime/core/Memory.h"

#include <vector>

namespace zrt {

/// Blocks of zeros of all processes, mapped by all, with an unmapped page
/// behind each.
class SharedMemory {
public:
  /// Collective. `blocks` are the bytes of each block of one process, the same
  /// on all. Throws Error.
  SharedMemory(ProcessGroup &processes, const std::vector<uint64_t> &blocks);

  uint8_t *block(uint32_t rank, size_t index) const {
    return mapped[rank][index].data();
  }

private:
  std::vector<std::vector<MemoryBlock>> mapped; // by rank
};

} // namespace zrt

#endif // ZERO_RT_COMM_SHAREDMEMORY_H
