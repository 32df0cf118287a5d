//===- OffloadPass.cpp - zero-choose-offload ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the choice whose schedule is the fastest within the budgets.
//
//===----------------------------------------------------------------------===//

#include "Reshard.h"
#include "ScheduleRemarks.h"
#include "zero/Schedule/OffloadChoice.h"
#include "zero/Schedule/OpWork.h"
#include "zero/Schedule/Passes.h"

#include "dialects/Zero/Zero.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZEROCHOOSEOFFLOADPASS
#include "zero/Schedule/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

namespace {
/// What the schedules of a module's steps do.
struct Trial {
  bool fits = true;
  double seconds = 0;
  int64_t missingBytes = 0; ///< of device memory
};

struct ChooseOffloadPass
    : zero::impl::ZeroChooseOffloadPassBase<ChooseOffloadPass> {
  using ZeroChooseOffloadPassBase::ZeroChooseOffloadPassBase;

  LogicalResult checkOptions();
  FailureOr<Trial> schedule(ArrayRef<OffloadRule> rules, const CostModel &cost,
                            const SchedulerOptions &options);
  LogicalResult choose(const OffloadChoices &choices, const CostModel &cost,
                       const SchedulerOptions &options);
  LogicalResult run();
  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }
};
} // namespace

LogicalResult ChooseOffloadPass::checkOptions() {
  for (auto [name, bytes] : {std::pair("memory", memory.getValue()),
                             std::pair("host-memory", hostMemory.getValue())})
    if (bytes == 0 || bytes < kUnsetMemory)
      return emitError(getOperation().getLoc())
             << "zero-choose-offload: " << name << " is " << bytes
             << " bytes; expected 1 or more, or -1";
  return success();
}

/// Schedules a copy of the module in which `rules` hold.
FailureOr<Trial> ChooseOffloadPass::schedule(ArrayRef<OffloadRule> rules,
                                             const CostModel &cost,
                                             const SchedulerOptions &options) {
  OwningOpRef<ModuleOp> copy(getOperation().clone());
  if (failed(applyOffload(*copy, rules)))
    return failure();
  SymbolTable symbols(*copy);
  auto microBatches = (*copy)->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  Trial trial;
  for (auto func : copy->getOps<FunctionOpInterface>()) {
    if (func.isExternal() || !func.getFunctionBody().hasOneBlock() ||
        func.getFunctionBody().front().getOps<ReadOp>().empty())
      continue;
    makeSynchronous(func.getFunctionBody().front());
    FailureOr<ReshardedStep> step =
        scheduleResharded(func, symbols, cost, options);
    if (failed(step))
      return failure();
    bool repeated = microBatches && func.getName() == kAccumulateName;
    trial.fits &= step->result.feasible;
    trial.missingBytes =
        std::max(trial.missingBytes, step->result.missingBytes);
    trial.seconds += step->result.simulated.seconds *
                     (repeated ? microBatches.getInt() - 1 : 1);
  }
  return trial;
}

LogicalResult ChooseOffloadPass::choose(const OffloadChoices &choices,
                                        const CostModel &cost,
                                        const SchedulerOptions &options) {
  SchedulerOptions unlimited = options;
  unlimited.memoryBytes = kUnsetMemory;
  FailureOr<Trial> without = schedule({}, cost, unlimited);
  if (failed(without))
    return failure();
  std::optional<OffloadLevel> best;
  double bestSeconds = 0, bestCost = 0;
  int64_t missing = std::numeric_limits<int64_t>::max();
  for (size_t number = 0; number != choices.size(); ++number) {
    std::optional<OffloadLevel> level = choices.level(number, hostMemory, disk);
    if (!level)
      continue;
    FailureOr<Trial> trial = schedule(level->rules, cost, options);
    if (failed(trial))
      return failure();
    missing = std::min(missing, trial->missingBytes);
    // Where all fits, offload has to be worth it; of equals, the least.
    bool nothing = level->deviceBytes == 0;
    double seconds = trial->seconds * (nothing ? 1 : 1 + kLeastOffloadGain);
    if (!trial->fits || (best && std::tie(bestCost, best->deviceBytes) <=
                                     std::tie(seconds, level->deviceBytes)))
      continue;
    best = std::move(level);
    bestSeconds = trial->seconds;
    bestCost = seconds;
    if (nothing && !mayOffloadForSpeed(cost))
      break;
  }
  ModuleOp module = getOperation();
  if (!best)
    return emitError(module.getLoc())
           << "zero-choose-offload: no choice fits: " << missing
           << " bytes more than the budget of " << options.memoryBytes
           << " of device memory are needed"
           << (hostMemory >= 0 && !disk
                   ? " with " + std::to_string(hostMemory) +
                         " bytes of host memory and no disk"
                   : "");
  noteOffload(module, *best,
              explainOffload(choices, *best, bestSeconds, without->seconds));
  remarkOffload(module, module->getAttrOfType<StringAttr>(kOffloadChoiceAttr));
  return applyOffload(module, best->rules);
}

LogicalResult ChooseOffloadPass::run() {
  if (failed(checkOptions()))
    return failure();
  FailureOr<Machine> found = findMachine(getOperation().getLoc(), machine);
  if (failed(found))
    return failure();
  SchedulerOptions options;
  options.memoryBytes = memory;
  if (memory == kUnsetMemory && !machine.empty())
    options.memoryBytes = found->memoryBytes - found->reservedBytes;
  if (options.memoryBytes < 0) // nothing has to go
    return success();
  CostModel cost(std::move(*found));
  FailureOr<OffloadChoices> choices = findOffloadChoices(getOperation(), cost);
  if (failed(choices))
    return failure();
  return choose(*choices, cost, options);
}
