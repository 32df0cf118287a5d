//===- OffloadModule.cpp - Offload choices of a module --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a partitioned module to what can be offloaded and what that costs, and
// from a choice to words.
//
//===----------------------------------------------------------------------===//

#include "ScheduleRemarks.h"
#include "zero/Schedule/OffloadChoice.h"
#include "zero/Schedule/StepFunction.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::zero;

/// What `candidate` adds to the channels in host memory, or on disk.
static OffloadLoad loadOf(const OffloadCandidate &candidate, bool disk,
                          const CostModel &cost) {
  auto copy = [&](TaskKind kind, int64_t bytes) {
    // Latencies are paid by buckets, whatever is in them.
    return bytes ? cost.copy(kind, bytes) - cost.copyLatency(kind) : 0;
  };
  OffloadLoad load;
  load.toHost = copy(TaskKind::CopyOut, candidate.toHostBytes);
  load.toDevice = copy(TaskKind::CopyIn, candidate.toDeviceBytes);
  int64_t read = candidate.toDeviceBytes, written = candidate.toHostBytes;
  if (candidate.kind == OffloadKind::Optimizer) {
    read = written = candidate.bytes;
    OpWork update; // states are read and written, the rest comes and goes
    update.bytes =
        2.0 * candidate.bytes + candidate.toHostBytes + candidate.toDeviceBytes;
    load.host = cost.hostCompute(update);
    load.compute = -cost.compute(update) + cost.getMachine().kernelLatency;
  }
  if (disk) {
    load.diskRead = copy(TaskKind::DiskRead, read);
    load.diskWrite = copy(TaskKind::DiskWrite, written);
  }
  return load;
}

static std::vector<OffloadGroup>
groupCandidates(ArrayRef<OffloadCandidate> candidates, const CostModel &cost) {
  std::vector<OffloadGroup> groups;
  for (const OffloadCandidate &candidate : candidates) {
    if (candidate.bytes == 0)
      continue;
    auto group = llvm::find_if(groups, [&](const OffloadGroup &g) {
      return g.kind == candidate.kind && g.unit == candidate.unit &&
             !candidate.unit.empty();
    });
    if (group == groups.end()) {
      groups.push_back({candidate.kind, candidate.unit, {}, 0, {}, {}});
      group = std::prev(groups.end());
    }
    group->names.push_back(candidate.name);
    group->bytes += candidate.bytes;
    group->host = group->host + loadOf(candidate, /*disk=*/false, cost);
    group->disk = group->disk + loadOf(candidate, /*disk=*/true, cost);
  }
  return groups;
}

/// Seconds that a step of `module` computes on the device.
static FailureOr<double> computeSeconds(ModuleOp module,
                                        const CostModel &cost) {
  SymbolTable symbols(module);
  auto microBatches = module->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  double seconds = 0;
  for (auto func : module.getOps<FunctionOpInterface>()) {
    if (func.isExternal() || !func.getFunctionBody().hasOneBlock() ||
        func.getFunctionBody().front().getOps<ReadOp>().empty())
      continue;
    FailureOr<StepFunction> step = buildStepGraph(func, symbols, cost);
    if (failed(step))
      return failure();
    bool repeated = microBatches && func.getName() == kAccumulateName;
    double runs = repeated ? microBatches.getInt() - 1 : 1;
    for (const StepTask &task : step->graph.tasks)
      if (task.kind == TaskKind::Compute)
        seconds += runs * task.seconds;
  }
  return seconds;
}

/// What states of parameters are called: "m, v, master".
static std::string nameStates(ModuleOp module) {
  SetVector<StringRef> names;
  for (auto state : module.getOps<StateOp>()) {
    if (!state.getParam() || state.getAccumulator())
      continue;
    StringRef name = state.getSymName();
    name.consume_front(*state.getParam());
    name.consume_front(".");
    names.insert(name == "exp_avg" ? "m" : name == "exp_avg_sq" ? "v" : name);
  }
  return names.empty() ? "optimizer state" : llvm::join(names, ", ");
}

FailureOr<OffloadChoices>
mlir::zero::findOffloadChoices(ModuleOp module, const CostModel &cost) {
  FailureOr<std::vector<OffloadCandidate>> candidates =
      findOffloadCandidates(module);
  if (failed(candidates))
    return failure();
  FailureOr<double> compute = computeSeconds(module, cost);
  if (failed(compute))
    return failure();
  return OffloadChoices(groupCandidates(*candidates, cost), *compute,
                        nameStates(module));
}

std::string mlir::zero::explainOffload(const OffloadChoices &choices,
                                       const OffloadLevel &level,
                                       double seconds, double secondsWithout) {
  if (level.rules.empty())
    return "offloading nothing: the fastest plan that fits keeps all in device "
           "memory";
  double percent =
      secondsWithout > 0 ? 100 * (seconds / secondsWithout - 1) : 0;
  std::string cost = percent < 0.05 ? "nothing"
                     : percent < 10
                         ? llvm::formatv("{0:f1} % of the step", percent).str()
                         : llvm::formatv("{0:f0} % of the step", percent).str();
  return "offloading " + choices.describe(level) + " saves " +
         describeBytes(level.deviceBytes) + ", costs " + cost;
}

void mlir::zero::noteOffload(ModuleOp module, const OffloadLevel &level,
                             StringRef sentence) {
  Builder builder(module.getContext());
  SmallVector<Attribute> rules;
  for (const OffloadRule &rule : level.rules)
    rules.push_back(builder.getStringAttr(printOffloadRule(rule)));
  module->setAttr(kOffloadRulesAttr, builder.getArrayAttr(rules));
  module->setAttr(kOffloadChoiceAttr, builder.getStringAttr(sentence));
}

void mlir::zero::remarkOffload(ModuleOp module, StringRef sentence) {
  remark::passed(
      module.getLoc(),
      remark::RemarkOpts::name("offloaded").category("zero-choose-offload"))
      << sentence;
}
