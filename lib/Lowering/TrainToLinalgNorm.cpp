//===- TrainToLinalgNorm.cpp - Normalizations -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layer, root-mean-square and batch normalization with their gradients, as
// loops over rows (or channels). The variance is the mean square distance from
// the mean, in a second pass over the row, which loses no digits.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::zero;

/// Mean and biased variance of a row of `size` elements.
static std::pair<Value, Value> getMoments(OpBuilder &b, Location loc, Value row,
                                          int64_t size, Type compute) {
  FloatMath m{b, loc};
  Value sum = sumElements(
      b, loc, row, compute, [&](OpBuilder &n, Location at, ValueRange x) {
        return SmallVector<Value>{convertScalar(n, at, x[0], compute)};
      });
  Value mean = m.div(sum, size);
  Value squares = sumElements(b, loc, row, compute,
                              [&](OpBuilder &n, Location at, ValueRange x) {
                                FloatMath e{n, at};
                                Value d = e.sub(e.cast(x[0], compute), mean);
                                return SmallVector<Value>{e.mul(d, d)};
                              });
  return {mean, m.div(squares, size)};
}

static Value emptyRow(OpBuilder &b, Location loc, Value like, Type element) {
  return emptyTensor(b, loc, getTensorType(like).getShape(), element);
}

static SmallVector<int64_t> getDimsFrom(int64_t axis, int64_t rank) {
  return llvm::to_vector(llvm::seq<int64_t>(axis, rank));
}

static SmallVector<Value> emptyResults(OpBuilder &b, Operation *op) {
  SmallVector<Value> results;
  for (Type type : op->getResultTypes())
    results.push_back(emptyTensor(b, op->getLoc(), type));
  return results;
}

//===----------------------------------------------------------------------===//
// Forward over rows
//===----------------------------------------------------------------------===//

/// (x - mean) * rstd of each row, times the scale and plus the bias where they
/// are. The results of `op` are that, the means if it has three, and rstd.
template <typename OpTy>
static SmallVector<Value> normalizeRows(OpBuilder &b, OpTy op, Value scale,
                                        Value bias) {
  RankedTensorType type = getTensorType(op.getInput());
  Type element = type.getElementType();
  Type compute = train::getStatisticsType(element);
  Rows rows(type.getShape(), getDimsFrom(op.getAxis(), type.getRank()));
  double epsilon = op.getEpsilon().convertToDouble();
  auto body = [&](OpBuilder &n, Location loc, ValueRange at,
                  ValueRange out) -> SmallVector<Value> {
    Value x = rows.extract(n, loc, op.getInput(), at);
    auto [mean, variance] = getMoments(n, loc, x, rows.getRowSize(), compute);
    Value rstd = FloatMath{n, loc}.rsqrt(variance, epsilon);
    SmallVector<Value> inputs = {x};
    if (scale)
      inputs.push_back(scale);
    if (bias)
      inputs.push_back(bias);
    Value y = mapElements(
        n, loc, emptyRow(n, loc, x, element), inputs,
        [&, mean = mean](OpBuilder &nested, Location here, ValueRange e) {
          FloatMath m{nested, here};
          Value y = m.mul(m.sub(m.cast(e[0], compute), mean), rstd);
          if (scale)
            y = m.mul(y, m.cast(e[1], compute));
          if (bias)
            y = m.add(y, m.cast(e[2], compute));
          return SmallVector<Value>{m.cast(y, element)};
        })[0];
    SmallVector<Value> kept = rows.keepDims(n, loc, at);
    SmallVector<Value> results = {rows.insert(n, loc, y, out[0], at)};
    if (out.size() == 3)
      results.push_back(insertElement(n, loc, mean, out[1], kept));
    results.push_back(insertElement(n, loc, rstd, out.back(), kept));
    return results;
  };
  return buildLoops(b, op.getLoc(), rows.getExtents(), emptyResults(b, op),
                    body);
}

static SmallVector<Value> lowerLayerNorm(OpBuilder &b, train::LayerNormOp op) {
  return normalizeRows(b, op, op.getScale(), op.getBias());
}

static SmallVector<Value> lowerNormalize(OpBuilder &b, train::NormalizeOp op) {
  return normalizeRows(b, op, /*scale=*/Value(), /*bias=*/Value());
}

