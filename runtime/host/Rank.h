//===- Rank.h - One rank of a session -------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The addresses of all operands are known when a session begins; a step is a
// loop over commands that are bound to them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_RANK_H
#define ZERO_RT_HOST_RANK_H

#include "runtime/comm/Collective.h"
#include "runtime/core/KernelLibrary.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Program.h"
#include "runtime/host/LibraryCall.h"

#include <memory>
#include <optional>
#include <vector>

namespace zrt::host {

/// One rank's memory, and the program's commands on its addresses.
class Rank {
public:
  Rank(const Program &program, uint32_t rank);

  uint8_t *address(uint32_t buffer) const;
  /// Address of an operand's first element.
  uint8_t *address(const Operand &operand) const;

  /// Binds the commands to this rank's addresses.
  void bind(const KernelLibrary &kernels,
            const std::vector<std::shared_ptr<const LibraryCall>> &calls,
            const std::vector<Collective> &collectives, uint64_t scratchBytes,
            const dnnl::engine &engine);

  /// Fills all memory that no parameter, constant or input holds with NaN.
  void poisonUnwritten();
  /// Executes the commands. `current` is the one being executed: where an
  /// exception comes from.
  void run(Barrier &barrier, bool poisonReleased);

  /// Counts the bytes of a buffer as touched.
  void touch(uint32_t buffer);
  /// Highest byte touched, by arena.
  const std::vector<uint64_t> &touched() const { return touchedEnd; }

  /// Most bytes of gathered parameters that were alive at one time.
  uint64_t gatheredPeak() const { return mostGathered; }

  size_t current = 0;
  std::vector<uint64_t> nanoseconds; // by command

private:
  struct BoundCommand {
    fb::Op op;
    Kernel kernel = nullptr;
    std::vector<void *> buffers; // of a kernel
    std::unique_ptr<BoundCall> call;
    std::optional<StridedCopy> copy;
    uint8_t *from = nullptr, *to = nullptr; // of a copy
    const Collective *collective = nullptr;
    std::vector<uint32_t> uses; // buffers
  };
  void execute(BoundCommand &command, Barrier &barrier);
  void countGathered(const Command &command);
  void bindCopy(const Command &command, BoundCommand &bound);
  void findUnwritten();

  const Program &program;
  const uint32_t rank;
  std::vector<MemoryBlock> arenas;
  MemoryBlock scratch;
  std::vector<BoundCommand> commands;
  std::vector<uint64_t> touchedEnd;
  uint64_t gathered = 0, mostGathered = 0; // bytes
  struct Hole {
    uint32_t arena;
    uint64_t begin, end;
  };
  std::vector<Hole> unwritten;
  dnnl::stream stream;
};

} // namespace zrt::host

#endif // ZERO_RT_HOST_RANK_H
