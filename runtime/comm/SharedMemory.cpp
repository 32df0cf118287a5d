//===- SharedMemory.cpp - Memory that the processes of a machine share ----===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See SharedMemory.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/SharedMemory.h"

#include "runtime/comm/FileExchange.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zrt;

/// Bytes of a block in the file: whole pages.
static uint64_t inFile(uint64_t bytes) {
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

static Socket makeFile(uint64_t bytes) {
  // Memory with a file's interface is limited as files are.
  rlimit limit = {};
  if (!getrlimit(RLIMIT_FSIZE, &limit) && bytes > limit.rlim_cur)
    fail(ZRT_ERROR_MEMORY, "a rank shares ", bytes,
         " bytes of memory, but this process may not make files of more than ",
         limit.rlim_cur, " bytes; raise the limit (ulimit -f)");
  Socket file(memfd_create("zero-rt", MFD_CLOEXEC));
  if (!file.isOpen() || ftruncate(file.get(), off_t(bytes)))
    fail(ZRT_ERROR_MEMORY, "cannot make ", bytes,
         " bytes of memory to share: ", std::strerror(errno));
  return file;
}

/// A mapping that is longer than its file would end the process when used.
static void checkSize(int file, uint64_t bytes, uint32_t rank) {
  struct stat info = {};
  if (fstat(file, &info) || uint64_t(info.st_size) != bytes)
    fail(ZRT_ERROR_EXECUTION, "rank ", rank, " shares ", info.st_size,
         " bytes, not ", bytes, ": it runs another program");
}

SharedMemory::SharedMemory(ProcessGroup &processes,
                           const std::vector<uint64_t> &blocks) {
  uint64_t total = 0;
  for (uint64_t bytes : blocks) {
    checkBlockSize(bytes, "shared memory");
    total += inFile(bytes);
  }
  Socket own = makeFile(total);
  std::vector<Socket> files = exchangeFiles(processes, own.get());
  files[processes.rank()] = std::move(own);
  mapped.resize(processes.size());
  for (uint32_t rank = 0; rank < processes.size(); ++rank) {
    checkSize(files[rank].get(), total, rank);
    uint64_t offset = 0;
    for (uint64_t bytes : blocks) {
      mapped[rank].emplace_back(files[rank].get(), offset, bytes,
                                "memory of rank " + std::to_string(rank));
      offset += inFile(bytes);
    }
  }
}