static SmallVector<Value> lowerRmsNorm(OpBuilder &b, train::RmsNormOp op) {
  RankedTensorType type = getTensorType(op.getInput());
  Type element = type.getElementType();
  Type compute = train::getStatisticsType(element);
  Rows rows(type.getShape(), getDimsFrom(op.getAxis(), type.getRank()));
  double epsilon = op.getEpsilon().convertToDouble();
  auto body = [&](OpBuilder &n, Location loc, ValueRange at,
                  ValueRange out) -> SmallVector<Value> {
    Value x = rows.extract(n, loc, op.getInput(), at);
    Value squares = sumElements(
        n, loc, x, compute,
        [&](OpBuilder &nested, Location here, ValueRange e) {
          Value v = convertScalar(nested, here, e[0], compute);
          return SmallVector<Value>{FloatMath{nested, here}.mul(v, v)};
        });
    FloatMath outer{n, loc};
    Value rstd = outer.rsqrt(outer.div(squares, rows.getRowSize()), epsilon);
    Value y =
        mapElements(n, loc, emptyRow(n, loc, x, element), {x, op.getScale()},
                    [&](OpBuilder &nested, Location here, ValueRange e) {
                      FloatMath m{nested, here};
                      Value unit = m.mul(m.cast(e[0], compute), rstd);
                      Value y = m.mul(unit, m.cast(e[1], compute));
                      return SmallVector<Value>{m.cast(y, element)};
                    })[0];
    return {rows.insert(n, loc, y, out[0], at),
            insertElement(n, loc, rstd, out[1], rows.keepDims(n, loc, at))};
  };
  return buildLoops(b, op.getLoc(), rows.getExtents(), emptyResults(b, op),
                    body);
}

//===----------------------------------------------------------------------===//
// Backward over rows
//===----------------------------------------------------------------------===//

namespace {
/// Gradient of a normalization over rows. With u = (x - mean) * rstd and
/// g = dy * scale: dx = rstd * (g - mean(g) - u * mean(g * u)); the mean of g
/// is absent without `mean`. The gradients by scale and bias add up over rows.
struct RowNormGrad {
  Value grad, input, scale, mean, rstd;
  Rows rows;
  Type element, compute;

  SmallVector<Value> build(OpBuilder &b, Operation *op) {
    Location loc = op->getLoc();
    Type sums = getTensorType(scale).clone(compute);
    SmallVector<Value> inits = {emptyTensor(b, loc, op->getResultTypes()[0])};
    for (unsigned i = 1; i < op->getNumResults(); ++i)
      inits.push_back(filledTensor(b, loc, sums, 0));
    SmallVector<Value> results = buildLoops(
        b, loc, rows.getExtents(), inits,
        [&](OpBuilder &n, Location at, ValueRange indices, ValueRange out) {
          return buildRow(n, at, indices, out);
        });
    if (element != compute)
      for (unsigned i = 1; i < results.size(); ++i)
        results[i] = narrow(b, loc, results[i]);
    return results;
  }

  Value narrow(OpBuilder &b, Location loc, Value sums) {
    return mapElements(b, loc, emptyRow(b, loc, sums, element), sums,
                       [&](OpBuilder &n, Location at, ValueRange e) {
                         return SmallVector<Value>{
                             convertScalar(n, at, e[0], element)};
                       })[0];
  }

  /// u from x.
  Value normalize(FloatMath m, Value x, Value rowMean, Value rowRstd) {
    Value centered = m.cast(x, compute);
    if (rowMean)
      centered = m.sub(centered, rowMean);
    return m.mul(centered, rowRstd);
  }

  /// The means of g and of g * u over the row.
  std::pair<Value, Value> getMeans(OpBuilder &b, Location loc, ValueRange row,
                                   Value rowMean, Value rowRstd) {
    Value zero = constantScalar(b, loc, compute, 0);
    SmallVector<Value> sums = reduceElements(
        b, loc, row, {zero, zero},
        [&](OpBuilder &n, Location at, ValueRange e) -> SmallVector<Value> {
          FloatMath m{n, at};
          Value g = m.mul(m.cast(e[0], compute), m.cast(e[2], compute));
          Value u = normalize(m, e[1], rowMean, rowRstd);
          return {addReassociated(n, at, e[3], g),
                  addReassociated(n, at, e[4], m.mul(g, u))};
        });
    FloatMath m{b, loc};
    return {m.div(sums[0], rows.getRowSize()),
            m.div(sums[1], rows.getRowSize())};
  }

