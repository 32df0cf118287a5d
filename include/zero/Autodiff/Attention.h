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

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace mlir::train {

/// Who computes attention as one operation: cuDNN, in bf16 and f16 and with
/// heads of some sizes; or the host's runtime, all but f64.
enum class AttentionLibrary { Gpu, Host };

/// Replaces softmaxes between two products in functions of `module` by
/// `train.attention`, before autodiff; a remark says why one stays. Only what
/// `library` has; without it of any type and size.
void raiseAttention(ModuleOp module, std::optional<AttentionLibrary> library);

/// Replaces `train.attention` and `train.attention_grad` in `root` by what they
/// stand for, where `library` does not have them; without it all. Masks of the
/// others get the form that it takes.
void decomposeAttention(Operation *root,
                        std::optional<AttentionLibrary> library = std::nullopt);

/// Why `library` has no attention between queries and keys of `headSize`
/// elements of this type and values of `valueSize`, with dropout of the
/// probabilities or without; empty: it has.
std::string whyUnsupportedAttention(AttentionLibrary library, Type element,
                                    int64_t headSize, int64_t valueSize,
                                    bool dropout);

/// A mask of four dimensions in the form that cuDNN takes for queries of
/// `element`: of that type, finite, the last two dimensions those of `scores`.
Value fitMaskToGpu(OpBuilder &builder, Location loc, Value mask,
                   ArrayRef<int64_t> scores, Type element);

} // namespace mlir::train

#endif // ZERO_AUTODIFF_ATTENTION_H
