//===- TrainUnrollScansPass.cpp - Loops as straight-line code -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass train-unroll-scans.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/Autodiff.h"
#include "zero/Autodiff/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::train {
#define GEN_PASS_DEF_TRAINUNROLLSCANSPASS
#include "zero/Autodiff/Passes.h.inc"
} // namespace mlir::train

using namespace mlir;
using namespace mlir::train;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The entry `step` of the first axis of `tensor`, which goes.
static Value entryOf(OpBuilder &b, Location loc, Value tensor, int64_t step) {
  ArrayRef<int64_t> shape = shapeOf(tensor);
  SmallVector<int64_t> starts(shape.size(), 0), limits(shape),
      strides(shape.size(), 1);
  starts[0] = step;
  limits[0] = step + 1;
  Value row = SliceOp::create(b, loc, tensor, starts, limits, strides);
  return ReshapeOp::create(b, loc, row, shape.drop_front());
}

/// `values` along a new first axis.
static Value stack(OpBuilder &b, Location loc, ArrayRef<Value> values) {
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, shapeOf(values.front()));
  SmallVector<Value> rows;
  for (Value value : values)
    rows.push_back(ReshapeOp::create(b, loc, value, shape));
  return rows.size() == 1 ? rows.front()
                          : ConcatOp::create(b, loc, rows, /*axis=*/0);
}

void mlir::train::unrollScan(RewriterBase &b, ScanOp op) {
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  size_t numCarried = op.getInits().size();
  SmallVector<Value> carried(op.getInits());
  std::vector<SmallVector<Value>> stacks(op.getStacked().size(),
                                         SmallVector<Value>(op.getSteps()));
  for (int64_t i = 0, steps = op.getSteps(); i < steps; ++i) {
    int64_t step = op.getReverse() ? steps - 1 - i : i;
    IRMapping map;
    map.map(op.getCarriedArguments(), carried);
    map.map(op.getCapturedArguments(), op.getCaptured());
    for (auto [argument, tensor] :
         llvm::zip_equal(op.getScannedArguments(), op.getScanned()))
      map.map(argument, entryOf(b, loc, tensor, step));
    for (Operation &inner : op.getBody()->without_terminator())
      b.clone(inner, map);
    for (auto [number, value] : llvm::enumerate(op.getYield().getValues())) {
      Value yielded = map.lookup(value);
      (number < numCarried ? carried[number]
                           : stacks[number - numCarried][step]) = yielded;
    }
  }
  SmallVector<Value> results(carried);
  for (ArrayRef<Value> values : stacks)
    results.push_back(stack(b, loc, values));
  b.replaceOp(op, results);
}

/// Whether the body of `op` needs no library: a kernel computes products, but
/// no attention.
static bool isKernel(ScanOp op) {
  return !op->walk([](Operation *inner) {
              return isa<AttentionOp, AttentionGradOp>(inner)
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            }).wasInterrupted();
}

namespace {
struct TrainUnrollScansPass
    : train::impl::TrainUnrollScansPassBase<TrainUnrollScansPass> {
  using TrainUnrollScansPassBase::TrainUnrollScansPassBase;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<ScanOp> scans;
    // Inner loops first: they are part of what is repeated.
    getOperation().walk([&](ScanOp op) {
      if (!keepKernels || !isKernel(op))
        scans.push_back(op);
    });
    for (ScanOp op : scans)
      unrollScan(rewriter, op);
    numUnrolled += scans.size();
  }
};
} // namespace
