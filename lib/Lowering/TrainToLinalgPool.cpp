//===- TrainToLinalgPool.cpp - Poolings -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Poolings and their gradients: a loop over the windows, and in it a loop over
// a window's elements that skips the padding. Floats narrower than f32 are
// computed in f32; gradients of windows that overlap add up in f32 too.
//
//===----------------------------------------------------------------------===//

#include "GpuPrepare.h"
#include "TrainToLinalgWindows.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Largest element
//===----------------------------------------------------------------------===//

static SmallVector<Value> lowerMaxPool(OpBuilder &b, train::MaxPoolOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Type element = type.getElementType(), compute = getComputeType(element);
  Windows windows(op, getTensorType(op.getInput()).getShape());
  bool noSign = isUnsigned(op);
  auto body = [&](OpBuilder &n, Location at, ValueRange window,
                  ValueRange out) -> SmallVector<Value> {
    Value low = extremeScalar(n, at, compute, /*largest=*/false, noSign);
    Value max = buildLoops(
        n, at, windows.kernel, low,
        [&](OpBuilder &k, Location here, ValueRange offset,
            ValueRange carried) -> SmallVector<Value> {
          WindowPlace place = windows.locate(k, here, window, offset);
          Value x = extractElement(k, here, op.getInput(), place.indices);
          x = convertScalar(k, here, x, compute);
          x = arith::SelectOp::create(k, here, place.inside, x, low);
          return {maxScalar(k, here, carried[0], x, noSign)};
        })[0];
    max = convertScalar(n, at, max, element);
    return {insertElement(n, at, max, out[0], window)};
  };
  return buildLoops(b, loc, type.getShape(), emptyTensor(b, loc, type), body);
}

/// Adds the gradient of a window to the plane of the input that it lies in.
using AddWindowFn = llvm::function_ref<Value(OpBuilder &, Location,
                                             ValueRange window, Value plane)>;

/// Most elements of a plane of narrow floats that has a copy in f32.
static constexpr int64_t kMaxPlane = 1 << 17;

/// The gradient by the input, plane by plane, from those of all windows.
static SmallVector<Value> addWindows(OpBuilder &b, Location loc,
                                     RankedTensorType gradType,
                                     RankedTensorType type, AddWindowFn add) {
  Type element = type.getElementType(), compute = getComputeType(element);
  auto spatial = llvm::to_vector(llvm::seq<int64_t>(2, type.getRank()));
  Rows planes(type.getShape(), spatial);
  bool copies = element != compute && planes.getRowSize() <= kMaxPlane;
  auto body = [&](OpBuilder &n, Location at, ValueRange indices,
                  ValueRange out) -> SmallVector<Value> {
    Value own = planes.extract(n, at, out[0], indices);
    RankedTensorType planeType = getTensorType(own);
    Value sum = copies ? filledTensor(n, at, planeType.clone(compute), 0) : own;
    sum = buildLoops(n, at, gradType.getShape().drop_front(2), sum,
                     [&](OpBuilder &w, Location here, ValueRange offset,
                         ValueRange plane) -> SmallVector<Value> {
                       SmallVector<Value> window(indices);
                       llvm::append_range(window, offset);
                       return {add(w, here, window, plane[0])};
                     })[0];
    if (copies)
      sum = mapElements(n, at, emptyTensor(n, at, planeType), sum,
                        [&](OpBuilder &e, Location here, ValueRange x) {
                          return SmallVector<Value>{
                              convertScalar(e, here, x[0], element)};
                        })[0];
    return {planes.insert(n, at, sum, out[0], indices)};
  };
  Value init =
      copies ? emptyTensor(b, loc, type) : filledTensor(b, loc, type, 0);
  return buildLoops(b, loc, planes.getExtents(), init, body);
}

/// Adds `part` to an element of a plane, in the plane's type.
static Value addTo(OpBuilder &b, Location loc, Value part, Value plane,
                   ValueRange at) {
  Value sum = extractElement(b, loc, plane, at);
  part = convertScalar(b, loc, part, sum.getType());
  return insertElement(b, loc, arith::AddFOp::create(b, loc, sum, part), plane,
                       at);
}

