//===- Views.cpp - values that may share memory ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds views by interface, trait and shape of the op, and what memory is
// theirs.
//
//===----------------------------------------------------------------------===//

#include "Views.h"

#include "mlir/Interfaces/ViewLikeInterface.h"
#include "zero/Transforms/StepUtils.h"

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

bool zero::isStart(Operation *op) {
  return op->getNumResults() == 1 &&
         isa<FutureType>(op->getResult(0).getType());
}

/// What is in flight holds its operands until it is awaited.
static Operation *getEndOfUse(Operation *user) {
  if (!isStart(user) || !user->hasOneUse())
    return user;
  return *user->user_begin();
}

/// What an argument of a body of the host stands for.
static Value getHostOperand(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  return isa_and_nonnull<OnHostOp, OnHostStartOp>(parent)
             ? parent->getOperand(argument.getArgNumber())
             : Value();
}

/// One step of lookThrough; null where `value` is computed or comes from
/// outside.
static Value getCopied(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getHostOperand(argument);
  if (isa<FutureType>(value.getType()))
    return {};
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto wait = dyn_cast<WaitOp>(op))
    op = wait.getFuture().getDefiningOp();
  if (isa_and_nonnull<TransferOp, TransferStartOp>(op))
    return op->getOperand(number);
  if (isa_and_nonnull<OnHostOp, OnHostStartOp>(op))
    return op->getRegion(0).front().getTerminator()->getOperand(number);
  return {};
}

Value zero::lookThrough(Value value) {
  while (Value copied = getCopied(value))
    value = copied;
  return value;
}

static bool isInHostBody(Value value) {
  Operation *op = value.getParentBlock()->getParentOp();
  for (; op; op = op->getParentOp())
    if (isa<OnHostOp, OnHostStartOp>(op))
      return true;
  return false;
}

/// What a view is of; null where `op` is none.
static Value getSource(Operation *op) {
  if (auto local = dyn_cast<LocalOp>(op))
    return local.getSource();
  if (auto view = dyn_cast<ViewLikeOpInterface>(op))
    return view.getViewSource();
  return op->hasTrait<CostNothing>() && op->getNumOperands() ? op->getOperand(0)
                                                             : Value();
}

Memory zero::getMemory(Value value) {
  if (auto sharded = dyn_cast<ShardedType>(value.getType()))
    return sharded.getMem();
  if (isInHostBody(value))
    return Memory::Host;
  Operation *op = value.getDefiningOp();
  if (auto wait = dyn_cast_or_null<WaitOp>(op))
    op = wait.getFuture().getDefiningOp();
  if (!op)
    return Memory::Device;
  if (auto transfer = dyn_cast<TransferOp>(op))
    return transfer.getTo();
  if (auto transfer = dyn_cast<TransferStartOp>(op))
    return transfer.getTo();
  if (isa<OnHostOp, OnHostStartOp>(op))
    return Memory::Host;
  Value source = getSource(op);
  return source ? getMemory(source) : Memory::Device;
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
