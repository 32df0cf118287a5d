//===- Memory.h - Blocks of memory for arenas -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory that is allocated once, when a session begins.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_MEMORY_H
#define ZERO_RT_CORE_MEMORY_H

#include <cstddef>
#include <cstdint>

namespace zrt {

/// A block of zeros, aligned to a page, with an unmapped page behind it.
class MemoryBlock {
public:
  MemoryBlock() = default;
  /// Throws Error that begins with `purpose`.
  MemoryBlock(uint64_t bytes, const char *purpose);
  ~MemoryBlock();
  MemoryBlock(MemoryBlock &&other) noexcept;
  MemoryBlock &operator=(MemoryBlock &&other) noexcept;

  uint8_t *data() const { return base; }

private:
  uint8_t *base = nullptr;
  size_t mapped = 0;
};

} // namespace zrt

#endif // ZERO_RT_CORE_MEMORY_H