/// True where `x` replaces `best`: it is larger or not a number, so that the
/// first of equals stays.
static Value wins(OpBuilder &b, Location loc, Value x, Value best, Value inside,
                  bool noSign) {
  if (!isa<FloatType>(x.getType())) {
    Value larger = arith::CmpIOp::create(
        b, loc, noSign ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt,
        x, best);
    return arith::AndIOp::create(b, loc, inside, larger);
  }
  Value better =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGT, x, best);
  Value known =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, best, best);
  return arith::AndIOp::create(b, loc, inside,
                               arith::AndIOp::create(b, loc, better, known));
}

/// Where the largest element of a window lies in its plane, and whether there
/// is one: a window of minus infinities has its largest element too.
static std::pair<SmallVector<Value>, Value>
findLargest(OpBuilder &b, Location loc, const Windows &windows, Value input,
            ValueRange window, bool noSign = false) {
  Type compute = getComputeType(getTensorType(input).getElementType());
  Value none = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  SmallVector<Value> start = {
      extremeScalar(b, loc, compute, /*largest=*/false, noSign), none};
  start.append(windows.kernel.size(), constantIndex(b, loc, 0));
  SmallVector<Value> best = buildLoops(
      b, loc, windows.kernel, start,
      [&](OpBuilder &k, Location here, ValueRange offset,
          ValueRange carried) -> SmallVector<Value> {
        WindowPlace place = windows.locate(k, here, window, offset);
        Value x = convertScalar(
            k, here, extractElement(k, here, input, place.indices), compute);
        Value better = wins(k, here, x, carried[0], place.inside, noSign);
        Value first = arith::CmpIOp::create(k, here, arith::CmpIPredicate::ugt,
                                            place.inside, carried[1]);
        Value take = arith::OrIOp::create(k, here, better, first);
        SmallVector<Value> next = {
            arith::SelectOp::create(k, here, take, x, carried[0]),
            arith::OrIOp::create(k, here, place.inside, carried[1])};
        for (auto [index, old] : llvm::zip_equal(
                 ArrayRef(place.indices).drop_front(2), carried.drop_front(2)))
          next.push_back(arith::SelectOp::create(k, here, take, index, old));
        return next;
      });
  return {SmallVector<Value>(ArrayRef(best).drop_front(2)), best[1]};
}

static SmallVector<Value> lowerMaxPoolGrad(OpBuilder &b,
                                           train::MaxPoolGradOp op) {
  RankedTensorType gradType = getTensorType(op.getGrad());
  Windows windows(op, getTensorType(op.getInput()).getShape());
  auto add = [&](OpBuilder &n, Location at, ValueRange window,
                 Value plane) -> Value {
    auto [position, found] = findLargest(n, at, windows, op.getInput(), window);
    Value grad = extractElement(n, at, op.getGrad(), window);
    Value zero = constantScalar(n, at, grad.getType(), 0);
    grad = arith::SelectOp::create(n, at, found, grad, zero);
    return addTo(n, at, grad, plane, position);
  };
  return addWindows(b, op.getLoc(), gradType, getTensorType(op.getResult()),
                    add);
}

/// The position among all elements of the input [N, C, spatial...] of those at
/// `spatial` in the plane of `window`.
static Value flattenPosition(OpBuilder &b, Location loc,
                             ArrayRef<int64_t> shape, ValueRange window,
                             ValueRange spatial, bool columnMajor) {
  auto step = [&](Value position, Value index, int64_t size) -> Value {
    Value scaled =
        arith::MulIOp::create(b, loc, position, constantIndex(b, loc, size));
    return arith::AddIOp::create(b, loc, scaled, index);
  };
  Value position = step(window[0], window[1], shape[1]);
  for (size_t i = 0, rank = spatial.size(); i < rank; ++i) {
    size_t dim = columnMajor ? rank - 1 - i : i;
    position = step(position, spatial[dim], shape[dim + 2]);
  }
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), position);
}

