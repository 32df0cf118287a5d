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

#include "zero/Cost/Machine.h"

#include <cmath>
#include <stdexcept>
#include <tuple>

using namespace zero_tools;
using mlir::train::FloatKind;
using mlir::train::LearningRateSchedule;
using mlir::train::LossScaling;
using mlir::train::ParameterGroup;
using mlir::train::TrainStepOptions;

static FloatKind floatKind(const std::string &name) {
  return name == "bf16"   ? FloatKind::BF16
         : name == "fp16" ? FloatKind::F16
                          : FloatKind::F32;
}

static LossScaling lossScaling(const LossScaleFlags &flags) {
  LossScaling scaling;
  if (flags.scale.value_or(0) > 0)
    scaling.fixed = flags.scale;
  if (flags.initialPower)
    scaling.initialScale = std::ldexp(1.0, int(*flags.initialPower));
  scaling.window = flags.window.value_or(scaling.window);
  scaling.hysteresis = flags.hysteresis.value_or(scaling.hysteresis);
  scaling.minScale = flags.min.value_or(scaling.minScale);
  scaling.consecutiveHysteresis = flags.consecutiveHysteresis;
  return scaling;
}

static std::optional<LearningRateSchedule>
scheduleOf(const std::optional<ScheduleFlag> &flag,
           std::optional<double> learningRate) {
  if (!flag)
    return std::nullopt;
  LearningRateSchedule schedule{flag->kind, flag->numbers};
  if (learningRate)
    schedule.numbers.emplace("lr", *learningRate);
  return schedule;
}

/// The groups of --group in their order, then that of --no-decay.
static std::vector<ParameterGroup> groupsOf(const RunOptions &options) {
  std::vector<ParameterGroup> groups;
  for (const GroupFlag &flag : options.groups) {
    ParameterGroup &group = groups.emplace_back();
    group.patterns = {flag.pattern};
    group.weightDecay = flag.weightDecay;
    if (flag.learningRate && options.learningRate == 0)
      throw std::runtime_error("--group '" + flag.pattern +
                               "': its rate is a multiple of --lr, which is 0");
    if (flag.learningRate)
      group.learningRateFactor = *flag.learningRate / options.learningRate;
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
  if (!options.optimizer.empty())
    step.optimizer = options.optimizer;
  step.momentum = options.momentum.value_or(step.momentum);
  step.dampening = options.dampening;
  step.weightDecay = options.weightDecay;
  step.epsilon = options.epsilon.value_or(step.epsilon);
  step.nesterov = options.nesterov;
  step.noBiasCorrection = !options.biasCorrection;
  if (options.betas)
    std::tie(step.beta1, step.beta2) = *options.betas;
  step.precision = floatKind(options.precision);
  if (!options.reduceType.empty())
    step.reduceType = floatKind(options.reduceType);
  if (step.precision == FloatKind::F16)
    step.lossScaling = lossScaling(options.lossScale);
  step.skipNonFinite = options.skipNonFinite;
  step.microBatches = options.accumulate.value_or(1);
  if (options.clipNorm.value_or(0) > 0)
    step.clipNorm = options.clipNorm;
  if (options.clipValue.value_or(0) > 0)
    step.clipValue = options.clipValue;
  step.groups = groupsOf(options);
  step.schedule = scheduleOf(options.lrSchedule, options.learningRate);
  step.momentumSchedule = scheduleOf(options.momentumSchedule, std::nullopt);
  return step;
}

std::optional<int64_t> zero_tools::budgetOf(const RunOptions &options) {
  if (options.memory.empty())
    return std::nullopt;
  std::optional<int64_t> bytes = mlir::zero::parseByteSize(options.memory);
  if (!bytes)
    throw std::runtime_error("--memory '" + options.memory +
                             "': expected a size like 24GiB or 1048576");
  return bytes;
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
  compile.microBatches = options.accumulate;
  if (!options.schedule.empty())
    compile.schedule = options.schedule;
  if (!options.loss.empty())
    compile.trainStep = trainStepOptions(options);
  return compile;
}
