//===- ConfigFile.cpp - zero-run --config ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Flags to settings, for a config to complete, and back.
//
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"

#include "zero/Config/DeepSpeed.h"

#include "llvm/Support/raw_ostream.h"

#include <stdexcept>

using namespace zero_tools;
using mlir::zero::ConfigQuestion;
using mlir::zero::ConfigResult;
using mlir::zero::RunSettings;
using mlir::zero::ScheduleSetting;

static std::optional<std::string> unlessEmpty(const std::string &text) {
  if (text.empty())
    return std::nullopt;
  return text;
}

/// What the command line says.
static RunSettings settingsOf(const RunOptions &options) {
  auto given = [&](const char *flag) { return options.given.count(flag) > 0; };
  RunSettings flags;
  flags.ranks = options.ranks;
  flags.stage = options.stage;
  flags.batch = options.batch;
  flags.accumulate = options.accumulate;
  flags.steps = options.steps;
  flags.grid = options.grid;
  if (given("--zero-shard"))
    flags.shardAll = options.shardAll;
  flags.schedule = unlessEmpty(options.schedule);
  flags.optimizer = unlessEmpty(options.optimizer);
  if (given("--lr"))
    flags.learningRate = options.learningRate;
  if (options.betas) {
    flags.beta1 = options.betas->first;
    flags.beta2 = options.betas->second;
  }
  flags.epsilon = options.epsilon;
  flags.weightDecay = options.weightDecay;
  flags.momentum = options.momentum;
  if (options.nesterov)
    flags.nesterov = true;
  flags.precision = unlessEmpty(options.precision);
  flags.reduceType = unlessEmpty(options.reduceType);
  flags.lossScale = options.lossScale.scale;
  flags.lossScaleMin = options.lossScale.min;
  flags.lossScaleWindow = options.lossScale.window;
  flags.lossScaleHysteresis = options.lossScale.hysteresis;
  flags.initialScalePower = options.lossScale.initialPower;
  flags.clipNorm = options.clipNorm;
  if (options.lrSchedule)
    flags.lrSchedule =
        ScheduleSetting{options.lrSchedule->kind, options.lrSchedule->numbers};
  if (given("--log-every"))
    flags.logEvery = options.logEvery;
  flags.logs = options.logs;
  flags.logDir = unlessEmpty(options.logDir);
  if (given("--metric-names"))
    flags.metricNames = options.metricNames;
  return flags;
}

/// What the step is for: nothing of it can change once it is made.
static void applyStep(const RunSettings &settings, RunOptions &options) {
  options.optimizer = settings.optimizer.value_or("");
  if (settings.beta1)
    options.betas = std::make_pair(*settings.beta1, *settings.beta2);
  options.epsilon = settings.epsilon;
  options.weightDecay = settings.weightDecay;
  options.momentum = settings.momentum;
  options.dampening = settings.dampening.value_or(0);
  options.nesterov = settings.nesterov.value_or(false);
  options.biasCorrection = settings.biasCorrection.value_or(true);
  options.precision = settings.precision.value_or("");
  options.reduceType = settings.reduceType.value_or("");
  options.skipNonFinite = settings.skipNonFinite.value_or(false);
  options.lossScale = {settings.lossScale,
                       settings.lossScaleMin,
                       settings.lossScaleWindow,
                       settings.lossScaleHysteresis,
                       settings.initialScalePower,
                       settings.consecutiveHysteresis.value_or(false)};
  options.clipNorm = settings.clipNorm;
  auto schedule = [](const std::optional<ScheduleSetting> &setting) {
    std::optional<ScheduleFlag> flag;
    if (setting)
      flag = ScheduleFlag{setting->kind, setting->numbers};
    return flag;
  };
  options.lrSchedule = schedule(settings.lrSchedule);
  options.momentumSchedule = schedule(settings.momentumSchedule);
}

static void applyRun(const RunSettings &settings, RunOptions &options) {
  options.ranks = settings.ranks;
  options.stage = settings.stage;
  options.batch = settings.batch;
  options.accumulate = settings.accumulate;
  options.grid = settings.grid;
  options.shardAll = settings.shardAll.value_or(false);
  options.learningRate = settings.learningRate.value_or(options.learningRate);
  options.logEvery = settings.logEvery.value_or(options.logEvery);
  options.logs = settings.logs;
  options.logDir = settings.logDir.value_or("");
  options.metricNames = settings.metricNames.value_or(options.metricNames);
  if (options.kind != ModelKind::Plan)
    options.schedule = settings.schedule.value_or("");
}

static ConfigResult readConfig(const RunOptions &options) {
  ConfigQuestion question;
  question.flags = settingsOf(options);
  question.complete = !options.model.empty();
  llvm::Expected<ConfigResult> result =
      mlir::zero::readDeepSpeedConfigFile(options.config, question);
  if (!result)
    throw std::runtime_error(llvm::toString(result.takeError()));
  return std::move(*result);
}

void zero_tools::applyConfig(
    RunOptions &options, const std::function<void(const std::string &)> &note) {
  ConfigResult result = readConfig(options);
  std::vector<std::string> refused = result.refusals();
  if (!refused.empty())
    throw std::runtime_error(
        options.config + ": " + refused.front() +
        (refused.size() == 1 ? std::string()
                             : " (and " + std::to_string(refused.size() - 1) +
                                   " more; see --explain-config)"));
  for (const std::string &line : result.notes)
    note(options.config + ": " + line);
  applyRun(result.settings, options);
  if (options.kind != ModelKind::Plan && !options.loss.empty())
    applyStep(result.settings, options);
  else
    note(options.config + ": what a step computes is decided in " +
         options.model +
         ": optimizer, schedule, precision and clipping of "
         "the config have no effect");
  checkRunOptions(options);
}

bool zero_tools::explainConfig(const RunOptions &options) {
  ConfigResult result = readConfig(options);
  mlir::zero::printConfigResult(llvm::outs(), result, options.config);
  return result.refusals().empty();
}
