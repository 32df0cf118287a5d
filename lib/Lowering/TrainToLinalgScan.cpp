//===- TrainToLinalgScan.cpp - Loops over steps ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A train.scan becomes a loop that carries its values and the tensors it
// stacks; what is in it is lowered as anywhere else.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// The entry of the first axis of a tensor.
struct Entry {
  Entry(OpBuilder &b, Value tensor, Value index) : tensor(tensor) {
    RankedTensorType type = getTensorType(tensor);
    int64_t rank = type.getRank();
    offsets.assign(rank, b.getIndexAttr(0));
    offsets[0] = index;
    sizes.push_back(b.getIndexAttr(1));
    for (int64_t size : type.getShape().drop_front())
      sizes.push_back(b.getIndexAttr(size));
    strides.assign(rank, b.getIndexAttr(1));
    entryType = RankedTensorType::get(type.getShape().drop_front(),
                                      type.getElementType());
  }

  Value read(OpBuilder &b, Location loc) const {
    return tensor::ExtractSliceOp::create(b, loc, entryType, tensor, offsets,
                                          sizes, strides);
  }
  Value write(OpBuilder &b, Location loc, Value value) const {
    return tensor::InsertSliceOp::create(b, loc, value, tensor, offsets, sizes,
                                         strides);
  }

  Value tensor;
  SmallVector<OpFoldResult> offsets, sizes, strides;
  RankedTensorType entryType;
};
} // namespace

/// Which entry the step numbered `step` takes.
static Value getEntryIndex(OpBuilder &b, train::ScanOp op, Value step) {
  if (!op.getReverse())
    return step;
  Value last = constantIndex(b, op.getLoc(), op.getSteps() - 1);
  return arith::SubIOp::create(b, op.getLoc(), last, step);
}

/// Products with a transposed operand that is the same in all steps read it
/// transposed already: its rows lie side by side in memory then.
static DenseMap<Value, Value> transposeOnce(OpBuilder &b, train::ScanOp op) {
  DenseMap<Value, Value> transposed;
  for (auto [argument, operand] :
       llvm::zip_equal(op.getCapturedArguments(), op.getCaptured())) {
    auto isReader = [&, argument = argument](OpOperand &use) {
      auto matmul = dyn_cast<train::MatmulOp>(use.getOwner());
      return matmul && matmul.getTransposeB() && matmul.getRhs() == argument;
    };
    if (getTensorType(operand).getRank() == 2 &&
        llvm::any_of(argument.getUses(), isReader))
      transposed[argument] = train::TransposeOp::create(
          b, op.getLoc(), operand, ArrayRef<int64_t>{1, 0});
  }
  return transposed;
}

static void cloneInner(OpBuilder &b, Operation &inner, IRMapping &map,
                       const DenseMap<Value, Value> &transposed) {
  auto matmul = dyn_cast<train::MatmulOp>(inner);
  Value other = matmul && matmul.getTransposeB()
                    ? transposed.lookup(matmul.getRhs())
                    : Value();
  Operation *clone = b.clone(inner, map);
  if (!other)
    return;
  cast<train::MatmulOp>(clone).getRhsMutable().assign(other);
  cast<train::MatmulOp>(clone).setTransposeB(false);
}

/// One step, with `carried` followed by what is stacked so far; the same after
/// it.
static SmallVector<Value> lowerStep(OpBuilder &b, train::ScanOp op, Value index,
                                    ValueRange values,
                                    const DenseMap<Value, Value> &transposed) {
  Location loc = op.getLoc();
  size_t numCarried = op.getInits().size();
  IRMapping map;
  map.map(op.getCarriedArguments(), values.take_front(numCarried));
  map.map(op.getCapturedArguments(), op.getCaptured());
  for (auto [argument, tensor] :
       llvm::zip_equal(op.getScannedArguments(), op.getScanned()))
    map.map(argument, Entry(b, tensor, index).read(b, loc));
  for (Operation &inner : op.getBody()->without_terminator())
    cloneInner(b, inner, map, transposed);
  SmallVector<Value> next;
  for (Value value : op.getYieldedCarried())
    next.push_back(map.lookup(value));
  for (auto [tensor, value] :
       llvm::zip_equal(values.drop_front(numCarried), op.getYieldedStacked()))
    next.push_back(Entry(b, tensor, index).write(b, loc, map.lookup(value)));
  return next;
}

static void lowerScan(train::ScanOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> inits(op.getInits());
  for (Value result : op.getStacked())
    inits.push_back(emptyTensor(b, loc, result.getType()));
  DenseMap<Value, Value> transposed = transposeOnce(b, op);
  SmallVector<Value> results = buildLoops(
      b, loc, {int64_t(op.getSteps())}, inits,
      [&](OpBuilder &n, Location, ValueRange indices, ValueRange values) {
        return lowerStep(n, op, getEntryIndex(n, op, indices[0]), values,
                         transposed);
      });
  op->replaceAllUsesWith(results);
  op.erase();
}

void zero::lowerScans(func::FuncOp kernel) {
  SmallVector<train::ScanOp> scans;
  // Inner loops first.
  kernel.walk([&](train::ScanOp op) { scans.push_back(op); });
  for (train::ScanOp op : scans)
    lowerScan(op);
}
