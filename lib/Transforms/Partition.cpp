//===- Partition.cpp - zero-partition -------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass: checks what it is given, shards the symbols, and drives the parts.
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "zero/Transforms/Passes.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZEROPARTITIONPASS
#include "zero/Transforms/Passes.h.inc"
} // namespace mlir::zero

#define DEBUG_TYPE "zero-partition"

using namespace mlir;
using namespace mlir::zero;

namespace {
class PartitionPass : public zero::impl::ZeroPartitionPassBase<PartitionPass> {
public:
  using ZeroPartitionPassBase::ZeroPartitionPassBase;
  void runOnOperation() override;

private:
  LogicalResult checkInput();
  FailureOr<Partition> getPartition();
  LogicalResult checkSteps(ArrayRef<StepInfo> steps);
  void shardSymbols(const Partition &partition, ArrayRef<StepInfo> steps);
};
} // namespace

LogicalResult PartitionPass::checkInput() {
  ModuleOp module = getOperation();
  if (stage < 0 || stage > 3)
    return emitError(module.getLoc())
           << "stage " << stage.getValue()
           << " does not exist; ZeRO stages are 0, 1, 2, 3";
  if (module->hasAttr(kStageAttr))
    return emitError(module.getLoc()) << "is already partitioned, at stage "
                                      << module->getAttr(kStageAttr);
  if (module.getOps<ParamOp>().empty() && !module->hasAttr(kForwardAttr))
    return emitError(module.getLoc(),
                     "has no zero.param, so there is nothing to "
                     "partition; import a model with zero-import, or "
                     "mark arguments with zero.role");
  return success();
}

FailureOr<Partition> PartitionPass::getPartition() {
  ModuleOp module = getOperation();
  auto grids = module.getOps<shard::GridOp>();
  if (grids.empty())
    return emitError(module.getLoc(),
                     "has no shard.grid; run zero-annotate first");
  shard::GridOp grid = *grids.begin();
  if (std::next(grids.begin()) != grids.end())
    return emitError(module.getLoc(), "has several grids, expected one");
  if (grid.getRank() > 2)
    return grid.emitOpError()
           << "has " << grid.getRank()
           << " axes; expects one, or two: replicas by shards";
  Partition partition;
  partition.stage = stage;
  partition.keepAdjacent = keepAdjacent;
  partition.grid = FlatSymbolRefAttr::get(grid);
  Builder builder(module.getContext());
  bool twoAxes = grid.getRank() == 2;
  bool hybrid = twoAxes && shardAxes == ShardAxes::Inner;
  partition.allAxes = twoAxes ? builder.getDenseI64ArrayAttr({0, 1})
                              : builder.getDenseI64ArrayAttr(0);
  partition.shardAxes =
      hybrid ? builder.getDenseI64ArrayAttr(1) : partition.allAxes;
  if (hybrid)
    partition.replicaAxes = builder.getDenseI64ArrayAttr(0);
  FailureOr<int64_t> ranks = getRanks(grid, partition.shardAxes);
  FailureOr<int64_t> replicas =
      hybrid ? getRanks(grid, partition.replicaAxes) : 1;
  if (failed(ranks) || failed(replicas) || *ranks < 1 || *replicas < 1)
    return grid.emitOpError("expects a static number of ranks");
  partition.ranks = *ranks;
  partition.replicas = *replicas;
  return partition;
}

LogicalResult PartitionPass::checkSteps(ArrayRef<StepInfo> steps) {
  bool updated = llvm::any_of(
      steps, [](const StepInfo &info) { return !info.updates.empty(); });
  if (!updated && !getOperation()->hasAttr(kForwardAttr))
    return emitError(
        getOperation().getLoc(),
        "has no backward pass and no optimizer: no parameter is assigned; run "
        "--train-step='loss=... optimizer=...' first");
  return success();
}

/// Optimizer states from stage 1 on, parameters in stage 3; their reads too.
void PartitionPass::shardSymbols(const Partition &partition,
                                 ArrayRef<StepInfo> steps) {
  llvm::DenseMap<StringAttr, Type> sharded;
  auto shard = [&](auto symbol) {
    RankedTensorType whole = symbol.getLogicalType();
    if (!partition.cuts(whole))
      return;
    Type type =
        ShardedType::get(whole, partition.grid, /*dim=*/0, Memory::Device,
                         partition.shardAxes.asArrayRef());
    symbol.setTypeAttr(TypeAttr::get(type));
    sharded[symbol.getSymNameAttr()] = type;
    ++numSharded;
  };
  // A state of the step itself is whole, as are sums of gradients that are
  // reduced at the end of the step.
  for (auto state : getOperation().getOps<StateOp>())
    if (partition.stage > (state.getAccumulator() ? 1 : 0) && state.getParam())
      shard(state);
  if (partition.stage == 3)
    for (auto param : getOperation().getOps<ParamOp>())
      if (!param.getBuffer())
        shard(param);
  for (const StepInfo &info : steps)
    for (auto &[name, reads] : info.reads)
      if (Type type = sharded.lookup(name))
        for (ReadOp read : reads)
          read.getValue().setType(type);
}

void PartitionPass::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  if (failed(checkInput()))
    return signalPassFailure();
  FailureOr<Partition> partition = getPartition();
  if (failed(partition))
    return signalPassFailure();
  FailureOr<SmallVector<StepInfo>> steps = analyzeSteps(module, symbols);
  if (failed(steps) || failed(checkSteps(*steps)))
    return signalPassFailure();
  for (StepInfo &info : *steps)
    mergeReads(info);
  shardSymbols(*partition, *steps);
  for (StepInfo &info : *steps) {
    // Before the updates move: the forward pass is found through them.
    llvm::DenseSet<Operation *> forward = findForward(info);
    if (failed(partitionUpdates(*partition, info)))
      return signalPassFailure();
    insertGathers(*partition, info, forward, symbols);
  }
  numGathers += partition->numGathers;
  numReductions += partition->numReductions;
  numKept += partition->numKept;
  Builder builder(module.getContext());
  module->setAttr(kStageAttr, builder.getI64IntegerAttr(stage));
}