  SmallVector<Value> buildRow(OpBuilder &b, Location loc, ValueRange indices,
                              ValueRange out) {
    SmallVector<Value> kept = rows.keepDims(b, loc, indices);
    Value rowMean = mean ? extractElement(b, loc, mean, kept) : Value();
    Value rowRstd = extractElement(b, loc, rstd, kept);
    SmallVector<Value> row = {rows.extract(b, loc, grad, indices),
                              rows.extract(b, loc, input, indices), scale};
    auto [meanG, meanGu] = getMeans(b, loc, row, rowMean, rowRstd);
    SmallVector<Value> inits = {emptyRow(b, loc, row[0], element)};
    llvm::append_range(inits, out.drop_front());
    SmallVector<Value> results = mapElements(
        b, loc, inits, row,
        [&, meanG = meanG, meanGu = meanGu](OpBuilder &n, Location at,
                                            ValueRange e) {
          FloatMath m{n, at};
          Value dy = m.cast(e[0], compute);
          Value g = m.mul(dy, m.cast(e[2], compute));
          Value u = normalize(m, e[1], rowMean, rowRstd);
          Value rest = mean ? m.sub(g, meanG) : g;
          Value dx = m.mul(m.sub(rest, m.mul(u, meanGu)), rowRstd);
          SmallVector<Value> values = {m.cast(dx, element),
                                       m.add(e[4], m.mul(dy, u))};
          if (out.size() == 3)
            values.push_back(m.add(e[5], dy));
          return values;
        },
        /*readsInits=*/true);
    results[0] = rows.insert(b, loc, results[0], out[0], indices);
    return results;
  }
};
} // namespace

static SmallVector<Value> lowerLayerNormGrad(OpBuilder &b,
                                             train::LayerNormGradOp op) {
  RankedTensorType type = getTensorType(op.getInput());
  Rows rows(type.getShape(), getDimsFrom(op.getAxis(), type.getRank()));
  Type element = type.getElementType();
  return RowNormGrad{op.getGrad(),  op.getInput(),
                     op.getScale(), op.getMean(),
                     op.getRstd(),  rows,
                     element,       train::getStatisticsType(element)}
      .build(b, op);
}

static SmallVector<Value> lowerRmsNormGrad(OpBuilder &b,
                                           train::RmsNormGradOp op) {
  RankedTensorType type = getTensorType(op.getInput());
  Rows rows(type.getShape(), getDimsFrom(op.getAxis(), type.getRank()));
  Type element = type.getElementType();
  return RowNormGrad{op.getGrad(),  op.getInput(),
                     op.getScale(), Value(),
                     op.getRstd(),  rows,
                     element,       train::getStatisticsType(element)}
      .build(b, op);
}

/// rstd * (dy - mean(dy) - y * mean(dy * y)).
static SmallVector<Value> lowerNormalizeGrad(OpBuilder &b,
                                             train::NormalizeGradOp op) {
  RankedTensorType type = getTensorType(op.getOutput());
  Type element = type.getElementType();
  Type compute = train::getStatisticsType(element);
  Rows rows(type.getShape(), getDimsFrom(op.getAxis(), type.getRank()));
  auto body = [&](OpBuilder &n, Location loc, ValueRange at,
                  ValueRange out) -> SmallVector<Value> {
    FloatMath m{n, loc};
    Value rstd =
        extractElement(n, loc, op.getRstd(), rows.keepDims(n, loc, at));
    SmallVector<Value> row = {rows.extract(n, loc, op.getGrad(), at),
                              rows.extract(n, loc, op.getOutput(), at)};
    Value zero = m.constant(compute, 0);
    SmallVector<Value> sums =
        reduceElements(n, loc, row, {zero, zero},
                       [&](OpBuilder &nested, Location here,
                           ValueRange e) -> SmallVector<Value> {
                         FloatMath s{nested, here};
                         Value dy = s.cast(e[0], compute);
                         Value product = s.mul(dy, s.cast(e[1], compute));
                         return {addReassociated(nested, here, e[2], dy),
                                 addReassociated(nested, here, e[3], product)};
                       });
    Value meanDy = m.div(sums[0], rows.getRowSize());
    Value meanDyY = m.div(sums[1], rows.getRowSize());
    Value dx = mapElements(n, loc, emptyRow(n, loc, row[0], element), row,
                           [&](OpBuilder &nested, Location here, ValueRange e) {
                             FloatMath s{nested, here};
                             Value rest = s.sub(s.cast(e[0], compute), meanDy);
                             Value part = s.mul(s.cast(e[1], compute), meanDyY);
                             Value value = s.mul(s.sub(rest, part), rstd);
                             return SmallVector<Value>{s.cast(value, element)};
                           })[0];
    return {rows.insert(n, loc, dx, out[0], at)};
  };
  return buildLoops(b, op.getLoc(), rows.getExtents(), emptyResults(b, op),
                    body);
}

