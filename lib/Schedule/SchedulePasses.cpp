//===- SchedulePasses.cpp - zero-schedule and its parts -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each pass asks the scheduler for the decisions that it is about.
//
//===----------------------------------------------------------------------===//

#include "Reshard.h"
#include "ScheduleRemarks.h"

#include "dialects/Zero/Zero.h"
#include "zero/Schedule/OpWork.h"
#include "zero/Schedule/Passes.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZEROPREFETCHPASS
#define GEN_PASS_DEF_ZEROKEEPGATHEREDPASS
#define GEN_PASS_DEF_ZEROREORDERPASS
#define GEN_PASS_DEF_ZEROSCHEDULEPASS
#include "zero/Schedule/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

namespace {
/// Schedules the step functions of a module.
class ModuleScheduler {
public:
  ModuleScheduler(ModuleOp module, StringRef pass)
      : module(module), symbols(module), pass(pass) {}

  LogicalResult run(StringRef machine, SchedulerOptions options);

  int64_t numStarted = 0, numDropped = 0, numMerged = 0;

private:
  LogicalResult checkOptions(const SchedulerOptions &options);
  LogicalResult schedule(FunctionOpInterface func, const CostModel &cost,
                         const SchedulerOptions &options);
  void count(const Schedule &schedule);

  ModuleOp module;
  SymbolTable symbols;
  StringRef pass;
  int64_t peakBytes = 0, hostPeakBytes = 0;
  double seconds = 0;
};

/// How often a step of `module` runs `func`: once for each micro-batch before
/// the last, or once.
int64_t timesPerStep(ModuleOp module, FunctionOpInterface func) {
  auto microBatches = module->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  return microBatches && func.getName() == kAccumulateName
             ? microBatches.getInt() - 1
             : 1;
}
} // namespace

LogicalResult ModuleScheduler::checkOptions(const SchedulerOptions &options) {
  if (options.hostMemoryBytes < kUnsetMemory)
    return emitError(module.getLoc())
           << "expects a budget of host memory of at least 0 bytes, got "
           << options.hostMemoryBytes;
  if (options.memoryBytes == 0 || options.memoryBytes < kUnsetMemory)
    return emitError(module.getLoc())
           << "expects a memory budget of at least 1 byte, got "
           << options.memoryBytes;
  if (options.bucketBytes < 0)
    return emitError(module.getLoc())
           << "expects a bucket size of at least 0, got "
           << options.bucketBytes;
  return success();
}

/// Whether `func` is a step of one rank that moves anything, or a part of one.
static bool isStep(FunctionOpInterface func) {
  if (func.isExternal() || !func.getFunctionBody().hasOneBlock())
    return false;
  if (func.getName() == kAccumulateName)
    return true;
  return llvm::any_of(func.getFunctionBody().front(), [](Operation &op) {
    return isa<AllGatherOp, ReduceScatterOp, AllReduceOp, AllGatherStartOp,
               ReduceScatterStartOp, AllReduceStartOp, TransferOp,
               TransferStartOp, OnHostOp, OnHostStartOp>(op);
  });
}

void ModuleScheduler::count(const Schedule &schedule) {
  numDropped += schedule.dropped.size();
  for (const std::vector<int32_t> &bucket : schedule.buckets)
    numMerged += bucket.size() - 1;
  ArrayRef<ScheduleStep> steps = schedule.steps;
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    numStarted += steps[i].action == ScheduleStep::Start &&
                  steps[i + 1].task != steps[i].task;
}

LogicalResult ModuleScheduler::schedule(FunctionOpInterface func,
                                        const CostModel &cost,
                                        const SchedulerOptions &options) {
  makeSynchronous(func.getFunctionBody().front());
  FailureOr<ReshardedStep> best =
      scheduleResharded(func, symbols, cost, options);
  if (failed(best))
    return failure();
  StepFunction *step = &best->step;
  ScheduleResult &result = best->result;
  auto stage = module->getAttrOfType<IntegerAttr>(kStageAttr);
  if (!result.feasible)
    return emitDoesNotFit(*step, result, options, stage ? stage.getInt() : 0);
  // no test: it guards against mistakes in the scheduler, which has its own.
  if (std::string error = checkSchedule(step->graph, result.schedule);
      !error.empty())
    return func.emitOpError() << "was given a schedule that changes what it "
                                 "computes: "
                              << error;
  emitRemarks(*step, result, options, pass);
  applySchedule(*step, result.schedule);
  count(result.schedule);
  peakBytes = std::max(peakBytes, result.simulated.peakBytes);
  hostPeakBytes = std::max(hostPeakBytes, result.simulated.hostPeakBytes);
  seconds =
      module->hasAttr(kMicroBatchesAttr)
          ? seconds + result.simulated.seconds * timesPerStep(module, func)
          : std::max(seconds, result.simulated.seconds);
  return success();
}

