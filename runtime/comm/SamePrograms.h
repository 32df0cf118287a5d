//===- SamePrograms.h - All processes run one program ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a group makes sure of before any backend makes a session.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_SAMEPROGRAMS_H
#define ZERO_RT_COMM_SAMEPROGRAMS_H

#include "runtime/comm/ProcessGroup.h"
#include "runtime/core/Program.h"

namespace zrt {

/// Collective: throws Error, the same in all processes, where the group has
/// another number of processes than the program ranks, or the processes do not
/// have the same program.
void checkSamePrograms(ProcessGroup &processes, const Program &program);

} // namespace zrt

#endif // ZERO_RT_COMM_SAMEPROGRAMS_H
