//===- TrainToLinalgOptimizer.cpp - Optimizer updates ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Updates as one pass over parameter, gradient and state, in the order of
// operations that their descriptions have (PyTorch's, mostly), and the sum of
// squares for the gradient norm.
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
// What every update may have
//===----------------------------------------------------------------------===//

namespace {
/// The controls of one update, as scalars before its loop.
struct UpdateControls {
  template <typename OpTy>
  UpdateControls(OpBuilder &b, OpTy op, Type compute) {
    Location loc = op.getLoc();
    if (op.getGradScale())
      scale = convertScalar(b, loc, extractScalar(b, loc, op.getGradScale()),
                            compute);
    if (op.getSkip())
      skip = extractScalar(b, loc, op.getSkip());
    if (op.getCurrentMomentum())
      momentum =
          convertScalar(b, loc, extractScalar(b, loc, op.getCurrentMomentum()),
                        b.getF64Type());
    if (op.getClipValue())
      clip = op.getClipValue()->convertToDouble();
  }

  /// The gradient that the update is computed from.
  Value adjust(FloatMath m, Value grad) const;

  /// The results in the types of the elements that they replace, which they
  /// are where the update is skipped.
  SmallVector<Value> finish(FloatMath m, ArrayRef<Value> results,
                            ValueRange replaced) const;

  Value scale;    ///< in the compute type, or null
  Value skip;     ///< i1, or null
  Value momentum; ///< in f64, or null
  std::optional<double> clip;
};
} // namespace

Value UpdateControls::adjust(FloatMath m, Value grad) const {
  if (scale)
    grad = m.mul(grad, scale);
  if (!clip)
    return grad;
  Value least = m.constant(grad.getType(), -*clip);
  Value most = m.constant(grad.getType(), *clip);
  return minScalar(m.b, m.loc, maxScalar(m.b, m.loc, grad, least), most);
}

SmallVector<Value> UpdateControls::finish(FloatMath m, ArrayRef<Value> results,
                                          ValueRange replaced) const {
  SmallVector<Value> finished;
  for (auto [result, old] : llvm::zip_equal(results, replaced)) {
    Value value = m.cast(result, old.getType());
    // A select, since the gradient of a skipped step is rarely a number.
    finished.push_back(
        skip ? Value(arith::SelectOp::create(m.b, m.loc, skip, old, value))
             : value);
  }
  return finished;
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
  UpdateControls controls(b, op, compute);
  Value momentum =
      controls.momentum
          ? convertScalar(b, loc, controls.momentum, compute)
          : constantScalar(b, loc, compute, op.getMomentum().convertToDouble());
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
        Value grad = controls.adjust(m, e[0]), param = e[1], buffer;
        if (decay != 0)
          grad = m.add(grad, m.mul(param, decay));
        if (inits.size() == 2) {
          buffer = m.add(m.mul(e[2], momentum), m.mul(grad, weight));
          grad =
              op.getNesterov() ? m.add(grad, m.mul(buffer, momentum)) : buffer;
        }
        SmallVector<Value> results = {m.add(param, m.mul(grad, rate))};
        if (buffer)
          results.push_back(buffer);
        return controls.finish(m, results, args.drop_front());
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
  Value root;     ///< sqrt(1 - beta2^step), or null without bias correction
  Value weight;   ///< 1 - beta1
  Value rest;     ///< beta1
  Value light;    ///< whether weight < 1/2
};
} // namespace

