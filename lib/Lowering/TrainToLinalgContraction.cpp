//===- TrainToLinalgContraction.cpp - Products without a library ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products and convolutions that no library call computes: of f64, of
// integers and of tensors without elements. A product is one linalg.generic, a
// convolution a loop over its result and in it one over what is added up.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalgWindows.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::zero;

static Value multiply(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return arith::MulFOp::create(b, loc, lhs, rhs);
  return arith::MulIOp::create(b, loc, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Where an operand's element lies among the loops [batch..., rows, inner,
/// columns]; `last` are the loops of its last two dimensions.
static AffineMap getOperandMap(OpBuilder &b, Value operand,
                               ArrayRef<int64_t> result,
                               std::pair<unsigned, unsigned> last,
                               bool transpose) {
  ArrayRef<int64_t> batch = getTensorType(operand).getShape().drop_back(2);
  size_t missing = result.size() - 2 - batch.size();
  SmallVector<AffineExpr> exprs;
  for (size_t i = 0; i < batch.size(); ++i)
    exprs.push_back(batch[i] == result[i + missing]
                        ? b.getAffineDimExpr(i + missing)
                        : b.getAffineConstantExpr(0));
  if (transpose)
    std::swap(last.first, last.second);
  exprs.push_back(b.getAffineDimExpr(last.first));
  exprs.push_back(b.getAffineDimExpr(last.second));
  return AffineMap::get(result.size() + 1, 0, exprs, b.getContext());
}

/// lhs * rhs added to `init`. The innermost loop is over columns, which lie
/// side by side in memory.
static Value addProduct(OpBuilder &b, Location loc, Value lhs, Value rhs,
                        bool transposeA, bool transposeB, Value init) {
  ArrayRef<int64_t> shape = getTensorType(init).getShape();
  unsigned rows = shape.size() - 2, inner = rows + 1, columns = rows + 2;
  SmallVector<utils::IteratorType> kinds(shape.size() + 1,
                                         utils::IteratorType::parallel);
  kinds[inner] = utils::IteratorType::reduction;
  SmallVector<AffineExpr> result;
  for (unsigned dim = 0; dim <= columns; ++dim)
    if (dim != inner)
      result.push_back(b.getAffineDimExpr(dim));
  SmallVector<AffineMap> maps = {
      getOperandMap(b, lhs, shape, {rows, inner}, transposeA),
      getOperandMap(b, rhs, shape, {inner, columns}, transposeB),
      AffineMap::get(columns + 1, 0, result, b.getContext())};
  return linalg::GenericOp::create(
             b, loc, init.getType(), ValueRange{lhs, rhs}, init, maps, kinds,
             [](OpBuilder &n, Location at, ValueRange args) {
               Value product = multiply(n, at, args[0], args[1]);
               linalg::YieldOp::create(
                   n, at, addReassociated(n, at, args[2], product));
             })
      .getResult(0);
}

static SmallVector<Value> lowerMatmul(OpBuilder &b, train::MatmulOp op) {
  Location loc = op.getLoc();
  return {addProduct(b, loc, op.getLhs(), op.getRhs(), op.getTransposeA(),
                     op.getTransposeB(),
                     filledTensor(b, loc, op.getResult().getType(), 0))};
}

static SmallVector<Value> lowerGemm(OpBuilder &b, train::GemmOp op) {
  Location loc = op.getLoc();
  Value bias =
      mapElements(b, loc, emptyTensor(b, loc, op.getResult().getType()),
                  op.getC(), [](OpBuilder &, Location, ValueRange e) {
                    return llvm::to_vector(e);
                  })[0];
  return {addProduct(b, loc, op.getA(), op.getB(), op.getTransposeA(),
                     op.getTransposeB(), bias)};
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

namespace {
/// The sizes of a convolution's groups.
struct Groups {
  template <typename OpTy>
  Groups(OpTy op, ArrayRef<int64_t> weight)
      : filters(weight[0] / op.getGroup()), channels(weight[1]) {}

  /// The channel of the input that is the `channel`-th of the group of
  /// `filter`.
  Value inputChannel(OpBuilder &b, Location loc, Value filter,
                     Value channel) const {
    Value group =
        arith::DivSIOp::create(b, loc, filter, constantIndex(b, loc, filters));
    Value first =
        arith::MulIOp::create(b, loc, group, constantIndex(b, loc, channels));
    return arith::AddIOp::create(b, loc, first, channel);
  }

  int64_t filters;  ///< of one group
  int64_t channels; ///< of one group
};
} // namespace

/// x * y added to `sum` where `condition` holds.
static Value addWhere(OpBuilder &b, Location loc, Value condition, Value sum,
                      function_ref<Value(OpBuilder &, Location)> product) {
  return scf::IfOp::create(
             b, loc, condition,
             [&](OpBuilder &n, Location at) {
               scf::YieldOp::create(
                   n, at, addReassociated(n, at, sum, product(n, at)));
             },
             [&](OpBuilder &n, Location at) {
               scf::YieldOp::create(n, at, sum);
             })
      .getResult(0);
}

/// A result whose element at `indices` is `start` plus what `add` adds in a
/// loop over `extents`.
static SmallVector<Value>
sumForEach(OpBuilder &b, Location loc, Type type, ArrayRef<int64_t> extents,
           function_ref<Value(OpBuilder &, Location, ValueRange)> start,
           function_ref<Value(OpBuilder &, Location, ValueRange indices,
                              ValueRange position, Value sum)>
               add) {
  auto body = [&](OpBuilder &n, Location at, ValueRange indices,
                  ValueRange out) -> SmallVector<Value> {
    Value sum =
        buildLoops(n, at, extents, start(n, at, indices),
                   [&](OpBuilder &k, Location here, ValueRange position,
                       ValueRange carried) -> SmallVector<Value> {
                     return {add(k, here, indices, position, carried[0])};
                   })[0];
    return {insertElement(n, at, sum, out[0], indices)};
  };
  return buildLoops(b, loc, cast<RankedTensorType>(type).getShape(),
                    emptyTensor(b, loc, type), body);
}

static SmallVector<int64_t> join(int64_t first, ArrayRef<int64_t> rest) {
  SmallVector<int64_t> all{first};
  llvm::append_range(all, rest);
  return all;
}

static SmallVector<Value> join(ArrayRef<Value> first, ValueRange rest) {
  SmallVector<Value> all(first);
  llvm::append_range(all, rest);
  return all;
}

static SmallVector<Value> lowerConv(OpBuilder &b, train::ConvOp op) {
  RankedTensorType input = getTensorType(op.getInput());
  ArrayRef<int64_t> weight = getTensorType(op.getWeight()).getShape();
  Type type = op.getResult().getType(), element = input.getElementType();
  Groups groups(op, weight);
  Windows windows(op, input.getShape(), weight.drop_front(2));
  auto start = [&](OpBuilder &n, Location at, ValueRange indices) {
    return op.getBias() ? extractElement(n, at, op.getBias(), indices[1])
                        : constantScalar(n, at, element, 0);
  };
  auto add = [&](OpBuilder &n, Location at, ValueRange indices,
                 ValueRange position, Value sum) {
    Value channel = groups.inputChannel(n, at, indices[1], position[0]);
    SmallVector<Value> window =
        join({indices[0], channel}, indices.drop_front(2));
    WindowPlace place = windows.locate(n, at, window, position.drop_front());
    return addWhere(n, at, place.inside, sum, [&](OpBuilder &k, Location here) {
      return multiply(
          k, here, extractElement(k, here, op.getInput(), place.indices),
          extractElement(k, here, op.getWeight(), join(indices[1], position)));
    });
  };
  // Nothing is read of an input without elements.
  SmallVector<int64_t> extents = join(weight[1], weight.drop_front(2));
  if (input.getNumElements() == 0)
    extents[0] = 0;
  return sumForEach(b, op.getLoc(), type, extents, start, add);
}

/// Sums of floats start from 0.
static auto startFromZero(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return [element](OpBuilder &n, Location at, ValueRange) {
    return constantScalar(n, at, element, 0);
  };
}

static SmallVector<Value> lowerConvGradInput(OpBuilder &b,
                                             train::ConvGradInputOp op) {
  ArrayRef<int64_t> grad = getTensorType(op.getGrad()).getShape();
  ArrayRef<int64_t> weight = getTensorType(op.getWeight()).getShape();
  Groups groups(op, weight);
  Windows windows(op, op.getInputShape(), weight.drop_front(2));
  auto add = [&](OpBuilder &n, Location at, ValueRange indices,
                 ValueRange position, Value sum) {
    Value channels = constantIndex(n, at, groups.channels);
    Value group = arith::DivSIOp::create(n, at, indices[1], channels);
    Value channel = arith::RemSIOp::create(n, at, indices[1], channels);
    Value first = arith::MulIOp::create(n, at, group,
                                        constantIndex(n, at, groups.filters));
    Value filter = arith::AddIOp::create(n, at, first, position[0]);
    ValueRange offset = position.drop_front();
    WindowCover cover = windows.findWindow(
        n, at, grad, join({indices[0], filter}, indices.drop_front(2)), offset);
    return addWhere(n, at, cover.valid, sum, [&](OpBuilder &k, Location here) {
      return multiply(k, here,
                      extractElement(k, here, op.getGrad(), cover.window),
                      extractElement(k, here, op.getWeight(),
                                     join({filter, channel}, offset)));
    });
  };
  return sumForEach(b, op.getLoc(), op.getResult().getType(),
                    join(groups.filters, weight.drop_front(2)),
                    startFromZero(op.getResult().getType()), add);
}

static SmallVector<Value> lowerConvGradWeight(OpBuilder &b,
                                              train::ConvGradWeightOp op) {
  ArrayRef<int64_t> grad = getTensorType(op.getGrad()).getShape();
  RankedTensorType input = getTensorType(op.getInput());
  Groups groups(op, op.getWeightShape());
  Windows windows(op, input.getShape(), op.getWeightShape().drop_front(2));
  auto add = [&](OpBuilder &n, Location at, ValueRange indices,
                 ValueRange position, Value sum) {
    Value channel = groups.inputChannel(n, at, indices[0], indices[1]);
    SmallVector<Value> window =
        join({position[0], channel}, position.drop_front());
    WindowPlace place = windows.locate(n, at, window, indices.drop_front(2));
    return addWhere(n, at, place.inside, sum, [&](OpBuilder &k, Location here) {
      return multiply(k, here,
                      extractElement(k, here, op.getInput(), place.indices),
                      extractElement(k, here, op.getGrad(),
                                     join({position[0], indices[0]},
                                          position.drop_front())));
    });
  };
  SmallVector<int64_t> extents = join(grad[0], grad.drop_front(2));
  if (input.getNumElements() == 0)
    extents[0] = 0;
  return sumForEach(b, op.getLoc(), op.getResult().getType(), extents,
                    startFromZero(op.getResult().getType()), add);
}

void zero::populateTrainContractionToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerConv);
  addLowering(patterns, lowerConvGradInput);
  addLowering(patterns, lowerConvGradWeight);
  addLowering(patterns, lowerGemm);
  addLowering(patterns, lowerMatmul);
}
