//===- RunOptions.cpp - Flags of zero-run ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The flags of zero-run and the rules between them.
//
//===----------------------------------------------------------------------===//

#include "RunOptions.h"

#include "Flags.h"

#include <algorithm>
#include <cstdlib>

using namespace zero_tools;

static constexpr const char *usage =
    R"(usage: zero-run step.zplan|M.mlir|MODEL.onnx --data D [flags]

Trains on N ranks, which are threads of this process, or processes: --processes
starts them, or mpirun, srun or torchrun does. A .zplan is run as it is; an
.mlir step or an ONNX model is compiled first. The data is a safetensors or
.npz file with one tensor per input and label (first dimension = samples), or a
.bin file of tokens.
)";

namespace {
/// Texts that become typed options after parsing.
struct RawOptions {
  std::string betas, grid, shard = "inner";
  std::vector<std::string> dims, values;
  std::optional<double> learningRate;
  std::optional<int64_t> logEvery;
  std::string lossScale, lrSchedule, shardSize;
  std::vector<std::string> groups;
};
} // namespace

static const char *const compileFlagNames[] = {"--loss",
                                               "--optimizer",
                                               "--momentum",
                                               "--betas",
                                               "--epsilon",
                                               "--weight-decay",
                                               "--nesterov",
                                               "--dim",
                                               "--value",
                                               "--train",
                                               "--freeze",
                                               "--clip",
                                               "--clip-value",
                                               "--precision",
                                               "--reduce-type",
                                               "--loss-scale",
                                               "--loss-scale-window",
                                               "--loss-scale-hysteresis",
                                               "--loss-scale-min",
                                               "--initial-scale-power",
                                               "--lr-schedule",
                                               "--no-decay",
                                               "--group"};
/// These also change a step that is made already, but not a plan.
static const char *const planFlagNames[] = {
    "--zero-grid", "--zero-shard", "--zero-schedule", "--remat", "--offload"};

static void addCompileFlags(Flags &flags, RunOptions &options,
                            RawOptions &raw) {
  flags.integer("--ranks", &options.ranks, 1, 1024, "N",
                "number of ranks (default 1, or the plan's)");
  flags.integer("--zero-stage", &options.stage, 0, 3, "K",
                "ZeRO stage 0 to 3 (default 0, or the plan's)");
  flags.text("--zero-grid", &raw.grid, "RxS",
             "ranks as a grid: R replicas of S shards each");
  flags.text("--zero-shard", &raw.shard, "AXES",
             "inner (default) or all: the axes of a grid of two that the state "
             "is cut over");
  flags.text("--zero-schedule", &options.schedule, "WHAT",
             "none, prefetch, keep, reorder, bucket or joint (default joint)");
  flags.text("--memory", &options.memory, "SIZE",
             "device memory of a rank that the plan keeps to, like 24GiB");
  flags.text("--machine", &options.machine, "NAME",
             "the machine to plan for, a preset or a .json file; also gives "
             "the peak for mfu");
  flags.list(
      "--offload", &options.offload, "RULE",
      "what lives outside device memory: KIND[@PATTERN]=host|disk[:SHARE]"
      ", KIND optimizer, gradients, parameters or activations "
      "(repeatable), or auto, none (default)");
  flags.text("--host-memory", &options.hostMemory, "SIZE",
             "host memory of a rank that the plan keeps to, like 64GiB");
  flags.text("--loss", &options.loss, "LOSS",
             "cross-entropy, causal-lm, mse, bce or output:NAME");
  flags.text("--optimizer", &options.optimizer, "NAME",
             "sgd, adam, adamw (default), adamw-hf or adagrad");
  flags.number("--momentum", &options.momentum, 0, "M",
               "momentum of sgd (default 0)");
  flags.text("--betas", &raw.betas, "A,B",
             "of adam and adamw (default 0.9,0.999)");
  flags.number("--epsilon", &options.epsilon, 0, "E",
               "of adam and adamw (default 1e-8)");
  flags.number("--weight-decay", &options.weightDecay, 0, "W",
               "(default 0, adamw 0.01)");
  flags.toggle("--nesterov", &options.nesterov, "Nesterov momentum of sgd");
  flags.list("--dim", &raw.dims, "NAME=N",
             "size of a symbolic dimension of an ONNX model");
  flags.list("--train", &options.train, "PATTERN",
             "train the ONNX initializers of that name");
  flags.list("--freeze", &options.freeze, "PATTERN",
             "do not train the ONNX initializers of that name");
}

