//===- ZeroKeys.cpp - zero_optimization -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The keys that say where state lies and when it is sent.
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

using namespace mlir::zero;
using namespace mlir::zero::keys;

static constexpr const char *scheduled =
    "the schedule decides by cost, within --memory; results are the same to "
    "the bit";
static constexpr const char *layout = "buffers have fixed places in the plan";
static constexpr const char *python =
    "about Python modules, which a plan has not";
static constexpr const char *stays = "none: the state stays on the device";
static constexpr const char *pinned =
    "host memory of a plan is one arena, pinned where the backend is a GPU's";
static constexpr const char *windows =
    "how much of a disk is in host memory at once follows from --host-memory";
static constexpr const char *beside =
    "reads and writes run beside compute and updates always";

static constexpr ConfigKey table[] = {
    used("zero_optimization", Type::Section, "{}",
         "see its keys; an old file's true is stage 1"),
    used("zero_optimization.stage", Type::Integer, "0", "--zero-stage")
        .range(0, 3),
    noEffect("zero_optimization.contiguous_gradients", Type::Bool, "true",
             layout),
    noEffect("zero_optimization.reduce_scatter", Type::Bool, "true",
             "stages 1 to 3 reduce-scatter always; the sums are the same"),
    noEffect("zero_optimization.reduce_bucket_size", Type::Integer, "5e8",
             scheduled),
    noEffect("zero_optimization.use_multi_rank_bucket_allreduce", Type::Bool,
             "true", "stages 1 to 3 reduce-scatter always"),
    noEffect("zero_optimization.allgather_partitions", Type::Bool, "true",
             "parameters are gathered by all-gathers always"),
    noEffect("zero_optimization.allgather_bucket_size", Type::Integer, "5e8",
             scheduled),
    noEffect("zero_optimization.compute_grad_norm", Type::Bool, "true",
             "the norm is part of the step"),
    used("zero_optimization.overlap_comm", Type::Bool, "null",
         "false is --zero-schedule none, true joint; absent: joint"),
    noEffect("zero_optimization.load_from_fp32_weights", Type::Bool, "true",
             "masters are f32 in checkpoints, and are read from there"),
    noEffect("zero_optimization.elastic_checkpoint", Type::Bool, "false",
             "every checkpoint resumes on another number of ranks"),
    noEffect("zero_optimization.sub_group_size", Type::Integer, "1e9",
             "each parameter is updated by itself"),
    noEffect("zero_optimization.parameter_alignment", Type::Bool, "false",
             layout),

    // Stage 3. DeepSpeed takes these names with and without `stage3_`.
    noEffect("zero_optimization.stage3_prefetch_bucket_size", Type::Integer,
             "5e7", scheduled)
        .named("prefetch_bucket_size"),
    noEffect("zero_optimization.stage3_param_persistence_threshold",
             Type::Integer, "1e5",
             "the schedule keeps gathered what is worth its memory; results "
             "are the same to the bit")
        .named("param_persistence_threshold"),
    noEffect("zero_optimization.stage3_model_persistence_threshold",
             Type::Integer, "9223372036854775807",
             "the schedule keeps gathered what is worth its memory; results "
             "are the same to the bit")
        .named("model_persistence_threshold"),
    noEffect("zero_optimization.stage3_max_live_parameters", Type::Integer,
             "1e9", "--memory bounds all bytes, gathered parameters too")
        .named("max_live_parameters"),
    noEffect("zero_optimization.stage3_max_reuse_distance", Type::Integer,
             "1e9", "when a parameter is used next is known to the schedule")
        .named("max_reuse_distance"),
    mapped("zero_optimization.stage3_gather_16bit_weights_on_model_save",
           Type::Bool, "false",
           "--save-weights and --save-hf write whole tensors at every stage")
        .named("gather_16bit_weights_on_model_save|"
               "stage3_gather_fp16_weights_on_model_save"),
    noEffect("zero_optimization.stage3_module_granularity_threshold",
             Type::Integer, "0", python)
        .named("module_granularity_threshold"),
    noEffect("zero_optimization.stage3_use_all_reduce_for_fetch_params",
             Type::Bool, "false", "parameters are gathered by all-gathers")
        .named("use_all_reduce_for_fetch_params"),
    noEffect("zero_optimization.stage3_allgather_sequential", Type::Bool,
             "false", scheduled)
        .named("allgather_sequential"),
    noEffect("zero_optimization.stage3_partition_stream_chunk_size",
             Type::Integer, "0", "weights are read in pieces always")
        .named("partition_stream_chunk_size"),
    noEffect("zero_optimization.ignore_unused_parameters", Type::Bool, "true",
             "which parameters are used is known when the step is made"),
    noEffect("zero_optimization.legacy_stage1", Type::Bool, "false",
             "there is one stage 1"),
    noEffect("zero_optimization.round_robin_gradients", Type::Bool, "false",
             "gradients go to the host bucket by bucket, as they are complete"),

    // ZeRO++ and MiCS.
    mapped("zero_optimization.zero_hpz_partition_size", Type::Integer, "1",
           "P > 1: --zero-grid (ranks/P)xP --zero-shard all; the second "
           "gather of a parameter may stay among P ranks")
        .range(0, 1024),
    refused("zero_optimization.zero_quantized_weights", Type::Bool, "false",
            "quantized gathers change the values that are trained with")
        .unless("false"),
    refused("zero_optimization.zero_quantized_nontrainable_weights", Type::Bool,
            "false",
            "quantized weights change the values that are trained with")
        .unless("false"),
    refused("zero_optimization.zero_quantized_gradients", Type::Bool, "false",
            "quantized reductions change the gradients")
        .unless("false"),
    refused("zero_optimization.zeropp_loco_param", Type::Open, "null",
            "quantized reductions change the gradients")
        .unless("null"),
    mapped("zero_optimization.mics_shard_size", Type::Integer, "-1",
           "S > 0: --zero-grid (ranks/S)xS, state among S ranks, replicas "
           "between")
        .range(-1, 1024),
    noEffect("zero_optimization.mics_hierarchical_params_gather", Type::Bool,
             "false", "gathers stay among the ranks of a shard group"),
    refused("zero_optimization.zenflow", Type::Open, "null",
            "updates with old gradients change the training")
        .unless("null"),

    // Offload; what the keys become is in ResolveOffload.cpp.
    used("zero_optimization.offload_param", Type::Section, "null", stays),
    used("zero_optimization.offload_param.device", Type::Text, "\"none\"",
         "cpu: --offload parameters=host, nvme: parameters=disk")
        .oneOf("none|cpu|nvme"),
    used("zero_optimization.offload_param.nvme_path", Type::Text, "null",
         "--offload-path"),
    noEffect("zero_optimization.offload_param.pin_memory", Type::Bool, "true",
             pinned),
    noEffect("zero_optimization.offload_param.buffer_count", Type::Integer, "5",
             windows),
    noEffect("zero_optimization.offload_param.buffer_size", Type::Integer,
             "1e8", windows),
    noEffect("zero_optimization.offload_param.max_in_cpu", Type::Integer, "1e9",
             windows),
    used("zero_optimization.offload_optimizer", Type::Section, "null", stays),
    used("zero_optimization.offload_optimizer.device", Type::Text, "\"none\"",
         "cpu: --offload optimizer=host, nvme: optimizer=disk; the host "
         "updates what is there")
        .oneOf("none|cpu|nvme"),
    used("zero_optimization.offload_optimizer.nvme_path", Type::Text, "null",
         "--offload-path"),
    noEffect("zero_optimization.offload_optimizer.pin_memory", Type::Bool,
             "true", pinned),
    noEffect("zero_optimization.offload_optimizer.buffer_count", Type::Integer,
             "4", windows),
    noEffect("zero_optimization.offload_optimizer.pipeline_read", Type::Bool,
             "false", beside),
    noEffect("zero_optimization.offload_optimizer.pipeline_write", Type::Bool,
             "false", beside),
    noEffect("zero_optimization.offload_optimizer.pipeline", Type::Bool,
             "false", beside),
    noEffect("zero_optimization.offload_optimizer.fast_init", Type::Bool,
             "false", "values are written to their places once"),
    used("zero_optimization.offload_optimizer.ratio", Type::Number, "1.0",
         "the share of the bytes, at any stage: --offload optimizer=host:0.4")
        .range(0, 1),
    noEffect("zero_optimization.offload_optimizer.super_offload", Type::Bool,
             "false",
             "its results are those without; here the host updates a bucket "
             "beside the backward pass where nothing is clipped"),
    noEffect("zero_optimization.offload_optimizer.cpuadam_cores_perc",
             Type::Number, "0.8", "of super_offload; --host-threads says it")
        .range(0, 1),
    used("zero_optimization.cpu_offload", Type::Bool, "null",
         "an old name: --offload optimizer=host"),
    used("zero_optimization.cpu_offload_param", Type::Bool, "null",
         "an old name: --offload parameters=host"),
    noEffect("zero_optimization.cpu_offload_use_pin_memory", Type::Bool, "null",
             pinned),

    // Python.
    noEffect("zero_optimization.memory_efficient_linear", Type::Bool, "true",
             python),
    noEffect("zero_optimization.override_module_apply", Type::Bool, "true",
             python),
    noEffect("zero_optimization.pipeline_loading_checkpoint", Type::Bool,
             "false", python),
    noEffect("zero_optimization.log_trace_cache_warnings", Type::Bool, "false",
             "there is no trace: the order of gathers is the plan's"),
    noEffect("zero_optimization.enable_sanity_checks", Type::Bool, "false",
             "plans are verified when they are made; ZRT_CHECK=1 checks runs"),
    noEffect("zero_optimization.save_muon_momentum_buffer_in_memory",
             Type::Bool, "false", "of Muon"),
    noEffect("zero_optimization.leaf_module", Type::Section, "{}", python),
    noEffect("zero_optimization.leaf_module.classes", Type::List, "[...]",
             python),
    noEffect("zero_optimization.leaf_module.names", Type::List, "[]", python),
    noEffect("zero_optimization.leaf_module.name_suffixes", Type::List, "[]",
             python),
};

llvm::ArrayRef<ConfigKey> keys::zeroKeys() { return table; }
