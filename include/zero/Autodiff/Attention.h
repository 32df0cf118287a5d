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

#include <string>

namespace mlir::train {

/// Replaces softmaxes between two products in functions of `module` by
/// `train.attention`, before autodiff; a remark says why one stays. Only of
/// types and sizes that cuDNN has; with `any` of all.
void raiseAttention(ModuleOp module, bool any = false);

/// Replaces `train.attention` and `train.attention_grad` in `root` by what they
/// stand for; with `onlyUnsupported` where cuDNN does not have them.
void decomposeAttention(Operation *root, bool onlyUnsupported = false);

/// Why cuDNN has no attention between queries and keys of `headSize` elements
/// of this type and values of `valueSize`; empty: it has.
std::string whyUnsupportedAttention(Type element, int64_t headSize,
                                    int64_t valueSize);

} // namespace mlir::train

#endif // ZERO_AUTODIFF_ATTENTION_H
