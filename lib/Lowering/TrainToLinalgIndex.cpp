//===- TrainToLinalgIndex.cpp - Indices, order and running sums -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// scatter copies its data and goes over the updates in their order. top_k makes
// a pass over a row for each of its results, which looks for the first element
// behind the one before: it needs no memory and keeps equals in order. Running
// sums carry one scalar along the axis.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

Value zero::combineScattered(OpBuilder &b, Location loc, train::ScatterOp op,
                             Value old, Value update) {
  StringRef reduction = op.getReduction();
  if (reduction == "none")
    return update;
  Type element = old.getType(), compute = getComputeType(element);
  bool isFloat = isa<FloatType>(element);
  old = convertScalar(b, loc, old, compute);
  update = convertScalar(b, loc, update, compute);
  Value result;
  if (reduction == "max")
    result = maxScalar(b, loc, old, update, isUnsigned(op));
  else if (reduction == "min")
    result = minScalar(b, loc, old, update, isUnsigned(op));
  else if (reduction == "add")
    result = isFloat ? Value(arith::AddFOp::create(b, loc, old, update))
                     : Value(arith::AddIOp::create(b, loc, old, update));
  else
    result = isFloat ? Value(arith::MulFOp::create(b, loc, old, update))
                     : Value(arith::MulIOp::create(b, loc, old, update));
  return convertScalar(b, loc, result, element);
}

Value zero::copyOf(OpBuilder &b, Location loc, Value tensor) {
  return mapElements(b, loc, emptyTensor(b, loc, tensor.getType()), tensor,
                     [](OpBuilder &, Location, ValueRange args) {
                       return SmallVector<Value>{args[0]};
                     })[0];
}

static SmallVector<Value> lowerScatter(OpBuilder &b, train::ScatterOp op) {
  Location loc = op.getLoc();
  int64_t axis = op.getAxis();
  RankedTensorType type = getTensorType(op.getData());
  RankedTensorType updates = getTensorType(op.getUpdates());
  Value init = copyOf(b, loc, op.getData());
  if (updates.getNumElements() == 0)
    return {init};
  int64_t loops = axis + getTensorType(op.getIndices()).getRank();
  Rows from(updates.getShape(),
            llvm::to_vector(llvm::seq<int64_t>(loops, updates.getRank())));
  Rows target(type.getShape(),
              llvm::to_vector(llvm::seq<int64_t>(axis + 1, type.getRank())));
  auto body = [&](OpBuilder &n, Location at, ValueRange indices,
                  ValueRange carried) -> SmallVector<Value> {
    Value index =
        extractElement(n, at, op.getIndices(), indices.drop_front(axis));
    SmallVector<Value> to(indices.take_front(axis));
    to.push_back(resolveIndex(n, at, index, type.getDimSize(axis)));
    Value part = from.extract(n, at, op.getUpdates(), indices);
    Value old = target.extract(n, at, carried[0], to);
    Value combined = mapElements(
        n, at, old, part,
        [&](OpBuilder &e, Location here, ValueRange args) {
          return SmallVector<Value>{
              combineScattered(e, here, op, args[1], args[0])};
        },
        /*readsInits=*/true)[0];
    return {target.insert(n, at, combined, carried[0], to)};
  };
  return buildLoops(b, loc, updates.getShape().take_front(loops), init, body);
}

//===----------------------------------------------------------------------===//
// Top k
//===----------------------------------------------------------------------===//

namespace {
/// The order of a top_k, on its elements and their places along the axis.
struct Order {
  OpBuilder &b;
  Location loc;
  bool smallest, isUnsigned;

  Value isBefore(Value x, Value y) const;
  Value isBehind(Value x, Value i, Value y, Value k) const;

private:
  Value compareFloats(Value x, Value y) const;
};
} // namespace

static Value both(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::AndIOp::create(b, loc, x, y);
}
static Value either(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::OrIOp::create(b, loc, x, y);
}
static Value negate(OpBuilder &b, Location loc, Value x) {
  Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  return arith::XOrIOp::create(b, loc, x, yes);
}

/// What is not a number is larger than any number and equal to its like.
Value Order::compareFloats(Value x, Value y) const {
  auto predicate =
      smallest ? arith::CmpFPredicate::ULT : arith::CmpFPredicate::UGT;
  Value number = smallest ? x : y;
  Value isNumber =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, number, number);
  Value wins = arith::CmpFOp::create(b, loc, predicate, x, y);
  return both(b, loc, wins, isNumber);
}

/// Whether `x` comes before `y` wherever they are.
Value Order::isBefore(Value x, Value y) const {
  if (isa<FloatType>(x.getType()))
    return compareFloats(x, y);
  if (smallest)
    std::swap(x, y);
  auto predicate =
      isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

/// Whether `x` at place `i` comes behind `y` at place `k`.
Value Order::isBehind(Value x, Value i, Value y, Value k) const {
  Value further =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, i, k);
  Value equal = both(b, loc, negate(b, loc, isBefore(x, y)), further);
  return either(b, loc, isBefore(y, x), equal);
}

