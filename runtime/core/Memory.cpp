//===- Memory.cpp - Blocks of memory for arenas ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Memory.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Memory.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace zrt;

void zrt::checkBlockSize(uint64_t bytes, const char *purpose) {
  // Whatever is larger than half the address space is no honest request.
  if (bytes > (uint64_t(1) << 46))
    fail(ZRT_ERROR_MEMORY, purpose, " needs ", bytes, " bytes");
}

[[noreturn]] static void failToMap(uint64_t bytes, const char *purpose) {
  fail(ZRT_ERROR_MEMORY, "cannot allocate ", bytes, " bytes for ", purpose,
       ": ", std::strerror(errno));
}

/// Maps memory for the block, of whole pages, and a page behind it; the bytes
/// of these pages.
uint64_t MemoryBlock::map(uint64_t bytes, const char *purpose) {
  checkBlockSize(bytes, purpose);
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t usable = (bytes + page - 1) / page * page;
  mapped = usable + page;
  void *address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    failToMap(bytes, purpose);
  base = static_cast<uint8_t *>(address);
  // Both only help: a guard behind the block, and fewer page faults in it.
  mprotect(base + usable, page, PROT_NONE);
  if (usable)
    madvise(base, usable, MADV_HUGEPAGE);
  return usable;
}

MemoryBlock::MemoryBlock(uint64_t bytes, const char *purpose) {
  map(bytes, purpose);
}

MemoryBlock::MemoryBlock(int file, uint64_t offset, uint64_t bytes,
                         const std::string &purpose) {
  uint64_t usable = map(bytes, purpose.c_str());
  if (!usable)
    return;
  void *address = mmap(base, usable, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, file, off_t(offset));
  if (address == MAP_FAILED) {
    munmap(base, mapped);
    failToMap(bytes, purpose.c_str());
  }
  madvise(base, usable, MADV_HUGEPAGE);
}

MemoryBlock::~MemoryBlock() {
  if (base)
    munmap(base, mapped);
}

MemoryBlock::MemoryBlock(MemoryBlock &&other) noexcept
    : base(std::exchange(other.base, nullptr)),
      mapped(std::exchange(other.mapped, 0)) {}

MemoryBlock &MemoryBlock::operator=(MemoryBlock &&other) noexcept {
  std::swap(base, other.base);
  std::swap(mapped, other.mapped);
  return *this;
}
