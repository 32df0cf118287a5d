//===- TrainToLinalgOptimizer.cpp - Optimizer updates ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SGD, Adam and AdamW as one pass over parameter, gradient and state, in
// PyTorch's order of operations, and the sum of squares for the gradient norm.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::zero;

/// The elements of an update in the type that it is computed in.
static SmallVector<Value> widen(FloatMath m, ValueRange elements,
                                Type compute) {
  SmallVector<Value> wide;
  for (Value element : elements)
    wide.push_back(m.cast(element, compute));
  return wide;
}

/// The learning rate in f64, in which PyTorch combines it with other numbers.
static Value getRate(OpBuilder &b, Location loc, Value lr) {
  return convertScalar(b, loc, extractScalar(b, loc, lr), b.getF64Type());
}

static Value getStep(OpBuilder &b, Location loc, Value step) {
  return arith::SIToFPOp::create(b, loc, b.getF64Type(),
                                 extractScalar(b, loc, step));
}

//===----------------------------------------------------------------------===//
// SGD
//===----------------------------------------------------------------------===//

/// The weight of the gradient in the momentum buffer: 1 in the first step, then
/// 1 - dampening.
static Value getGradientWeight(OpBuilder &b, train::SgdOp op, Type compute) {
  Location loc = op.getLoc();
  Value later =
      constantScalar(b, loc, compute, 1 - op.getDampening().convertToDouble());
  if (!op.getStep())
    return later;
  Value step = extractScalar(b, loc, op.getStep());
  Value one = constantScalar(b, loc, step.getType(), 1);
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, step, one);
  return arith::SelectOp::create(b, loc, first,
                                 constantScalar(b, loc, compute, 1), later);
}

static SmallVector<Value> lowerSgd(OpBuilder &b, train::SgdOp op) {
  Location loc = op.getLoc();
  Type element = getTensorType(op.getParam()).getElementType();
  Type compute = getComputeType(element);
  double decay = op.getWeightDecay().convertToDouble();
  double momentum = op.getMomentum().convertToDouble();
  Value rate = convertScalar(
      b, loc, FloatMath{b, loc}.neg(getRate(b, loc, op.getLr())), compute);
  Value weight = getGradientWeight(b, op, compute);
  SmallVector<Value> inits = {op.getParam()};
  if (op.getMomentumBuffer())
    inits.push_back(op.getMomentumBuffer());
  return mapElements(
      b, loc, inits, op.getGrad(),
      [&](OpBuilder &n, Location at, ValueRange args) {
        FloatMath m{n, at};
        SmallVector<Value> e = widen(m, args, compute);
        Value grad = e[0], param = e[1], buffer;
        if (decay != 0)
          grad = m.add(grad, m.mul(param, decay));
        if (inits.size() == 2) {
          buffer = m.add(m.mul(e[2], momentum), m.mul(grad, weight));
          grad =
              op.getNesterov() ? m.add(grad, m.mul(buffer, momentum)) : buffer;
        }
        param = m.add(param, m.mul(grad, rate));
        SmallVector<Value> results = {m.cast(param, element)};
        if (buffer)
          results.push_back(m.cast(
              buffer, getTensorType(op.getMomentumBuffer()).getElementType()));
        return results;
      },
      /*readsInits=*/true);
}

//===----------------------------------------------------------------------===//
// Adam and AdamW
//===----------------------------------------------------------------------===//

namespace {
/// The numbers of one update, computed once per kernel.
struct AdamNumbers {
  Value shrink;   ///< AdamW: 1 - lr * weight decay
  Value stepSize; ///< -lr / (1 - beta1^step)
  Value root;     ///< sqrt(1 - beta2^step)
};
} // namespace