template <typename OpTy>
static AdamNumbers getAdamNumbers(OpBuilder &b, OpTy op, Value beta1,
                                  Type compute) {
  Location loc = op.getLoc();
  FloatMath m{b, loc};
  Value rate = getRate(b, loc, op.getLr());
  AdamNumbers numbers;
  numbers.shrink =
      m.cast(m.subFrom(1, m.mul(rate, op.getWeightDecay().convertToDouble())),
             compute);
  Value stepSize = rate;
  if (!op.getNoBiasCorrection()) {
    Value step = getStep(b, loc, op.getStep());
    auto correction = [&](Value beta) {
      return m.subFrom(1, math::PowFOp::create(b, loc, beta, step));
    };
    Value beta2 = m.constant(b.getF64Type(), op.getBeta2().convertToDouble());
    stepSize = m.div(rate, correction(beta1));
    numbers.root = m.cast(m.sqrt(correction(beta2)), compute);
  }
  numbers.stepSize = m.cast(m.neg(stepSize), compute);
  Value weight = m.subFrom(1, beta1);
  numbers.light =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, weight,
                            m.constant(weight.getType(), 0.5));
  numbers.weight = m.cast(weight, compute);
  numbers.rest = m.cast(m.subFrom(1, weight), compute);
  return numbers;
}

/// torch.lerp(start, end, 1 - beta1): the form that is exact at the nearer end.
static Value lerp(FloatMath m, Value start, Value end,
                  const AdamNumbers &numbers) {
  Value distance = m.sub(end, start);
  Value light = m.add(start, m.mul(distance, numbers.weight));
  Value heavy = m.sub(end, m.mul(distance, numbers.rest));
  return arith::SelectOp::create(m.b, m.loc, numbers.light, light, heavy);
}

/// The decay of the average in f64: the step's own where a schedule sets it.
template <typename OpTy>
static Value getBeta1(OpBuilder &b, OpTy op, const UpdateControls &controls) {
  if (controls.momentum)
    return controls.momentum;
  return constantScalar(b, op.getLoc(), b.getF64Type(),
                        op.getBeta1().convertToDouble());
}

template <typename OpTy>
static SmallVector<Value> lowerAdam(OpBuilder &b, OpTy op) {
  constexpr bool decoupled = std::is_same_v<OpTy, train::AdamwOp>;
  Location loc = op.getLoc();
  SmallVector<Value> inits = {op.getParam(), op.getExpAvg(), op.getExpAvgSq()};
  Type compute = getComputeType(getTensorType(op.getParam()).getElementType());
  UpdateControls controls(b, op, compute);
  Value beta1 = getBeta1(b, op, controls);
  AdamNumbers numbers = getAdamNumbers(b, op, beta1, compute);
  double beta2 = op.getBeta2().convertToDouble();
  double epsilon = op.getEpsilon().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  return mapElements(
      b, loc, inits, op.getGrad(),
      [&](OpBuilder &n, Location at, ValueRange args) {
        FloatMath m{n, at};
        SmallVector<Value> e = widen(m, args, compute);
        Value grad = controls.adjust(m, e[0]), param = e[1];
        if (decoupled && decay != 0)
          param = m.mul(param, numbers.shrink);
        if (!decoupled && decay != 0)
          grad = m.add(grad, m.mul(param, decay));
        Value average = lerp(m, e[2], grad, numbers);
        Value square = m.mul(m.mul(grad, 1 - beta2), grad);
        Value variance = m.add(m.mul(e[3], beta2), square);
        Value denominator = m.sqrt(variance);
        if (numbers.root)
          denominator = m.div(denominator, numbers.root);
        denominator = m.add(denominator, epsilon);
        Value change = m.div(m.mul(average, numbers.stepSize), denominator);
        return controls.finish(m, {m.add(param, change), average, variance},
                               args.drop_front());
      },
      /*readsInits=*/true);
}

/// The rate of adam_hat: corrected by both biases but in a step 0, in f64.
static Value getHatRate(OpBuilder &b, train::AdamHatOp op, Value beta1) {
  Location loc = op.getLoc();
  FloatMath m{b, loc};
  Value rate = getRate(b, loc, op.getLr());
  if (op.getNoBiasCorrection())
    return rate;
  Value step = getStep(b, loc, op.getStep());
  auto correction = [&](Value beta) {
    return m.subFrom(1, math::PowFOp::create(b, loc, beta, step));
  };
  Value beta2 = m.constant(b.getF64Type(), op.getBeta2().convertToDouble());
  Value corrected =
      m.div(m.mul(rate, m.sqrt(correction(beta2))), correction(beta1));
  Value later = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, step,
                                      m.constant(b.getF64Type(), 0));
  return arith::SelectOp::create(b, loc, later, corrected, rate);
}

