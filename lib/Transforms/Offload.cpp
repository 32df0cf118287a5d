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

/// Whether a rule means the update of `param` by name, and so on the host
/// though no state lives there.
static bool isNamed(ArrayRef<OffloadRule> rules, ParamOp param) {
  return llvm::any_of(rules, [&](const OffloadRule &rule) {
    return rule.kind == OffloadKind::Optimizer && rule.pattern != "*" &&
           matchesName(rule, param.getSymName());
  });
}

/// Notes where everything lives, and gives symbols their memory.
static int64_t applyChoice(OffloadModule &info, ArrayRef<OffloadRule> rules,
                           ArrayRef<OffloadCandidate> candidates,
                           ArrayRef<Memory> chosen) {
  int64_t moved = 0;
  SmallVector<ParamOp> stateless;
  for (auto [candidate, memory] : llvm::zip_equal(candidates, chosen)) {
    if (memory == Memory::Device)
      continue;
    ++moved;
    if (candidate.kind == OffloadKind::Activations) {
      info.activations[candidate.name] = memory;
      continue;
    }
    auto param = info.symbols.lookup<ParamOp>(candidate.name);
    if (candidate.kind == OffloadKind::Parameters)
      setSymbolMemory(info, param, memory);
    if (candidate.kind == OffloadKind::Gradients) {
      info.gradients[param] = memory;
      if (StateOp accumulator = getAccumulator(info, param))
        setSymbolMemory(info, accumulator, memory);
    }
    if (candidate.kind != OffloadKind::Optimizer)
      continue;
    SmallVector<StateOp> states = getOptimizerStates(info, param);
    for (StateOp state : states)
      setSymbolMemory(info, state, memory);
    if (states.empty() && !isNamed(rules, param))
      stateless.push_back(param);
    else
      info.hosted.insert(param);
  }
  for (ParamOp param : stateless)
    if (getSymbolMemory(param) != Memory::Device)
      info.hosted.insert(param);
  if (!stateless.empty() && info.hosted.empty())
    emitWarning(info.module.getLoc())
        << "offload of the optimizer moves nothing: @"
        << stateless.front().getSymName()
        << " and others have no state; a rule "
        << "that names parameters runs their updates on the host";
  return moved;
}

static FailureOr<int64_t> offload(ModuleOp module,
                                  ArrayRef<OffloadRule> rules) {
  OffloadModule info(module);
  if (failed(analyzeOffload(info)))
    return failure();
  std::vector<OffloadCandidate> candidates = collectCandidates(info);
  SmallVector<Memory> chosen;
  if (failed(chooseMemories(module, rules, candidates, chosen)))
    return failure();
  int64_t moved = applyChoice(info, rules, candidates, chosen);
  for (OffloadStep &step : info.steps) {
    // First, as long as the forward pass is what it was.
    moveActivations(info, step);
    moveGradients(info, step);
    moveUpdatesToHost(info, step);
    bringToDevice(info, step);
    moveAssigned(info, step);
  }
  return moved;
}

LogicalResult zero::applyOffload(ModuleOp module, ArrayRef<OffloadRule> rules) {
  return success(succeeded(offload(module, rules)));
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
  if (parsed.empty())
    return;
  FailureOr<int64_t> moved = offload(getOperation(), parsed);
  if (failed(moved))
    return signalPassFailure();
  numMoved += *moved;
}
