//===- StepOptionsTest.cpp - Tests of settings as options of the step -----===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a config's text to what the passes get.
//
//===----------------------------------------------------------------------===//

#include "zero/Config/StepOptions.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::zero;
using train::FloatKind;

namespace {

train::TrainStepOptions optionsOf(std::string text) {
  for (char &c : text)
    c = c == '\'' ? '"' : c;
  llvm::Expected<ConfigResult> result = readDeepSpeedConfig(text, {});
  train::TrainStepOptions options;
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return options;
  }
  EXPECT_TRUE(result->refusals().empty()) << text;
  setStepOptions(result->settings, options);
  return options;
}

TEST(StepOptions, Unsaid) {
  train::TrainStepOptions options;
  setStepOptions({}, options);
  EXPECT_EQ(options.optimizer, "adamw");
  EXPECT_EQ(options.precision, FloatKind::F32);
  EXPECT_FALSE(options.lossScaling || options.clipNorm || options.clipValue ||
               options.schedule || options.momentumSchedule ||
               options.weightDecay || options.reduceType);
  EXPECT_EQ(options.microBatches, 1);
}

TEST(StepOptions, Fp16) {
  train::TrainStepOptions options =
      optionsOf("{'fp16': {'enabled': true, 'initial_scale_power': 10, "
                "'loss_scale_window': 7, 'hysteresis': 3, 'min_loss_scale': 2, "
                "'consecutive_hysteresis': true}}");
  EXPECT_EQ(options.precision, FloatKind::F16);
  EXPECT_EQ(options.reduceType, FloatKind::F16);
  ASSERT_TRUE(options.lossScaling);
  EXPECT_FALSE(options.lossScaling->fixed);
  EXPECT_EQ(options.lossScaling->initialScale, 1024);
  EXPECT_EQ(options.lossScaling->window, 7);
  EXPECT_EQ(options.lossScaling->hysteresis, 3);
  EXPECT_EQ(options.lossScaling->minScale, 2);
  EXPECT_TRUE(options.lossScaling->consecutiveHysteresis);
  options = optionsOf("{'fp16': {'enabled': true, 'loss_scale': 128}}");
  EXPECT_EQ(options.lossScaling->fixed, 128);
}

TEST(StepOptions, Bf16) {
  train::TrainStepOptions options = optionsOf(
      "{'bf16': {'enabled': true}, 'communication_data_type': 'fp32', "
      "'gradient_clipping': 0, 'train_micro_batch_size_per_gpu': 1, "
      "'gradient_accumulation_steps': 4}");
  EXPECT_EQ(options.precision, FloatKind::BF16);
  EXPECT_EQ(options.reduceType, FloatKind::F32);
  EXPECT_FALSE(options.lossScaling);
  EXPECT_TRUE(options.skipNonFinite);
  EXPECT_FALSE(options.clipNorm);
  EXPECT_EQ(options.microBatches, 4);
}

TEST(StepOptions, OptimizerAndSchedules) {
  train::TrainStepOptions options =
      optionsOf("{'optimizer': {'type': 'Adam', 'params': {'lr': 0.1, 'betas': "
                "[0.8, 0.9], 'eps': 1e-6, 'weight_decay': 0.3, 'adam_w_mode': "
                "false, 'bias_correction': false}}, 'scheduler': {'type': "
                "'OneCycle', 'params': {'cycle_min_lr': 0.1, 'cycle_max_lr': "
                "1}}}");
  EXPECT_EQ(options.optimizer, "adam");
  EXPECT_EQ(options.beta1, 0.8);
  EXPECT_EQ(options.beta2, 0.99); // of the cycle
  EXPECT_EQ(options.epsilon, 1e-6);
  EXPECT_EQ(options.weightDecay, 0.3);
  EXPECT_TRUE(options.noBiasCorrection);
  EXPECT_EQ(options.clipNorm, 1.0);
  ASSERT_TRUE(options.schedule && options.momentumSchedule);
  EXPECT_EQ(options.schedule->kind, "OneCycle");
  EXPECT_EQ(options.schedule->numbers.at("lr"), 0.1);
  EXPECT_EQ(options.momentumSchedule->kind, "OneCycleMomentum");
  options = optionsOf("{'optimizer': {'type': 'SGD', 'params': {'momentum': "
                      "0.9, 'dampening': 0.2, 'nesterov': true}}}");
  EXPECT_EQ(options.optimizer, "sgd");
  EXPECT_EQ(options.momentum, 0.9);
  EXPECT_EQ(options.dampening, 0.2);
  EXPECT_TRUE(options.nesterov);
  RunSettings settings;
  settings.clipValue = 0.5;
  setStepOptions(settings, options);
  EXPECT_EQ(options.clipValue, 0.5);
}

} // namespace