/// How the step computes, beyond its loss and optimizer.
static void addStepFlags(Flags &flags, RunOptions &options, RawOptions &raw) {
  flags.integer("--accumulate", &options.accumulate, 1, 1 << 20, "A",
                "micro-batches of a step (default 1, or the plan's)");
  flags.number("--clip", &options.clipNorm, 0, "NORM",
               "clip gradients to this global norm (default 0: not)");
  flags.number("--clip-value", &options.clipValue, 0, "V",
               "clip each element of gradients to [-V, V] (default 0: not)");
  flags.text("--precision", &options.precision, "TYPE",
             "of compute: f32 (default), bf16 or fp16, with f32 masters");
  flags.text("--reduce-type", &options.reduceType, "TYPE",
             "gradients are reduced in f32 (default), bf16 or fp16");
  flags.text("--loss-scale", &raw.lossScale, "S",
             "dynamic (default with fp16) or a fixed number");
  flags.integer("--loss-scale-window", &options.lossScale.window, 1, INT64_MAX,
                "N", "clean steps before the scale doubles (default 1000)");
  flags.integer("--loss-scale-hysteresis", &options.lossScale.hysteresis, 1,
                INT64_MAX, "N",
                "overflows before the scale halves (default 2)");
  flags.number("--loss-scale-min", &options.lossScale.min, 0, "S",
               "the least scale (default 1)");
  flags.integer("--initial-scale-power", &options.lossScale.initialPower, 0,
                126, "N", "the first scale is 2^N (default 16)");
  flags.text("--lr-schedule", &raw.lrSchedule, "KIND:K=V,...",
             "the learning rate by step, like cosine:warmup=100,total=1000");
  flags.list("--no-decay", &options.noDecay, "PATTERN",
             "no weight decay for these parameters; auto: biases and norms");
  flags.list("--group", &raw.groups, "PATTERN:lr=L,weight-decay=W",
             "other values for these parameters");
  flags.text("--remat", &options.remat, "WHAT",
             "recompute activations: none (default), selective, full or auto");
}

static void addForwardFlags(Flags &flags, RunOptions &options,
                            RawOptions &raw) {
  flags.toggle("--forward", &options.forward,
               "train nothing: write the model's outputs for --data");
  flags.text("--save-outputs", &options.saveOutputs, "O",
             "the file for them, in safetensors");
  flags.list("--value", &raw.values, "NAME=FILE",
             "an input of an ONNX model is this constant: the tensor of its "
             "name in a safetensors or .npz file; NAME= is an optional without "
             "an element, or a sequence without tensors");
}

static void addSaveFlags(Flags &flags, RunOptions &options, RawOptions &raw) {
  flags.text("--checkpoint", &options.checkpoint, "DIR",
             "folder of checkpoints");
  flags.integer("--checkpoint-every", &options.checkpointEvery, 1, INT64_MAX,
                "K", "steps between checkpoints (default: the last step only)");
  flags.integer("--keep", &options.keepCheckpoints, 1, INT64_MAX, "K",
                "only the newest K checkpoints stay (default: all)");
  flags.text("--resume", &options.resume, "DIR",
             "go on from the newest checkpoint in this folder, or this one");
  flags.toggle("--checkpoint-sync", &options.checkpointSync,
               "go on only when a checkpoint is on disk");
  flags.text("--save-hf", &options.saveHf, "DIR",
             "write the trained weights in Hugging Face's form");
  flags.text("--save-onnx", &options.saveOnnx, "OUT.onnx",
             "write the ONNX model with the trained weights");
  flags.text("--shard-size", &raw.shardSize, "SIZE",
             "largest file of --save-hf, like 5GB (default)");
}