/// The first element of a row that comes behind the element `last` at `place`;
/// with a place of -1 the first of all.
static std::pair<Value, Value> findNext(OpBuilder &b, Location loc,
                                        train::TopKOp op, ValueRange row,
                                        Value last, Value place) {
  int64_t axis = op.getAxis();
  int64_t size = getTensorType(op.getInput()).getDimSize(axis);
  Value none = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                        place, constantIndex(b, loc, 0));
  SmallVector<Value> start = {last, constantIndex(b, loc, 0), none};
  SmallVector<Value> best = buildLoops(
      b, loc, size, start,
      [&](OpBuilder &n, Location at, ValueRange i,
          ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> position(row);
        position[axis] = i[0];
        Value x = extractElement(n, at, op.getInput(), position);
        Order order{n, at, op.getSmallest(), isUnsigned(op)};
        Value isLeft =
            either(n, at, isFirst, order.isBehind(x, i[0], last, place));
        Value isFirstFound = negate(n, at, carried[2]);
        Value isBetter =
            either(n, at, isFirstFound, order.isBefore(x, carried[0]));
        Value takes = both(n, at, isLeft, isBetter);
        return {arith::SelectOp::create(n, at, takes, x, carried[0]),
                arith::SelectOp::create(n, at, takes, i[0], carried[1]),
                either(n, at, carried[2], takes)};
      });
  return {best[0], best[1]};
}

/// One pass over the row for each result.
static SmallVector<Value> lowerTopK(OpBuilder &b, train::TopKOp op) {
  Location loc = op.getLoc();
  int64_t axis = op.getAxis();
  SmallVector<int64_t> rows(getTensorType(op.getInput()).getShape());
  rows[axis] = 1;
  SmallVector<Value> inits = {emptyTensor(b, loc, op.getValues().getType()),
                              emptyTensor(b, loc, op.getIndices().getType())};
  auto body = [&](OpBuilder &n, Location at, ValueRange row,
                  ValueRange results) -> SmallVector<Value> {
    SmallVector<Value> carried(results);
    carried.push_back(extractElement(n, at, op.getInput(), row));
    carried.push_back(constantIndex(n, at, -1));
    carried = buildLoops(
        n, at, static_cast<int64_t>(op.getK()), carried,
        [&](OpBuilder &k, Location here, ValueRange rank,
            ValueRange state) -> SmallVector<Value> {
          auto [x, place] = findNext(k, here, op, row, state[2], state[3]);
          SmallVector<Value> to(row);
          to[axis] = rank[0];
          Value index =
              arith::IndexCastOp::create(k, here, k.getI64Type(), place);
          return {insertElement(k, here, x, state[0], to),
                  insertElement(k, here, index, state[1], to), x, place};
        });
    return {carried[0], carried[1]};
  };
  return buildLoops(b, loc, rows, inits, body);
}

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

static Value addScalars(OpBuilder &b, Location loc, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return arith::AddFOp::create(b, loc, x, y);
  return arith::AddIOp::create(b, loc, x, y);
}

static Value mulScalars(OpBuilder &b, Location loc, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return arith::MulFOp::create(b, loc, x, y);
  return arith::MulIOp::create(b, loc, x, y);
}

/// What the `i`-th place of the axis gives, and what is carried on from it.
using CarryFn = llvm::function_ref<std::pair<Value, Value>(
    OpBuilder &, Location, Value i, ValueRange position, Value carried)>;

/// A loop along the axis of `op`, in all rows, that carries a scalar which
/// starts as 0.
template <typename Op>
static SmallVector<Value> carryAlong(OpBuilder &b, Op op, CarryFn body) {
  Location loc = op.getLoc();
  RankedTensorType type = getTensorType(op.getResult());
  Type element = type.getElementType();
  int64_t axis = op.getAxis(), size = type.getDimSize(axis);
  SmallVector<int64_t> rows(type.getShape());
  rows[axis] = 1;
  auto alongRow = [&](OpBuilder &n, Location at, ValueRange row,
                      ValueRange out) -> SmallVector<Value> {
    Value start = constantScalar(n, at, getComputeType(element), 0);
    return {buildLoops(
        n, at, size, {out[0], start},
        [&](OpBuilder &k, Location here, ValueRange i,
            ValueRange state) -> SmallVector<Value> {
          SmallVector<Value> position(row);
          Value last = constantIndex(k, here, size - 1);
          position[axis] =
              op.getReverse()
                  ? Value(arith::SubIOp::create(k, here, last, i[0]))
                  : i[0];
          auto [result, carried] = body(k, here, i[0], position, state[1]);
          result = convertScalar(k, here, result, element);
          return {insertElement(k, here, result, state[0], position), carried};
        })[0]};
  };
  return buildLoops(b, loc, rows, emptyTensor(b, loc, type), alongRow);
}

static SmallVector<Value> lowerCumulativeSum(OpBuilder &b,
                                             train::CumulativeSumOp op) {
  return carryAlong(
      b, op,
      [&](OpBuilder &n, Location at, Value, ValueRange position, Value sum) {
        Value x = extractElement(n, at, op.getInput(), position);
        x = convertScalar(n, at, x, sum.getType());
        Value next = addScalars(n, at, sum, x);
        return std::pair(op.getExclusive() ? sum : next, next);
      });
}

static SmallVector<Value> lowerRecurrence(OpBuilder &b,
                                          train::LinearRecurrenceOp op) {
  return carryAlong(
      b, op,
      [&](OpBuilder &n, Location at, Value i, ValueRange position,
          Value state) {
        auto read = [&](Value tensor) {
          Value x = extractElement(n, at, tensor, position);
          return convertScalar(n, at, x, state.getType());
        };
        Value decayed = mulScalars(n, at, read(op.getDecay()), state);
        // An infinite decay of nothing is not a number.
        Value isFirst = arith::CmpIOp::create(n, at, arith::CmpIPredicate::eq,
                                              i, constantIndex(n, at, 0));
        decayed = arith::SelectOp::create(n, at, isFirst, state, decayed);
        Value next = addScalars(n, at, decayed, read(op.getInput()));
        return std::pair(next, next);
      });
}

void zero::populateTrainIndexToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerCumulativeSum);
  addLowering(patterns, lowerRecurrence);
  addLowering(patterns, lowerScatter);
  addLowering(patterns, lowerTopK);
}
