//===- Timeline.cpp - What a step did, or will do ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Timeline.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Report/Timeline.h"

using namespace mlir::zero;

llvm::StringRef mlir::zero::memoryKindName(MemoryKind kind) {
  static constexpr llvm::StringLiteral names[kNumMemoryKinds] = {
      "parameter",  "state", "gradient", "gathered",
      "activation", "input", "constant", "persistent"};
  return names[static_cast<size_t>(kind)];
}
