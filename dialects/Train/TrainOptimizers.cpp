//===- TrainOptimizers.cpp - Optimizer updates ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The zero dialect's view of the optimizer updates: which operand is parameter,
// gradient and state.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"

using namespace mlir;
using namespace mlir::train;

OpOperand &SgdOp::getParameterOperand() { return getParamMutable(); }
OpOperand &SgdOp::getGradientOperand() { return getGradMutable(); }
SmallVector<OpOperand *> SgdOp::getStateOperands() {
  if (!getMomentumBuffer())
    return {};
  return {&*getMomentumBufferMutable().begin()};
}

OpOperand &AdamOp::getParameterOperand() { return getParamMutable(); }
OpOperand &AdamOp::getGradientOperand() { return getGradMutable(); }
SmallVector<OpOperand *> AdamOp::getStateOperands() {
  return {&getExpAvgMutable(), &getExpAvgSqMutable()};
}

OpOperand &AdamwOp::getParameterOperand() { return getParamMutable(); }
OpOperand &AdamwOp::getGradientOperand() { return getGradMutable(); }
SmallVector<OpOperand *> AdamwOp::getStateOperands() {
  return {&getExpAvgMutable(), &getExpAvgSqMutable()};
}

OpOperand &AdamHatOp::getParameterOperand() { return getParamMutable(); }
OpOperand &AdamHatOp::getGradientOperand() { return getGradMutable(); }
SmallVector<OpOperand *> AdamHatOp::getStateOperands() {
  return {&getExpAvgMutable(), &getExpAvgSqMutable()};
}

OpOperand &AdagradOp::getParameterOperand() { return getParamMutable(); }
OpOperand &AdagradOp::getGradientOperand() { return getGradMutable(); }
SmallVector<OpOperand *> AdagradOp::getStateOperands() {
  return {&getSumMutable()};
}
