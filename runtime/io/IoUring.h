//===- IoUring.h - Transfers through io_uring -------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linux's queue for reads and writes that go on beside each other. Many
// containers forbid it, so its caller needs another way.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_IOURING_H
#define ZERO_RUNTIME_IO_IOURING_H

#include "runtime/io/FileSystem.h"

namespace zrt {

/// As FileSystem::makeQueue.
int64_t makeIoUring(unsigned depth, std::unique_ptr<TransferQueue> &result);

} // namespace zrt

#endif // ZERO_RUNTIME_IO_IOURING_H