//===----------------------------------------------------------------------===//
// Batch normalization: a loop over channels
//===----------------------------------------------------------------------===//

/// All dimensions except the channels'.
static SmallVector<int64_t> getDimsOfChannel(int64_t rank) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != 1)
      dims.push_back(dim);
  return dims;
}

/// (x - mean) * rstd * scale + bias, all of one channel.
static Value normalizeChannel(OpBuilder &b, Location loc, Value x, Value mean,
                              Value rstd, Value scale, Value bias,
                              Type compute) {
  Type element = getTensorType(x).getElementType();
  return mapElements(b, loc, emptyRow(b, loc, x, element), x,
                     [&](OpBuilder &n, Location at, ValueRange e) {
                       FloatMath m{n, at};
                       Value u =
                           m.mul(m.sub(m.cast(e[0], compute), mean), rstd);
                       Value y = m.add(m.mul(u, scale), bias);
                       return SmallVector<Value>{m.cast(y, element)};
                     })[0];
}

static Value extractCast(OpBuilder &b, Location loc, Value tensor,
                         ValueRange at, Type type) {
  return convertScalar(b, loc, extractElement(b, loc, tensor, at), type);
}

static SmallVector<Value> lowerBatchNorm(OpBuilder &b, train::BatchNormOp op) {
  RankedTensorType type = getTensorType(op.getInput());
  Type compute = train::getStatisticsType(type.getElementType());
  Rows rows(type.getShape(), getDimsOfChannel(type.getRank()));
  double epsilon = op.getEpsilon().convertToDouble();
  double keep = op.getMomentum().convertToDouble();
  double size = rows.getRowSize();
  auto blend = [&](OpBuilder &n, Location loc, Value running, ValueRange at,
                   Value batch, Value out) {
    FloatMath m{n, loc};
    Type stored = getTensorType(running).getElementType();
    Value old = extractCast(n, loc, running, at, compute);
    Value sum = m.add(m.mul(old, keep), m.mul(batch, 1 - keep));
    return insertElement(n, loc, m.cast(sum, stored), out, at);
  };
  auto body = [&](OpBuilder &n, Location loc, ValueRange at,
                  ValueRange out) -> SmallVector<Value> {
    FloatMath m{n, loc};
    Value x = rows.extract(n, loc, op.getInput(), at);
    auto [mean, variance] = getMoments(n, loc, x, size, compute);
    Value rstd = m.rsqrt(variance, epsilon);
    Value y = normalizeChannel(
        n, loc, x, mean, rstd, extractCast(n, loc, op.getScale(), at, compute),
        extractCast(n, loc, op.getBias(), at, compute), compute);
    Value spread =
        op.getUnbiased() ? m.mul(variance, size / (size - 1)) : variance;
    return {rows.insert(n, loc, y, out[0], at),
            blend(n, loc, op.getRunningMean(), at, mean, out[1]),
            blend(n, loc, op.getRunningVar(), at, spread, out[2]),
            insertElement(n, loc, mean, out[3], at),
            insertElement(n, loc, rstd, out[4], at)};
  };
  return buildLoops(b, op.getLoc(), rows.getExtents(), emptyResults(b, op),
                    body);
}

