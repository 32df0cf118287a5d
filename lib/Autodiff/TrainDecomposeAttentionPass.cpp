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
static bool isSupported(Op op) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto value = cast<RankedTensorType>(op.getValue().getType());
  return whyUnsupportedAttention(query.getElementType(),
                                 query.getShape().back(),
                                 value.getShape().back())
      .empty();
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

void mlir::train::decomposeAttention(Operation *root, bool onlyUnsupported) {
  root->walk([&](Operation *op) {
    TypeSwitch<Operation *>(op).Case<AttentionOp, AttentionGradOp>(
        [&](auto attention) {
          if (!onlyUnsupported || !isSupported(attention))
            decompose(attention);
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
