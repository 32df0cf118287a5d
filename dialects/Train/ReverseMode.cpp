//===- ReverseMode.cpp - The walk that builds gradients -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which operations carry a gradient, and the walk that builds it.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ReverseMode.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::train;

ReverseMode::ReverseMode(OpBuilder &builder, ArrayRef<Variable> variables)
    : builder(builder), variableGrads(variables.size()) {
  for (auto [i, variable] : llvm::enumerate(variables))
    for (Value value : variable) {
      variableOf[value] = i;
      active.insert(value);
    }
  for (Operation &op : *builder.getInsertionBlock())
    if (llvm::any_of(op.getOperands(), [&](Value v) { return isActive(v); }))
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result)))
          active.insert(result);
}

void ReverseMode::accumulate(Location loc, Value value, Value grad) {
  auto variable = variableOf.find(value);
  Value &sum = variable == variableOf.end() ? grads[value]
                                            : variableGrads[variable->second];
  sum = sum ? AddOp::create(builder, loc, sum, grad) : grad;
}

LogicalResult ReverseMode::differentiate(Operation *op) {
  SmallVector<Value> resultGrads;
  for (Value result : op->getResults())
    resultGrads.push_back(grads.lookup(result));
  if (llvm::none_of(resultGrads, [](Value grad) { return bool(grad); }))
    return success();
  auto differentiable = dyn_cast<Differentiable>(op);
  if (!differentiable)
    return op->emitOpError(
        "has no derivative, but a trained parameter reaches the loss through "
        "it; freeze the parameters before it or replace it");
  SmallVector<Value> operandGrads;
  if (failed(differentiable.buildVjp(builder, resultGrads, operandGrads)))
    return failure();
  for (auto [operand, grad] : llvm::zip_equal(op->getOperands(), operandGrads))
    if (grad && isActive(operand))
      accumulate(op->getLoc(), operand, grad);
  return success();
}

LogicalResult ReverseMode::run(Operation *last) {
  for (Operation *op = last; op; op = op->getPrevNode())
    if (llvm::any_of(op->getOperands(), [&](Value v) { return isActive(v); }))
      if (failed(differentiate(op)))
        return failure();
  return success();
}
