//===- FileExchange.h - Open files from process to process ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How processes of one machine get each other's open files.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_FILEEXCHANGE_H
#define ZERO_RT_COMM_FILEEXCHANGE_H

#include "runtime/comm/ProcessGroup.h"
#include "runtime/comm/Socket.h"

#include <vector>

namespace zrt {

/// Collective: each process gives a file; the files of all by rank, that of
/// this process closed (-1). Throws Error, and PeerFailed.
std::vector<Socket> exchangeFiles(ProcessGroup &processes, int file);

} // namespace zrt

#endif // ZERO_RT_COMM_FILEEXCHANGE_H