static void addLogFlags(Flags &flags, RunOptions &options, RawOptions &raw) {
  flags.list("--log", &options.logs, "KIND",
             "also write metrics as csv or tensorboard (repeatable)");
  flags.text("--log-dir", &options.logDir, "DIR", "folder of --log");
  flags.text("--metric-names", &options.metricNames, "SYSTEM",
             "names in --log: hf, deepspeed or torchtitan (default)");
  flags.integer("--log-every", &raw.logEvery, 0, INT64_MAX, "N",
                "print a step line every N steps (default 10, 0: none)");
  flags.toggle("--check-finite", &options.checkFinite,
               "stop at the first tensor with a NaN or Inf and name it");
}

static void addRunFlags(Flags &flags, RunOptions &options, RawOptions &raw) {
  flags.text("--data", &options.data, "D", "the samples");
  flags.integer("--steps", &options.steps, 0, INT64_MAX, "K",
                "number of steps (default: once through the data)");
  flags.integer(
      "--batch", &options.batch, 1, INT64_MAX, "B",
      "samples of a micro-batch of a rank; what the model is made for");
  flags.number("--lr", &raw.learningRate, 0, "LR",
               "learning rate (default 0.001)");
  flags.text("--weights", &options.weights, "W",
             "initial values by name, a safetensors file");
  flags.integer("--seed", &options.seed, 0, INT64_MAX, "S",
                "of random numbers (default 0; --resume: the saved one)");
  flags.text("--backend", &options.backend, "WHERE",
             "host (default), cuda: the GPUs of this machine, or cuda:sm_80, "
             "cuda:sm_90, cuda:sm_100: compiled for these; default for a plan: "
             "what it is for");
  flags.toggle("--cuda-graph", &options.cudaGraph,
               "launch a step on a GPU as one graph, which is captured once");
  flags.integer("--threads", &options.threads, 1, 1024, "T",
                "threads of library calls per rank (default 1)");
  flags.text("--offload-path", &options.offloadPath, "DIR",
             "folder of what is offloaded to disk; nothing stays there");
  flags.integer("--host-threads", &options.hostThreads, 1, 1024, "T",
                "threads per rank of what the host computes (default 1)");
  flags.text("--metrics", &options.metrics, "M.jsonl",
             "one line of JSON per step");
  flags.text("--save-weights", &options.saveWeights, "OUT",
             "write the trained weights, a safetensors file");
  flags.text("--trace", &options.trace, "T.json",
             "timeline of the last step, for Perfetto");
  flags.text("--report", &options.report, "R.html",
             "the last step as a picture: channels, memory, traffic");
  flags.toggle("--summary", &options.summary,
               "print memory and traffic of a rank beside the formulas");
}

static void addProcessFlags(Flags &flags, RunOptions &options) {
  LaunchFlags &launch = options.launch;
  flags.integer("--processes", &launch.processes, 1, 1024, "N",
                "start N processes of one rank each on this machine");
  flags.integer("--rank", &launch.rank, 0, UINT32_MAX, "R",
                "this process is rank R of --world-size (default: what mpirun, "
                "srun or torchrun say)");
  flags.integer("--world-size", &launch.worldSize, 1, UINT32_MAX, "N",
                "number of processes");
  flags.integer("--local-rank", &launch.localRank, 0, UINT32_MAX, "R",
                "rank among the processes of this machine: which GPU it has");
  flags.text("--master-addr", &launch.masterAddress, "HOST",
             "where process 0 is (default MASTER_ADDR)");
  flags.integer("--master-port", &launch.masterPort, 1, 65535, "PORT",
                "the TCP port that it listens on (default MASTER_PORT)");
  flags.text("--transport", &options.transport, "WAY",
             "of data between processes on the host: shm, mpi, or auto "
             "(default: shm on one machine)");
  flags.number("--timeout", &options.timeoutSeconds, 0, "S",
               "a collective fails after S seconds (default 30), or after");
  flags.number("--timeout-factor", &options.timeoutFactor, 0, "F",
               "F times what it is planned to take (default 100), if that is "
               "more");
  flags.number("--connect-timeout", &options.connectSeconds, 0, "S",
               "how long processes wait for each other to come (default 60)");
}

