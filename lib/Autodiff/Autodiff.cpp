//===- Autodiff.cpp - Reverse-mode differentiation ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of a loss, and the function around it.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/Autodiff.h"

#include "dialects/Train/ScanBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::train;

FailureOr<SmallVector<Value>>
mlir::train::buildGradients(OpBuilder &builder, Value loss,
                            ArrayRef<Variable> variables, Value seed) {
  ReverseMode reverse(builder, variables);
  if (reverse.isActive(loss)) {
    if (!seed)
      seed =
          createScalar(builder, loss.getLoc(), getElementTypeOrSelf(loss), 1.0);
    reverse.accumulate(loss.getLoc(), loss, seed);
    // The loss may itself be a variable; then nothing stands before it.
    if (!reverse.isVariable(loss) && failed(reverse.run(loss.getDefiningOp())))
      return failure();
  }
  SmallVector<Value> grads;
  for (unsigned i = 0, e = variables.size(); i < e; ++i)
    grads.push_back(reverse.getGrad(i));
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
  IRRewriter rewriter(block.getParentOp()->getContext());
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
    else if (auto scan = dyn_cast<ScanOp>(op))
      eraseUnusedParts(rewriter, scan);
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
