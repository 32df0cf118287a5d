//===- Transfers.h - Copies between memory spaces -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which copies of a program are transfers, what they move, and whether there is
// room for the spaces at all.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_TRANSFERS_H
#define ZERO_RT_HOST_TRANSFERS_H

#include "runtime/core/Program.h"
#include "zero-rt/zero-rt.h"

#include <optional>
#include <string>

namespace zrt::host {

/// The way that a command's data takes, if it is a copy between spaces.
std::optional<zrt_transfer> transferOf(const Program &program,
                                       const Command &command);

/// Bytes of the model that a transfer moves once on all ranks together: without
/// the padding of shards.
uint64_t transferBytes(const Program &program, const Command &command);

/// For messages: a parameter's name, else that of the buffer.
const std::string &tensorName(const Program &program, uint32_t buffer);

/// Refuses a program whose arenas on host or disk do not fit for `ranks` ranks
/// on this machine. `offloadPath` may be null. Throws Error or IoError.
void checkSpaces(const Program &program, uint32_t ranks,
                 const char *offloadPath);

} // namespace zrt::host

#endif // ZERO_RT_HOST_TRANSFERS_H