static SmallVector<Value> lowerMaxPoolIndices(OpBuilder &b,
                                              train::MaxPoolIndicesOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Windows windows(op, getTensorType(op.getInput()).getShape());
  auto body = [&](OpBuilder &n, Location at, ValueRange window,
                  ValueRange out) -> SmallVector<Value> {
    SmallVector<Value> spatial =
        findLargest(n, at, windows, op.getInput(), window, isUnsigned(op))
            .first;
    Value position = flattenPosition(n, at, windows.input, window, spatial,
                                     op.getColumnMajor());
    return {insertElement(n, at, position, out[0], window)};
  };
  return buildLoops(b, op.getLoc(), type.getShape(),
                    emptyTensor(b, op.getLoc(), type), body);
}

//===----------------------------------------------------------------------===//
// Mean
//===----------------------------------------------------------------------===//

static Value select01(OpBuilder &b, Location loc, Value condition, Type type) {
  return arith::SelectOp::create(b, loc, condition,
                                 constantScalar(b, loc, type, 1),
                                 constantScalar(b, loc, type, 0));
}

/// What the sum of `window` is divided by.
template <typename OpTy>
static Value getDivisor(OpBuilder &b, Location loc, OpTy op,
                        const Windows &windows, ValueRange window, Type type) {
  if (op.getDivisor())
    return constantScalar(b, loc, type, *op.getDivisor());
  return buildLoops(
      b, loc, windows.kernel, constantScalar(b, loc, type, 0),
      [&](OpBuilder &k, Location here, ValueRange offset,
          ValueRange carried) -> SmallVector<Value> {
        WindowPlace place = windows.locate(k, here, window, offset);
        Value counts = op.getCountIncludePad() ? place.counted : place.inside;
        return {arith::AddFOp::create(k, here, carried[0],
                                      select01(k, here, counts, type))};
      })[0];
}

static SmallVector<Value> lowerAvgPool(OpBuilder &b, train::AvgPoolOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Type element = type.getElementType(), compute = getComputeType(element);
  Windows windows(op, getTensorType(op.getInput()).getShape());
  auto body = [&](OpBuilder &n, Location at, ValueRange window,
                  ValueRange out) -> SmallVector<Value> {
    Value zero = constantScalar(n, at, compute, 0);
    Value sum = buildLoops(
        n, at, windows.kernel, zero,
        [&](OpBuilder &k, Location here, ValueRange offset,
            ValueRange carried) -> SmallVector<Value> {
          WindowPlace place = windows.locate(k, here, window, offset);
          Value x = extractElement(k, here, op.getInput(), place.indices);
          x = convertScalar(k, here, x, compute);
          x = arith::SelectOp::create(k, here, place.inside, x, zero);
          return {arith::AddFOp::create(k, here, carried[0], x)};
        })[0];
    Value count = getDivisor(n, at, op, windows, window, compute);
    Value mean =
        convertScalar(n, at, arith::DivFOp::create(n, at, sum, count), element);
    return {insertElement(n, at, mean, out[0], window)};
  };
  return buildLoops(b, loc, type.getShape(), emptyTensor(b, loc, type), body);
}

static SmallVector<Value> lowerAvgPoolGrad(OpBuilder &b,
                                           train::AvgPoolGradOp op) {
  RankedTensorType gradType = getTensorType(op.getGrad());
  Type compute = getComputeType(gradType.getElementType());
  Windows windows(op, op.getInputShape());
  auto add = [&](OpBuilder &n, Location at, ValueRange window,
                 Value plane) -> Value {
    Value count = getDivisor(n, at, op, windows, window, compute);
    Value grad = convertScalar(
        n, at, extractElement(n, at, op.getGrad(), window), compute);
    Value share = arith::DivFOp::create(n, at, grad, count);
    Value zero = constantScalar(n, at, compute, 0);
    return buildLoops(n, at, windows.kernel, plane,
                      [&](OpBuilder &k, Location here, ValueRange offset,
                          ValueRange carried) -> SmallVector<Value> {
                        WindowPlace place =
                            windows.locate(k, here, window, offset);
                        Value part = arith::SelectOp::create(
                            k, here, place.inside, share, zero);
                        return {addTo(k, here, part, carried[0],
                                      ArrayRef(place.indices).drop_front(2))};
                      })[0];
  };
  return addWindows(b, op.getLoc(), gradType, getTensorType(op.getResult()),
                    add);
}

//===----------------------------------------------------------------------===//
// Gradients by element of the input
//===----------------------------------------------------------------------===//