static void addConfigFlags(Flags &flags, RunOptions &options) {
  flags.text("--config", &options.config, "DS.json",
             "a DeepSpeed config; flags go before what it says");
  flags.toggle("--explain-config", &options.explainConfig,
               "print what becomes of each key of --config (without it: of "
               "every key), and end");
}

static bool endsWith(const std::string &text, const std::string &end) {
  return text.size() > end.size() &&
         !text.compare(text.size() - end.size(), end.size(), end);
}

static ModelKind kindOf(const std::string &path) {
  if (endsWith(path, ".zplan"))
    return ModelKind::Plan;
  if (endsWith(path, ".mlir") || endsWith(path, ".mlirbc"))
    return ModelKind::Mlir;
  if (endsWith(path, ".onnx"))
    return ModelKind::Onnx;
  throw FlagError(path + ": expected a file named .zplan, .mlir or .onnx");
}

static void parseDims(const std::vector<std::string> &texts,
                      std::map<std::string, int64_t> &dims) {
  for (const std::string &text : texts) {
    size_t equals = text.rfind('=');
    std::string size = equals == text.npos ? "" : text.substr(equals + 1);
    bool digits = !size.empty() && size.size() < 16 &&
                  size.find_first_not_of("0123456789") == size.npos;
    if (!digits || equals == 0 || std::stoll(size) < 1)
      throw FlagError("--dim '" + text +
                      "': expected NAME=N with N of at least 1");
    if (!dims.emplace(text.substr(0, equals), std::stoll(size)).second)
      throw FlagError("--dim '" + text + "': the dimension is given twice");
  }
}

/// The sizes of `text`, like 4x8; the product is the number of ranks.
static void parseGrid(const std::string &text, RunOptions &options) {
  FlagError wrong("--zero-grid '" + text +
                  "': expected sizes like 4x8 with at most 1024 ranks");
  int64_t ranks = 1;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find('x', at), text.size());
    std::string size = text.substr(at, end - at);
    if (size.empty() || size.size() > 4 ||
        size.find_first_not_of("0123456789") != size.npos)
      throw wrong;
    options.grid.push_back(std::stoll(size));
    ranks *= options.grid.back();
    if (ranks < 1 || ranks > 1024)
      throw wrong;
    at = end + 1;
  }
  if (options.ranks && *options.ranks != ranks)
    throw FlagError("--zero-grid " + text + " has " + std::to_string(ranks) +
                    " ranks, --ranks says " + std::to_string(*options.ranks));
  options.ranks = ranks;
}

/// "a, b or c".
static std::string listed(const std::vector<const char *> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0                  ? ""
             : i + 1 == names.size() ? " or "
                                     : ", ") +
            std::string(names[i]);
  return text;
}

/// A flag whose value is one of a few names.
static void checkName(const std::string &flag, const std::string &value,
                      const std::vector<const char *> &names) {
  for (const char *name : names)
    if (value.empty() || value == name)
      return;
  throw FlagError(flag + " '" + value + "': expected " + listed(names));
}

/// `k=v,k=v`, each key once.
static std::map<std::string, std::string> parsePairs(const std::string &flag,
                                                     const std::string &text,
                                                     const std::string &pairs) {
  std::map<std::string, std::string> values;
  for (size_t at = 0; at <= pairs.size();) {
    size_t end = std::min(pairs.find(',', at), pairs.size());
    std::string pair = pairs.substr(at, end - at);
    size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0 || equals + 1 == pair.size())
      throw FlagError(flag + " '" + text + "': expected KEY=VALUE, found '" +
                      pair + "'");
    if (!values.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second)
      throw FlagError(flag + " '" + text + "': " + pair.substr(0, equals) +
                      " is given twice");
    at = end + 1;
  }
  return values;
}

