//===- Attention.h - What attention stands for ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention and its gradients as products, a softmax and elementwise
// operations: what other targets compute, and what the gradient by a mask is
// made of.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_ATTENTION_H
#define ZERO_DIALECTS_TRAIN_ATTENTION_H

#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

namespace mlir::train {

/// Values equal to the results of `op`, of the same types, built at the
/// builder's insertion point.
SmallVector<Value> decomposeAttention(OpBuilder &builder, AttentionOp op);
SmallVector<Value> decomposeAttention(OpBuilder &builder, AttentionGradOp op);

/// The gradient by the mask of an attention with a mask, of the mask's type;
/// `grad` is the gradient by its result.
Value buildMaskGrad(OpBuilder &builder, AttentionOp op, Value grad);

} // namespace mlir::train

#endif // ZERO_DIALECTS_TRAIN_ATTENTION_H
