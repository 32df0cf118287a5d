//===- TrainToLinalgHelpers.cpp - Helpers of train-to-linalg --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builders of elementwise operations, reductions and loops over rows.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

using namespace mlir;
using namespace mlir::zero;

std::optional<SmallVector<Value>> zero::lowerEmpty(OpBuilder &b,
                                                   Operation *op) {
  SmallVector<Value> results;
  for (Type type : op->getResultTypes()) {
    if (cast<RankedTensorType>(type).getNumElements() != 0)
      return std::nullopt;
    results.push_back(emptyTensor(b, op->getLoc(), type));
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Type zero::getComputeType(Type element) {
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(element.getContext());
  return element;
}

Value zero::convertScalar(OpBuilder &b, Location loc, Value value, Type to) {
  Type from = value.getType();
  if (from == to)
    return value;
  unsigned fromBits = from.getIntOrFloatBitWidth();
  unsigned toBits = to.getIntOrFloatBitWidth();
  if (isa<FloatType>(from)) {
    if (fromBits < toBits)
      return arith::ExtFOp::create(b, loc, to, value);
    if (fromBits > toBits)
      return arith::TruncFOp::create(b, loc, to, value);
    // f16 and bf16 meet in f32.
    return convertScalar(b, loc, convertScalar(b, loc, value, b.getF32Type()),
                         to);
  }
  if (fromBits < toBits)
    return arith::ExtSIOp::create(b, loc, to, value);
  return arith::TruncIOp::create(b, loc, to, value);
}

Value zero::constantScalar(OpBuilder &b, Location loc, Type type,
                           double value) {
  TypedAttr attr;
  if (isa<FloatType>(type))
    attr = b.getFloatAttr(type, value);
  else
    attr = b.getIntegerAttr(type, static_cast<int64_t>(value));
  return arith::ConstantOp::create(b, loc, attr);
}

Value zero::constantIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value zero::extremeScalar(OpBuilder &b, Location loc, Type type, bool largest,
                          bool isUnsigned) {
  if (isa<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    return constantScalar(b, loc, type, largest ? infinity : -infinity);
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt value;
  if (isUnsigned)
    value = largest ? APInt::getMaxValue(bits) : APInt::getZero(bits);
  else
    value = largest ? APInt::getSignedMaxValue(bits)
                    : APInt::getSignedMinValue(bits);
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

Value FloatMath::constant(Type type, double value) const {
  return constantScalar(b, loc, type, value);
}

Value FloatMath::cast(Value x, Type type) const {
  return convertScalar(b, loc, x, type);
}

Value FloatMath::add(Value x, Value y) const {
  return arith::AddFOp::create(b, loc, x, y);
}

Value FloatMath::sub(Value x, Value y) const {
  return arith::SubFOp::create(b, loc, x, y);
}

Value FloatMath::mul(Value x, Value y) const {
  return arith::MulFOp::create(b, loc, x, y);
}

Value FloatMath::div(Value x, Value y) const {
  return arith::DivFOp::create(b, loc, x, y);
}

Value FloatMath::neg(Value x) const { return arith::NegFOp::create(b, loc, x); }

Value FloatMath::sqrt(Value x) const { return math::SqrtOp::create(b, loc, x); }

Value FloatMath::rsqrt(Value x, double epsilon) const {
  return div(like(x, 1), sqrt(add(x, epsilon)));
}

Value zero::addReassociated(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  if (!isa<FloatType>(lhs.getType()))
    return arith::AddIOp::create(b, loc, lhs, rhs);
  return arith::AddFOp::create(b, loc, lhs, rhs, arith::FastMathFlags::reassoc);
}

Value zero::maxScalar(OpBuilder &b, Location loc, Value lhs, Value rhs,
                      bool isUnsigned) {
  if (isUnsigned)
    return arith::MaxUIOp::create(b, loc, lhs, rhs);
  if (!isa<FloatType>(lhs.getType()))
    return arith::MaxSIOp::create(b, loc, lhs, rhs);
  return arith::MaximumFOp::create(b, loc, lhs, rhs);
}

Value zero::minScalar(OpBuilder &b, Location loc, Value lhs, Value rhs,
                      bool isUnsigned) {
  if (isUnsigned)
    return arith::MinUIOp::create(b, loc, lhs, rhs);
  if (!isa<FloatType>(lhs.getType()))
    return arith::MinSIOp::create(b, loc, lhs, rhs);
  return arith::MinimumFOp::create(b, loc, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

RankedTensorType zero::getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value zero::emptyTensor(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                        Type element) {
  return tensor::EmptyOp::create(b, loc, shape, element);
}

Value zero::emptyTensor(OpBuilder &b, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return emptyTensor(b, loc, tensor.getShape(), tensor.getElementType());
}

Value zero::filledTensor(OpBuilder &b, Location loc, Type type, double value) {
  Type element = cast<RankedTensorType>(type).getElementType();
  Value scalar = constantScalar(b, loc, element, value);
  return linalg::FillOp::create(b, loc, scalar, emptyTensor(b, loc, type))
      .getResult(0);
}

Value zero::extractElement(OpBuilder &b, Location loc, Value tensor,
                           ValueRange indices) {
  return tensor::ExtractOp::create(b, loc, tensor, indices);
}

Value zero::extractScalar(OpBuilder &b, Location loc, Value tensor) {
  return extractElement(b, loc, tensor, {});
}

Value zero::insertElement(OpBuilder &b, Location loc, Value scalar,
                          Value tensor, ValueRange indices) {
  return tensor::InsertOp::create(b, loc, scalar, tensor, indices);
}

Value zero::scalarTensor(OpBuilder &b, Location loc, Value scalar, Type type) {
  return insertElement(b, loc, scalar, emptyTensor(b, loc, type), {});
}

/// The indexing map of an operand of `shape` that broadcasts to `loops`.
static AffineMap getBroadcastMap(OpBuilder &b, ArrayRef<int64_t> shape,
                                 ArrayRef<int64_t> loops) {
  SmallVector<AffineExpr> exprs;
  size_t missing = loops.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    exprs.push_back(shape[i] == loops[i + missing]
                        ? b.getAffineDimExpr(i + missing)
                        : b.getAffineConstantExpr(0));
  return AffineMap::get(loops.size(), 0, exprs, b.getContext());
}

SmallVector<Value> zero::mapElements(OpBuilder &b, Location loc,
                                     ValueRange inits, ValueRange operands,
                                     ElementsFn body, bool readsInits) {
  ArrayRef<int64_t> loops = getTensorType(inits.front()).getShape();
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(
        getBroadcastMap(b, getTensorType(operand).getShape(), loops));
  maps.append(inits.size(), b.getMultiDimIdentityMap(loops.size()));
  SmallVector<utils::IteratorType> kinds(loops.size(),
                                         utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, loc, inits.getTypes(), operands, inits, maps, kinds,
      [&](OpBuilder &nested, Location at, ValueRange args) {
        if (!readsInits)
          args = args.take_front(operands.size());
        linalg::YieldOp::create(nested, at, body(nested, at, args));
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

SmallVector<Value> zero::reduceElements(OpBuilder &b, Location loc,
                                        ValueRange operands, ValueRange inits,
                                        ElementsFn body) {
  int64_t rank = getTensorType(operands.front()).getRank();
  SmallVector<AffineMap> maps(operands.size(), b.getMultiDimIdentityMap(rank));
  SmallVector<Value> accumulators;
  for (Value init : inits) {
    Value empty = emptyTensor(b, loc, {}, init.getType());
    accumulators.push_back(
        linalg::FillOp::create(b, loc, init, empty).getResult(0));
    maps.push_back(AffineMap::get(rank, 0, b.getContext()));
  }
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange(ValueRange(accumulators)), operands, accumulators, maps,
      kinds, [&](OpBuilder &nested, Location at, ValueRange args) {
        linalg::YieldOp::create(nested, at, body(nested, at, args));
      });
  SmallVector<Value> scalars;
  for (Value result : generic.getResults())
    scalars.push_back(extractScalar(b, loc, result));
  return scalars;
}

Value zero::sumElements(OpBuilder &b, Location loc, ValueRange operands,
                        Type type, ElementsFn body) {
  Value zero = constantScalar(b, loc, type, 0);
  return reduceElements(b, loc, operands, zero,
                        [&](OpBuilder &nested, Location at, ValueRange args) {
                          Value term =
                              body(nested, at, args.drop_back()).front();
                          return SmallVector<Value>{
                              addReassociated(nested, at, args.back(), term)};
                        })
      .front();
}

//===----------------------------------------------------------------------===//
// Loops over rows
//===----------------------------------------------------------------------===//

SmallVector<Value> zero::buildLoops(OpBuilder &b, Location loc,
                                    ArrayRef<int64_t> extents, ValueRange inits,
                                    LoopBody body) {
  Value zero = constantIndex(b, loc, 0), one = constantIndex(b, loc, 1);
  SmallVector<Value> lows(extents.size(), zero), steps(extents.size(), one);
  SmallVector<Value> highs;
  for (int64_t extent : extents)
    highs.push_back(constantIndex(b, loc, extent));
  if (extents.empty())
    return body(b, loc, {}, inits);
  scf::LoopNest nest = scf::buildLoopNest(
      b, loc, lows, highs, steps, inits,
      [&](OpBuilder &nested, Location at, ValueRange indices,
          ValueRange carried) { return body(nested, at, indices, carried); });
  return nest.results;
}

Rows::Rows(ArrayRef<int64_t> shape, ArrayRef<int64_t> rowDims)
    : shape(shape), inRow(shape.size(), false) {
  for (int64_t dim : rowDims)
    inRow[dim] = true;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (!inRow[dim])
      extents.push_back(shape[dim]);
}

int64_t Rows::getRowSize() const {
  int64_t size = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (inRow[dim])
      size *= shape[dim];
  return size;
}

SmallVector<OpFoldResult> Rows::getOffsets(OpBuilder &b,
                                           ValueRange indices) const {
  SmallVector<OpFoldResult> offsets;
  size_t next = 0;
  for (bool row : inRow)
    offsets.push_back(row ? OpFoldResult(b.getIndexAttr(0))
                          : OpFoldResult(indices[next++]));
  return offsets;
}

Value Rows::extract(OpBuilder &b, Location loc, Value tensor,
                    ValueRange indices) const {
  SmallVector<OpFoldResult> sizes, strides(shape.size(), b.getIndexAttr(1));
  SmallVector<int64_t> rowShape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    sizes.push_back(b.getIndexAttr(inRow[dim] ? shape[dim] : 1));
    if (inRow[dim])
      rowShape.push_back(shape[dim]);
  }
  Type element = getTensorType(tensor).getElementType();
  if (getRowSize() == 0)
    return emptyTensor(b, loc, rowShape, element);
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(rowShape, element), tensor,
      getOffsets(b, indices), sizes, strides);
}

Value Rows::insert(OpBuilder &b, Location loc, Value row, Value tensor,
                   ValueRange indices) const {
  if (getRowSize() == 0)
    return tensor;
  SmallVector<OpFoldResult> sizes, strides(shape.size(), b.getIndexAttr(1));
  for (size_t dim = 0; dim < shape.size(); ++dim)
    sizes.push_back(b.getIndexAttr(inRow[dim] ? shape[dim] : 1));
  return tensor::InsertSliceOp::create(b, loc, row, tensor,
                                       getOffsets(b, indices), sizes, strides);
}

SmallVector<Value> Rows::keepDims(OpBuilder &b, Location loc,
                                  ValueRange indices) const {
  SmallVector<Value> all;
  size_t next = 0;
  for (bool row : inRow)
    all.push_back(row ? constantIndex(b, loc, 0) : indices[next++]);
  return all;
}
