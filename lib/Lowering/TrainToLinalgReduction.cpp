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
// dimensions adds whole rows. Floats narrower than f32 add up in f32, in a
// temporary; where that would be large, piece by piece of the result.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::zero;

using Combine = llvm::function_ref<Value(OpBuilder &, Location, Value, Value)>;

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

namespace {
/// A reduction of floats or integers.
struct Reduction {
  ArrayRef<int64_t> axes;
  bool keepDims;
  RankedTensorType result;
  Combine combine;
  double count; ///< what a sum is divided by
  /// The value that changes nothing, of a type.
  llvm::function_ref<Value(OpBuilder &, Location, Type)> getNeutral;

  Value reduce(OpBuilder &b, Location loc, Value input, ArrayRef<int64_t> over,
               RankedTensorType type) const;
  Value reduceInPieces(OpBuilder &b, Location loc, Value input,
                       ArrayRef<bool> looped) const;
  Value build(OpBuilder &b, Location loc, Value input) const;
};
} // namespace

/// Reduces a tensor or a piece of it to one of `type`.
Value Reduction::reduce(OpBuilder &b, Location loc, Value input,
                        ArrayRef<int64_t> over, RankedTensorType type) const {
  Type element = type.getElementType(), compute = getComputeType(element);
  Value start = getNeutral(b, loc, compute);
  Value empty = emptyTensor(b, loc, type.getShape(), compute);
  Value init = linalg::FillOp::create(b, loc, start, empty).getResult(0);
  Value sum = reduceAxes(b, loc, input, over, keepDims, init, combine);
  return finishSum(b, loc, sum, count, element);
}

/// Most elements of the temporary of a reduction of narrow floats.
static constexpr int64_t kMaxTemporary = 1 << 16;

/// The first dimensions that the result keeps, over which a loop has to go so
/// that the pieces are small enough.
static SmallVector<bool> getLoopedDims(RankedTensorType input,
                                       ArrayRef<int64_t> axes) {
  SmallVector<bool> looped(input.getRank(), false);
  int64_t elements = 1;
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (!llvm::is_contained(axes, dim))
      elements *= input.getDimSize(dim);
  for (int64_t dim = 0; dim < input.getRank() && elements > kMaxTemporary;
       ++dim) {
    if (llvm::is_contained(axes, dim))
      continue;
    looped[dim] = true;
    elements /= input.getDimSize(dim);
  }
  return looped;
}

Value Reduction::reduceInPieces(OpBuilder &b, Location loc, Value input,
                                ArrayRef<bool> looped) const {
  SmallVector<int64_t> inDims, outDims, over;
  int64_t outDim = 0;
  for (auto [dim, isLooped] : llvm::enumerate(looped)) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(dim));
    if (reduced)
      over.push_back(inDims.size());
    if (!isLooped)
      inDims.push_back(dim);
    if (!isLooped && (!reduced || keepDims))
      outDims.push_back(outDim);
    outDim += !reduced || keepDims;
  }
  Rows from(getTensorType(input).getShape(), inDims);
  Rows to(result.getShape(), outDims);
  return buildLoops(b, loc, from.getExtents(), emptyTensor(b, loc, result),
                    [&](OpBuilder &n, Location at, ValueRange indices,
                        ValueRange carried) -> SmallVector<Value> {
                      Value out = to.extract(n, at, carried[0], indices);
                      Value piece =
                          reduce(n, at, from.extract(n, at, input, indices),
                                 over, getTensorType(out));
                      return {to.insert(n, at, piece, carried[0], indices)};
                    })[0];
}

Value Reduction::build(OpBuilder &b, Location loc, Value input) const {
  Type element = result.getElementType();
  SmallVector<bool> looped = getLoopedDims(getTensorType(input), axes);
  if (element == getComputeType(element) || !llvm::is_contained(looped, true))
    return reduce(b, loc, input, axes, result);
  return reduceInPieces(b, loc, input, looped);
}

template <typename OpTy>
static SmallVector<Value> lowerExtreme(OpBuilder &b, OpTy op) {
  constexpr bool isMax = std::is_same_v<OpTy, train::ReduceMaxOp>;
  bool noSign = isUnsigned(op);
  auto neutral = [&](OpBuilder &n, Location at, Type type) {
    return extremeScalar(n, at, type, !isMax, noSign);
  };
  auto combine = [&](OpBuilder &n, Location at, Value lhs, Value rhs) {
    return isMax ? maxScalar(n, at, lhs, rhs, noSign)
                 : minScalar(n, at, lhs, rhs, noSign);
  };
  Reduction reduction{
      op.getAxes(), op.getKeepdims(), getTensorType(op.getResult()), combine,
      /*count=*/1,  neutral};
  return {reduction.build(b, op.getLoc(), op.getInput())};
}