LogicalResult ModuleScheduler::run(StringRef machineName,
                                   SchedulerOptions options) {
  FailureOr<Machine> machine = findMachine(module.getLoc(), machineName);
  if (failed(machine) || failed(checkOptions(options)))
    return failure();
  if (options.memoryBytes == kUnsetMemory && !machineName.empty())
    options.memoryBytes = machine->memoryBytes - machine->reservedBytes;
  if (options.hostMemoryBytes == kUnsetMemory && !machineName.empty() &&
      machine->hostMemoryBytes > 0)
    options.hostMemoryBytes = machine->hostMemoryOfRank();
  CostModel cost(*machine);
  bool any = false;
  for (auto func : module.getOps<FunctionOpInterface>())
    if (isStep(func)) {
      any = true;
      if (failed(schedule(func, cost, options)))
        return failure();
    }
  if (!any)
    return success();
  Builder builder(module.getContext());
  module->setAttr(kPlannedPeakAttr, builder.getI64IntegerAttr(peakBytes));
  if (hostPeakBytes > 0)
    module->setAttr(kPlannedHostPeakAttr,
                    builder.getI64IntegerAttr(hostPeakBytes));
  module->setAttr(kPlannedSecondsAttr, builder.getF64FloatAttr(seconds));
  return success();
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

namespace {
/// No decision allowed.
SchedulerOptions decideNothing(int64_t memory) {
  SchedulerOptions options;
  options.memoryBytes = memory;
  options.prefetch = options.keepGathered = false;
  options.reorder = options.bucket = false;
  return options;
}

template <typename PassTy>
void runScheduler(PassTy &pass, ModuleOp module, StringRef machine,
                  const SchedulerOptions &options) {
  ModuleScheduler scheduler(module, PassTy::getArgumentName());
  if (failed(scheduler.run(machine, options)))
    return pass.fail();
  pass.numStarted += scheduler.numStarted;
  pass.numDropped += scheduler.numDropped;
  pass.numMerged += scheduler.numMerged;
}

struct PrefetchPass : zero::impl::ZeroPrefetchPassBase<PrefetchPass> {
  using ZeroPrefetchPassBase::numDropped, ZeroPrefetchPassBase::numMerged,
      ZeroPrefetchPassBase::numStarted;
  using ZeroPrefetchPassBase::ZeroPrefetchPassBase;
  void fail() { signalPassFailure(); }
  void runOnOperation() override {
    SchedulerOptions options = decideNothing(memory);
    options.prefetch = true;
    runScheduler(*this, getOperation(), machine, options);
  }
};

struct KeepGatheredPass
    : zero::impl::ZeroKeepGatheredPassBase<KeepGatheredPass> {
  using ZeroKeepGatheredPassBase::numDropped,
      ZeroKeepGatheredPassBase::numMerged, ZeroKeepGatheredPassBase::numStarted;
  using ZeroKeepGatheredPassBase::ZeroKeepGatheredPassBase;
  void fail() { signalPassFailure(); }
  void runOnOperation() override {
    SchedulerOptions options = decideNothing(memory);
    options.keepGathered = true;
    runScheduler(*this, getOperation(), machine, options);
  }
};

struct ReorderPass : zero::impl::ZeroReorderPassBase<ReorderPass> {
  using ZeroReorderPassBase::numDropped, ZeroReorderPassBase::numMerged,
      ZeroReorderPassBase::numStarted;
  using ZeroReorderPassBase::ZeroReorderPassBase;
  void fail() { signalPassFailure(); }
  void runOnOperation() override {
    SchedulerOptions options = decideNothing(kUnsetMemory);
    options.reorder = true;
    runScheduler(*this, getOperation(), machine, options);
  }
};

struct SchedulePass : zero::impl::ZeroSchedulePassBase<SchedulePass> {
  using ZeroSchedulePassBase::numDropped, ZeroSchedulePassBase::numMerged,
      ZeroSchedulePassBase::numStarted;
  using ZeroSchedulePassBase::ZeroSchedulePassBase;
  void fail() { signalPassFailure(); }
  void runOnOperation() override {
    SchedulerOptions options;
    options.memoryBytes = memory;
    options.hostMemoryBytes = hostMemory;
    options.prefetch = prefetch;
    options.keepGathered = keepGathered;
    options.reorder = reorder;
    options.bucket = bucket;
    options.bucketBytes = bucketBytes;
    runScheduler(*this, getOperation(), machine, options);
  }
};
} // namespace
