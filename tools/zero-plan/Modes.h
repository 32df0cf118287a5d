//===- Modes.h - What zero-plan can do --------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per mode; each returns the exit status.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_PLAN_MODES_H
#define ZERO_TOOLS_ZERO_PLAN_MODES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::zero {

/// Places the buffers of an instance and prints, last,
/// `height=... lower_bound=... ms=...`. 1 if the file is bad or the arena
/// exceeds `capacity` (negative: no limit).
int runAllocate(llvm::StringRef file, int64_t capacity);

} // namespace mlir::zero

#endif // ZERO_TOOLS_ZERO_PLAN_MODES_H
