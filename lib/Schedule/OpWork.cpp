//===- OpWork.cpp - What an operation has to do ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See OpWork.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/OpWork.h"

#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::zero;

/// The cost model's name of the first tensor's element type.
static StringRef getTypeName(Operation *op) {
  for (Type type : op->getOperandTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue;
    Type element = tensor.getElementType();
    if (element.isBF16())
      return "bf16";
    if (element.isF16())
      return "f16";
    if (element.isF64())
      return "f64";
    break;
  }
  return "f32";
}

static OpWork fromInterface(Cost op) {
  Work work = op.getWork();
  OpWork result;
  result.cls = work.k ? OpWork::Matmul : OpWork::Kernel;
  result.flops = work.flops;
  result.bytes = work.bytes;
  result.batch = work.batch;
  result.m = work.m;
  result.n = work.n;
  result.k = work.k;
  result.transcendentals = work.transcendentals;
  return result;
}

/// The product of the ranges of some loops.
static int64_t countOf(ArrayRef<unsigned> loops, ArrayRef<int64_t> ranges) {
  int64_t count = 1;
  for (unsigned loop : loops)
    count *= ranges[loop];
  return count;
}

static OpWork fromLinalg(linalg::LinalgOp op) {
  OpWork work;
  work.bytes = getOperandAndResultBytes(op);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (llvm::any_of(ranges, ShapedType::isDynamic))
    return work;
  double iterations = ShapedType::getNumElements(ranges);
  for (Operation &scalar : op->getRegion(0).front().without_terminator()) {
    bool isMath = isa<math::MathDialect>(scalar.getDialect());
    work.transcendentals += isMath ? iterations : 0;
    work.flops += isa<arith::ConstantOp>(scalar) ? 0 : iterations;
  }
  if (linalg::isaContractionOpInterface(op)) {
    FailureOr<linalg::ContractionDimensions> dims =
        linalg::inferContractionDims(op);
    if (succeeded(dims)) {
      work.batch = countOf(dims->batch, ranges);
      work.m = countOf(dims->m, ranges);
      work.n = countOf(dims->n, ranges);
      work.k = countOf(dims->k, ranges);
      work.cls = OpWork::Matmul;
    }
  } else if (linalg::isaConvolutionOpInterface(op)) {
    work.cls = OpWork::Matmul;
  }
  return work;
}

OpWork zero::getOpWork(Operation *op) {
  OpWork work;
  if (auto cost = dyn_cast<Cost>(op))
    work = fromInterface(cost);
  else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    work = fromLinalg(linalgOp);
  else if (!isa<tensor::EmptyOp, tensor::SplatOp, tensor::CollapseShapeOp,
                tensor::ExpandShapeOp, tensor::ReshapeOp,
                tensor::ExtractSliceOp, tensor::CastOp, LocalOp>(op) &&
           !op->hasTrait<OpTrait::ConstantLike>())
    work.bytes = getOperandAndResultBytes(op);
  work.type = getTypeName(op);
  return work;
}

bool zero::isView(Operation *op) {
  // A splat is made where it is used.
  if (isa<tensor::SplatOp>(op))
    return true;
  if (op->getNumOperands() == 0 || op->getNumResults() == 0 ||
      op->getNumRegions() != 0 || !isMemoryEffectFree(op) ||
      !isa<RankedTensorType>(op->getOperand(0).getType()))
    return false;
  OpWork work = getOpWork(op);
  return work.bytes == 0 && work.flops == 0;
}

FailureOr<Machine> zero::findMachine(Location loc, StringRef name) {
  llvm::Expected<Machine> machine =
      loadMachine(name.empty() ? "this-cpu" : name);
  if (machine)
    return *machine;
  // no test: the text is the machine reader's, which tests it.
  return emitError(loc) << llvm::toString(machine.takeError());
}
