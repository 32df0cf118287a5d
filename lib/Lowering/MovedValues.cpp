//===- MovedValues.cpp - Values across memories and host bodies -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See MovedValues.h.
//
//===----------------------------------------------------------------------===//

#include "MovedValues.h"

#include "zero/Transforms/StepUtils.h"

using namespace mlir;
using namespace mlir::zero;

FailureOr<ResultRange> zero::getFinalResults(Operation *op) {
  if (!isStart(op))
    return op->getResults();
  Value future = op->getResult(0);
  auto wait =
      future.hasOneUse() ? dyn_cast<WaitOp>(*future.user_begin()) : WaitOp();
  if (!wait)
    return op->emitOpError("starts a future that is not awaited exactly once");
  return wait->getResults();
}

Value zero::getUnmoved(Value value) {
  value = lookThrough(value);
  auto local = value.getDefiningOp<LocalOp>();
  return local ? getUnmoved(local.getSource()) : value;
}

Value zero::getMoved(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (isa<OnHostOp, OnHostStartOp>(op))
    return op->getRegion(0).getArgument(number);
  if (isa<YieldOp>(op))
    op = op->getParentOp();
  else if (isa<LocalOp>(op))
    return op->getResult(0);
  else if (!isa<TransferOp, TransferStartOp>(op))
    return {};
  if (!isStart(op))
    return op->getResult(number);
  Value future = op->getResult(0);
  return future.hasOneUse() ? (*future.user_begin())->getResult(number)
                            : Value();
}

StringRef zero::getAssignedSymbol(Value value) {
  for (OpOperand &use : value.getUses()) {
    if (auto assign = dyn_cast<AssignOp>(use.getOwner()))
      return assign.getSymbol();
    if (Value moved = getMoved(use))
      if (StringRef symbol = getAssignedSymbol(moved); !symbol.empty())
        return symbol;
  }
  return "";
}
