//===- TrainToLinalgStep.cpp - Accumulation, scaling, schedules -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of TrainOpsStep.td: a sum over micro-batches, and scalars of the
// step.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/ScheduleFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// Arithmetic of schedules and scales in f64, as operations.
struct ScalarMath : FloatMath {
  using Value = mlir::Value;
  using Truth = mlir::Value;
  ScalarMath(OpBuilder &b, Location loc) : FloatMath{b, loc} {}

  Value number(double value) { return constant(b.getF64Type(), value); }
  Value min(Value x, Value y) { return minScalar(b, loc, x, y); }
  Value max(Value x, Value y) { return maxScalar(b, loc, x, y); }
  Value floor(Value x) { return math::FloorOp::create(b, loc, x); }
  Value log(Value x) { return math::LogOp::create(b, loc, x); }
  Value cos(Value x) { return math::CosOp::create(b, loc, x); }
  Value pow(Value x, double y) {
    return math::PowFOp::create(b, loc, x, number(y));
  }
  Value less(Value x, Value y) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
  }
  Value equal(Value x, Value y) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y);
  }
  Value select(Value truth, Value x, Value y) {
    return arith::SelectOp::create(b, loc, truth, x, y);
  }

  /// The element of a rank-0 float tensor, in f64.
  Value read(Value tensor) {
    return cast(extractScalar(b, loc, tensor), b.getF64Type());
  }
  /// A rank-0 tensor of `type` from a number in f64.
  Value write(Value number, Type type) {
    Type element = mlir::cast<RankedTensorType>(type).getElementType();
    return scalarTensor(b, loc, cast(number, element), type);
  }
};

/// Arithmetic of i64 counters.
struct Counters {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }
  Value add(Value x, int64_t y) {
    return arith::AddIOp::create(b, loc, x, constant(y));
  }
  Value equal(Value x, int64_t y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x,
                                 constant(y));
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value select(Value truth, Value x, Value y) {
    return arith::SelectOp::create(b, loc, truth, x, y);
  }
};
} // namespace

static SmallVector<Value> lowerAccumulate(OpBuilder &b,
                                          train::AccumulateOp op) {
  Type element = getTensorType(op.getSum()).getElementType();
  Type compute = getComputeType(element);
  return mapElements(
      b, op.getLoc(), op.getSum(), op.getGrad(),
      [&](OpBuilder &n, Location at, ValueRange args) {
        FloatMath m{n, at};
        Value sum = m.add(m.cast(args[1], compute), m.cast(args[0], compute));
        return SmallVector<Value>{m.cast(sum, element)};
      },
      /*readsInits=*/true);
}

static SmallVector<Value> lowerSchedule(OpBuilder &b, train::ScheduleOp op) {
  Location loc = op.getLoc();
  ScalarMath m(b, loc);
  Value step = extractScalar(b, loc, op.getStep());
  Value one = Counters{b, loc}.constant(1);
  Value update = arith::SubIOp::create(
      b, loc, arith::MaxSIOp::create(b, loc, step, one), one);
  Value k = arith::SIToFPOp::create(b, loc, b.getF64Type(), update);
  Value value = train::ScheduleFormula(m, op.getSchedule()).build(k);
  value = m.mul(value, op.getFactor().convertToDouble());
  return {m.write(value, op.getType())};
}

static SmallVector<Value> lowerLossSeed(OpBuilder &b, train::LossSeedOp op) {
  ScalarMath m(b, op.getLoc());
  Value scale = op.getLossScale() ? m.read(op.getLossScale()) : m.number(1.0);
  Value seed = m.div(scale, static_cast<double>(op.getMicroBatches()));
  return {m.write(seed, op.getType())};
}

