//===- Release.cpp - zero-release -----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ends the life of gathered parameters after their last use.
//
//===----------------------------------------------------------------------===//

#include "StepInfo.h"
#include "Views.h"
#include "zero/Transforms/Passes.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZERORELEASEPASS
#include "zero/Transforms/Passes.h.inc"
} // namespace mlir::zero

#define DEBUG_TYPE "zero-release"

using namespace mlir;
using namespace mlir::zero;

namespace {
class ReleasePass : public zero::impl::ZeroReleasePassBase<ReleasePass> {
public:
  void runOnOperation() override;
};
} // namespace

/// Values gathered from shards at rest; copies assigned to the state stay.
static bool isGatheredState(Operation *op) {
  if (isa<ReshardOp>(op))
    return true;
  if (isa<AllGatherOp>(op))
    return gathersState(op);
  auto wait = dyn_cast<WaitOp>(op);
  auto start =
      wait ? wait.getFuture().getDefiningOp<AllGatherStartOp>() : nullptr;
  return start && gathersState(start);
}

int64_t zero::releaseGathered(Block &body) {
  llvm::MapVector<Operation *, SmallVector<Value>> endingAt;
  for (Operation &op : body) {
    if (!isGatheredState(&op))
      continue;
    for (Value value : op.getResults()) {
      if (llvm::any_of(value.getUsers(), llvm::IsaPred<ReleaseOp>))
        continue;
      Operation *last = getLastUse(value, &body);
      // What the function returns lives on.
      if (!last || last != body.getTerminator())
        endingAt[last ? last : &op].push_back(value);
    }
  }
  int64_t numReleased = 0;
  OpBuilder builder(body.getParentOp()->getContext());
  for (auto &[last, values] : endingAt) {
    builder.setInsertionPointAfter(last);
    ReleaseOp::create(builder, last->getLoc(), values);
    numReleased += values.size();
  }
  return numReleased;
}

void ReleasePass::runOnOperation() {
  for (auto func : getOperation().getOps<FunctionOpInterface>())
    for (Block &block : func.getFunctionBody())
      numReleased += releaseGathered(block);
}
