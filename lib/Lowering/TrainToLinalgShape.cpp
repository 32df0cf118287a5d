//===- TrainToLinalgShape.cpp - Operations that move elements -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Slices are views, transposes and broadcasts are indexing maps, the others
// write into slices of their result. Elements keep their bits.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace mlir::zero;

static RankedTensorType getResultType(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

static SmallVector<OpFoldResult> getIndexAttrs(OpBuilder &b,
                                               ArrayRef<int64_t> values) {
  SmallVector<OpFoldResult> attrs;
  for (int64_t value : values)
    attrs.push_back(b.getIndexAttr(value));
  return attrs;
}

/// A reshape that only joins or only splits dimensions is a view even of a
/// strided tensor; others go by way of one dimension.
static SmallVector<Value> lowerReshape(OpBuilder &b, train::ReshapeOp op) {
  Location loc = op.getLoc();
  RankedTensorType from = getTensorType(op.getInput()), to = getResultType(op);
  Value value = op.getInput();
  if (from == to)
    return {value};
  auto groups = getReassociationIndicesForReshape(from, to);
  if (groups && from.getRank() < to.getRank())
    return {tensor::ExpandShapeOp::create(b, loc, to, value, *groups)};
  if (groups && from.getRank() > to.getRank())
    return {tensor::CollapseShapeOp::create(b, loc, to, value, *groups)};
  auto all = [](int64_t rank) {
    ReassociationIndices dims;
    llvm::append_range(dims, llvm::seq<int64_t>(0, rank));
    return SmallVector<ReassociationIndices>{dims};
  };
  Value flat =
      tensor::CollapseShapeOp::create(b, loc, value, all(from.getRank()));
  return {tensor::ExpandShapeOp::create(b, loc, to, flat, all(to.getRank()))};
}

static SmallVector<Value> lowerBroadcast(OpBuilder &b, train::BroadcastOp op) {
  return mapElements(b, op.getLoc(),
                     emptyTensor(b, op.getLoc(), getResultType(op)),
                     op.getInput(), [](OpBuilder &, Location, ValueRange args) {
                       return SmallVector<Value>{args[0]};
                     });
}

static SmallVector<Value> lowerTranspose(OpBuilder &b, train::TransposeOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = getResultType(op);
  SmallVector<AffineExpr> exprs(type.getRank());
  for (auto [to, from] : llvm::enumerate(op.getPermutation()))
    exprs[from] = b.getAffineDimExpr(to);
  SmallVector<AffineMap> maps = {
      AffineMap::get(type.getRank(), 0, exprs, b.getContext()),
      b.getMultiDimIdentityMap(type.getRank())};
  SmallVector<utils::IteratorType> kinds(type.getRank(),
                                         utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, loc, type, op.getInput(), emptyTensor(b, loc, type), maps, kinds,
      [](OpBuilder &n, Location at, ValueRange args) {
        linalg::YieldOp::create(n, at, args[0]);
      });
  return {generic.getResult(0)};
}

static SmallVector<Value> lowerSlice(OpBuilder &b, train::SliceOp op) {
  RankedTensorType type = getResultType(op);
  return {tensor::ExtractSliceOp::create(
      b, op.getLoc(), type, op.getInput(), getIndexAttrs(b, op.getStarts()),
      getIndexAttrs(b, type.getShape()), getIndexAttrs(b, op.getStrides()))};
}

static SmallVector<Value> lowerConcat(OpBuilder &b, train::ConcatOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = getResultType(op);
  Value result = emptyTensor(b, loc, type);
  SmallVector<int64_t> offsets(type.getRank(), 0), ones(type.getRank(), 1);
  for (Value input : op.getInputs()) {
    ArrayRef<int64_t> shape = getTensorType(input).getShape();
    if (shape[op.getAxis()] == 0)
      continue;
    result = tensor::InsertSliceOp::create(
        b, loc, input, result, getIndexAttrs(b, offsets),
        getIndexAttrs(b, shape), getIndexAttrs(b, ones));
    offsets[op.getAxis()] += shape[op.getAxis()];
  }
  return {result};
}

static SmallVector<Value> lowerPad(OpBuilder &b, train::PadOp op) {
  Location loc = op.getLoc();
  SmallVector<int64_t> strides;
  for (int64_t interior : op.getInterior())
    strides.push_back(interior + 1);
  Value zeros = filledTensor(b, loc, getResultType(op), 0);
  if (getTensorType(op.getInput()).getNumElements() == 0)
    return {zeros};
  return {tensor::InsertSliceOp::create(
      b, loc, op.getInput(), zeros, getIndexAttrs(b, op.getLow()),
      getIndexAttrs(b, getTensorType(op.getInput()).getShape()),
      getIndexAttrs(b, strides))};
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

static SmallVector<Value> lowerGather(OpBuilder &b, train::GatherOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = getResultType(op);
  RankedTensorType data = getTensorType(op.getData());
  int64_t indexRank = getTensorType(op.getIndices()).getRank();
  int64_t axis = op.getAxis();
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < indexRank; ++dim)
    exprs.push_back(b.getAffineDimExpr(axis + dim));
  SmallVector<AffineMap> maps = {
      AffineMap::get(type.getRank(), 0, exprs, b.getContext()),
      b.getMultiDimIdentityMap(type.getRank())};
  SmallVector<utils::IteratorType> kinds(type.getRank(),
                                         utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, loc, type, op.getIndices(), emptyTensor(b, loc, type), maps, kinds,
      [&](OpBuilder &n, Location at, ValueRange args) {
        SmallVector<Value> position;
        for (int64_t dim = 0; dim < data.getRank(); ++dim) {
          if (dim == axis) {
            position.push_back(
                resolveIndex(n, at, args[0], data.getDimSize(axis)));
            continue;
          }
          int64_t loop = dim < axis ? dim : dim + indexRank - 1;
          position.push_back(linalg::IndexOp::create(n, at, loop));
        }
        linalg::YieldOp::create(n, at,
                                extractElement(n, at, op.getData(), position));
      });
  return {generic.getResult(0)};
}

void zero::populateTrainShapeToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerBroadcast);
  addLowering(patterns, lowerConcat);
  addLowering(patterns, lowerGather);
  addLowering(patterns, lowerPad);
  addLowering(patterns, lowerReshape);
  addLowering(patterns, lowerSlice);
  addLowering(patterns, lowerTranspose);
}