template <typename OpTy>
static AdamNumbers getAdamNumbers(OpBuilder &b, OpTy op, Type compute) {
  Location loc = op.getLoc();
  FloatMath m{b, loc};
  Value rate = getRate(b, loc, op.getLr());
  Value step = getStep(b, loc, op.getStep());
  auto correction = [&](const APFloat &beta) {
    Value base = m.constant(b.getF64Type(), beta.convertToDouble());
    return m.subFrom(1, math::PowFOp::create(b, loc, base, step));
  };
  Value shrink =
      m.subFrom(1, m.mul(rate, op.getWeightDecay().convertToDouble()));
  Value stepSize = m.div(rate, correction(op.getBeta1()));
  Value root = m.sqrt(correction(op.getBeta2()));
  return {m.cast(shrink, compute), m.cast(m.neg(stepSize), compute),
          m.cast(root, compute)};
}

/// torch.lerp(start, end, weight): the form that is exact at the nearer end.
static Value lerp(FloatMath m, Value start, Value end, double weight) {
  Value distance = m.sub(end, start);
  if (weight < 0.5)
    return m.add(start, m.mul(distance, weight));
  return m.sub(end, m.mul(distance, 1 - weight));
}

template <typename OpTy>
static SmallVector<Value> lowerAdam(OpBuilder &b, OpTy op) {
  constexpr bool decoupled = std::is_same_v<OpTy, train::AdamwOp>;
  Location loc = op.getLoc();
  SmallVector<Value> inits = {op.getParam(), op.getExpAvg(), op.getExpAvgSq()};
  Type compute = getComputeType(getTensorType(op.getParam()).getElementType());
  AdamNumbers numbers = getAdamNumbers(b, op, compute);
  double beta1 = op.getBeta1().convertToDouble();
  double beta2 = op.getBeta2().convertToDouble();
  double epsilon = op.getEpsilon().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  return mapElements(
      b, loc, inits, op.getGrad(),
      [&](OpBuilder &n, Location at, ValueRange args) {
        FloatMath m{n, at};
        SmallVector<Value> e = widen(m, args, compute);
        Value grad = e[0], param = e[1];
        if (decoupled && decay != 0)
          param = m.mul(param, numbers.shrink);
        if (!decoupled && decay != 0)
          grad = m.add(grad, m.mul(param, decay));
        Value average = lerp(m, e[2], grad, 1 - beta1);
        Value square = m.mul(m.mul(grad, 1 - beta2), grad);
        Value variance = m.add(m.mul(e[3], beta2), square);
        Value denominator =
            m.add(m.div(m.sqrt(variance), numbers.root), epsilon);
        Value change = m.div(m.mul(average, numbers.stepSize), denominator);
        SmallVector<Value> results = {m.add(param, change), average, variance};
        for (auto [result, init] : llvm::zip_equal(results, inits))
          result = m.cast(result, getTensorType(init).getElementType());
        return results;
      },
      /*readsInits=*/true);
}

//===----------------------------------------------------------------------===//
// Gradient norm
//===----------------------------------------------------------------------===//

static SmallVector<Value> lowerSumSquares(OpBuilder &b,
                                          train::SumSquaresOp op) {
  Location loc = op.getLoc();
  Type f64 = b.getF64Type();
  Value sum = constantScalar(b, loc, f64, 0);
  for (Value input : op.getInputs())
    sum = reduceElements(
        b, loc, input, sum, [&](OpBuilder &n, Location at, ValueRange args) {
          Value x = convertScalar(n, at, args[0], f64);
          return SmallVector<Value>{
              addReassociated(n, at, args[1], FloatMath{n, at}.mul(x, x))};
        })[0];
  auto type = cast<RankedTensorType>(op.getResult().getType());
  return {scalarTensor(
      b, loc, convertScalar(b, loc, sum, type.getElementType()), type)};
}

void zero::populateTrainOptimizerToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerAdam<train::AdamOp>);
  addLowering(patterns, lowerAdam<train::AdamwOp>);
  addLowering(patterns, lowerSgd);
  addLowering(patterns, lowerSumSquares);
}
