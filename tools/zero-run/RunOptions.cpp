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

using namespace zero_tools;

static constexpr const char *usage =
    R"(usage: zero-run step.zplan|M.mlir|MODEL.onnx --data D [flags]

Trains on N ranks, which are threads of this process. A .zplan is run as it is;
an .mlir step or an ONNX model is compiled first. The data is a safetensors or
.npz file with one tensor per input and label (first dimension = samples), or a
.bin file of 16-bit tokens.
)";

namespace {
/// Texts that become typed options after parsing.
struct RawOptions {
  std::string betas, grid, shard = "inner", backend = "host";
  std::vector<std::string> dims;
  std::optional<double> learningRate;
  std::optional<int64_t> seed, accumulate;
};
} // namespace

static const char *const compileFlagNames[] = {
    "--loss",         "--optimizer", "--momentum", "--betas", "--epsilon",
    "--weight-decay", "--nesterov",  "--dim",      "--train", "--freeze"};
/// These also change a step that is made already, but not a plan.
static const char *const planFlagNames[] = {"--zero-grid", "--zero-shard",
                                            "--zero-schedule"};
static const char *const scheduleNames[] = {"none",    "prefetch", "keep",
                                            "reorder", "bucket",   "joint"};

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
  flags.text("--loss", &options.loss, "LOSS",
             "cross-entropy, causal-lm, mse, bce or output:NAME");
  flags.text("--optimizer", &options.optimizer, "NAME",
             "sgd, adam or adamw (default adamw)");
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

static void addRunFlags(Flags &flags, RunOptions &options, RawOptions &raw) {
  flags.text("--data", &options.data, "D", "the samples");
  flags.integer("--steps", &options.steps, 0, INT64_MAX, "K",
                "number of steps (default: once through the data)");
  flags.integer("--batch", &options.batch, 1, INT64_MAX, "B",
                "samples per rank and step; what the model is made for");
  flags.number("--lr", &raw.learningRate, 0, "LR",
               "learning rate (default 0.001)");
  flags.text("--weights", &options.weights, "W",
             "initial values by name, a safetensors file");
  flags.integer("--seed", &raw.seed, 0, INT64_MAX, "S",
                "accepted; nothing in a step is random yet");
  flags.text("--backend", &raw.backend, "host", "where it runs");
  flags.integer("--accumulate", &raw.accumulate, 1, INT64_MAX, "A",
                "micro-batches per step; only 1 yet");
  flags.integer("--threads", &options.threads, 1, 1024, "T",
                "threads of library calls per rank (default 1)");
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

static void addLaterFlags(Flags &flags) {
  for (const char *name : {"--config", "--clip", "--checkpoint",
                           "--checkpoint-every", "--resume", "--save-onnx"})
    flags.unavailable(name, /*hasValue=*/true);
  flags.unavailable("--explain-config", /*hasValue=*/false);
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

static void checkSchedule(const std::string &schedule) {
  for (const char *name : scheduleNames)
    if (schedule.empty() || schedule == name)
      return;
  throw FlagError("--zero-schedule '" + schedule +
                  "': expected none, prefetch, keep, reorder, bucket or joint");
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
  if (options.kind == ModelKind::Plan && !decided.empty())
    throw FlagError(decided + ": " + options.model +
                    " has this decided already; give the flag to zero-compile "
                    "or zero-import");
}

/// Rules that involve more than one flag.
static void check(const RunOptions &options, const RawOptions &raw) {
  if (options.data.empty())
    throw FlagError("--data is missing: the file with the samples");
  if (raw.backend == "cuda")
    throw FlagError("not available yet: --backend cuda");
  if (raw.backend != "host")
    throw FlagError("--backend '" + raw.backend + "': expected host");
  if (raw.accumulate.value_or(1) != 1)
    throw FlagError("not available yet: --accumulate " +
                    std::to_string(*raw.accumulate));
  if (options.kind == ModelKind::Onnx && options.loss.empty())
    throw FlagError(options.model +
                    ": an ONNX model needs --loss to be trained");
  if (options.kind == ModelKind::Mlir &&
      (!options.dims.empty() || !options.train.empty() ||
       !options.freeze.empty()))
    throw FlagError("--dim, --train and --freeze are for ONNX models");
  bool isSgd = options.optimizer == "sgd";
  if (!options.optimizer.empty() && !isSgd &&
      (options.momentum || options.nesterov))
    throw FlagError("--momentum and --nesterov are for --optimizer sgd, not " +
                    options.optimizer);
  if (isSgd && (options.betas || options.epsilon))
    throw FlagError("--betas and --epsilon are for --optimizer adam and adamw");
  if (options.loss.empty() && !options.compileFlags.empty())
    throw FlagError(options.compileFlags + " needs --loss: " + options.model +
                    " is taken as a training step otherwise");
}

std::optional<RunOptions> zero_tools::parseRunOptions(int argc, char **argv) {
  RunOptions options;
  RawOptions raw;
  Flags flags(usage);
  addRunFlags(flags, options, raw);
  addCompileFlags(flags, options, raw);
  addLaterFlags(flags);
  auto models = flags.parse(argc, argv);
  if (!models)
    return std::nullopt;
  if (models->size() != 1)
    throw FlagError(models->empty()
                        ? "no model: expected a .zplan, .mlir or .onnx file"
                        : "more than one model: " + (*models)[0] + " and " +
                              (*models)[1]);
  options.model = models->front();
  options.kind = kindOf(options.model);
  options.learningRate = raw.learningRate.value_or(options.learningRate);
  if (!raw.betas.empty())
    options.betas = parsePair("--betas", raw.betas);
  parseDims(raw.dims, options.dims);
  if (flags.given("--zero-grid"))
    parseGrid(raw.grid, options);
  if (raw.shard != "inner" && raw.shard != "all")
    throw FlagError("--zero-shard '" + raw.shard + "': expected inner or all");
  options.shardAll = raw.shard == "all";
  checkSchedule(options.schedule);
  options.compileFlags = givenOf(flags, compileFlagNames);
  checkPlan(options, flags);
  check(options, raw);
  return options;
}
