//===- KernelPrepareGpu.cpp - What a GPU computes in another way ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host's lowering of these operations adds to elements in the order of the
// gradient's. Here the elements of the result add up what is theirs, in the
// same order.
//
//===----------------------------------------------------------------------===//

#include "GpuPrepare.h"
#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELPREPAREGPU
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

namespace {
/// The loops of a gather_grad as one sum: over the positions of the index
/// tensor, for each element of the table.
struct ScatterLoops {
  ScatterLoops(train::GatherGradOp op)
      : positions(getTensorType(op.getIndices()).getRank()), axis(op.getAxis()),
        table(getTensorType(op.getResult())) {}

  unsigned getNumLoops() const { return positions + table.getRank(); }
  AffineExpr getLoop(MLIRContext *context, unsigned tableDim) const {
    return getAffineDimExpr(positions + tableDim, context);
  }
  SmallVector<AffineMap> getMaps(MLIRContext *context) const;

  unsigned positions, axis;
  RankedTensorType table;
};
} // namespace

/// Of the indices, the gradient and the table.
SmallVector<AffineMap> ScatterLoops::getMaps(MLIRContext *context) const {
  SmallVector<AffineExpr> index, grad, row;
  for (unsigned dim = 0; dim < positions; ++dim)
    index.push_back(getAffineDimExpr(dim, context));
  for (unsigned dim = 0; dim < table.getRank(); ++dim) {
    if (dim == axis)
      llvm::append_range(grad, index);
    else
      grad.push_back(getLoop(context, dim));
    row.push_back(getLoop(context, dim));
  }
  unsigned loops = getNumLoops();
  return {AffineMap::get(loops, 0, index, context),
          AffineMap::get(loops, 0, grad, context),
          AffineMap::get(loops, 0, row, context)};
}

static SmallVector<Value> lowerGatherGrad(OpBuilder &b,
                                          train::GatherGradOp op) {
  Location loc = op.getLoc();
  ScatterLoops loops(op);
  Type element = loops.table.getElementType();
  Type compute = getComputeType(element);
  Value zeros = filledTensor(b, loc, loops.table.clone(compute), 0);
  SmallVector<utils::IteratorType> kinds(loops.positions,
                                         utils::IteratorType::reduction);
  kinds.append(loops.table.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &n, Location at, ValueRange args) {
    FloatMath m{n, at};
    Value named =
        resolveIndex(n, at, args[0], loops.table.getDimSize(loops.axis));
    Value row = linalg::IndexOp::create(n, at, loops.positions + loops.axis);
    Value isRow =
        arith::CmpIOp::create(n, at, arith::CmpIPredicate::eq, named, row);
    Value sum = m.add(args[2], m.cast(args[1], compute));
    linalg::YieldOp::create(
        n, at, Value(arith::SelectOp::create(n, at, isRow, sum, args[2])));
  };
  auto sum = linalg::GenericOp::create(
      b, loc, zeros.getType(), ValueRange{op.getIndices(), op.getGrad()}, zeros,
      loops.getMaps(b.getContext()), kinds, body);
  if (loops.axis == 0)
    sum->setAttr(kScatterAttr, b.getUnitAttr());
  if (element == compute)
    return {sum.getResult(0)};
  return mapElements(b, loc, emptyTensor(b, loc, loops.table), sum.getResult(0),
                     [&](OpBuilder &n, Location at, ValueRange args) {
                       return SmallVector<Value>{
                           convertScalar(n, at, args[0], element)};
                     });
}

/// A thread for each element of a slice, which goes over the indices in their
/// order; one thread where slices are single elements.
static SmallVector<Value> lowerScatter(OpBuilder &b, train::ScatterOp op) {
  Location loc = op.getLoc();
  int64_t axis = op.getAxis();
  RankedTensorType type = getTensorType(op.getData());
  Value init = copyOf(b, loc, op.getData());
  if (getTensorType(op.getUpdates()).getNumElements() == 0)
    return {init};
  SmallVector<int64_t> slice(type.getShape());
  slice.erase(slice.begin() + axis);
  auto place = [&](ValueRange own, ValueRange along) {
    SmallVector<Value> indices(own.take_front(axis));
    llvm::append_range(indices, along);
    llvm::append_range(indices, own.drop_front(axis));
    return indices;
  };
  return buildLoops(
      b, loc, slice, init,
      [&](OpBuilder &n, Location at, ValueRange own, ValueRange carried) {
        return buildLoops(
            n, at, getTensorType(op.getIndices()).getShape(), carried,
            [&](OpBuilder &k, Location here, ValueRange position,
                ValueRange state) -> SmallVector<Value> {
              Value index = extractElement(k, here, op.getIndices(), position);
              index = resolveIndex(k, here, index, type.getDimSize(axis));
              Value update = extractElement(k, here, op.getUpdates(),
                                            place(own, position));
              SmallVector<Value> target = place(own, index);
              Value old = extractElement(k, here, state[0], target);
              Value value = combineScattered(k, here, op, old, update);
              return {insertElement(k, here, value, state[0], target)};
            });
      });
}

namespace {
struct KernelPrepareGpu : zero::impl::KernelPrepareGpuBase<KernelPrepareGpu> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    RewritePatternSet patterns(&getContext());
    populateGpuPoolToLinalg(patterns);
    addLowering(patterns, lowerGatherGrad);
    addLowering(patterns, lowerScatter);
    walkAndApplyPatterns(func, std::move(patterns));
  }
};
} // namespace
