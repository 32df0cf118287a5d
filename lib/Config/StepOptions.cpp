//===- StepOptions.cpp - Settings of a run as options of its step ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills the options of the training step.
//
//===----------------------------------------------------------------------===//

#include "zero/Config/StepOptions.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero;
using train::FloatKind;

static FloatKind floatKind(llvm::StringRef name) {
  return name == "bf16"   ? FloatKind::BF16
         : name == "fp16" ? FloatKind::F16
                          : FloatKind::F32;
}

/// Sets `to` where the setting is said.
template <typename T, typename U>
static void set(U &to, const std::optional<T> &setting) {
  if (setting)
    to = *setting;
}

static train::LossScaling lossScaling(const RunSettings &settings) {
  train::LossScaling scaling;
  if (settings.lossScale.value_or(0) > 0)
    scaling.fixed = settings.lossScale;
  if (settings.initialScalePower)
    scaling.initialScale = std::ldexp(1.0, int(*settings.initialScalePower));
  set(scaling.window, settings.lossScaleWindow);
  set(scaling.hysteresis, settings.lossScaleHysteresis);
  set(scaling.minScale, settings.lossScaleMin);
  set(scaling.consecutiveHysteresis, settings.consecutiveHysteresis);
  return scaling;
}

static void setSchedules(const RunSettings &settings,
                         train::TrainStepOptions &options) {
  if (const auto &setting = settings.lrSchedule) {
    train::LearningRateSchedule schedule{setting->kind, setting->numbers};
    schedule.numbers.emplace(
        "lr", settings.learningRate.value_or(kDefaultLearningRate));
    options.schedule = std::move(schedule);
  }
  if (const auto &setting = settings.momentumSchedule)
    options.momentumSchedule =
        train::LearningRateSchedule{setting->kind, setting->numbers};
}

void mlir::zero::setStepOptions(const RunSettings &settings,
                                train::TrainStepOptions &options) {
  set(options.optimizer, settings.optimizer);
  set(options.momentum, settings.momentum);
  set(options.dampening, settings.dampening);
  set(options.weightDecay, settings.weightDecay);
  set(options.beta1, settings.beta1);
  set(options.beta2, settings.beta2);
  set(options.epsilon, settings.epsilon);
  set(options.nesterov, settings.nesterov);
  if (settings.biasCorrection)
    options.noBiasCorrection = !*settings.biasCorrection;
  if (settings.precision)
    options.precision = floatKind(*settings.precision);
  if (settings.reduceType)
    options.reduceType = floatKind(*settings.reduceType);
  if (options.precision == FloatKind::F16)
    options.lossScaling = lossScaling(settings);
  set(options.skipNonFinite, settings.skipNonFinite);
  set(options.microBatches, settings.accumulate);
  if (settings.clipNorm.value_or(0) > 0)
    options.clipNorm = settings.clipNorm;
  if (settings.clipValue.value_or(0) > 0)
    options.clipValue = settings.clipValue;
  setSchedules(settings, options);
}
