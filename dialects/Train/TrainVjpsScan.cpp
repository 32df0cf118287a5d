//===- TrainVjpsScan.cpp - The derivative of a loop -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop in the other direction, each step of which computes the step of the
// forward loop again, from the carried values that it began with, and goes back
// through it:
//
//   forward   c[t+1], y[t] = f(c[t], x[t], w)
//   backward  dc[t], dx[t], dw += vjp of f at (c[t], x[t], w), of dc[t+1],
//   dy[t]
//
// Products are not computed again: the forward loop stacks them as well.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ReverseMode.h"
#include "dialects/Train/ScanBuilder.h"
#include "dialects/Train/VjpBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::train;

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

namespace {
/// One derivative while it is built.
class ScanVjp {
public:
  ScanVjp(OpBuilder &builder, ScanOp op, ValueRange resultGrads)
      : builder(builder), op(op), loc(op.getLoc()), resultGrads(resultGrads) {}

  LogicalResult run(Grads &operandGrads);

private:
  void stackSaved();
  void addCotangents(ScanBuilder &back);
  void cloneStep(ScanBuilder &back);
  SmallVector<Variable> findVariables();
  LogicalResult goBack(ScanBuilder &back, ReverseMode &reverse);
  void finish(ScanBuilder &back, const ReverseMode &reverse,
              Grads &operandGrads);

  OpBuilder &builder;
  ScanOp op;
  Location loc;
  ValueRange resultGrads;
  /// Values of the forward body, all steps of them, and that of this step.
  SmallVector<Value> saved, stacks, savedArguments;
  /// From the forward body to the step that is computed again.
  IRMapping map;
  /// In the body, null for none: the gradients by the carried values of the
  /// next step, and by what is stacked.
  SmallVector<Value> carriedGrads, stackedGrads;
};
} // namespace

/// The forward scan gives what the backward one starts from.
void ScanVjp::stackSaved() {
  llvm::append_range(saved, op.getCarriedArguments());
  for (Operation &inner : op.getBody()->without_terminator())
    if (isa<MatmulOp, GemmOp, ConvOp>(inner))
      saved.push_back(inner.getResult(0));
  stacks = stackValues(builder, op, saved);
}

void ScanVjp::addCotangents(ScanBuilder &back) {
  size_t carried = op.getInits().size();
  for (auto [i, init] : llvm::enumerate(op.getInits())) {
    Value grad = resultGrads[i];
    carriedGrads.push_back(!isFloat(init) ? Value()
                           : grad         ? back.addCarried(grad)
                                  : back.addCarriedZero(init.getType()));
  }
  for (Value grad : resultGrads.drop_front(carried))
    stackedGrads.push_back(grad ? back.addScanned(grad) : Value());
}
/// Computes the step again, in terms of what is saved of it.
void ScanVjp::cloneStep(ScanBuilder &back) {
  for (Value stack : stacks)
    savedArguments.push_back(back.addScanned(stack));
  for (auto [argument, value] :
       llvm::zip(op.getCarriedArguments(), savedArguments))
    map.map(argument, value);
  for (auto [argument, tensor] :
       llvm::zip_equal(op.getScannedArguments(), op.getScanned()))
    map.map(argument, back.addScanned(tensor));
  for (auto [argument, operand] :
       llvm::zip_equal(op.getCapturedArguments(), op.getCaptured()))
    map.map(argument, operand);
  for (Operation &inner : op.getBody()->without_terminator())
    builder.clone(inner, map);
}

/// What the gradients are by: one variable for each argument of the body.
SmallVector<Variable> ScanVjp::findVariables() {
  SmallVector<Variable> variables;
  for (BlockArgument argument : op.getBody()->getArguments()) {
    Value value = map.lookup(argument);
    variables.emplace_back();
    if (isFloat(value) && !matchPattern(value, m_Constant()))
      variables.back().push_back(value);
  }
  return variables;
}

LogicalResult ScanVjp::goBack(ScanBuilder &back, ReverseMode &reverse) {
  Block *body = back.getBlock();
  Operation *last = body->empty() ? nullptr : &body->back();
  auto seed = [&](Value yielded, Value grad) {
    Value value = map.lookup(yielded);
    if (grad && reverse.isActive(value))
      reverse.accumulate(loc, value, grad);
  };
  for (auto [value, grad] :
       llvm::zip_equal(op.getYieldedCarried(), carriedGrads))
    seed(value, grad);
  for (auto [value, grad] :
       llvm::zip_equal(op.getYieldedStacked(), stackedGrads))
    seed(value, grad);
  if (failed(reverse.run(last)))
    return failure();
  for (auto [value, argument] : llvm::drop_begin(
           llvm::zip_equal(saved, savedArguments), op.getInits().size())) {
    Operation *product = map.lookup(value).getDefiningOp();
    product->getResult(0).replaceAllUsesWith(argument);
    product->erase();
  }
  return success();
}

/// Yields the gradients, sums those by what is captured, and finds all among
/// the results of the scan.
void ScanVjp::finish(ScanBuilder &back, const ReverseMode &reverse,
                     Grads &operandGrads) {
  SmallVector<Value> carried, stacked;
  SmallVector<std::optional<unsigned>> places;
  unsigned scannedEnd = op.getInits().size() + op.getScanned().size();
  for (BlockArgument argument : op.getBody()->getArguments()) {
    unsigned number = argument.getArgNumber();
    Value grad = reverse.getGrad(number);
    places.emplace_back();
    if (number < op.getInits().size() && carriedGrads[number]) {
      places.back() = carried.size();
      carried.push_back(
          grad ? grad
               : arith::ConstantOp::create(
                     builder, loc, builder.getZeroAttr(argument.getType())));
    } else if (grad && number < scannedEnd) {
      places.back() = stacked.size();
      stacked.push_back(grad);
    } else if (grad) {
      places.back() = carried.size();
      Value sum = back.addCarriedZero(argument.getType());
      carried.push_back(AddOp::create(builder, loc, sum, grad));
    }
  }
  ScanOp made = back.finish(carried, stacked);
  for (auto [number, place] : llvm::enumerate(places)) {
    bool isStacked = number >= op.getInits().size() && number < scannedEnd;
    operandGrads.push_back(!place      ? Value()
                           : isStacked ? Value(made.getStacked()[*place])
                                       : Value(made.getFinals()[*place]));
  }
}

LogicalResult ScanVjp::run(Grads &operandGrads) {
  stackSaved();
  ScanBuilder back(builder, loc, op.getSteps(), !op.getReverse());
  addCotangents(back);
  cloneStep(back);
  ReverseMode reverse(builder, findVariables());
  if (failed(goBack(back, reverse)))
    return failure();
  finish(back, reverse, operandGrads);
  return success();
}

LogicalResult ScanOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                               Grads &operandGrads) {
  return ScanVjp(builder, *this, resultGrads).run(operandGrads);
}