static SmallVector<Value> lowerGradientFactor(OpBuilder &b,
                                              train::GradientFactorOp op) {
  Location loc = op.getLoc();
  ScalarMath m(b, loc);
  Value sum = m.read(op.getSumSquares());
  Value scale = op.getLossScale() ? m.read(op.getLossScale()) : m.number(1.0);
  Value norm = m.div(m.sqrt(sum), scale);
  Value factor = m.number(1.0);
  if (op.getMaxNorm())
    factor = m.min(factor, m.div(m.number(op.getMaxNorm()->convertToDouble()),
                                 m.add(norm, 1e-6)));
  factor = m.div(factor, scale);
  // Neither infinities nor what is no number are less than infinity.
  Value infinity = m.number(std::numeric_limits<double>::infinity());
  Value finite = m.less(sum, infinity);
  Value overflow = arith::XOrIOp::create(
      b, loc, finite, arith::ConstantIntOp::create(b, loc, 1, 1));
  return {m.write(factor, op.getFactor().getType()),
          m.write(norm, op.getNorm().getType()),
          scalarTensor(b, loc, overflow, op.getOverflow().getType())};
}

/// The number of `type` that is nearest to `number`.
static double roundTo(APFloat number, Type type) {
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

static SmallVector<Value> lowerUpdateLossScale(OpBuilder &b,
                                               train::UpdateLossScaleOp op) {
  Location loc = op.getLoc();
  ScalarMath m(b, loc);
  Counters c{b, loc};
  Value scale = m.read(op.getScale());
  Value left = extractScalar(b, loc, op.getHysteresisLeft());
  Value iteration = extractScalar(b, loc, op.getIteration());
  Value last = extractScalar(b, loc, op.getLastOverflow());
  Value overflow = extractScalar(b, loc, op.getOverflow());
  int64_t hysteresis = op.getHysteresis();
  double factor = op.getFactor().convertToDouble();
  // As the scale has it, to which it is compared.
  Type scaleType = getTensorType(op.getScale()).getElementType();
  Value least = m.number(roundTo(op.getMinScale(), scaleType));
  Value full = c.constant(hysteresis);

  // With an overflow.
  Value shrinks = hysteresis == 1
                      ? Value(arith::ConstantIntOp::create(b, loc, 1, 1))
                      : c.equal(left, 1);
  Value smaller = m.select(shrinks, m.max(m.div(scale, factor), least), scale);
  Value fewer = c.select(shrinks, left, c.add(left, -1));
  Value exhausted = c.both(overflow, c.both(shrinks, m.equal(scale, least)));

  // Without.
  Value clean = c.add(arith::SubIOp::create(b, loc, iteration, last), -1);
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, clean,
                                     c.constant(0));
  Value rest =
      arith::RemSIOp::create(b, loc, clean, c.constant(op.getWindow()));
  Value grows = c.both(some, c.equal(rest, 0));
  Value larger = m.select(grows, m.mul(scale, factor), scale);
  Value restored =
      op.getConsecutiveHysteresis() ? full : c.select(grows, full, left);

  auto scalar = [&](Value value, Value result) {
    return scalarTensor(b, loc, value, result.getType());
  };
  return {
      m.write(m.select(overflow, smaller, larger), op.getNewScale().getType()),
      scalar(c.select(overflow, fewer, restored), op.getNewHysteresis()),
      scalar(c.add(iteration, 1), op.getNewIteration()),
      scalar(c.select(overflow, iteration, last), op.getNewLastOverflow()),
      scalar(exhausted, op.getExhausted())};
}

static SmallVector<Value> lowerNextStep(OpBuilder &b, train::NextStepOp op) {
  Location loc = op.getLoc();
  Counters c{b, loc};
  Value step = extractScalar(b, loc, op.getStep());
  Value skip = extractScalar(b, loc, op.getSkip());
  return {
      scalarTensor(b, loc, c.select(skip, step, c.add(step, 1)), op.getType())};
}

void zero::populateTrainStepToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerAccumulate);
  addLowering(patterns, lowerSchedule);
  addLowering(patterns, lowerLossSeed);
  addLowering(patterns, lowerGradientFactor);
  addLowering(patterns, lowerUpdateLossScale);
  addLowering(patterns, lowerNextStep);
}
