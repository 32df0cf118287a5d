//===- OffloadCandidates.cpp - what can live outside device memory --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names the candidates of a step, with their bytes.
//
//===----------------------------------------------------------------------===//

#include "OffloadStep.h"

using namespace mlir;
using namespace mlir::zero;

SmallVector<StateOp> zero::getOptimizerStates(OffloadModule &info,
                                              ParamOp param) {
  SmallVector<StateOp> states;
  for (auto state : info.module.getOps<StateOp>())
    if (state.getParam() == param.getSymName() && !state.getAccumulator())
      states.push_back(state);
  return states;
}

StateOp zero::getAccumulator(OffloadModule &info, ParamOp param) {
  for (auto state : info.module.getOps<StateOp>())
    if (state.getParam() == param.getSymName() && state.getAccumulator())
      return state;
  return {};
}

namespace {
class CandidateFinder {
public:
  explicit CandidateFinder(OffloadModule &info) : info(info) {}
  std::vector<OffloadCandidate> run();

private:
  int64_t getRankBytes(Type type);
  int64_t getRuns(OffloadStep &step);
  LocalUpdate *getUpdate(ParamOp param);
  OffloadCandidate start(OffloadKind kind, ParamOp param);
  void addOptimizer(ParamOp param);
  void addGradients(ParamOp param);
  void addParameter(ParamOp param);
  void addActivations();

  OffloadModule &info;
  std::vector<OffloadCandidate> candidates;
};
} // namespace

/// Bytes that one rank holds of a symbol's type.
int64_t CandidateFinder::getRankBytes(Type type) {
  auto sharded = dyn_cast<ShardedType>(type);
  if (!sharded)
    return getTensorBytes(type);
  auto grid = info.symbols.lookup<shard::GridOp>(sharded.getGrid().getValue());
  FailureOr<int64_t> ranks =
      grid ? getRanks(grid, sharded.getAxes()) : FailureOr<int64_t>(1);
  return getTensorBytes(sharded.getLocalType(ranks.value_or(1)));
}

/// How often a function runs in a step.
int64_t CandidateFinder::getRuns(OffloadStep &step) {
  auto number = info.module->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  return number && step.func.getName() == kAccumulateName ? number.getInt() - 1
                                                          : 1;
}

LocalUpdate *CandidateFinder::getUpdate(ParamOp param) {
  for (OffloadStep &step : info.steps)
    for (LocalUpdate &update : step.updates)
      if (update.param == param)
        return &update;
  return nullptr;
}

OffloadCandidate CandidateFinder::start(OffloadKind kind, ParamOp param) {
  OffloadCandidate candidate;
  candidate.kind = kind;
  candidate.name = param.getSymName().str();
  candidate.unit = param.getUnit().value_or("").str();
  return candidate;
}

/// Gradients, and parameters without a master, go down; new parameters come up.
void CandidateFinder::addOptimizer(ParamOp param) {
  LocalUpdate *update = getUpdate(param);
  if (!update)
    return;
  OffloadCandidate candidate = start(OffloadKind::Optimizer, param);
  for (StateOp state : getOptimizerStates(info, param))
    candidate.bytes += getRankBytes(state.getType());
  for (Value input : update->inputs) {
    // Scalars go down once for all.
    if (getLogicalType(input.getType()).getRank() == 0)
      continue;
    ReadOp read = getReadBehind(input);
    if (!read || read.getSymbol() == param.getSymName())
      candidate.toHostBytes += getRankBytes(input.getType());
  }
  for (auto [assign, value] : llvm::zip_equal(update->assigns, update->values))
    if (assign.getSymbol() == param.getSymName())
      candidate.toDeviceBytes += getRankBytes(value.getType());
  candidates.push_back(std::move(candidate));
}

