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
#include <cstring>
#include <string>

namespace zrt {

/// std::memcpy and std::memset for ranges that may be empty and then lie
/// nowhere: the C functions take no null, not even for no bytes.
inline void copyBytes(void *to, const void *from, size_t bytes) {
  if (bytes)
    std::memcpy(to, from, bytes);
}
inline void clearBytes(void *to, size_t bytes) {
  if (bytes)
    std::memset(to, 0, bytes);
}

/// Refuses what no machine has. Throws Error that begins with `purpose`.
void checkBlockSize(uint64_t bytes, const char *purpose);

/// A block of zeros, aligned to a page, with an unmapped page behind it.
class MemoryBlock {
public:
  MemoryBlock() = default;
  /// Throws Error that begins with `purpose`.
  MemoryBlock(uint64_t bytes, const char *purpose);
  /// What a file in memory has at `offset`, a multiple of the page size, shared
  /// with all who map it.
  MemoryBlock(int file, uint64_t offset, uint64_t bytes,
              const std::string &purpose);
  ~MemoryBlock();
  MemoryBlock(MemoryBlock &&other) noexcept;
  MemoryBlock &operator=(MemoryBlock &&other) noexcept;

  uint8_t *data() const { return base; }

private:
  uint64_t map(uint64_t bytes, const char *purpose);

  uint8_t *base = nullptr;
  size_t mapped = 0;
};

} // namespace zrt

#endif // ZERO_RT_CORE_MEMORY_H
