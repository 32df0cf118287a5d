//===- TrainStepOps.cpp - Accumulation, scaling ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers of the ops of TrainOpsStep.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"

using namespace mlir;
using namespace mlir::train;

LogicalResult LossSeedOp::verify() {
  if (static_cast<int64_t>(getMicroBatches()) < 1)
    return emitOpError() << "expects at least one micro-batch, got "
                         << static_cast<int64_t>(getMicroBatches());
  return success();
}

LogicalResult GradientFactorOp::verify() {
  if (getMaxNorm() && !(getMaxNorm()->convertToDouble() > 0.0))
    return emitOpError() << "expects a positive max_norm, got "
                         << getMaxNorm()->convertToDouble();
  return success();
}

LogicalResult UpdateLossScaleOp::verify() {
  if (static_cast<int64_t>(getWindow()) < 1 ||
      static_cast<int64_t>(getHysteresis()) < 1)
    return emitOpError() << "expects a window and a hysteresis of at least 1, "
                         << "got " << static_cast<int64_t>(getWindow())
                         << " and " << static_cast<int64_t>(getHysteresis());
  if (!(getFactor().convertToDouble() > 1.0))
    return emitOpError() << "expects a factor greater than 1, got "
                         << getFactor().convertToDouble();
  if (!(getMinScale().convertToDouble() > 0.0))
    return emitOpError() << "expects a positive min_scale, got "
                         << getMinScale().convertToDouble();
  return success();
}
