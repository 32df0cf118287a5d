//===- Json.h - JSON from outside -------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's JSON parser recurses: text from outside is looked at first.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COST_JSON_H
#define ZERO_COST_JSON_H

#include "llvm/Support/JSON.h"

namespace mlir::zero {

/// Arrays and objects inside each other that our files may have.
constexpr int kMaxJsonDepth = 32;

/// llvm::json::parse of text nested at most `kMaxJsonDepth` deep. The error
/// continues a sentence that begins with the file's name.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace mlir::zero

#endif // ZERO_COST_JSON_H