/// A number of a schedule; some have words.
static double parseScheduleNumber(const std::string &flag,
                                  const std::string &key,
                                  const std::string &text) {
  static const std::map<std::string, std::map<std::string, double>> words = {
      {"warmup_type", {{"log", 0}, {"linear", 1}}},
      {"decay_type", {{"linear", 0}, {"sqrt", 1}, {"cosine", 2}}},
      {"lr_range_test_staircase", {{"false", 0}, {"true", 1}}}};
  auto known = words.find(key);
  if (known != words.end()) {
    auto word = known->second.find(text);
    if (word != known->second.end())
      return word->second;
  }
  return parseF32(flag + ": " + key, text);
}

static ScheduleFlag parseSchedule(const std::string &text) {
  size_t colon = text.find(':');
  ScheduleFlag schedule;
  schedule.kind = text.substr(0, colon);
  std::string flag = "--lr-schedule '" + text + "'";
  if (colon != text.npos)
    for (const auto &[key, value] :
         parsePairs("--lr-schedule", text, text.substr(colon + 1)))
      schedule.numbers[key] = parseScheduleNumber(flag, key, value);
  return schedule;
}

static GroupFlag parseGroup(const std::string &text) {
  // The pattern may have colons of its own.
  size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0)
    throw FlagError("--group '" + text +
                    "': expected PATTERN:lr=L,weight-decay=W");
  GroupFlag group;
  group.pattern = text.substr(0, colon);
  for (const auto &[key, value] :
       parsePairs("--group", text, text.substr(colon + 1))) {
    double number = parseF32("--group '" + text + "': " + key, value);
    if (key == "lr")
      group.learningRate = number;
    else if (key == "weight-decay")
      group.weightDecay = number;
    else
      throw FlagError("--group '" + text + "': unknown '" + key +
                      "', expected lr or weight-decay");
  }
  return group;
}

/// A size like 5GB or 2GiB.
static int64_t parseSize(const std::string &flag, const std::string &text) {
  static const std::pair<const char *, double> units[] = {
      {"KiB", 1024.},
      {"MiB", 1048576.},
      {"GiB", 1073741824.},
      {"TiB", 1099511627776.},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"", 1}};
  char *end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  for (const auto &[name, factor] : units)
    if (end != text.c_str() && name == std::string(end) &&
        number * factor >= 1 && number * factor < 9e18)
      return int64_t(number * factor);
  throw FlagError(flag + " '" + text +
                  "': expected a size like 5GB, 2GiB or 1048576");
}

static void parseStepTexts(RunOptions &options, const RawOptions &raw) {
  if (raw.lossScale == "dynamic")
    options.lossScale.scale = 0;
  else if (!raw.lossScale.empty())
    options.lossScale.scale = parseF32("--loss-scale", raw.lossScale);
  options.logEvery = raw.logEvery.value_or(options.logEvery);
  if (!raw.lrSchedule.empty())
    options.lrSchedule = parseSchedule(raw.lrSchedule);
  for (const std::string &group : raw.groups)
    options.groups.push_back(parseGroup(group));
  if (!raw.shardSize.empty())
    options.shardBytes = parseSize("--shard-size", raw.shardSize);
}

static void checkNames(const RunOptions &options) {
  checkName("--zero-schedule", options.schedule,
            {"none", "prefetch", "keep", "reorder", "bucket", "joint"});
  checkName("--precision", options.precision, {"f32", "bf16", "fp16"});
  checkName("--reduce-type", options.reduceType, {"f32", "bf16", "fp16"});
  checkName("--remat", options.remat, {"none", "selective", "full", "auto"});
  for (size_t i = 0; i < options.logs.size(); ++i) {
    checkName("--log", options.logs[i], {"csv", "tensorboard"});
    if (i && options.logs[i] == options.logs[i - 1])
      throw FlagError("--log " + options.logs[i] + " is given twice");
  }
  checkName("--transport", options.transport, {"auto", "shm", "mpi"});
  checkName("--metric-names", options.metricNames,
            {"hf", "deepspeed", "torchtitan"});
}

