//===- Types.h - Bytes of an element, by precision --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_PLANNER_TYPES_H
#define ZERO_LIB_PLANNER_TYPES_H

#include "zero/Planner/StepPlan.h"

namespace mlir::zero {

/// Bytes of one element. `optimizer`: master copy and both states.
struct TypeBytes {
  int64_t parameter, gradient, optimizer, activation;
  llvm::StringLiteral product; ///< type of the products
};

inline TypeBytes typeBytes(Precision precision) {
  switch (precision) {
  case Precision::F32:
    return {4, 4, 8, 4, "f32"};
  case Precision::Mixed:
    return {2, 2, 12, 2, "bf16"};
  case Precision::Bf16:
    return {2, 2, 4, 2, "bf16"};
  case Precision::F8:
    return {2, 2, 12, 2, "f8"};
  }
  return {4, 4, 8, 4, "f32"};
}

} // namespace mlir::zero

#endif // ZERO_LIB_PLANNER_TYPES_H