template <typename OpTy>
static SmallVector<Value> lowerSum(OpBuilder &b, OpTy op) {
  double count = 1;
  if constexpr (std::is_same_v<OpTy, train::ReduceMeanOp>)
    for (int64_t axis : op.getAxes())
      count *= getTensorType(op.getInput()).getDimSize(axis);
  auto neutral = [](OpBuilder &n, Location at, Type type) {
    return constantScalar(n, at, type, 0);
  };
  Reduction reduction{op.getAxes(),
                      op.getKeepdims(),
                      getTensorType(op.getResult()),
                      addReassociated,
                      count,
                      neutral};
  return {reduction.build(b, op.getLoc(), op.getInput())};
}

/// The largest element of a row, 0 where it is not finite: what can be
/// subtracted from any element.
static Value getShift(OpBuilder &b, Location loc, Value row, Type compute) {
  Value low = extremeScalar(b, loc, compute, /*largest=*/false);
  Value max = reduceElements(
      b, loc, row, low, [&](OpBuilder &n, Location at, ValueRange args) {
        Value x = convertScalar(n, at, args[0], compute);
        return SmallVector<Value>{maxScalar(n, at, x, args[1])};
      })[0];
  Value difference = arith::SubFOp::create(b, loc, max, max);
  Value finite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD,
                                       difference, difference);
  return arith::SelectOp::create(b, loc, finite, max,
                                 constantScalar(b, loc, compute, 0));
}

static SmallVector<Value> lowerLogSumExp(OpBuilder &b,
                                         train::ReduceLogSumExpOp op) {
  RankedTensorType type = getTensorType(op.getInput());
  Type element = type.getElementType(), compute = getComputeType(element);
  Rows rows(type.getShape(), op.getAxes());
  auto body = [&](OpBuilder &n, Location at, ValueRange indices,
                  ValueRange out) -> SmallVector<Value> {
    Value row = rows.extract(n, at, op.getInput(), indices);
    Value shift = getShift(n, at, row, compute);
    Value sum = sumElements(
        n, at, row, compute,
        [&](OpBuilder &nested, Location here, ValueRange args) {
          Value x = convertScalar(nested, here, args[0], compute);
          x = arith::SubFOp::create(nested, here, x, shift);
          return SmallVector<Value>{math::ExpOp::create(nested, here, x)};
        });
    Value log = math::LogOp::create(n, at, sum);
    Value result = arith::AddFOp::create(n, at, log, shift);
    SmallVector<Value> kept = op.getKeepdims() ? rows.keepDims(n, at, indices)
                                               : SmallVector<Value>(indices);
    return {insertElement(n, at, convertScalar(n, at, result, element), out[0],
                          kept)};
  };
  return buildLoops(b, op.getLoc(), rows.getExtents(),
                    emptyTensor(b, op.getLoc(), op.getResult().getType()),
                    body);
}

static Value multiply(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return arith::MulFOp::create(b, loc, lhs, rhs,
                                 arith::FastMathFlags::reassoc);
  return arith::MulIOp::create(b, loc, lhs, rhs);
}

static SmallVector<Value> lowerProduct(OpBuilder &b, train::ReduceProdOp op) {
  auto neutral = [](OpBuilder &n, Location at, Type type) {
    return constantScalar(n, at, type, 1);
  };
  Reduction reduction{
      op.getAxes(), op.getKeepdims(), getTensorType(op.getResult()), multiply,
      /*count=*/1,  neutral};
  return {reduction.build(b, op.getLoc(), op.getInput())};
}

void zero::populateTrainReductionToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerExtreme<train::ReduceMaxOp>);
  addLowering(patterns, lowerExtreme<train::ReduceMinOp>);
  addLowering(patterns, lowerLogSumExp);
  addLowering(patterns, lowerProduct);
  addLowering(patterns, lowerSum<train::ReduceMeanOp>);
  addLowering(patterns, lowerSum<train::ReduceSumOp>);
}
