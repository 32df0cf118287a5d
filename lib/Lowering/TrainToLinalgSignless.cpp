//===- TrainToLinalgSignless.cpp - Unsigned tensors of kernels ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The train dialect tells unsigned integers by their type, arith by its
// operations. The types change first, so that lowerings see one kind of integer
// and those for which the sign matters ask.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

/// On operations of the train dialect: for each operand whether it was
/// unsigned.
static constexpr StringLiteral kUnsignedAttr = "zero.unsigned";

static bool isUnsignedTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isUnsignedInteger();
}

static Type getSignless(Type type) {
  if (!isUnsignedTensor(type))
    return type;
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(IntegerType::get(
      type.getContext(), tensor.getElementType().getIntOrFloatBitWidth()));
}

static void recordSigns(Operation *op) {
  if (!isa_and_nonnull<train::TrainDialect>(op->getDialect()) ||
      llvm::none_of(op->getOperandTypes(), isUnsignedTensor))
    return;
  SmallVector<bool> signs =
      llvm::map_to_vector(op->getOperandTypes(), isUnsignedTensor);
  op->setAttr(kUnsignedAttr, DenseBoolArrayAttr::get(op->getContext(), signs));
}

static void changeTypes(Operation *op) {
  for (Value result : op->getResults())
    result.setType(getSignless(result.getType()));
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Value argument : block.getArguments())
        argument.setType(getSignless(argument.getType()));
  auto constant = dyn_cast<arith::ConstantOp>(op);
  auto elements =
      constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  if (elements && elements.getType() != constant.getType())
    constant.setValueAttr(elements.bitcast(
        cast<RankedTensorType>(constant.getType()).getElementType()));
}

void zero::makeSignless(func::FuncOp kernel) {
  kernel.walk(recordSigns);
  kernel.walk(changeTypes);
  FunctionType type = kernel.getFunctionType();
  kernel.setFunctionType(FunctionType::get(
      kernel.getContext(), llvm::map_to_vector(type.getInputs(), getSignless),
      llvm::map_to_vector(type.getResults(), getSignless)));
}

bool zero::isUnsigned(Operation *op, unsigned index) {
  auto signs = op->getAttrOfType<DenseBoolArrayAttr>(kUnsignedAttr);
  return signs && signs[index];
}
