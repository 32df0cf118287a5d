//===- TrainingKeysTest.cpp - Tests of keys of the training step ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Precision, optimizer and schedule, one rule a test.
//
//===----------------------------------------------------------------------===//

#include "Questions.h"

using namespace config_tests;

namespace {

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

TEST(Precision, Bf16) {
  RunSettings settings = read("{'bf16': {'enabled': true}}").settings;
  EXPECT_EQ(settings.precision, "bf16");
  EXPECT_EQ(settings.reduceType, "bf16");
  EXPECT_EQ(settings.skipNonFinite, true);
  settings = read("{'bf16': {'enabled': true, 'check_grad_overflow': false}, "
                  "'communication_data_type': 'FP32'}")
                 .settings;
  EXPECT_EQ(settings.reduceType, "f32");
  EXPECT_EQ(settings.skipNonFinite, false);
  settings =
      read("{'bf16': {'enabled': true}, 'fp32_allreduce': true}").settings;
  EXPECT_EQ(settings.reduceType, "f32");
}

TEST(Precision, AutoIsTheFlag) {
  ConfigQuestion question;
  std::string text = "{'bf16': {'enabled': 'auto'}, 'fp16': {'enabled': "
                     "'auto', 'hysteresis': 4}}";
  EXPECT_FALSE(read(text, question).settings.precision);
  question.flags.precision = "fp16";
  RunSettings settings = read(text, question).settings;
  EXPECT_EQ(settings.precision, "fp16");
  EXPECT_EQ(settings.lossScaleHysteresis, 4);
  question.flags.precision = "f32";
  ConfigResult result = read("{'bf16': {'enabled': true}}", question);
  EXPECT_EQ(result.settings.precision, "f32");
  EXPECT_FALSE(result.settings.reduceType);
  EXPECT_TRUE(hasNote(result, "bf16.enabled: --precision f32 goes before it"));
}

TEST(Precision, LossScale) {
  RunSettings settings =
      read("{'fp16': {'enabled': true, 'loss_scale': 0, 'loss_scale_window': "
           "500, 'initial_scale_power': 12, 'hysteresis': 3, 'min_loss_scale': "
           "4, 'consecutive_hysteresis': true}}")
          .settings;
  EXPECT_EQ(settings.lossScale, 0);
  EXPECT_EQ(settings.lossScaleWindow, 500);
  EXPECT_EQ(settings.initialScalePower, 12);
  EXPECT_EQ(settings.lossScaleHysteresis, 3);
  EXPECT_EQ(settings.lossScaleMin, 4);
  EXPECT_EQ(settings.consecutiveHysteresis, true);
  ConfigResult fixed =
      read("{'fp16': {'enabled': true, 'loss_scale': 128, 'hysteresis': 3}}");
  EXPECT_EQ(fixed.settings.lossScale, 128);
  EXPECT_FALSE(fixed.settings.lossScaleHysteresis);
  EXPECT_EQ(fate(fixed, "fp16.hysteresis"),
            "no effect: the loss scale is fixed");
}

TEST(Precision, Refusals) {
  const std::pair<const char *, const char *> cases[] = {
      {"{'bf16': {'enabled': true}, 'fp16': {'enabled': true}}",
       "fp16.enabled: bf16.enabled is true as well"},
      {"{'communication_data_type': 'fp16'}",
       "communication_data_type: fp16 reductions are for fp16.enabled"},
      {"{'bf16': {'enabled': true, 'bf16_optimizer_states': true}}",
       "bf16.bf16_optimizer_states: states of the optimizer are f32"},
      {"{'bf16': {'enabled': true, 'bf16_master_weights_and_grads': true}}",
       "bf16.bf16_master_weights_and_grads: master weights and sums of "
       "gradients are f32"},
      {"{'amp': {'enabled': true}}",
       "amp: Apex AMP casts by lists of functions; say bf16 or fp16"},
      {"{'torch_autocast': {'enabled': true, 'dtype': 'bfloat16'}}",
       "torch_autocast: casts by lists of modules are not in a step; say bf16 "
       "or fp16"},
      {"{'data_types': {'param_dtype': 'bf16'}}",
       "data_types.param_dtype: the type of compute is bf16.enabled or "
       "fp16.enabled"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_EQ(refusals(text), message);
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

TEST(Optimizer, AdamIsAdamW) {
  auto optimizer = [](const char *type, const char *params) {
    return read(std::string("{'optimizer': {'type': '") + type +
                "', 'params': {" + params + "}}}")
        .settings;
  };
  EXPECT_EQ(optimizer("Adam", "").optimizer, "adamw");
  EXPECT_EQ(optimizer("adam", "'adam_w_mode': false").optimizer, "adam");
  EXPECT_EQ(optimizer("AdamW", "'adam_w_mode': false").optimizer, "adamw");
  EXPECT_EQ(optimizer("SGD", "").optimizer, "sgd");
  // DeepSpeed's default, not PyTorch's.
  EXPECT_EQ(optimizer("AdamW", "").weightDecay, 0);
  EXPECT_FALSE(optimizer("SGD", "").weightDecay);
}

TEST(Optimizer, Numbers) {
  RunSettings settings =
      read("{'optimizer': {'type': 'Adam', 'params': {'lr': 3e-4, 'betas': "
           "[0.8, 0.9], 'eps': 1e-6, 'weight_decay': 0.1, 'bias_correction': "
           "false}}}")
          .settings;
  EXPECT_EQ(settings.learningRate, 3e-4);
  EXPECT_EQ(settings.beta1, 0.8);
  EXPECT_EQ(settings.beta2, 0.9);
  EXPECT_EQ(settings.epsilon, 1e-6);
  EXPECT_EQ(settings.weightDecay, 0.1);
  EXPECT_EQ(settings.biasCorrection, false);
  settings = read("{'optimizer': {'type': 'SGD', 'params': {'momentum': 0.9, "
                  "'dampening': 0.1, 'nesterov': true}}}")
                 .settings;
  EXPECT_EQ(settings.momentum, 0.9);
  EXPECT_EQ(settings.dampening, 0.1);
  EXPECT_EQ(settings.nesterov, true);
}

TEST(Optimizer, FlagsGoBefore) {
  ConfigQuestion question;
  question.flags.optimizer = "sgd";
  question.flags.learningRate = 1;
  question.flags.beta1 = 0.5;
  question.flags.beta2 = 0.6;
  ConfigResult result =
      read("{'optimizer': {'type': 'Adam', 'params': {'lr': 2, 'betas': [0.9, "
           "0.99]}}}",
           question);
  EXPECT_EQ(result.settings.optimizer, "sgd");
  EXPECT_EQ(result.settings.learningRate, 1);
  EXPECT_EQ(result.settings.beta1, 0.5);
  EXPECT_TRUE(
      hasNote(result, "optimizer.type: --optimizer sgd goes before it"));
  EXPECT_TRUE(hasNote(result, "optimizer.params.lr: --lr 1 goes before it"));
  EXPECT_TRUE(hasNote(result, "optimizer.params.betas: --betas 0.5,0.6 goes "
                              "before it"));
}

TEST(Optimizer, Refusals) {
  const std::pair<const char *, const char *> cases[] = {
      {"{'optimizer': {'type': 'OneBitAdam'}}",
       "optimizer.type: found \"OneBitAdam\", but it compresses gradients, "
       "which changes the training; expected \"Adam\", \"AdamW\" or \"SGD\""},
      {"{'optimizer': {'type': 'Lamb', 'params': {'max_coeff': 1}}}",
       "optimizer.type: found \"Lamb\", but its rates depend on the norms of "
       "whole layers; expected \"Adam\", \"AdamW\" or \"SGD\""},
      {"{'optimizer': {'type': 'Muon'}}",
       "optimizer.type: found \"Muon\", but its updates need whole matrices, "
       "not shards; expected \"Adam\", \"AdamW\" or \"SGD\""},
      {"{'optimizer': {'type': 'MuAdam'}}",
       "optimizer.type: found \"MuAdam\", but its rates depend on the widths "
       "of layers; expected \"Adam\", \"AdamW\" or \"SGD\""},
      {"{'optimizer': {'type': 'Lion'}}",
       "optimizer.type: found \"Lion\", but it is not implemented; expected "
       "\"Adam\", \"AdamW\" or \"SGD\""},
      {"{'optimizer': {'type': 'Mine'}}",
       "optimizer.type: found \"Mine\"; expected \"Adam\", \"AdamW\" or "
       "\"SGD\""},
      {"{'optimizer': {'params': {}}}",
       "optimizer.type: is missing; expected \"Adam\", \"AdamW\" or \"SGD\""},
      {"{'optimizer': {'type': 'Adam', 'params': {'momentum': 0.9}}}",
       "optimizer.params.momentum: adam has no parameter of that name; it is "
       "one of sgd"},
      {"{'optimizer': {'type': 'Adam', 'params': {'amsgrad': true}}}",
       "optimizer.params.amsgrad: the AMSGrad variant is not implemented, nor "
       "is it in DeepSpeed"},
      {"{'optimizer': {'type': 'Adam', 'params': {'max_grad_norm': 1}}}",
       "optimizer.params.max_grad_norm: DeepSpeed does not take it here "
       "either; say gradient_clipping"},
      {"{'optimizer': {'type': 'SGD', 'params': {'maximize': true}}}",
       "optimizer.params.maximize: losses are minimized"},
      {"{'optimizer': {'type': 'Adam', 'params': {'lr': 'auto'}}}",
       "optimizer.params.lr: \"auto\" needs a value here; give --lr"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_EQ(refusals(text), message);
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

TEST(Schedule, NumbersByTheirNames) {
  RunSettings settings =
      read("{'optimizer': {'type': 'Adam', 'params': {'lr': 0.01}}, "
           "'scheduler': {'type': 'WarmupCosineLR', 'params': "
           "{'total_num_steps': 1e3, 'warmup_num_steps': 10, 'warmup_type': "
           "'linear', 'cos_min_ratio': 0.1}}}")
          .settings;
  ASSERT_TRUE(settings.lrSchedule);
  EXPECT_EQ(settings.lrSchedule->kind, "WarmupCosineLR");
  EXPECT_EQ(settings.lrSchedule->numbers,
            (std::map<std::string, double>{{"cos_min_ratio", 0.1},
                                           {"lr", 0.01},
                                           {"total_num_steps", 1000},
                                           {"warmup_num_steps", 10},
                                           {"warmup_type", 1}}));
}

TEST(Schedule, AutoIsFlags) {
  std::string text =
      "{'optimizer': {'type': 'Adam', 'params': {'lr': 'auto'}}, 'scheduler': "
      "{'type': 'WarmupDecayLR', 'params': {'warmup_min_lr': 'auto', "
      "'warmup_max_lr': 'auto', 'warmup_num_steps': 'auto', "
      "'total_num_steps': 'auto'}}}";
  EXPECT_EQ(refusals(text),
            "optimizer.params.lr: \"auto\" needs a value here; give --lr\n"
            "scheduler.params.warmup_num_steps: \"auto\" needs a value here; "
            "give --lr-schedule WarmupDecayLR:warmup_num_steps=N\n"
            "scheduler.params.total_num_steps: \"auto\" needs a value here; "
            "give --steps");
  ConfigQuestion question;
  question.complete = false;
  EXPECT_EQ(refusals(text, question), "");
  EXPECT_EQ(fate(read(text, question), "scheduler.params.total_num_steps"),
            "used: from --steps");
  question.complete = true;
  question.flags.learningRate = 0.5;
  question.flags.steps = 100;
  question.flags.lrSchedule =
      ScheduleSetting{"WarmupDecayLR", {{"warmup_num_steps", 5}}};
  ConfigResult result = read(text, question);
  EXPECT_TRUE(result.refusals().empty());
  EXPECT_EQ(result.settings.lrSchedule->numbers,
            (std::map<std::string, double>{{"lr", 0.5},
                                           {"total_num_steps", 100},
                                           {"warmup_max_lr", 0.5},
                                           {"warmup_num_steps", 5}}));
}

TEST(Schedule, FlagsGoBefore) {
  ConfigQuestion question;
  question.flags.lrSchedule = ScheduleSetting{"cosine", {{"total", 5}}};
  ConfigResult result = read("{'scheduler': {'type': 'WarmupLR', 'params': "
                             "{'warmup_min_lr': 1}}}",
                             question);
  EXPECT_EQ(result.settings.lrSchedule->kind, "cosine");
  EXPECT_TRUE(
      hasNote(result, "scheduler.type: --lr-schedule cosine goes before it"));
  EXPECT_EQ(fate(result, "scheduler.params.warmup_min_lr"),
            "no effect: --lr-schedule goes before it");
}

/// --lr goes before the optimizer's rate and the schedule's own.
TEST(Schedule, TheRateOfTheFlag) {
  ConfigQuestion question;
  question.flags.learningRate = 0.1;
  auto scheduler = [](const std::string &type, const std::string &params) {
    return "{'optimizer': {'type': 'Adam', 'params': {'lr': 3e-5}}, "
           "'scheduler': {'type': '" +
           type + "', 'params': {" + params + "}}}";
  };
  std::string warmup = scheduler("WarmupLR", "'warmup_max_lr': 3e-5");
  ConfigResult result = read(warmup, question);
  EXPECT_EQ(baseRate(*result.settings.lrSchedule), 0.1);
  EXPECT_TRUE(hasNote(result, "optimizer.params.lr: --lr 0.1 goes before it"));
  EXPECT_TRUE(hasNote(
      result, "scheduler.params.warmup_max_lr: --lr 0.1 goes before it"));
  EXPECT_EQ(baseRate(*read(warmup).settings.lrSchedule), 3e-5);
  result = read(scheduler("WarmupDecayLR", "'total_num_steps': 9"), question);
  EXPECT_EQ(baseRate(*result.settings.lrSchedule), 0.1);
  EXPECT_EQ(fate(result, "scheduler.params.warmup_max_lr"),
            "used: absent: --lr 0.1");
  result =
      read(scheduler("LRRangeTest", "'lr_range_test_min_lr': 1"), question);
  EXPECT_EQ(baseRate(*result.settings.lrSchedule), 0.1);
  result = read(scheduler("OneCycle", "'cycle_min_lr': 1, 'cycle_max_lr': 2"),
                question);
  EXPECT_EQ(baseRate(*result.settings.lrSchedule), 2);
  EXPECT_TRUE(hasNote(result, "scheduler.params.cycle_max_lr: the rates of the "
                              "cycle hold, --lr 0.1 has no effect"));
}

TEST(Schedule, NumbersOfTheFlag) {
  ConfigQuestion question;
  question.flags.lrSchedule =
      ScheduleSetting{"WarmupLR", {{"warmup_num_steps", 5}}};
  ConfigResult result =
      read("{'scheduler': {'type': 'WarmupLR', 'params': {'warmup_num_steps': "
           "9}}}",
           question);
  EXPECT_EQ(result.settings.lrSchedule->numbers.at("warmup_num_steps"), 5);
  EXPECT_TRUE(hasNote(result,
                      "scheduler.params.warmup_num_steps: warmup_num_steps=5 "
                      "of --lr-schedule goes before it"));
}

/// What Hugging Face's Trainer writes for a run without a warm-up.
TEST(Schedule, NoWarmUp) {
  ConfigResult result = read("{'scheduler': {'type': 'WarmupLR', 'params': "
                             "{'warmup_num_steps': 0}}}");
  EXPECT_TRUE(result.refusals().empty());
  EXPECT_EQ(result.settings.lrSchedule->numbers.at("warmup_num_steps"), 0);
}

TEST(Schedule, BaseRates) {
  EXPECT_EQ(baseRate({"cosine", {{"lr", 2}, {"total", 1}}}), 2);
  EXPECT_FALSE(baseRate({"cosine", {}}));
  EXPECT_EQ(baseRate({"WarmupLR", {{"lr", 2}}}), 2);
  EXPECT_EQ(baseRate({"WarmupLR", {{"lr", 2}, {"warmup_max_lr", 3}}}), 3);
  EXPECT_EQ(baseRate({"WarmupDecayLR", {{"lr", 2}}}), 1e-3);
  EXPECT_EQ(baseRate({"LRRangeTest", {{"lr", 2}}}), 1e-3);
  EXPECT_EQ(baseRate({"OneCycle", {{"cycle_max_lr", 4}}}), 4);
}

TEST(Schedule, CycleOfMomentum) {
  std::string text =
      "{'scheduler': {'type': 'OneCycle', 'params': {'cycle_min_lr': 0.1, "
      "'cycle_max_lr': 1, 'cycle_first_step_size': 7, 'cycle_min_mom': 0.7}}";
  RunSettings settings = read(text + "}").settings;
  ASSERT_TRUE(settings.momentumSchedule);
  EXPECT_EQ(settings.momentumSchedule->kind, "OneCycleMomentum");
  EXPECT_EQ(settings.momentumSchedule->numbers,
            (std::map<std::string, double>{{"cycle_first_step_size", 7},
                                           {"cycle_min_mom", 0.7}}));
  EXPECT_EQ(settings.beta2, 0.99);
  EXPECT_EQ(settings.lrSchedule->numbers.count("cycle_min_mom"), 0u);
  settings = read(text + ", 'optimizer': {'type': 'SGD'}}").settings;
  EXPECT_FALSE(settings.momentumSchedule);
}

TEST(Schedule, Refusals) {
  const std::pair<const char *, const char *> cases[] = {
      {"{'scheduler': {'type': 'StepLR', 'params': {'step_size': 5}}}",
       "scheduler.type: found \"StepLR\"; expected WarmupLR, WarmupDecayLR, "
       "WarmupCosineLR, LRRangeTest or OneCycle (--lr-schedule has PyTorch's)"},
      {"{'scheduler': {'params': {}}}",
       "scheduler.type: is missing; expected WarmupLR, WarmupDecayLR, "
       "WarmupCosineLR, LRRangeTest or OneCycle (--lr-schedule has PyTorch's)"},
      {"{'scheduler': {'type': 'WarmupDecayLR'}}",
       "scheduler.params.total_num_steps: WarmupDecayLR needs it"},
      {"{'scheduler': {'type': 'WarmupLR', 'params': {'total_num_steps': 5}}}",
       "scheduler.params.total_num_steps: WarmupLR has no parameter of that "
       "name; it is one of WarmupDecayLR, WarmupCosineLR"},
      {"{'scheduler': {'type': 'WarmupLR', 'params': {'warmup_type': 'exp'}}}",
       "scheduler.params.warmup_type: found \"exp\"; expected \"log\" or "
       "\"linear\""},
      {"{'scheduler': {'type': 'OneCycle', 'params': {'cycle_min_lr': 1}}}",
       "scheduler.params.cycle_max_lr: OneCycle needs it"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_EQ(refusals(text), message);
}

} // namespace
