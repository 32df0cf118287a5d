//===- Attention.h - Attention found in a module ----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between attention as one operation and as products and a softmax, for targets
// with and without a library function for it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_AUTODIFF_ATTENTION_H
#define ZERO_AUTODIFF_ATTENTION_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::train {

/// Replaces softmaxes between two products in functions of `module` by
/// `train.attention`, before autodiff; a remark says why one stays. Only of
/// types and sizes that cuDNN has; with `any` of all.
void raiseAttention(ModuleOp module, bool any = false);

/// Replaces `train.attention` and `train.attention_grad` in `root` by what they
/// stand for.
void decomposeAttention(Operation *root);

} // namespace mlir::train

#endif // ZERO_AUTODIFF_ATTENTION_H