/// The names among `names` that were given, in words.
template <typename Names>
static std::string givenOf(const Flags &flags, const Names &names) {
  std::string given;
  for (const char *name : names)
    if (flags.given(name))
      given += (given.empty() ? "" : ", ") + std::string(name);
  return given;
}

/// A plan is what it is.
static void checkPlan(const RunOptions &options, const Flags &flags) {
  std::string decided = options.compileFlags;
  std::string further = givenOf(flags, planFlagNames);
  decided += (decided.empty() || further.empty() ? "" : ", ") + further;
  if (options.kind == ModelKind::Plan && !decided.empty() &&
      !options.model.empty())
    throw FlagError(decided + ": " + options.model +
                    " has this decided already; give the flag to zero-compile "
                    "or zero-import");
}

/// Flags of a run that trains nothing.
static void checkForward(const RunOptions &options) {
  if (!options.saveOutputs.empty() && !options.forward)
    throw FlagError("--save-outputs is for --forward");
  static const char *const others[] = {
      "--loss",       "--optimizer", "--lr",           "--config",
      "--checkpoint", "--resume",    "--save-weights", "--save-hf", "--save-onnx",
      "--metrics",    "--trace",     "--report",       "--summary",
      "--accumulate", "--precision", "--steps"};
  for (const char *flag : others)
    if (options.forward && options.given.count(flag))
      throw FlagError(std::string(flag) +
                      " is for training, which --forward does not do");
  if (options.forward && options.saveOutputs.empty())
    throw FlagError("--forward needs --save-outputs, the file for the outputs");
}

/// Rules about flags whose values a config has not.
static void checkFlags(const RunOptions &options, const RawOptions &raw) {
  checkForward(options);
  if (options.data.empty() && !options.explainConfig && !options.forward)
    throw FlagError("--data is missing: the file with the samples");
  const std::string &backend = options.backend;
  if (!backend.empty() && backend != "host" && backend != "cuda" &&
      backend.compare(0, 5, "cuda:"))
    throw FlagError("--backend '" + backend +
                    "': expected host, cuda or cuda:sm_90");
  if (!options.saveOnnx.empty() && options.kind != ModelKind::Onnx)
    throw FlagError("--save-onnx is for ONNX models: " + options.model +
                    " does not have the graph; --save-weights and zero-import "
                    "--export write one");
  if (options.kind == ModelKind::Mlir &&
      (!options.dims.empty() || !options.train.empty() ||
       !options.freeze.empty() || !options.values.empty()))
    throw FlagError("--dim, --value, --train and --freeze are for ONNX models");
  if (options.checkpoint.empty() &&
      (options.checkpointEvery || options.keepCheckpoints ||
       options.checkpointSync))
    throw FlagError("--checkpoint-every, --keep and --checkpoint-sync need "
                    "--checkpoint");
  if (options.shardBytes && options.saveHf.empty())
    throw FlagError("--shard-size needs --save-hf");
  if (options.logs.empty() != options.logDir.empty())
    throw FlagError(options.logs.empty() ? "--log-dir needs --log"
                                         : "--log needs --log-dir");
  if (options.given.count("--metric-names") && options.logs.empty())
    throw FlagError("--metric-names needs --log");
  const LaunchFlags &launch = options.launch;
  if (launch.processes &&
      (launch.rank || launch.worldSize || launch.localRank ||
       launch.masterPort || !launch.masterAddress.empty()))
    throw FlagError("--processes starts all processes here; --rank, "
                    "--world-size, --local-rank, --master-addr and "
                    "--master-port are for processes started otherwise");
  // An ONNX model may have a backward pass of its own.
  if (options.loss.empty() && !options.compileFlags.empty() &&
      !options.explainConfig && options.kind != ModelKind::Onnx)
    throw FlagError(options.compileFlags + " needs --loss: " + options.model +
                    " is taken as a training step otherwise");
}

