//===- Views.cpp - values that may share memory ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds views by interface and by shape of the op, knowing no op by name.
//
//===----------------------------------------------------------------------===//

#include "Views.h"

#include "dialects/Zero/Zero.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::zero;

/// Whether the results of `op` may be the memory of its operand `operand`.
static bool mayView(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto view = dyn_cast<ViewLikeOpInterface>(op))
    return view.getViewSource() == operand.get();
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op))
    return false;
  auto isTensor = [](Value value) {
    return isa<RankedTensorType>(value.getType());
  };
  return isTensor(op->getResult(0)) &&
         llvm::count_if(op->getOperands(), isTensor) == 1;
}

llvm::SetVector<Value> zero::getViews(Value value) {
  llvm::SetVector<Value> views;
  views.insert(value);
  for (size_t i = 0; i < views.size(); ++i)
    for (OpOperand &use : views[i].getUses())
      if (mayView(use))
        views.insert(use.getOwner()->result_begin(),
                     use.getOwner()->result_end());
  return views;
}

/// A collective holds its operands until it is awaited.
static Operation *getEndOfUse(Operation *user) {
  if (!isa<AllGatherStartOp, ReduceScatterStartOp, AllReduceStartOp,
           TransferStartOp>(user) ||
      !user->hasOneUse())
    return user;
  return *user->user_begin();
}

Operation *zero::getLastUse(Value value, Block *block) {
  Operation *last = nullptr;
  for (Value view : getViews(value))
    for (Operation *user : view.getUsers()) {
      Operation *inBlock = block->findAncestorOpInBlock(*getEndOfUse(user));
      if (inBlock && !isa<ReleaseOp>(inBlock) &&
          (!last || last->isBeforeInBlock(inBlock)))
        last = inBlock;
    }
  return last;
}
