//===- TrainingKeys.cpp - Batches, optimizers, schedules, precision -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The keys that say what is computed.
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

using namespace mlir::zero;
using namespace mlir::zero::keys;

static constexpr const char *adams = "adam|adamw";
static constexpr const char *all = "adam|adamw|sgd";
static constexpr const char *warmups = "WarmupLR|WarmupDecayLR|WarmupCosineLR";
static constexpr const char *linears = "WarmupLR|WarmupDecayLR";
static constexpr const char *totals = "WarmupDecayLR|WarmupCosineLR";
static constexpr const char *dtypes = "fp32|fp16|bf16";

static constexpr ConfigKey table[] = {
    // Batches.
    used("train_batch_size", Type::Integer, "",
         "samples of a step: micro-batch x accumulation x ranks")
        .range(1, 1e12),
    used("train_micro_batch_size_per_gpu", Type::Integer, "",
         "--batch; compared with the model's")
        .range(1, 1e9),
    used("gradient_accumulation_steps", Type::Integer, "1", "--accumulate")
        .range(1, 1 << 20),
    noEffect("managed_gradient_accumulation", Type::Bool, "true",
             "the step accumulates by itself"),
    noEffect("dataloader_drop_last", Type::Bool, "false",
             "a last part that fills no step is reached by cycling only"),
    noEffect("vocabulary_size", Type::Integer, "null",
             "the model has its sizes"),

    // Optimizer.
    used("optimizer", Type::Section, "null", "see its keys"),
    used("optimizer.type", Type::Text, "",
         "--optimizer adamw, adam or sgd. \"Adam\" is AdamW unless "
         "adam_w_mode is false; capitals do not count"),
    used("optimizer.params", Type::Section, "{}", "see its keys"),
    used("optimizer.params.lr", Type::Number, "1e-3", "--lr")
        .range(0, 1e6)
        .of(all),
    used("optimizer.params.betas", Type::Pair, "[0.9, 0.999]", "--betas")
        .range(0, 1)
        .of(adams),
    used("optimizer.params.eps", Type::Number, "1e-8", "--epsilon")
        .range(0, 1e6)
        .of(adams),
    used("optimizer.params.weight_decay", Type::Number, "0", "--weight-decay")
        .range(0, 1e6)
        .of(all),
    used("optimizer.params.bias_correction", Type::Bool, "true",
         "false leaves Adam's bias corrections out")
        .of(adams),
    mapped("optimizer.params.adam_w_mode", Type::Bool, "true",
           "of \"Adam\": true is --optimizer adamw, false --optimizer adam")
        .of(adams),
    refused("optimizer.params.amsgrad", Type::Bool, "false",
            "the AMSGrad variant is not implemented, nor is it in DeepSpeed")
        .unless("false")
        .of(adams),
    noEffect("optimizer.params.torch_adam", Type::Bool, "false",
             "there is one Adam; its formula is PyTorch's")
        .of(adams),
    noEffect("optimizer.params.fp32_optimizer_states", Type::Bool, "true",
             "states are f32")
        .of(adams),
    noEffect("optimizer.params.fused", Type::Bool, "null",
             "each update is one kernel")
        .of(all),
    noEffect("optimizer.params.foreach", Type::Bool, "null",
             "each update is one kernel")
        .of(all),
    noEffect("optimizer.params.set_grad_none", Type::Bool, "true",
             "gradients have no life beyond the step")
        .of(adams),
    refused("optimizer.params.max_grad_norm", Type::Number, "0",
            "DeepSpeed does not take it here either; say gradient_clipping")
        .unless("0|0.0|null")
        .of(all),
    used("optimizer.params.momentum", Type::Number, "0", "--momentum")
        .range(0, 1)
        .of("sgd"),
    used("optimizer.params.dampening", Type::Number, "0",
         "sgd's dampening of the momentum")
        .range(0, 1)
        .of("sgd"),
    used("optimizer.params.nesterov", Type::Bool, "false", "--nesterov")
        .of("sgd"),
    refused("optimizer.params.maximize", Type::Bool, "false",
            "losses are minimized")
        .unless("false")
        .of(all),
    noEffect("optimizer.legacy_fusion", Type::Bool, "false",
             "each update is one kernel"),
    noEffect("zero_allow_untested_optimizer", Type::Bool, "false",
             "every optimizer here works with every stage"),
    noEffect("zero_force_ds_cpu_optimizer", Type::Bool, "true",
             "there is one implementation of each optimizer"),

    // Schedules.
    used("scheduler", Type::Section, "null", "see its keys"),
    used("scheduler.type", Type::Text, "", "--lr-schedule"),
    used("scheduler.params", Type::Section, "{}", "see its keys"),
    used("scheduler.params.warmup_min_lr", Type::Number, "0",
         "rate of the first step")
        .range(0, 1e6)
        .of(linears),
    used("scheduler.params.warmup_max_lr", Type::Number, "null",
         "rate after the warm-up; null is the optimizer's lr")
        .range(0, 1e6)
        .of(linears),
    used("scheduler.params.warmup_num_steps", Type::Integer, "1000",
         "steps of the warm-up; fewer than 2 are 2")
        .range(0, 1e15)
        .of(warmups),
    used("scheduler.params.warmup_type", Type::Text, "\"log\"",
         "shape of the warm-up")
        .oneOf("log|linear")
        .of(warmups),
    used("scheduler.params.total_num_steps", Type::Integer, "",
         "last step of the decay; \"auto\" is --steps")
        .range(1, 1e15)
        .of(totals),
    used("scheduler.params.warmup_min_ratio", Type::Number, "0",
         "first rate, as a part of lr")
        .range(0, 1e6)
        .of("WarmupCosineLR"),
    used("scheduler.params.cos_min_ratio", Type::Number, "1e-4",
         "last rate, as a part of lr")
        .range(0, 1e6)
        .of("WarmupCosineLR"),
    used("scheduler.params.lr_range_test_min_lr", Type::Number, "1e-3",
         "first rate")
        .range(0, 1e6)
        .of("LRRangeTest"),
    used("scheduler.params.lr_range_test_step_size", Type::Integer, "2000",
         "steps of one increase")
        .range(1, 1e15)
        .of("LRRangeTest"),
    used("scheduler.params.lr_range_test_step_rate", Type::Number, "1.0",
         "increase, as a part of the first rate")
        .range(0, 1e6)
        .of("LRRangeTest"),
    used("scheduler.params.lr_range_test_staircase", Type::Bool, "false",
         "the rate stays between increases")
        .of("LRRangeTest"),
    used("scheduler.params.cycle_min_lr", Type::Number, "",
         "rate at both ends of the cycle")
        .range(0, 1e6)
        .of("OneCycle"),
    used("scheduler.params.cycle_max_lr", Type::Number, "",
         "rate in the middle of the cycle")
        .range(0, 1e6)
        .of("OneCycle"),
    used("scheduler.params.decay_lr_rate", Type::Number, "0",
         "decay after the cycle")
        .range(0, 1e6)
        .of("OneCycle"),
    used("scheduler.params.cycle_first_step_size", Type::Integer, "2000",
         "steps of the rise")
        .range(1, 1e15)
        .of("OneCycle"),
    used("scheduler.params.cycle_second_step_size", Type::Integer, "null",
         "steps of the fall; null: as many as of the rise")
        .range(1, 1e15)
        .of("OneCycle"),
    used("scheduler.params.cycle_first_stair_count", Type::Integer, "0",
         "stairs of the rise")
        .range(0, 1e15)
        .of("OneCycle"),
    used("scheduler.params.cycle_second_stair_count", Type::Integer, "null",
         "stairs of the fall; null: as many as of the rise")
        .range(0, 1e15)
        .of("OneCycle"),
    used("scheduler.params.decay_step_size", Type::Integer, "0",
         "steps of one decay; 0: none")
        .range(0, 1e15)
        .of("OneCycle"),
    used("scheduler.params.cycle_momentum", Type::Bool, "true",
         "Adam's beta1 falls and rises against the rate; with sgd it has no "
         "effect, as in DeepSpeed")
        .of("OneCycle"),
    used("scheduler.params.cycle_min_mom", Type::Number, "0.8",
         "beta1 in the middle of the cycle")
        .range(0, 1)
        .of("OneCycle"),
    used("scheduler.params.cycle_max_mom", Type::Number, "0.9",
         "beta1 at both ends of the cycle")
        .range(0, 1)
        .of("OneCycle"),
    used("scheduler.params.decay_mom_rate", Type::Number, "0",
         "decay of beta1 after the cycle")
        .range(0, 1e6)
        .of("OneCycle"),
    noEffect("scheduler.params.last_batch_iteration", Type::Integer, "-1",
             "a checkpoint has the number of the step")
        .range(-1, 1e15),

    // Gradients.
    used("gradient_clipping", Type::Number, "1.0",
         "--clip. Absent: 1.0, as DeepSpeed 0.19 has it (older ones did not "
         "clip); 0: not")
        .range(0, 1e12),
    noEffect("prescale_gradients", Type::Bool, "false",
             "gradients are averaged with one factor; the mean is the same"),
    noEffect("gradient_predivide_factor", Type::Number, "1.0",
             "gradients are averaged with one factor; the mean is the same")
        .range(0, 1e12),
    refused("gradient_allreduce_op", Type::Text, "\"mean\"",
            "gradients are averaged over ranks and micro-batches; scale the "
            "loss instead")
        .oneOf("mean|sum")
        .unless("mean"),
    noEffect("sparse_gradients", Type::Bool, "false",
             "gradients of embeddings are dense; their sums are the same"),
    used("communication_data_type", Type::Dtype, "null",
         "--reduce-type. Absent: the type of compute, as DeepSpeed has it")
        .oneOf(dtypes),
    mapped("fp32_allreduce", Type::Bool, "false",
           "an old name: true is communication_data_type fp32"),
    noEffect("seq_parallel_comm_data_type", Type::Dtype, "\"fp32\"",
             "there is no sequence parallelism")
        .oneOf(dtypes),

    // Precision.
    used("bf16", Type::Section, "null", "see its keys")
        .named("bfloat16")
        .withSwitch(),
    used("bf16.enabled", Type::Bool, "false", "--precision bf16"),
    noEffect("bf16.immediate_grad_update", Type::Bool, "false",
             "gradients are added where they are made"),
    used("bf16.check_grad_overflow", Type::Bool, "true",
         "a step whose gradients are not finite changes nothing"),
    refused("bf16.bf16_master_weights_and_grads", Type::Bool, "false",
            "master weights and sums of gradients are f32")
        .unless("false"),
    refused("bf16.bf16_optimizer_states", Type::Bool, "false",
            "states of the optimizer are f32")
        .unless("false"),
    used("fp16", Type::Section, "null", "see its keys").withSwitch(),
    used("fp16.enabled", Type::Bool, "false", "--precision fp16"),
    noEffect("fp16.auto_cast", Type::Bool, "false",
             "conversions are part of the step"),
    used("fp16.loss_scale", Type::Number, "0", "--loss-scale; 0: dynamic")
        .range(0, 1e38),
    used("fp16.initial_scale_power", Type::Integer, "16",
         "--initial-scale-power")
        .range(0, 126),
    used("fp16.loss_scale_window", Type::Integer, "1000", "--loss-scale-window")
        .range(1, 9.2e18),
    used("fp16.hysteresis", Type::Integer, "2", "--loss-scale-hysteresis")
        .range(1, 9.2e18),
    used("fp16.consecutive_hysteresis", Type::Bool, "false",
         "the hysteresis is full again after a clean step"),
    used("fp16.min_loss_scale", Type::Number, "1", "--loss-scale-min")
        .range(0, 1e38),
    refused("fp16.fp16_master_weights_and_grads", Type::Bool, "false",
            "master weights and sums of gradients are f32")
        .unless("false"),
    noEffect("fp16.fused_mode", Type::Bool, "true",
             "each update is one kernel"),
    refused("amp", Type::Open, "null",
            "Apex AMP casts by lists of functions; say bf16 or fp16")
        .withSwitch(),
    refused("torch_autocast", Type::Section, "null",
            "casts by lists of modules are not in a step; say bf16 or fp16")
        .withSwitch(),
    noEffect("torch_autocast.enabled", Type::Bool, "false", "see its section"),
    noEffect("torch_autocast.dtype", Type::Text, "\"bfloat16\"",
             "see its section"),
    noEffect("torch_autocast.lower_precision_safe_modules", Type::List, "[...]",
             "see its section"),
    used("data_types", Type::Section, "null", "see its keys"),
    mapped("data_types.grad_accum_dtype", Type::Dtype, "null",
           "gradients are added in f32 whatever it says, which is exact "
           "where bf16 is not")
        .oneOf(dtypes),
    refused("data_types.param_dtype", Type::Dtype, "null",
            "the type of compute is bf16.enabled or fp16.enabled")
        .oneOf(dtypes)
        .unless("null"),
    mapped("data_types.buffer_dtype", Type::Dtype, "null",
           "buffers (running statistics) are f32 whatever it says")
        .oneOf(dtypes),
};

llvm::ArrayRef<ConfigKey> keys::trainingKeys() { return table; }
