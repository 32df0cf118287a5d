//===- VerifyPlan.h - Whether a program is safe to run ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks a plan.program as it stands, whoever made or edited it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TRANSFORMS_VERIFYPLAN_H
#define ZERO_TRANSFORMS_VERIFYPLAN_H

#include "dialects/Plan/Plan.h"

namespace mlir::zero {

/// Fails, with an error at the first op that breaks a rule, unless
///  - every event is signalled once, before it is awaited, and awaited;
///  - a command of another stream begins no sooner than compute has reached it;
///  - of two commands that use one buffer, one of them to write it, one is done
///    before the other begins: by their stream or by events;
///  - no value is read before it is written or after `plan.release`;
///  - buffers that live at the same time share no byte, and a buffer's bytes go
///    to another one only when its users are done;
///  - streams and events order the commands, and with them the collectives of
///    each communicator, as the program's fingerprint says where it has one;
///  - the device arena is within the program's budget, where it has one.
/// Buffers without offsets are not checked for overlap. Takes
/// O(n (streams + log n)) time for n commands and buffers.
LogicalResult verifyPlan(plan::ProgramOp program);

} // namespace mlir::zero

#endif // ZERO_TRANSFORMS_VERIFYPLAN_H
