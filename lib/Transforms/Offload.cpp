//===- Offload.cpp - zero-offload -----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass: candidates, choice, and the rewriting in its order.
//
//===----------------------------------------------------------------------===//

#include "OffloadStep.h"
#include "zero/Transforms/Passes.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZEROOFFLOADPASS
#include "zero/Transforms/Passes.h.inc"
} // namespace mlir::zero

#define DEBUG_TYPE "zero-offload"

using namespace mlir;
using namespace mlir::zero;

namespace {
class OffloadPass : public zero::impl::ZeroOffloadPassBase<OffloadPass> {
public:
  using ZeroOffloadPassBase::ZeroOffloadPassBase;
  void runOnOperation() override;
};
} // namespace

/// Bytes that one rank holds of a symbol's type.
static int64_t getRankBytes(OffloadModule &info, Type type) {
  auto sharded = dyn_cast<ShardedType>(type);
  if (!sharded)
    return getTensorBytes(type);
  auto grid = info.symbols.lookup<shard::GridOp>(sharded.getGrid().getValue());
  FailureOr<int64_t> ranks = getRanks(grid, sharded.getAxes());
  return getTensorBytes(sharded.getLocalType(ranks.value_or(1)));
}

/// Parameters in the order of their first use, those that nothing reads last.
static SmallVector<ParamOp> getParameters(OffloadModule &info) {
  llvm::SetVector<Operation *> order;
  for (OffloadStep &step : info.steps)
    for (auto &[name, read] : step.reads)
      if (auto param = info.symbols.lookup<ParamOp>(name))
        order.insert(param);
  for (auto param : info.module.getOps<ParamOp>())
    order.insert(param);
  SmallVector<ParamOp> params;
  for (Operation *op : order)
    if (cast<ParamOp>(op).getLogicalType().getRank() > 0)
      params.push_back(cast<ParamOp>(op));
  return params;
}

static SmallVector<StateOp> getStates(OffloadModule &info, ParamOp param) {
  SmallVector<StateOp> states;
  for (auto state : info.module.getOps<StateOp>())
    if (state.getParam() == param.getSymName() && !state.getAccumulator())
      states.push_back(state);
  return states;
}

void zero::findOptimizerCandidates(OffloadModule &info,
                                   std::vector<OffloadCandidate> &candidates) {
  for (ParamOp param : getParameters(info)) {
    OffloadCandidate candidate{OffloadKind::Optimizer, param.getSymName().str(),
                               param.getUnit().value_or("").str()};
    bool updated = false;
    for (OffloadStep &step : info.steps)
      for (LocalUpdate &update : step.updates) {
        if (update.param != param)
          continue;
        updated = true;
        for (Value value : update.inputs)
          if (value.getType() == update.values.front().getType())
            candidate.toHostBytes += 0;
      }
    if (!updated)
      continue;
    for (StateOp state : getStates(info, param))
      candidate.bytes += getRankBytes(info, state.getType());
    candidates.push_back(std::move(candidate));
  }
}

FailureOr<std::vector<OffloadCandidate>>
zero::findOffloadCandidates(ModuleOp module) {
  OffloadModule info(module);
  if (failed(analyzeOffload(info)))
    return failure();
  std::vector<OffloadCandidate> candidates;
  findOptimizerCandidates(info, candidates);
  return candidates;
}

LogicalResult zero::applyOffload(ModuleOp module, ArrayRef<OffloadRule> rules) {
  OffloadModule info(module);
  if (failed(analyzeOffload(info)))
    return failure();
  std::vector<OffloadCandidate> candidates;
  findOptimizerCandidates(info, candidates);
  SmallVector<Memory> chosen;
  if (failed(chooseMemories(module, rules, candidates, chosen)))
    return failure();
  for (auto [candidate, memory] : llvm::zip_equal(candidates, chosen)) {
    if (memory == Memory::Device)
      continue;
    auto param = info.symbols.lookup<ParamOp>(candidate.name);
    for (StateOp state : getStates(info, param))
      setSymbolMemory(info, state, memory);
    info.hosted.insert(param);
  }
  for (OffloadStep &step : info.steps)
    moveUpdatesToHost(info, step);
  return success();
}

void OffloadPass::runOnOperation() {
  SmallVector<OffloadRule> parsed;
  for (const std::string &text : rules) {
    std::string error;
    FailureOr<OffloadRule> rule = parseOffloadRule(text, error);
    if (failed(rule)) {
      emitError(getOperation().getLoc()) << error;
      return signalPassFailure();
    }
    parsed.push_back(*rule);
  }
  if (!parsed.empty() && failed(applyOffload(getOperation(), parsed)))
    signalPassFailure();
}
