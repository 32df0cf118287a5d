//===- Autodiff.cpp - Reverse-mode differentiation ------------------------===//
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

#include "zero/Autodiff/Autodiff.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::train;

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

namespace {
/// One run of reverse mode: the values that depend on variables, and the
/// gradients so far.
class Differentiator {
public:
  Differentiator(OpBuilder &builder, ArrayRef<Variable> variables);

  LogicalResult run(Value loss, Value seed);
  Value getGrad(unsigned variable) const { return variableGrads[variable]; }

private:
  bool isActive(Value value) const { return active.contains(value); }
  LogicalResult differentiate(Operation *op);
  void accumulate(Location loc, Value value, Value grad);

  OpBuilder &builder;
  /// Float values that depend on a variable.
  DenseSet<Value> active;
  DenseMap<Value, unsigned> variableOf;
  DenseMap<Value, Value> grads;
  SmallVector<Value> variableGrads;
};
} // namespace

Differentiator::Differentiator(OpBuilder &builder, ArrayRef<Variable> variables)
    : builder(builder), variableGrads(variables.size()) {
  for (auto [i, variable] : llvm::enumerate(variables))
    for (Value value : variable) {
      variableOf[value] = i;
      active.insert(value);
    }
  for (Operation &op : *builder.getInsertionBlock())
    if (llvm::any_of(op.getOperands(), [&](Value v) { return isActive(v); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
}

/// Adds `grad` to the gradient by `value`, or by the variable that it holds.
void Differentiator::accumulate(Location loc, Value value, Value grad) {
  auto variable = variableOf.find(value);
  Value &sum = variable == variableOf.end() ? grads[value]
                                            : variableGrads[variable->second];
  sum = sum ? AddOp::create(builder, loc, sum, grad) : grad;
}

LogicalResult Differentiator::differentiate(Operation *op) {
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

LogicalResult Differentiator::run(Value loss, Value seed) {
  if (!isActive(loss))
    return success();
  Operation *last = loss.getDefiningOp();
  if (!seed)
    seed =
        createScalar(builder, loss.getLoc(), getElementTypeOrSelf(loss), 1.0);
  accumulate(loss.getLoc(), loss, seed);
  // The loss may itself be a variable; then nothing stands before it.
  if (!last || variableOf.contains(loss))
    return success();
  for (Operation *op = last; op; op = op->getPrevNode())
    if (llvm::any_of(op->getOperands(), [&](Value v) { return isActive(v); }))
      if (failed(differentiate(op)))
        return failure();
  return success();
}

FailureOr<SmallVector<Value>>
mlir::train::buildGradients(OpBuilder &builder, Value loss,
                            ArrayRef<Variable> variables, Value seed) {
  Differentiator differentiator(builder, variables);
  if (failed(differentiator.run(loss, seed)))
    return failure();
  SmallVector<Value> grads;
  for (unsigned i = 0, e = variables.size(); i < e; ++i)
    grads.push_back(differentiator.getGrad(i));
  return grads;
}

//===----------------------------------------------------------------------===//
// The function around it
//===----------------------------------------------------------------------===//

SmallVector<ReadParameter>
mlir::train::collectTrainedParameters(ModuleOp module, func::FuncOp function) {
  llvm::MapVector<StringAttr, ReadParameter> parameters;
  for (auto param : module.getOps<zero::ParamOp>())
    if (param.isTrained() &&
        isa<FloatType>(param.getLogicalType().getElementType()))
      parameters.insert({param.getSymNameAttr(), {param, {}}});
  for (auto read : function.getOps<zero::ReadOp>()) {
    auto it = parameters.find(read.getSymbolAttr().getAttr());
    if (it != parameters.end())
      it->second.reads.push_back(read.getValue());
  }
  SmallVector<ReadParameter> result;
  for (auto &entry : parameters)
    result.push_back(std::move(entry.second));
  return result;
}

std::string mlir::train::getOutputName(func::FuncOp function, unsigned index) {
  if (auto name =
          function.getResultAttrOfType<StringAttr>(index, "zero.output"))
    return name.str();
  return "#" + std::to_string(index);
}

std::optional<unsigned> mlir::train::findOutput(func::FuncOp function,
                                                StringRef name) {
  for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
    if (getOutputName(function, i) == name)
      return i;
  return std::nullopt;
}

void mlir::train::eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  DenseMap<Attribute, Value> constants;
  for (auto op :
       llvm::make_early_inc_range(block.getOps<arith::ConstantOp>())) {
    auto [known, isNew] = constants.try_emplace(op.getValue(), op.getResult());
    if (isNew)
      continue;
    op.replaceAllUsesWith(known->second);
    op.erase();
  }
}