/// The accumulator, or else the gradient between reduction and update.
void CandidateFinder::addGradients(ParamOp param) {
  LocalUpdate *update = getUpdate(param);
  if (!update || !update->reduction)
    return;
  OffloadCandidate candidate = start(OffloadKind::Gradients, param);
  for (Value input : update->inputs)
    if (!getReadBehind(input) &&
        cast<RankedTensorType>(input.getType()).getRank() > 0) {
      candidate.toDeviceBytes += getRankBytes(input.getType());
      candidate.toHostBytes += getRankBytes(input.getType());
    }
  candidate.bytes = candidate.toHostBytes;
  if (StateOp accumulator = getAccumulator(info, param)) {
    candidate.bytes = getRankBytes(accumulator.getType());
    for (OffloadStep &step : info.steps)
      for (LocalSum &sum : step.sums)
        if (sum.accumulator == accumulator)
          for (Value operand : sum.add->getOperands())
            if (!getReadAccumulator(operand, info.symbols))
              candidate.toHostBytes +=
                  getRuns(step) * getRankBytes(operand.getType());
  }
  candidates.push_back(std::move(candidate));
}

/// Up before each gather or, where it is whole, in each pass that reads it;
/// down once it is updated.
void CandidateFinder::addParameter(ParamOp param) {
  if (param.getBuffer())
    return;
  OffloadCandidate candidate = start(OffloadKind::Parameters, param);
  candidate.bytes = getRankBytes(param.getType());
  for (OffloadStep &step : info.steps) {
    ReadOp read = step.reads.lookup(param.getSymNameAttr());
    if (!read)
      continue;
    llvm::DenseSet<Operation *> forward = findForwardOps(step, info.symbols);
    int64_t gathers = 0;
    bool inForward = false, inBackward = false;
    for (Operation *user : read->getUsers()) {
      if (isa<AllGatherOp>(user))
        ++gathers;
      else if (!isa<LocalOp>(user))
        (forward.contains(user) ? inForward : inBackward) = true;
    }
    candidate.toDeviceBytes +=
        getRuns(step) * candidate.bytes * (gathers + inForward + inBackward);
  }
  if (getUpdate(param))
    candidate.toHostBytes = candidate.bytes;
  candidates.push_back(std::move(candidate));
}

/// Functions of several micro-batches have the same forward pass.
void CandidateFinder::addActivations() {
  llvm::StringMap<size_t> known;
  for (OffloadStep &step : info.steps)
    for (Activation &activation : findActivations(step, info.symbols)) {
      auto [it, isNew] = known.try_emplace(activation.name, candidates.size());
      if (isNew) {
        OffloadCandidate &candidate = candidates.emplace_back();
        candidate.kind = OffloadKind::Activations;
        candidate.name = activation.name;
        candidate.unit = activation.unit;
        candidate.bytes = getTensorBytes(activation.value.getType());
      }
      OffloadCandidate &candidate = candidates[it->second];
      candidate.toHostBytes += getRuns(step) * candidate.bytes;
      candidate.toDeviceBytes += getRuns(step) * candidate.bytes;
    }
}

std::vector<OffloadCandidate> CandidateFinder::run() {
  // In the order of their first use, those that nothing reads last.
  llvm::SetVector<Operation *> params;
  for (OffloadStep &step : info.steps)
    for (auto &[name, read] : step.reads)
      if (auto param = info.symbols.lookup<ParamOp>(name))
        params.insert(param);
  for (auto param : info.module.getOps<ParamOp>())
    params.insert(param);
  params.remove_if([](Operation *op) {
    return cast<ParamOp>(op).getLogicalType().getRank() == 0;
  });
  for (Operation *param : params)
    addOptimizer(cast<ParamOp>(param));
  for (Operation *param : params)
    addGradients(cast<ParamOp>(param));
  for (Operation *param : params)
    addParameter(cast<ParamOp>(param));
  addActivations();
  return std::move(candidates);
}

std::vector<OffloadCandidate> zero::collectCandidates(OffloadModule &info) {
  return CandidateFinder(info).run();
}

FailureOr<std::vector<OffloadCandidate>>
zero::findOffloadCandidates(ModuleOp module) {
  OffloadModule info(module);
  if (failed(analyzeOffload(info)))
    return failure();
  return collectCandidates(info);
}
