//===- TrainToLinalgReduction.cpp - Reductions along axes -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One linalg.generic each, in the order of the operand's dimensions: a
// reduction of the last dimensions keeps its sum in registers, one of the first
// dimensions adds whole rows.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <limits>

using namespace mlir;
using namespace mlir::zero;

using Combine = Value (*)(OpBuilder &, Location, Value, Value);

/// Where the result's elements lie among the loops over the operand; reduced
/// dimensions that are kept are 0.
static AffineMap getResultMap(OpBuilder &b, int64_t rank,
                              ArrayRef<int64_t> axes, bool keepDims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!llvm::is_contained(axes, dim))
      exprs.push_back(b.getAffineDimExpr(dim));
    else if (keepDims)
      exprs.push_back(b.getAffineConstantExpr(0));
  }
  return AffineMap::get(rank, 0, exprs, b.getContext());
}

/// Combines `input` along `axes` into `init`.
static Value reduceAxes(OpBuilder &b, Location loc, Value input,
                        ArrayRef<int64_t> axes, bool keepDims, Value init,
                        Combine combine) {
  int64_t rank = getTensorType(input).getRank();
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  for (int64_t axis : axes)
    kinds[axis] = utils::IteratorType::reduction;
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(rank),
                                 getResultMap(b, rank, axes, keepDims)};
  return linalg::GenericOp::create(
             b, loc, init.getType(), input, init, maps, kinds,
             [&](OpBuilder &n, Location at, ValueRange args) {
               Value x = convertScalar(n, at, args[0], args[1].getType());
               linalg::YieldOp::create(n, at, combine(n, at, args[1], x));
             })
      .getResult(0);
}

/// The smallest or largest value of `type`.
static Value getExtreme(OpBuilder &b, Location loc, Type type, bool largest) {
  if (isa<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    return constantScalar(b, loc, type, largest ? infinity : -infinity);
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt value =
      largest ? APInt::getSignedMaxValue(bits) : APInt::getSignedMinValue(bits);
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

template <typename OpTy>
static SmallVector<Value> lowerExtreme(OpBuilder &b, OpTy op) {
  constexpr bool isMax = std::is_same_v<OpTy, train::ReduceMaxOp>;
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Value start = getExtreme(b, loc, type.getElementType(), !isMax);
  Value init = linalg::FillOp::create(b, loc, start, emptyTensor(b, loc, type))
                   .getResult(0);
  return {reduceAxes(b, loc, op.getInput(), op.getAxes(), op.getKeepdims(),
                     init, isMax ? maxScalar : minScalar)};
}

/// Each element of `sum` divided by `count`, as `element`.
static Value finishSum(OpBuilder &b, Location loc, Value sum, double count,
                       Type element) {
  Type compute = getTensorType(sum).getElementType();
  if (count == 1 && compute == element)
    return sum;
  Value out = emptyTensor(b, loc, getTensorType(sum).getShape(), element);
  return mapElements(
      b, loc, out, sum, [&](OpBuilder &n, Location at, ValueRange args) {
        Value x = args[0];
        if (count != 1)
          x = arith::DivFOp::create(n, at, x,
                                    constantScalar(n, at, compute, count));
        return SmallVector<Value>{convertScalar(n, at, x, element)};
      })[0];
}

template <typename OpTy>
static SmallVector<Value> lowerSum(OpBuilder &b, OpTy op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Type element = type.getElementType();
  Value init = filledTensor(b, loc, type.clone(getComputeType(element)), 0);
  Value sum = reduceAxes(b, loc, op.getInput(), op.getAxes(), op.getKeepdims(),
                         init, addReassociated);
  double count = 1;
  if constexpr (std::is_same_v<OpTy, train::ReduceMeanOp>)
    for (int64_t axis : op.getAxes())
      count *= getTensorType(op.getInput()).getDimSize(axis);
  return {finishSum(b, loc, sum, count, element)};
}

void zero::populateTrainReductionToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerExtreme<train::ReduceMaxOp>);
  addLowering(patterns, lowerExtreme<train::ReduceMinOp>);
  addLowering(patterns, lowerSum<train::ReduceMeanOp>);
  addLowering(patterns, lowerSum<train::ReduceSumOp>);
}
