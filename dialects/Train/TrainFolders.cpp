//===- TrainFolders.cpp - Folding of operations ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations that change nothing fold away, and chains of shape operations
// become one.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::train;

/// The operand where it already has the type of the result.
template <typename Op>
static OpFoldResult foldSameType(Op op) {
  return op.getInput().getType() == op.getType() ? op.getInput() : Value();
}

OpFoldResult CastOp::fold(FoldAdaptor) { return foldSameType(*this); }
OpFoldResult SliceOp::fold(FoldAdaptor) { return foldSameType(*this); }
OpFoldResult PadOp::fold(FoldAdaptor) { return foldSameType(*this); }

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? getInputs().front() : Value();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (OpFoldResult same = foldSameType(*this))
    return same;
  auto producer = getInput().getDefiningOp<ReshapeOp>();
  if (!producer)
    return {};
  if (producer.getInput().getType() == getType())
    return producer.getInput();
  getInputMutable().assign(producer.getInput());
  return getResult();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  if (OpFoldResult same = foldSameType(*this))
    return same;
  auto producer = getInput().getDefiningOp<BroadcastOp>();
  if (!producer)
    return {};
  getInputMutable().assign(producer.getInput());
  return getResult();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (llvm::equal(getPermutation(),
                  llvm::seq<int64_t>(0, getPermutation().size())))
    return getInput();
  auto producer = getInput().getDefiningOp<TransposeOp>();
  if (!producer)
    return {};
  SmallVector<int64_t> composed;
  for (int64_t dim : getPermutation())
    composed.push_back(producer.getPermutation()[dim]);
  setPermutation(composed);
  getInputMutable().assign(producer.getInput());
  return getResult();
}
