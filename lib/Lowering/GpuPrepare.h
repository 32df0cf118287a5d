//===- GpuPrepare.h - What a GPU computes in another way --------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowerings of the train dialect whose steps do not depend on each other.
// Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_GPUPREPARE_H
#define ZERO_LIB_LOWERING_GPUPREPARE_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::zero {

/// Unit attribute of the linalg.generic that a gather_grad becomes: a sum over
/// all indices [positions..., row, columns...] of those that name the row.
inline constexpr llvm::StringLiteral kScatterAttr = "plan.scatter";

/// Gradients of poolings: each element of the input adds up its windows.
void populateGpuPoolToLinalg(RewritePatternSet &patterns);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_GPUPREPARE_H
