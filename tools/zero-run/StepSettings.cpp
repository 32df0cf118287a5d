//===- StepSettings.cpp - Flags as settings of the step -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills the options of the compiler.
//
//===----------------------------------------------------------------------===//

#include "StepSettings.h"

#include "ConfigFile.h"

#include "zero/Config/StepOptions.h"
#include "zero/Cost/Machine.h"

#include <cmath>
#include <stdexcept>

using namespace zero_tools;
using mlir::train::ParameterGroup;
using mlir::train::TrainStepOptions;

namespace {
/// The learning rate that those of groups are multiples of.
struct Base {
  std::string name;
  double rate;
};
} // namespace

static Base baseOf(const RunOptions &options, const TrainStepOptions &step) {
  if (!step.schedule)
    return {"--lr", options.learningRate};
  mlir::zero::ScheduleSetting schedule{step.schedule->kind,
                                       step.schedule->numbers};
  // Without a rate the schedule is refused when the step is made.
  return {mlir::zero::baseRateName(schedule.kind).str() + " of the schedule " +
              schedule.kind,
          mlir::zero::baseRate(schedule).value_or(options.learningRate)};
}

/// What a group's rate is when the others' is `base`.
static double factorOf(const GroupFlag &flag, const Base &base) {
  double rate = *flag.learningRate;
  if (rate == base.rate)
    return 1;
  double factor = rate / base.rate;
  if (base.rate == 0 || !std::isfinite(float(factor)))
    throw std::runtime_error("--group '" + flag.pattern + "': its rate " +
                             mlir::zero::showNumber(rate) +
                             " cannot be a multiple of " + base.name +
                             ", which is " + mlir::zero::showNumber(base.rate));
  return factor;
}

/// The groups of --group in their order, then that of --no-decay.
static std::vector<ParameterGroup> groupsOf(const RunOptions &options,
                                            const Base &base) {
  std::vector<ParameterGroup> groups;
  for (const GroupFlag &flag : options.groups) {
    ParameterGroup &group = groups.emplace_back();
    group.patterns = {flag.pattern};
    group.weightDecay = flag.weightDecay;
    if (flag.learningRate)
      group.learningRateFactor = factorOf(flag, base);
  }
  if (!options.noDecay.empty()) {
    ParameterGroup &group = groups.emplace_back();
    group.patterns = options.noDecay;
    group.weightDecay = 0;
  }
  return groups;
}

TrainStepOptions zero_tools::trainStepOptions(const RunOptions &options) {
  TrainStepOptions step;
  step.loss = options.loss;
  mlir::zero::setStepOptions(settingsOf(options), step);
  step.groups = groupsOf(options, baseOf(options, step));
  return step;
}

TrainStepOptions
zero_tools::trainStepOptions(const RunOptions &options,
                             const mlir::zero::FoundTraining &found) {
  TrainStepOptions step = trainStepOptions(options);
  if (!found.optimizer || !options.optimizer.empty())
    return step;
  const mlir::zero::FoundOptimizer &optimizer = *found.optimizer;
  step.optimizer = optimizer.name;
  if (!options.betas) {
    step.beta1 = optimizer.beta1;
    step.beta2 = optimizer.beta2;
  }
  if (!options.epsilon)
    step.epsilon = optimizer.epsilon;
  if (!options.weightDecay)
    step.weightDecay = optimizer.weightDecay;
  step.noBiasCorrection = !optimizer.biasCorrection;
  return step;
}

/// A number of bytes that a flag says; nothing where it was not given.
static std::optional<int64_t> sizeOf(const char *flag,
                                     const std::string &text) {
  if (text.empty())
    return std::nullopt;
  std::optional<int64_t> bytes = mlir::zero::parseByteSize(text);
  if (!bytes)
    throw std::runtime_error(std::string(flag) + " '" + text +
                             "': expected a size like 24GiB or 1048576");
  return bytes;
}

std::optional<int64_t> zero_tools::budgetOf(const RunOptions &options) {
  return sizeOf("--memory", options.memory);
}

std::optional<int64_t> zero_tools::hostBudgetOf(const RunOptions &options) {
  return sizeOf("--host-memory", options.hostMemory);
}

CompileOptions zero_tools::compileOptions(const RunOptions &options) {
  CompileOptions compile;
  compile.stage = options.stage;
  compile.ranks = options.ranks;
  compile.grid = options.grid;
  compile.shardAll = options.shardAll;
  compile.memoryBytes = budgetOf(options);
  compile.machine = options.machine;
  compile.remat = options.remat;
  compile.offload = options.offload;
  compile.hostMemoryBytes = hostBudgetOf(options);
  compile.offloadToDisk = !options.offloadPath.empty();
  compile.microBatches = options.accumulate;
  if (!options.schedule.empty())
    compile.schedule = options.schedule;
  compile.forward = options.forward && options.kind != ModelKind::Plan;
  if (!options.loss.empty())
    compile.trainStep = trainStepOptions(options);
  return compile;
}
