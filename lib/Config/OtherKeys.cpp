//===- OtherKeys.cpp - Logs, checkpoints, parallelism, tuning -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The keys around the training step.
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

using namespace mlir::zero;
using namespace mlir::zero::keys;

static constexpr const char *section = "see its section";
static constexpr const char *plan = "the whole step is compiled already";
static constexpr const char *requests =
    "sizes and depth of requests follow from the plan's buffers";
static constexpr const char *remat = "what is recomputed is --remat's choice";

static constexpr ConfigKey table[] = {
    // Logs.
    used("steps_per_print", Type::Integer, "10",
         "--log-every; Infinity, as Accelerate writes it, is never")
        .range(0, 1e15)
        .orInfinity(),
    noEffect("wall_clock_breakdown", Type::Bool, "false",
             "--trace and --report time every command of the last step"),
    noEffect("memory_breakdown", Type::Bool, "false",
             "--report shows memory over time by kind of tensor"),
    noEffect("dump_state", Type::Bool, "false",
             "--explain-config prints what a run is made with"),
    noEffect("log_level", Type::Text, "null", "there are no levels"),
    used("tensorboard", Type::Section, "null",
         "--log tensorboard --metric-names deepspeed")
        .withSwitch(),
    used("tensorboard.enabled", Type::Bool, "false", "--log tensorboard"),
    used("tensorboard.output_path", Type::Text, "\"\"",
         "--log-dir, with job_name"),
    used("tensorboard.job_name", Type::Text, "\"DeepSpeedJobName\"",
         "the last folder of --log-dir"),
    used("csv_monitor", Type::Section, "null",
         "--log csv --metric-names deepspeed")
        .withSwitch(),
    used("csv_monitor.enabled", Type::Bool, "false", "--log csv"),
    used("csv_monitor.output_path", Type::Text, "\"\"",
         "--log-dir, with job_name"),
    used("csv_monitor.job_name", Type::Text, "\"DeepSpeedJobName\"",
         "the last folder of --log-dir"),
    noEffect("wandb", Type::Section, "null",
             "nothing is sent; the lines of --metrics can be imported")
        .withSwitch(),
    noEffect("wandb.enabled", Type::Bool, "false",
             "nothing is sent; the lines of --metrics can be imported"),
    noEffect("wandb.group", Type::Text, "null", section),
    noEffect("wandb.team", Type::Text, "null", section),
    noEffect("wandb.project", Type::Text, "\"deepspeed\"", section),
    noEffect("comet", Type::Open, "null",
             "nothing is sent; the lines of --metrics can be imported"),
    noEffect("comms_logger", Type::Section, "null",
             "--metrics has the bytes of every collective")
        .withSwitch(),
    noEffect("comms_logger.enabled", Type::Bool, "false",
             "--metrics has the bytes of every collective"),
    noEffect("comms_logger.verbose", Type::Bool, "false", section),
    noEffect("comms_logger.prof_all", Type::Bool, "true", section),
    noEffect("comms_logger.debug", Type::Bool, "false", section),
    noEffect("comms_logger.prof_ops", Type::List, "[]", section),
    noEffect("flops_profiler", Type::Section, "null",
             "--metrics has mfu; zero-plan counts operations")
        .withSwitch(),
    noEffect("flops_profiler.enabled", Type::Bool, "false",
             "--metrics has mfu; zero-plan counts operations"),
    noEffect("flops_profiler.recompute_fwd_factor", Type::Number, "0.0",
             section),
    noEffect("flops_profiler.profile_step", Type::Integer, "1", section),
    noEffect("flops_profiler.module_depth", Type::Integer, "-1", section)
        .range(-1, 1e9),
    noEffect("flops_profiler.top_modules", Type::Integer, "1", section)
        .range(-1, 1e9),
    noEffect("flops_profiler.detailed", Type::Bool, "true", section),
    noEffect("flops_profiler.output_file", Type::Text, "null", section),
    noEffect("timers", Type::Open, "null",
             "every step is timed, without waiting for it"),
    noEffect("monitor_config", Type::Open, "null",
             "DeepSpeed ignores it too; it reads tensorboard and csv_monitor"),
    noEffect("comms_config", Type::Open, "null",
             "DeepSpeed ignores it too; it reads comms_logger"),

    // Activations.
    noEffect("activation_checkpointing", Type::Section, "null", remat),
    noEffect("activation_checkpointing.partition_activations", Type::Bool,
             "false", "of model parallelism"),
    noEffect("activation_checkpointing.cpu_checkpointing", Type::Bool, "false",
             "of what a model checkpoints itself; --offload activations=host "
             "moves what the backward pass reads"),
    noEffect("activation_checkpointing.contiguous_memory_optimization",
             Type::Bool, "false", "buffers have fixed places in the plan"),
    noEffect("activation_checkpointing.number_checkpoints", Type::Integer,
             "null", remat),
    noEffect("activation_checkpointing.synchronize_checkpoint_boundary",
             Type::Bool, "false", "events order what depends on each other"),
    noEffect("activation_checkpointing.profile", Type::Bool, "false",
             "--trace times every command"),

    // Compilation.
    noEffect("compile", Type::Section, "null", plan),
    noEffect("compile.deepcompile", Type::Bool, "false", plan),
    noEffect("compile.enabled", Type::Bool, "false", plan),
    noEffect("compile.disable", Type::Bool, "false", plan),
    noEffect("compile.backend", Type::Text, "\"inductor\"", plan),
    noEffect("compile.kwargs", Type::Open, "{}", plan),
    noEffect("compile.free_activation", Type::Bool, "false",
             "every buffer ends with its last use"),
    noEffect("compile.free_activation_threshold", Type::Integer, "10485760",
             "every buffer ends with its last use"),
    used("compile.offload_activation", Type::Bool, "false",
         "with deepcompile: --offload activations=host"),
    noEffect("compile.offload_activation_pin_memory", Type::Bool, "true",
             "host memory of a plan is one arena"),
    mapped("compile.offload_opt_states", Type::Bool, "false",
           "with deepcompile: --offload optimizer=host; the host updates"),
    used("compile.offload_parameters", Type::Bool, "false",
         "with deepcompile: --offload parameters=host"),
    noEffect("compile.double_buffer", Type::Bool, "true",
             "buffers of collectives are placed by the plan"),
    noEffect("compile.symmetric_memory", Type::Bool, "false", plan),
    noEffect("compile.debug_log", Type::Bool, "false",
             "remarks say why a collective is where it is"),
    noEffect("compile.sync_before_reduce", Type::Bool, "false",
             "events order what depends on each other"),
    noEffect("compile.sync_after_reduce", Type::Bool, "false",
             "events order what depends on each other"),
    noEffect("compile.sync_before_allgather", Type::Bool, "false",
             "events order what depends on each other"),
    noEffect("compile.sync_after_allgather", Type::Bool, "false",
             "events order what depends on each other"),
    noEffect("compile.keep_int_input_tensors", Type::Bool, "true", plan),
    noEffect("compile.keep_all_input_tensors", Type::Bool, "false", plan),
    noEffect("compile.passes", Type::List, "null", plan),
    noEffect("graph_harvesting", Type::Bool, "false", plan),
    noEffect("disable_python_gc", Type::Bool, "false", "there is no Python"),

    // Input and output.
    noEffect("aio", Type::Section, "null", requests),
    noEffect("aio.block_size", Type::Integer, "1048576", requests),
    noEffect("aio.queue_depth", Type::Integer, "8", requests),
    noEffect("aio.intra_op_parallelism", Type::Integer, "1", requests)
        .named("thread_count"),
    noEffect("aio.single_submit", Type::Bool, "false", requests),
    noEffect("aio.overlap_events", Type::Bool, "true", requests),
    noEffect("aio.use_gds", Type::Bool, "false",
             "the disk is read and written through host memory"),
    noEffect("checkpoint", Type::Section, "null",
             "--checkpoint, --checkpoint-every, --keep and --resume"),
    noEffect("checkpoint.tag_validation", Type::Text, "\"Warn\"",
             "one rename makes a checkpoint valid on all ranks at once"),
    noEffect("checkpoint.load_universal", Type::Bool, "false",
             "every checkpoint resumes at another stage and number of ranks"),
    noEffect("checkpoint.use_node_local_storage", Type::Bool, "false",
             "all ranks write into one folder"),
    noEffect("checkpoint.parallel_write", Type::Open, "null",
             "each rank writes its own shards"),
    noEffect("checkpoint.writer", Type::Open, "null",
             "checkpoints are written beside the next steps"),
    noEffect("checkpoint.checkpoint_serialization", Type::Bool, "true",
             "checkpoints are safetensors files"),
    noEffect("nebula", Type::Open, "null",
             "checkpoints are written beside the next steps by --checkpoint"),
    noEffect("datastates_ckpt", Type::Open, "null",
             "checkpoints are written beside the next steps by --checkpoint"),

    // What changes the training or the model.
    refused("sparse_attention", Type::Open, "null",
            "DeepSpeed has removed it; the model says what attention it has")
        .unless("null"),
    refused("progressive_layer_drop", Type::Open, "null",
            "DeepSpeed has removed it; a step has all layers")
        .withSwitch(),
    refused("compression_training", Type::Open, "null",
            "pruning and quantization change the training")
        .withSwitch(),
    refused("quantize_training", Type::Open, "null",
            "quantization changes the training")
        .withSwitch(),
    refused("data_efficiency", Type::Open, "null",
            "curricula and token dropping change the data; prepare it before")
        .withSwitch(),
    refused("curriculum_learning", Type::Open, "null",
            "curricula change the data; prepare it before")
        .withSwitch(),
    refused("eigenvalue", Type::Open, "null",
            "eigenvalues serve quantization, which is not there")
        .withSwitch(),
    refused("elasticity", Type::Section, "null",
            "a plan is for a fixed number of ranks; resume its checkpoint on "
            "another with --resume")
        .withSwitch(),
    noEffect("elasticity.enabled", Type::Bool, "false", section),
    noEffect("elasticity.max_train_batch_size", Type::Integer, "2000", section),
    noEffect("elasticity.micro_batch_sizes", Type::List, "[2, 4, 6]", section),
    noEffect("elasticity.min_gpus", Type::Integer, "1", section),
    noEffect("elasticity.max_gpus", Type::Integer, "10000", section),
    noEffect("elasticity.min_time", Type::Integer, "0", section),
    noEffect("elasticity.version", Type::Number, "0.2", section),
    noEffect("elasticity.prefer_larger_batch", Type::Bool, "true", section)
        .named("prefer_larger_batch_size"),
    noEffect("elasticity.ignore_non_elastic_batch_info", Type::Bool, "false",
             section),
    noEffect("elasticity.model_parallel_size", Type::Integer, "1", section),
    noEffect("elasticity.num_gpus_per_node", Type::Integer, "1", section),
    noEffect("autotuning", Type::Open, "null",
             "zero-plan --auto searches stages, grids and batches"),
    refused("hybrid_engine", Type::Open, "null",
            "a plan trains; it does not generate")
        .withSwitch(),
    noEffect("weight_quantization", Type::Open, "null", "of inference"),

    // Other kinds of parallelism.
    noEffect("tensor_parallel", Type::Section, "null", "see its keys"),
    refused("tensor_parallel.autotp_size", Type::Integer, "0",
            "state is cut over the ranks, compute is not")
        .unless("0|1"),
    noEffect("tensor_parallel.preset_model", Type::Text, "null", section),
    noEffect("tensor_parallel.tp_overlap_comm", Type::Bool, "false", section),
    noEffect("tensor_parallel.vocab_parallel_lm_head", Type::Bool, "false",
             section),
    noEffect("tensor_parallel.partition_config", Type::Open, "null", section),
    noEffect("tensor_parallel.tensor_parallel", Type::Open, "null", section),
    refused("expert_parallel", Type::Open, "null",
            "experts are computed where their tokens are")
        .withSwitch(),
    refused("sequence_parallel_size", Type::Integer, "1",
            "a sample is computed on one rank")
        .unless("0|1"),
    noEffect("use_data_before_expert_parallelism", Type::Bool, "false",
             "of expert parallelism"),
    noEffect("pipeline", Type::Open, "null",
             "DeepSpeed reads it for a PipelineModule only"),

    // Old names.
    noEffect("disable_allgather", Type::Bool, "false",
             "parameters are gathered by all-gathers always"),
    noEffect("allgather_size", Type::Integer, "5e8",
             "an old name of zero_optimization.allgather_bucket_size"),
};

llvm::ArrayRef<ConfigKey> keys::otherKeys() { return table; }