static SmallVector<Value> lowerAdamHat(OpBuilder &b, train::AdamHatOp op) {
  Location loc = op.getLoc();
  FloatMath f{b, loc};
  SmallVector<Value> inits = {op.getParam(), op.getExpAvg(), op.getExpAvgSq()};
  Type compute = getComputeType(getTensorType(op.getParam()).getElementType());
  UpdateControls controls(b, op, compute);
  Value beta1 = getBeta1(b, op, controls);
  Value rate = f.cast(f.neg(getHatRate(b, op, beta1)), compute);
  Value keep = f.cast(beta1, compute);
  Value weight = f.cast(f.subFrom(1, beta1), compute);
  double beta2 = op.getBeta2().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  double decoupled = op.getDecoupledDecay().convertToDouble();
  double last = op.getFinalDecay().convertToDouble();
  Value shrink =
      f.cast(f.subFrom(1 - last, f.mul(getRate(b, loc, op.getLr()), decoupled)),
             compute);
  return mapElements(
      b, loc, inits, op.getGrad(),
      [&](OpBuilder &n, Location at, ValueRange args) {
        FloatMath m{n, at};
        SmallVector<Value> e = widen(m, args, compute);
        Value grad = controls.adjust(m, e[0]), param = e[1];
        if (decay != 0)
          grad = m.add(grad, m.mul(param, decay));
        Value average = m.add(m.mul(e[2], keep), m.mul(grad, weight));
        Value square = m.mul(m.mul(grad, 1 - beta2), grad);
        Value variance = m.add(m.mul(e[3], beta2), square);
        Value denominator =
            m.add(m.sqrt(variance), op.getEpsilon().convertToDouble());
        param = m.add(param, m.div(m.mul(average, rate), denominator));
        if (decoupled != 0 || last != 0)
          param = m.mul(param, shrink);
        return controls.finish(m, {param, average, variance},
                               args.drop_front());
      },
      /*readsInits=*/true);
}

//===----------------------------------------------------------------------===//
// Adagrad
//===----------------------------------------------------------------------===//

static SmallVector<Value> lowerAdagrad(OpBuilder &b, train::AdagradOp op) {
  Location loc = op.getLoc();
  FloatMath f{b, loc};
  Type compute = getComputeType(getTensorType(op.getParam()).getElementType());
  UpdateControls controls(b, op, compute);
  double decay = op.getWeightDecay().convertToDouble();
  double slower = op.getLrDecay().convertToDouble();
  Value rate = getRate(b, loc, op.getLr());
  if (slower != 0) {
    Value before = f.add(getStep(b, loc, op.getStep()), -1.0);
    rate = f.div(rate, f.add(f.mul(before, slower), 1.0));
  }
  rate = f.cast(f.neg(rate), compute);
  return mapElements(
      b, loc, {op.getParam(), op.getSum()}, op.getGrad(),
      [&](OpBuilder &n, Location at, ValueRange args) {
        FloatMath m{n, at};
        SmallVector<Value> e = widen(m, args, compute);
        Value grad = controls.adjust(m, e[0]), param = e[1];
        if (decay != 0)
          grad = m.add(grad, m.mul(param, decay));
        Value sum = m.add(e[2], m.mul(grad, grad));
        Value denominator =
            m.add(m.sqrt(sum), op.getEpsilon().convertToDouble());
        Value change = m.div(m.mul(grad, rate), denominator);
        return controls.finish(m, {m.add(param, change), sum},
                               args.drop_front());
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
  addLowering(patterns, lowerAdamHat);
  addLowering(patterns, lowerAdagrad);
  addLowering(patterns, lowerSgd);
  addLowering(patterns, lowerSumSquares);
}
