//===- TrainVerifiers.cpp - Rules beyond result types ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rules of single operations that neither operand constraints nor the inference
// of result types cover.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/InferError.h"

using namespace mlir;
using namespace mlir::train;

template <typename Op>
static LogicalResult verifyApproximate(Op op) {
  if (op.getApproximate() == "none" || op.getApproximate() == "tanh")
    return success();
  return op.emitOpError() << "approximate is \"" << op.getApproximate()
                          << "\", expected \"none\" or \"tanh\"";
}

LogicalResult GeluOp::verify() { return verifyApproximate(*this); }
LogicalResult GeluGradOp::verify() { return verifyApproximate(*this); }

template <typename Op>
static LogicalResult verifyAxis(Op op) {
  return requireAxis({op.getLoc(), Op::getOperationName()}, op.getAxis(),
                     op.getType().getRank());
}

LogicalResult SoftmaxOp::verify() { return verifyAxis(*this); }
LogicalResult SoftmaxGradOp::verify() { return verifyAxis(*this); }
LogicalResult LogSoftmaxOp::verify() { return verifyAxis(*this); }
LogicalResult LogSoftmaxGradOp::verify() { return verifyAxis(*this); }

template <typename Op>
static LogicalResult verifyClipValue(Op op) {
  if (!op.getClipValue() || op.getClipValue()->convertToDouble() > 0.0)
    return success();
  return op.emitOpError() << "expects a positive clip_value, got "
                          << op.getClipValue()->convertToDouble();
}

LogicalResult SgdOp::verify() {
  InferError error(getLoc(), getOperationName());
  ArrayRef<int64_t> shape = getParam().getType().getShape();
  if (failed(requireShape(error, "grad", getGrad(), shape)))
    return failure();
  bool hasMomentum = !getMomentum().isZero();
  if (hasMomentum != bool(getMomentumBuffer()))
    return emitOpError() << (hasMomentum ? "needs" : "has")
                         << " a momentum buffer, momentum is "
                         << getMomentum().convertToDouble();
  bool hasDampening = !getDampening().isZero();
  if (hasDampening != bool(getStep()))
    return emitOpError() << (hasDampening ? "needs" : "has")
                         << " a step operand, dampening is "
                         << getDampening().convertToDouble();
  if (getCurrentMomentum() && !hasMomentum)
    return emitOpError("has a momentum operand but no momentum buffer");
  if (failed(verifyClipValue(*this)))
    return failure();
  if (getNesterov() && (!hasMomentum || hasDampening))
    return emitOpError("nesterov needs momentum and no dampening");
  return hasMomentum ? requireShape(error, "momentum_buffer",
                                    getMomentumBuffer(), shape)
                     : success();
}

template <typename Op>
static LogicalResult verifyAdam(Op op) {
  InferError error(op.getLoc(), Op::getOperationName());
  ArrayRef<int64_t> shape = op.getParam().getType().getShape();
  return success(
      succeeded(verifyClipValue(op)) &&
      succeeded(requireShape(error, "grad", op.getGrad(), shape)) &&
      succeeded(requireShape(error, "exp_avg", op.getExpAvg(), shape)) &&
      succeeded(requireShape(error, "exp_avg_sq", op.getExpAvgSq(), shape)));
}

LogicalResult AdamOp::verify() { return verifyAdam(*this); }
LogicalResult AdamwOp::verify() { return verifyAdam(*this); }
LogicalResult AdamHatOp::verify() { return verifyAdam(*this); }

LogicalResult AdagradOp::verify() {
  InferError error(getLoc(), getOperationName());
  ArrayRef<int64_t> shape = getParam().getType().getShape();
  if (getCurrentMomentum())
    return emitOpError("has a momentum operand but no momentum");
  return success(succeeded(verifyClipValue(*this)) &&
                 succeeded(requireShape(error, "grad", getGrad(), shape)) &&
                 succeeded(requireShape(error, "sum", getSum(), shape)));
}
