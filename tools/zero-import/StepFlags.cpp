//===- StepFlags.cpp - What a step computes -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The flags as texts, which are handed to the parser of zero-run.
//
//===----------------------------------------------------------------------===//

#include "StepFlags.h"

#include "../zero-run/ConfigFile.h"
#include "../zero-run/RunOptions.h"
#include "../zero-run/StepSettings.h"

#include "zero/Config/StepOptions.h"

#include <stdexcept>

using namespace zero_tools;
using mlir::train::TrainStepOptions;
using mlir::zero::ConfigQuestion;
using mlir::zero::ConfigResult;
using mlir::zero::RunSettings;
namespace cl = llvm::cl;

cl::OptionCategory zero_tools::stepCategory(
    "Options of the training step",
    "With --loss. They are those of zero-run and mean the same.");

namespace {
struct TextFlag : cl::opt<std::string> {
  TextFlag(llvm::StringRef name, const char *value, const char *help)
      : cl::opt<std::string>(name, cl::desc(help), cl::value_desc(value),
                             cl::cat(stepCategory)) {}
};
struct ListFlag : cl::list<std::string> {
  ListFlag(llvm::StringRef name, const char *value, const char *help)
      : cl::list<std::string>(name, cl::desc(help), cl::value_desc(value),
                              cl::cat(stepCategory)) {}
};
} // namespace

static TextFlag textFlags[] = {
    {"optimizer", "string", "adamw (default), adamw-hf, adam, adagrad, sgd or none"},
    {"momentum", "M", "sgd: momentum (default 0)"},
    {"weight-decay", "W", "Weight decay (default: 0.01 for adamw, else 0)"},
    {"betas", "a,b", "adam, adamw: decay of the moments (default 0.9,0.999)"},
    {"epsilon", "E", "adam, adamw: added to the denominator (default 1e-8)"},
    {"accumulate", "A", "Micro-batches of a step (default 1)"},
    {"clip", "NORM", "Clip gradients to this global norm"},
    {"clip-value", "V", "Clip each element of gradients to [-V, V]"},
    {"precision", "TYPE", "Of compute: f32 (default), bf16 or fp16"},
    {"reduce-type", "TYPE",
     "Gradients are reduced in f32 (default), bf16 or fp16"},
    {"loss-scale", "S", "fp16: dynamic (default) or a fixed number"},
    {"loss-scale-window", "N", "Clean steps before the scale doubles"},
    {"loss-scale-hysteresis", "N", "Overflows before the scale halves"},
    {"loss-scale-min", "S", "The least scale"},
    {"initial-scale-power", "N", "The first scale is 2^N"},
    {"lr-schedule", "KIND:K=V,...", "The learning rate by step"}};
static ListFlag listFlags[] = {
    {"no-decay", "PATTERN",
     "No weight decay for these parameters; auto: biases and norms"},
    {"group", "PATTERN:lr=L,weight-decay=W",
     "Other values for these parameters; its rate is over that of --lr"}};
static TextFlag learningRate("lr", "LR",
                             "Base rate of --config, --lr-schedule, --group");
static TextFlag steps("steps", "K", "--config: steps of its schedule");
static TextFlag
    configFile("config", "DS.json",
               "A DeepSpeed config for the step; flags go before what it says");
static cl::opt<bool> nesterov("nesterov", cl::desc("sgd: Nesterov momentum"),
                              cl::cat(stepCategory));
static cl::opt<double> dampening("dampening",
                                 cl::desc("sgd: dampening of the momentum"),
                                 cl::value_desc("D"), cl::init(0.0),
                                 cl::cat(stepCategory));

static bool given(const cl::Option &flag) {
  return flag.getNumOccurrences() != 0;
}

/// The flags that were given, as zero-run has them.
static std::vector<std::string> givenFlags() {
  std::vector<std::string> texts;
  auto add = [&](const cl::Option &flag, const std::string &value) {
    texts.push_back("--" + flag.ArgStr.str() + "=" + value);
  };
  for (const TextFlag &flag : textFlags)
    if (given(flag))
      add(flag, flag.getValue());
  for (const TextFlag *flag : {&learningRate, &steps, &configFile})
    if (given(*flag))
      add(*flag, flag->getValue());
  for (const ListFlag &flag : listFlags)
    for (const std::string &value : flag)
      add(flag, value);
  if (nesterov)
    texts.push_back("--nesterov");
  return texts;
}

