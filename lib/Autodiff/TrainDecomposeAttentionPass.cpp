//===- TrainDecomposeAttentionPass.cpp - Attention as products ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass train-decompose-attention.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Attention.h"
#include "zero/Autodiff/Attention.h"
#include "zero/Autodiff/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::train {
#define GEN_PASS_DEF_TRAINDECOMPOSEATTENTIONPASS
#include "zero/Autodiff/Passes.h.inc"
} // namespace mlir::train

using namespace mlir;
using namespace mlir::train;

template <typename Op>
static bool isSupported(Op op, AttentionLibrary library) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto value = cast<RankedTensorType>(op.getValue().getType());
  return whyUnsupportedAttention(library, query.getElementType(),
                                 query.getShape().back(),
                                 value.getShape().back(),
                                 /*dropout=*/bool(op.getDropoutKey()))
      .empty();
}

/// Gives the mask the form that cuDNN takes; once for all that share it.
template <typename Op>
static void fitMask(Op op, DenseMap<std::pair<Value, Type>, Value> &fitted) {
  if (!op.getMask())
    return;
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto key = cast<RankedTensorType>(op.getKey().getType());
  int64_t scores[] = {query.getDimSize(2), key.getDimSize(2)};
  auto type = RankedTensorType::get(scores, query.getElementType());
  Value &mask = fitted[{op.getMask(), type}];
  if (!mask) {
    OpBuilder builder(op.getContext());
    builder.setInsertionPointAfterValue(op.getMask());
    mask = fitMaskToGpu(builder, op.getLoc(), op.getMask(), scores,
                        query.getElementType());
  }
  op.getMaskMutable().assign(mask);
}

template <typename Op>
static void decompose(Op op) {
  OpBuilder builder(op);
  for (auto [old, value] :
       llvm::zip_equal(op->getResults(), decomposeAttention(builder, op)))
    if (value)
      old.replaceAllUsesWith(value);
  op.erase();
}

void mlir::train::decomposeAttention(Operation *root,
                                     std::optional<AttentionLibrary> library) {
  DenseMap<std::pair<Value, Type>, Value> fitted;
  root->walk([&](Operation *op) {
    TypeSwitch<Operation *>(op).Case<AttentionOp, AttentionGradOp>(
        [&](auto attention) {
          if (!library || !isSupported(attention, *library))
            decompose(attention);
          else if (library == AttentionLibrary::Gpu)
            fitMask(attention, fitted);
        });
  });
}

namespace {
struct TrainDecomposeAttentionPass
    : train::impl::TrainDecomposeAttentionPassBase<
          TrainDecomposeAttentionPass> {
  void runOnOperation() override { decomposeAttention(getOperation()); }
};
} // namespace