static SmallVector<Value>
lowerBatchNormInference(OpBuilder &b, train::BatchNormInferenceOp op) {
  RankedTensorType type = getTensorType(op.getInput());
  Type compute = train::getStatisticsType(type.getElementType());
  Rows rows(type.getShape(), getDimsOfChannel(type.getRank()));
  double epsilon = op.getEpsilon().convertToDouble();
  auto body = [&](OpBuilder &n, Location loc, ValueRange at,
                  ValueRange out) -> SmallVector<Value> {
    auto channel = [&](Value tensor) {
      return extractCast(n, loc, tensor, at, compute);
    };
    Value x = rows.extract(n, loc, op.getInput(), at);
    Value rstd = FloatMath{n, loc}.rsqrt(channel(op.getVar()), epsilon);
    Value y = normalizeChannel(n, loc, x, channel(op.getMean()), rstd,
                               channel(op.getScale()), channel(op.getBias()),
                               compute);
    return {rows.insert(n, loc, y, out[0], at)};
  };
  return buildLoops(b, op.getLoc(), rows.getExtents(), emptyResults(b, op),
                    body);
}

/// As for rows, with scale the same for the whole channel:
/// dx = scale * rstd * (dy - mean(dy) - u * mean(dy * u)).
static SmallVector<Value> lowerBatchNormGrad(OpBuilder &b,
                                             train::BatchNormGradOp op) {
  RankedTensorType type = getTensorType(op.getInput());
  Type element = type.getElementType();
  Type compute = train::getStatisticsType(element);
  Type stored = getTensorType(op.getScale()).getElementType();
  Rows rows(type.getShape(), getDimsOfChannel(type.getRank()));
  auto body = [&](OpBuilder &n, Location loc, ValueRange at,
                  ValueRange out) -> SmallVector<Value> {
    FloatMath m{n, loc};
    Value mean = extractElement(n, loc, op.getSaveMean(), at);
    Value rstd = extractElement(n, loc, op.getSaveRstd(), at);
    Value scale = extractCast(n, loc, op.getScale(), at, compute);
    SmallVector<Value> row = {rows.extract(n, loc, op.getGrad(), at),
                              rows.extract(n, loc, op.getInput(), at)};
    auto normalize = [&](FloatMath e, Value x) {
      return e.mul(e.sub(e.cast(x, compute), mean), rstd);
    };
    Value zero = m.constant(compute, 0);
    SmallVector<Value> sums = reduceElements(
        n, loc, row, {zero, zero},
        [&](OpBuilder &nested, Location here,
            ValueRange e) -> SmallVector<Value> {
          FloatMath s{nested, here};
          Value dy = s.cast(e[0], compute);
          return {addReassociated(nested, here, e[2], dy),
                  addReassociated(nested, here, e[3],
                                  s.mul(dy, normalize(s, e[1])))};
        });
    Value meanDy = m.div(sums[0], rows.getRowSize());
    Value meanDyU = m.div(sums[1], rows.getRowSize());
    Value factor = m.mul(scale, rstd);
    Value dx = mapElements(n, loc, emptyRow(n, loc, row[0], element), row,
                           [&](OpBuilder &nested, Location here, ValueRange e) {
                             FloatMath s{nested, here};
                             Value rest = s.sub(s.cast(e[0], compute), meanDy);
                             Value part = s.mul(normalize(s, e[1]), meanDyU);
                             Value value = s.mul(s.sub(rest, part), factor);
                             return SmallVector<Value>{s.cast(value, element)};
                           })[0];
    return {rows.insert(n, loc, dx, out[0], at),
            insertElement(n, loc, m.cast(sums[1], stored), out[1], at),
            insertElement(n, loc, m.cast(sums[0], stored), out[2], at)};
  };
  return buildLoops(b, op.getLoc(), rows.getExtents(), emptyResults(b, op),
                    body);
}

void zero::populateTrainNormToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerBatchNorm);
  addLowering(patterns, lowerBatchNormGrad);
  addLowering(patterns, lowerBatchNormInference);
  addLowering(patterns, lowerLayerNorm);
  addLowering(patterns, lowerLayerNormGrad);
  addLowering(patterns, lowerNormalize);
  addLowering(patterns, lowerNormalizeGrad);
  addLowering(patterns, lowerRmsNorm);
  addLowering(patterns, lowerRmsNormGrad);
}