static void checkLossScale(const RunOptions &options) {
  const LossScaleFlags &flags = options.lossScale;
  bool dynamic =
      flags.window || flags.hysteresis || flags.initialPower || flags.min;
  if ((flags.scale || dynamic) && options.precision != "fp16")
    throw FlagError("--loss-scale and its numbers are for --precision fp16");
  if (flags.scale.value_or(0) > 0 && dynamic)
    throw FlagError("--loss-scale is fixed; the other flags of the loss scale "
                    "are for --loss-scale dynamic");
}

/// What a rule says is the compiler's affair; where its files go is not.
static void checkOffload(const RunOptions &options) {
  for (const std::string &rule : options.offload) {
    bool alone = rule == "auto" || rule == "none";
    if (alone && options.offload.size() > 1)
      throw FlagError("--offload " + rule + " is alone: it decides all kinds");
    if (rule.find("=disk") != rule.npos && options.offloadPath.empty())
      throw FlagError("--offload " + rule +
                      " needs --offload-path, a folder on a fast disk");
  }
}

void zero_tools::checkRunOptions(const RunOptions &options) {
  checkOffload(options);
  if (options.reduceType == "fp16" && options.precision != "fp16")
    throw FlagError("--reduce-type fp16 is for --precision fp16");
  checkLossScale(options);
  if (options.clipNorm.value_or(0) > 0 && options.clipValue.value_or(0) > 0)
    throw FlagError("--clip and --clip-value exclude each other");
  bool isSgd = options.optimizer == "sgd";
  if (!options.optimizer.empty() && !isSgd &&
      (options.momentum.value_or(0) > 0 || options.nesterov))
    throw FlagError("--momentum and --nesterov are for --optimizer sgd, not " +
                    options.optimizer);
  if (isSgd && (options.betas || options.epsilon))
    throw FlagError("--betas and --epsilon are for --optimizer adam and adamw");
}

/// The one model of the command line; none is needed to explain a config.
static void readModel(const std::vector<std::string> &models,
                      RunOptions &options) {
  if (models.size() > 1)
    throw FlagError("more than one model: " + models[0] + " and " + models[1]);
  if (models.empty() && options.explainConfig)
    return;
  if (models.empty())
    throw FlagError("no model: expected a .zplan, .mlir or .onnx file");
  options.model = models.front();
  options.kind = kindOf(options.model);
}

std::optional<RunOptions> zero_tools::parseRunOptions(int argc, char **argv) {
  RunOptions options;
  RawOptions raw;
  Flags flags(usage);
  addRunFlags(flags, options, raw);
  addCompileFlags(flags, options, raw);
  addStepFlags(flags, options, raw);
  addForwardFlags(flags, options, raw);
  addSaveFlags(flags, options, raw);
  addLogFlags(flags, options, raw);
  addProcessFlags(flags, options);
  addConfigFlags(flags, options);
  auto models = flags.parse(argc, argv);
  if (!models)
    return std::nullopt;
  options.given = flags.givenNames();
  readModel(*models, options);
  options.learningRate = raw.learningRate.value_or(options.learningRate);
  if (!raw.betas.empty())
    options.betas = parsePair("--betas", raw.betas);
  parseDims(raw.dims, options.dims);
  options.values = parseNamedFiles("--value", raw.values);
  if (flags.given("--zero-grid"))
    parseGrid(raw.grid, options);
  if (raw.shard != "inner" && raw.shard != "all")
    throw FlagError("--zero-shard '" + raw.shard + "': expected inner or all");
  options.shardAll = raw.shard == "all";
  checkNames(options);
  parseStepTexts(options, raw);
  options.compileFlags = givenOf(flags, compileFlagNames);
  checkPlan(options, flags);
  checkFlags(options, raw);
  // With a config, they are looked at when its settings are known.
  if (options.config.empty())
    checkRunOptions(options);
  return options;
}
