//===- Gradient.h - Where a gradient ends and its update begins -*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_ZERO_GRADIENT_H
#define ZERO_DIALECTS_ZERO_GRADIENT_H

#include "llvm/ADT/StringRef.h"

namespace mlir::zero {

/// On an op of one result: that is a gradient, and what follows belongs to the
/// update. It is reduced over the ranks as it is, even where the update begins
/// with ops on the gradient alone (a clip, a sign).
constexpr llvm::StringLiteral kGradientMark = "zero.gradient";

} // namespace mlir::zero

#endif // ZERO_DIALECTS_ZERO_GRADIENT_H
