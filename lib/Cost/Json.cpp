//===- Json.cpp - JSON from outside ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Json.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/Json.h"

using namespace llvm;
using namespace mlir::zero;

static bool isDeeperThan(StringRef text, int limit) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
      continue;
    }
    inString = c == '"';
    depth += c == '[' || c == '{';
    depth -= c == ']' || c == '}';
    if (depth > limit)
      return true;
  }
  return false;
}

Expected<json::Value> mlir::zero::parseJson(StringRef text) {
  if (isDeeperThan(text, kMaxJsonDepth))
    return createStringError("is nested deeper than " + Twine(kMaxJsonDepth));
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return createStringError("is not JSON: " + toString(value.takeError()));
  return value;
}