/// Flags that would have no effect.
static void checkUse(const RunOptions &run) {
  if (!run.config.empty())
    return;
  if (run.steps)
    throw std::runtime_error("--steps is for --config, whose schedule needs "
                             "it");
  if (run.given.count("--lr") && !run.lrSchedule && run.groups.empty())
    throw std::runtime_error("--lr is for --config, --lr-schedule and --group; "
                             "otherwise the rate is an argument of the step");
}

/// Reads the flags as zero-run would read them.
static RunOptions parseFlags(const std::string &loss,
                             const std::vector<std::string> &flags) {
  // What zero-run needs besides; no message names it.
  std::vector<std::string> texts = {"zero-import", "model.onnx", "--data=-",
                                    "--loss=" + loss};
  texts.insert(texts.end(), flags.begin(), flags.end());
  std::vector<char *> arguments;
  for (std::string &text : texts)
    arguments.push_back(text.data());
  RunOptions run = *parseRunOptions(int(arguments.size()), arguments.data());
  checkUse(run);
  resolveRates(run);
  return run;
}

/// What the config and `run` say together; stages and ranks come later.
static RunSettings
readConfig(const RunOptions &run,
           const std::function<void(const std::string &)> &note) {
  ConfigQuestion question;
  question.flags = settingsOf(run);
  question.anyRanks = true;
  if (given(dampening))
    question.flags.dampening = dampening;
  if (given(nesterov))
    question.flags.nesterov = nesterov;
  llvm::Expected<ConfigResult> result =
      mlir::zero::readDeepSpeedConfigFile(run.config, question);
  if (!result)
    throw std::runtime_error(llvm::toString(result.takeError()));
  std::vector<std::string> refused = result->refusals();
  if (!refused.empty())
    throw std::runtime_error(run.config + ": " + refused.front());
  for (const std::string &line : result->notes)
    note(run.config + ": " + line);
  return result->settings;
}

/// What rules between flags, and rates of groups, depend on.
static void apply(const RunSettings &settings, RunOptions &run) {
  run.optimizer = settings.optimizer.value_or("");
  run.precision = settings.precision.value_or("");
  run.clipNorm = settings.clipNorm;
  run.learningRate = settings.learningRate.value_or(run.learningRate);
  if (settings.lrSchedule)
    run.lrSchedule =
        ScheduleFlag{settings.lrSchedule->kind, settings.lrSchedule->numbers};
  checkRunOptions(run);
}

/// The step of flags and config; `found` is null where a loss makes it.
static TrainStepOptions
readStep(const std::string &loss, const std::vector<std::string> &flags,
         const mlir::zero::FoundTraining *found,
         const std::function<void(const std::string &)> &note) {
  RunOptions run = parseFlags(loss, flags);
  auto make = [&] {
    return found ? trainStepOptions(run, *found) : trainStepOptions(run);
  };
  if (run.config.empty()) {
    run.dampening = dampening;
    return make();
  }
  RunSettings settings = readConfig(run, note);
  apply(settings, run);
  TrainStepOptions step = make();
  mlir::zero::setStepOptions(settings, step);
  // As an argument of the step a config's rate would be lost with the config.
  if (settings.learningRate && !step.schedule)
    step.schedule = {"constant", {{"lr", *settings.learningRate}}};
  return step;
}

std::string zero_tools::firstStepFlag() {
  std::vector<std::string> flags = givenFlags();
  return flags.empty() ? "" : flags.front().substr(0, flags.front().find('='));
}

TrainStepOptions zero_tools::readStepFlags(
    const std::string &loss,
    const std::function<void(const std::string &)> &note) {
  if (loss.empty())
    return {};
  return readStep(loss, givenFlags(), nullptr, note);
}

TrainStepOptions zero_tools::readStepFlags(
    const mlir::zero::FoundTraining &found,
    const std::function<void(const std::string &)> &note) {
  // The loss is the model's; the parser only asks that there is one.
  return readStep("output:loss", givenFlags(), &found, note);
}
