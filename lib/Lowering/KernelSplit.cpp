//===- KernelSplit.cpp - Kernels that compute a range of elements ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of the host are run by several threads. What can be split is decided
// on the loops, after everything that makes them few and simple: what is
// written in a step is used in no other.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELSPLIT
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

/// The argument or allocation that `buffer` is a view of.
static Value getBase(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer;
}

/// What the loops of `func` store to.
static llvm::SmallPtrSet<Value, 8> findWritten(func::FuncOp func) {
  llvm::SmallPtrSet<Value, 8> written;
  for (auto loop : func.getBody().front().getOps<scf::ForOp>())
    loop.walk([&](memref::StoreOp store) {
      written.insert(getBase(store.getMemRef()));
    });
  return written;
}

/// The number of steps of a loop from 0 by 1, or 0.
static int64_t countSteps(scf::ForOp loop) {
  std::optional<int64_t> low = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> high = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  bool plain = low == 0 && step == 1 && high && loop.getInitArgs().empty();
  return plain ? *high : 0;
}

/// Whether a step of `loop` touches of what is written only its own elements.
static bool hasIndependentSteps(scf::ForOp loop,
                                const llvm::SmallPtrSet<Value, 8> &written) {
  auto isOwn = [&](ValueRange indices) {
    return indices.size() == 1 && indices[0] == loop.getInductionVar();
  };
  return llvm::all_of(loop.getBody()->without_terminator(), [&](Operation &op) {
    if (auto store = dyn_cast<memref::StoreOp>(op))
      return isOwn(store.getIndices());
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return isOwn(load.getIndices()) ||
             !written.contains(getBase(load.getMemRef()));
    return isPure(&op) && op.getNumRegions() == 0;
  });
}

/// Whether `op`, outside of loops, may run once for each range: what it stores
/// to is on the stack of who runs it.
static bool mayRepeat(Operation &op,
                      const llvm::SmallPtrSet<Value, 8> &written) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return !written.contains(getBase(load.getMemRef()));
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return getBase(store.getMemRef()).getDefiningOp<memref::AllocaOp>();
  return isa<memref::AllocaOp, func::ReturnOp>(op) ||
         (isPure(&op) && op.getNumRegions() == 0);
}

/// The steps that all loops of `func` have, if ranges of them can be run by
/// themselves; otherwise 0.
static int64_t getSplit(func::FuncOp func) {
  llvm::SmallPtrSet<Value, 8> written = findWritten(func);
  int64_t split = 0;
  for (Operation &op : func.getBody().front()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop) {
      if (!mayRepeat(op, written))
        return 0;
      continue;
    }
    int64_t steps = countSteps(loop);
    if (steps == 0 || (split != 0 && steps != split) ||
        !hasIndependentSteps(loop, written))
      return 0;
    split = steps;
  }
  return split;
}

namespace {
struct KernelSplit : zero::impl::KernelSplitBase<KernelSplit> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr) || !func->hasAttr(kHostKernelAttr) ||
        !func.getBody().hasOneBlock())
      return;
    int64_t split = getSplit(func);
    if (split == 0)
      return;
    Builder b(&getContext());
    Block &body = func.getBody().front();
    Value begin = body.addArgument(b.getIndexType(), func.getLoc());
    Value end = body.addArgument(b.getIndexType(), func.getLoc());
    for (auto loop : body.getOps<scf::ForOp>()) {
      loop.setLowerBound(begin);
      loop.setUpperBound(end);
    }
    func.setType(b.getFunctionType(body.getArgumentTypes(), {}));
    func->setAttr(kSplitAttr, b.getI64IntegerAttr(split));
    ++numSplit;
  }
};
} // namespace
