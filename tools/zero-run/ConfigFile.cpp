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

#include "Flags.h"

#include "zero/Config/StepOptions.h"

#include "llvm/Support/raw_ostream.h"

#include <stdexcept>

using namespace zero_tools;
using mlir::zero::ConfigQuestion;
using mlir::zero::ConfigResult;
using mlir::zero::kDefaultLearningRate;
using mlir::zero::RunSettings;
using mlir::zero::ScheduleSetting;

static std::optional<std::string> unlessEmpty(const std::string &text) {
  if (text.empty())
    return std::nullopt;
  return text;
}

template <typename T>
static std::optional<T> unless(const T &value, const T &unsaid) {
  if (value == unsaid)
    return std::nullopt;
  return value;
}

static std::optional<ScheduleSetting>
settingOf(const std::optional<ScheduleFlag> &flag) {
  if (!flag)
    return std::nullopt;
  return ScheduleSetting{flag->kind, flag->numbers};
}

void zero_tools::resolveRates(RunOptions &options) {
  if (!options.lrSchedule)
    return;
  auto &[kind, numbers] = *options.lrSchedule;
  std::string base = mlir::zero::baseRateName(kind).str();
  if (numbers.count("lr") && !options.given.count("--lr")) {
    options.learningRate = numbers["lr"];
    options.given.insert("--lr");
  }
  if (!options.given.count("--lr"))
    return;
  for (const std::string &name : {std::string("lr"), base}) {
    auto own = numbers.find(name);
    if (own != numbers.end() && own->second != options.learningRate)
      throw FlagError(
          "--lr " + mlir::zero::showNumber(options.learningRate) + " and " +
          name + "=" + mlir::zero::showNumber(own->second) +
          " of --lr-schedule " + kind + " are two learning rates; give one");
  }
  if (kind != "OneCycle") // whose two rates go together
    numbers[base] = options.learningRate;
}

/// What is computed.
static void setStep(const RunOptions &options, RunSettings &settings) {
  settings.optimizer = unlessEmpty(options.optimizer);
  if (options.betas) {
    settings.beta1 = options.betas->first;
    settings.beta2 = options.betas->second;
  }
  settings.epsilon = options.epsilon;
  settings.weightDecay = options.weightDecay;
  settings.momentum = options.momentum;
  settings.dampening = unless(options.dampening, 0.0);
  settings.nesterov = unless(options.nesterov, false);
  settings.biasCorrection = unless(options.biasCorrection, true);
  settings.precision = unlessEmpty(options.precision);
  settings.reduceType = unlessEmpty(options.reduceType);
  settings.skipNonFinite = unless(options.skipNonFinite, false);
  settings.lossScale = options.lossScale.scale;
  settings.lossScaleMin = options.lossScale.min;
  settings.lossScaleWindow = options.lossScale.window;
  settings.lossScaleHysteresis = options.lossScale.hysteresis;
  settings.initialScalePower = options.lossScale.initialPower;
  settings.consecutiveHysteresis =
      unless(options.lossScale.consecutiveHysteresis, false);
  settings.clipNorm = options.clipNorm;
  settings.clipValue = options.clipValue;
  settings.lrSchedule = settingOf(options.lrSchedule);
  settings.momentumSchedule = settingOf(options.momentumSchedule);
}

RunSettings zero_tools::settingsOf(const RunOptions &options) {
  RunSettings settings;
  setStep(options, settings);
  settings.ranks = options.ranks;
  settings.stage = options.stage;
  settings.batch = options.batch;
  settings.accumulate = options.accumulate;
  settings.steps = options.steps;
  settings.grid = options.grid;
  settings.shardAll = unless(options.shardAll, false);
  settings.schedule = unlessEmpty(options.schedule);
  settings.offload = options.offload;
  settings.offloadPath = unlessEmpty(options.offloadPath);
  settings.learningRate = unless(options.learningRate, kDefaultLearningRate);
  if (options.given.count("--lr"))
    settings.learningRate = options.learningRate;
  if (options.given.count("--log-every"))
    settings.logEvery = options.logEvery;
  settings.logs = options.logs;
  settings.logDir = unlessEmpty(options.logDir);
  if (options.given.count("--metric-names"))
    settings.metricNames = options.metricNames;
  return settings;
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
  options.offloadPath = settings.offloadPath.value_or("");
  if (options.kind == ModelKind::Plan)
    return; // has these decided
  options.schedule = settings.schedule.value_or("");
  options.offload = settings.offload;
}

static ConfigResult readConfig(const RunOptions &options) {
  ConfigQuestion question;
  question.flags = settingsOf(options);
  question.anyRanks = options.model.empty();
  llvm::Expected<ConfigResult> result =
      mlir::zero::readDeepSpeedConfigFile(options.config, question);
  if (!result)
    throw std::runtime_error(llvm::toString(result.takeError()));
  return std::move(*result);
}

static bool madeAlready(const RunOptions &options) {
  return !options.model.empty() &&
         (options.kind == ModelKind::Plan || options.loss.empty());
}

static void apply(const RunSettings &settings, RunOptions &options) {
  applyRun(settings, options);
  if (!madeAlready(options))
    applyStep(settings, options);
  checkRunOptions(options);
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
  if (madeAlready(options))
    note(options.config + ": what a step computes is decided in " +
         options.model +
         ": optimizer, schedule, precision and clipping of "
         "the config have no effect");
  if (options.kind == ModelKind::Plan && !options.model.empty() &&
      !result.settings.offload.empty())
    note(options.config + ": where state lies is decided in " + options.model +
         ": offload of the config has no effect");
  apply(result.settings, options);
}

bool zero_tools::explainConfig(const RunOptions &options) {
  if (options.config.empty()) {
    mlir::zero::printKeyTable(llvm::outs());
    return true;
  }
  ConfigResult result = readConfig(options);
  mlir::zero::printConfigResult(llvm::outs(), result, options.config);
  if (!result.refusals().empty())
    return false;
  RunOptions run = options;
  apply(result.settings, run);
  return true;
}
