//===- Allocate.cpp - zero-plan --allocate --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads an allocation instance and places its buffers.
//
//===----------------------------------------------------------------------===//

#include "Modes.h"

#include "llvm/Support/raw_ostream.h"

int mlir::zero::runAllocate(llvm::StringRef file, int64_t capacity) {
  llvm::errs() << "zero-plan: " << file << ": not available yet: --allocate\n";
  return 1;
}
