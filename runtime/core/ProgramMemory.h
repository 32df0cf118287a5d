//===- ProgramMemory.h - Memory of a program over its commands ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is alive at each command, by program order: a command of another stream
// never runs ahead of the compute stream, so this order is the true one.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_PROGRAMMEMORY_H
#define ZERO_RT_CORE_PROGRAMMEMORY_H

#include "runtime/core/Program.h"

#include <array>
#include <vector>

namespace zrt {

/// Bytes by fb::Kind.
using KindBytes = std::array<uint64_t, fb::Kind_MAX + 1>;

/// Memory of a rank in `space` that is alive at each command; storage that two
/// buffers share counts once. State, inputs, constants and outputs live for
/// the whole step, another buffer from its first use to its last. What a
/// command of another stream uses is held until a command waits for it.
std::vector<KindBytes> memoryByCommand(const Program &program,
                                       fb::Space space = fb::Space_Device);

/// Most bytes of gathered parameters alive in device memory at one time: from
/// the gather or copy to the command that releases them.
uint64_t gatheredPeak(const Program &program);

/// Bytes [begin, end) of an arena.
struct Hole {
  uint32_t arena;
  uint64_t begin, end;
};

/// The memory of a rank that no parameter, input or constant holds.
std::vector<Hole> findUnwritten(const Program &program, uint32_t rank);

} // namespace zrt

#endif // ZERO_RT_CORE_PROGRAMMEMORY_H