/// What a window gives to the element at `indices`, in the compute type.
using ShareFn = llvm::function_ref<Value(
    OpBuilder &, Location, ValueRange window, ValueRange indices)>;

/// The gradient by the input: each element adds up what it gets of the windows
/// that it is in, in the windows' order.
static SmallVector<Value> addShares(OpBuilder &b, Location loc,
                                    const Windows &windows,
                                    RankedTensorType gradType,
                                    RankedTensorType type, ShareFn share) {
  Type element = type.getElementType(), compute = getComputeType(element);
  auto body = [&](OpBuilder &n, Location at, ValueRange indices,
                  ValueRange out) -> SmallVector<Value> {
    auto addOne = [&](OpBuilder &k, Location here, ValueRange reversed,
                      ValueRange carried) -> SmallVector<Value> {
      SmallVector<Value> offset;
      for (auto [back, size] : llvm::zip_equal(reversed, windows.kernel))
        offset.push_back(arith::SubIOp::create(
            k, here, constantIndex(k, here, size - 1), back));
      WindowCover cover =
          windows.findWindow(k, here, gradType.getShape(), indices, offset);
      auto branch = scf::IfOp::create(
          k, here, cover.valid,
          [&](OpBuilder &inner, Location place) {
            Value part = share(inner, place, cover.window, indices);
            Value sum = arith::AddFOp::create(inner, place, carried[0], part);
            scf::YieldOp::create(inner, place, sum);
          },
          [&](OpBuilder &inner, Location place) {
            scf::YieldOp::create(inner, place, carried[0]);
          });
      return {branch.getResult(0)};
    };
    Value sum = buildLoops(n, at, windows.kernel,
                           constantScalar(n, at, compute, 0), addOne)[0];
    return {insertElement(n, at, convertScalar(n, at, sum, element), out[0],
                          indices)};
  };
  return buildLoops(b, loc, type.getShape(), emptyTensor(b, loc, type), body);
}

static SmallVector<Value> lowerMaxPoolGradByInput(OpBuilder &b,
                                                  train::MaxPoolGradOp op) {
  RankedTensorType gradType = getTensorType(op.getGrad());
  Type compute = getComputeType(gradType.getElementType());
  Windows windows(op, getTensorType(op.getInput()).getShape());
  auto share = [&](OpBuilder &n, Location at, ValueRange window,
                   ValueRange indices) -> Value {
    auto [position, isLargest] =
        findLargest(n, at, windows, op.getInput(), window);
    for (auto [largest, own] : llvm::zip_equal(position, indices.drop_front(2)))
      isLargest = both(
          n, at, isLargest,
          arith::CmpIOp::create(n, at, arith::CmpIPredicate::eq, largest, own));
    Value grad = convertScalar(
        n, at, extractElement(n, at, op.getGrad(), window), compute);
    return arith::SelectOp::create(n, at, isLargest, grad,
                                   constantScalar(n, at, compute, 0));
  };
  return addShares(b, op.getLoc(), windows, gradType,
                   getTensorType(op.getResult()), share);
}

static SmallVector<Value> lowerAvgPoolGradByInput(OpBuilder &b,
                                                  train::AvgPoolGradOp op) {
  RankedTensorType gradType = getTensorType(op.getGrad());
  Type compute = getComputeType(gradType.getElementType());
  Windows windows(op, op.getInputShape());
  auto share = [&](OpBuilder &n, Location at, ValueRange window,
                   ValueRange) -> Value {
    Value count = getDivisor(n, at, op, windows, window, compute);
    Value grad = convertScalar(
        n, at, extractElement(n, at, op.getGrad(), window), compute);
    return arith::DivFOp::create(n, at, grad, count);
  };
  return addShares(b, op.getLoc(), windows, gradType,
                   getTensorType(op.getResult()), share);
}

void zero::populateGpuPoolToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerAvgPoolGradByInput);
  addLowering(patterns, lowerMaxPoolGradByInput);
}

void zero::populateTrainPoolToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerAvgPool);
  addLowering(patterns, lowerAvgPoolGrad);
  addLowering(patterns, lowerMaxPool);
  addLowering(patterns, lowerMaxPoolGrad);
  addLowering(patterns, lowerMaxPoolIndices);
}
