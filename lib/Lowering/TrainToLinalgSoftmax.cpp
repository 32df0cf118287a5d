//===- TrainToLinalgSoftmax.cpp - Softmax row by row ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// softmax and log_softmax with their gradients: a loop over rows, in whose body
// every step is one pass over a row that is in the first-level cache.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::zero;

/// Builds the result's row from the operands' rows.
using RowFn = function_ref<Value(OpBuilder &, Location, ArrayRef<Value>)>;

/// A loop over the rows along `axis` of `operands`, which have the result's
/// shape.
static SmallVector<Value> mapRows(OpBuilder &b, Operation *op, int64_t axis,
                                  RowFn body) {
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Rows rows(type.getShape(), axis);
  return buildLoops(b, loc, rows.getExtents(), emptyTensor(b, loc, type),
                    [&](OpBuilder &nested, Location at, ValueRange indices,
                        ValueRange carried) {
                      SmallVector<Value> slices;
                      for (Value operand : op->getOperands())
                        slices.push_back(
                            rows.extract(nested, at, operand, indices));
                      Value row = body(nested, at, slices);
                      return SmallVector<Value>{
                          rows.insert(nested, at, row, carried[0], indices)};
                    });
}

/// Elementwise on rows, computed in `compute` and stored as `element`.
static Value mapRow(OpBuilder &b, Location loc, ValueRange rows, Type compute,
                    Type element, ElementsFn body) {
  Value init =
      emptyTensor(b, loc, getTensorType(rows.front()).getShape(), element);
  return mapElements(b, loc, init, rows,
                     [&](OpBuilder &nested, Location at, ValueRange args) {
                       SmallVector<Value> scalars;
                       for (Value arg : args)
                         scalars.push_back(
                             convertScalar(nested, at, arg, compute));
                       Value value = body(nested, at, scalars).front();
                       return SmallVector<Value>{
                           convertScalar(nested, at, value, element)};
                     })
      .front();
}

static Value maxOfRow(OpBuilder &b, Location loc, Value row, Type compute) {
  Value low =
      constantScalar(b, loc, compute, -std::numeric_limits<double>::infinity());
  return reduceElements(b, loc, row, low,
                        [&](OpBuilder &nested, Location at, ValueRange args) {
                          Value x = convertScalar(nested, at, args[0], compute);
                          return SmallVector<Value>{
                              maxScalar(nested, at, x, args[1])};
                        })
      .front();
}

static Value sumOfRow(OpBuilder &b, Location loc, Value row, Type compute) {
  return sumElements(b, loc, row, compute,
                     [&](OpBuilder &nested, Location at, ValueRange args) {
                       return SmallVector<Value>{
                           convertScalar(nested, at, args[0], compute)};
                     });
}

static Type getElement(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
}

static SmallVector<Value> lowerSoftmax(OpBuilder &b, train::SoftmaxOp op) {
  Type element = getElement(op), compute = getComputeType(element);
  auto body = [&](OpBuilder &n, Location loc, ArrayRef<Value> rows) {
    Value max = maxOfRow(n, loc, rows[0], compute);
    Value powers = mapRow(
        n, loc, rows[0], compute, compute,
        [&](OpBuilder &nested, Location at, ValueRange x) {
          Value shifted = arith::SubFOp::create(nested, at, x[0], max);
          return SmallVector<Value>{math::ExpOp::create(nested, at, shifted)};
        });
    Value sum = sumOfRow(n, loc, powers, compute);
    return mapRow(n, loc, powers, compute, element,
                  [&](OpBuilder &nested, Location at, ValueRange x) {
                    return SmallVector<Value>{
                        arith::DivFOp::create(nested, at, x[0], sum)};
                  });
  };
  return mapRows(b, op, op.getAxis(), body);
}

static SmallVector<Value> lowerLogSoftmax(OpBuilder &b,
                                          train::LogSoftmaxOp op) {
  Type element = getElement(op), compute = getComputeType(element);
  auto body = [&](OpBuilder &n, Location loc, ArrayRef<Value> rows) {
    Value max = maxOfRow(n, loc, rows[0], compute);
    Value sum = sumElements(
        n, loc, rows[0], compute,
        [&](OpBuilder &nested, Location at, ValueRange args) {
          Value x = convertScalar(nested, at, args[0], compute);
          Value shifted = arith::SubFOp::create(nested, at, x, max);
          return SmallVector<Value>{math::ExpOp::create(nested, at, shifted)};
        });
    Value log = math::LogOp::create(n, loc, sum);
    return mapRow(n, loc, rows[0], compute, element,
                  [&](OpBuilder &nested, Location at, ValueRange x) {
                    Value shifted =
                        arith::SubFOp::create(nested, at, x[0], max);
                    return SmallVector<Value>{
                        arith::SubFOp::create(nested, at, shifted, log)};
                  });
  };
  return mapRows(b, op, op.getAxis(), body);
}

static SmallVector<Value> lowerSoftmaxGrad(OpBuilder &b,
                                           train::SoftmaxGradOp op) {
  Type element = getElement(op), compute = getComputeType(element);
  auto body = [&](OpBuilder &n, Location loc, ArrayRef<Value> rows) {
    Value dot = sumElements(
        n, loc, rows, compute,
        [&](OpBuilder &nested, Location at, ValueRange args) {
          Value grad = convertScalar(nested, at, args[0], compute);
          Value y = convertScalar(nested, at, args[1], compute);
          return SmallVector<Value>{arith::MulFOp::create(nested, at, grad, y)};
        });
    return mapRow(n, loc, rows, compute, element,
                  [&](OpBuilder &nested, Location at, ValueRange x) {
                    Value rest = arith::SubFOp::create(nested, at, x[0], dot);
                    return SmallVector<Value>{
                        arith::MulFOp::create(nested, at, rest, x[1])};
                  });
  };
  return mapRows(b, op, op.getAxis(), body);
}

static SmallVector<Value> lowerLogSoftmaxGrad(OpBuilder &b,
                                              train::LogSoftmaxGradOp op) {
  Type element = getElement(op), compute = getComputeType(element);
  auto body = [&](OpBuilder &n, Location loc, ArrayRef<Value> rows) {
    Value sum = sumOfRow(n, loc, rows[0], compute);
    return mapRow(n, loc, rows, compute, element,
                  [&](OpBuilder &nested, Location at, ValueRange x) {
                    Value y = math::ExpOp::create(nested, at, x[1]);
                    Value part = arith::MulFOp::create(nested, at, y, sum);
                    return SmallVector<Value>{
                        arith::SubFOp::create(nested, at, x[0], part)};
                  });
  };
  return mapRows(b, op, op.getAxis(), body);
}

void zero::populateTrainSoftmaxToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerLogSoftmax);
  addLowering(patterns, lowerLogSoftmaxGrad);
  addLowering(patterns, lowerSoftmax);
  addLowering(patterns, lowerSoftmaxGrad);
}
