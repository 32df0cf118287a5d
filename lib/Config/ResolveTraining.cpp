//===- ResolveTraining.cpp - What a config says is computed ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns precision, optimizer and scheduler into settings.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir::zero;
using llvm::StringRef;
using llvm::Twine;

using Kind = ConfigValue::Kind;
using Verdict = ConfigVerdict;

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

void ConfigReader::resolvePrecision() {
  bool bf16 = value("bf16.enabled"), fp16 = value("fp16.enabled");
  if (bf16 && fp16) {
    say("fp16.enabled", Verdict::Refused, "bf16.enabled is true as well");
    return;
  }
  std::string precision = bf16 ? "bf16" : "fp16";
  if (bf16 || fp16) {
    std::string key = precision + ".enabled";
    if (isAuto(key))
      say(key, Verdict::Used, precision + ", from --precision");
    else
      take(key, settings.precision, precision, "--precision");
  }
  bool holds = (bf16 || fp16) && settings.precision == precision;
  resolveReduceType(holds ? StringRef(precision) : "f32");
  StringRef check = "bf16.check_grad_overflow";
  if (bf16 && holds) {
    settings.skipNonFinite = boolean(check).value_or(true);
    say(check, Verdict::Used,
        Twine(value(check) ? "" : "absent: ") +
            "a step whose gradients are not finite changes " +
            (*settings.skipNonFinite ? "nothing" : "parameters all the same"));
  }
  if (fp16 && holds)
    resolveLossScale();
}

/// Gradients are reduced in the type of compute, unless the file says more.
void ConfigReader::resolveReduceType(StringRef precision) {
  StringRef key = "communication_data_type";
  if (boolean("fp32_allreduce").value_or(false))
    take("fp32_allreduce", settings.reduceType, std::string("f32"),
         "--reduce-type");
  if (std::optional<std::string> type = text(key)) {
    std::string name = *type == "fp32" ? "f32" : *type;
    if (name == "fp16" && precision != "fp16")
      return say(key, Verdict::Refused, "fp16 reductions are for fp16.enabled");
    return take(key, settings.reduceType, name, "--reduce-type");
  }
  if (settings.reduceType) {
    if (isAuto(key))
      say(key, Verdict::Used, *settings.reduceType + ", from --reduce-type");
    return;
  }
  if (precision == "f32" && !value(key))
    return;
  settings.reduceType = precision.str();
  say(key, Verdict::Used,
      (value(key) ? "" : "absent: ") + Twine("--reduce-type ") + precision +
          ", the type of compute");
}

void ConfigReader::resolveLossScale() {
  takeKey("fp16.loss_scale", settings.lossScale, number("fp16.loss_scale"),
          "--loss-scale", std::optional<double>(0));
  if (settings.lossScale == 0.0 && value("fp16.loss_scale"))
    say("fp16.loss_scale", Verdict::Used, "--loss-scale dynamic");
  if (settings.lossScale.value_or(0) > 0) {
    for (const char *key : {"fp16.initial_scale_power", "fp16.hysteresis",
                            "fp16.loss_scale_window", "fp16.min_loss_scale",
                            "fp16.consecutive_hysteresis"})
      if (value(key))
        say(key, Verdict::NoEffect, "the loss scale is fixed");
    return;
  }
  takeKey("fp16.initial_scale_power", settings.initialScalePower,
          integer("fp16.initial_scale_power"), "--initial-scale-power",
          std::optional<int64_t>(16));
  takeKey("fp16.loss_scale_window", settings.lossScaleWindow,
          integer("fp16.loss_scale_window"), "--loss-scale-window",
          std::optional<int64_t>(1000));
  takeKey("fp16.hysteresis", settings.lossScaleHysteresis,
          integer("fp16.hysteresis"), "--loss-scale-hysteresis",
          std::optional<int64_t>(2));
  takeKey("fp16.min_loss_scale", settings.lossScaleMin,
          number("fp16.min_loss_scale"), "--loss-scale-min",
          std::optional<double>(1));
  settings.consecutiveHysteresis = boolean("fp16.consecutive_hysteresis");
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

/// Why an optimizer of DeepSpeed or PyTorch is refused; empty: no such one.
static StringRef whyNot(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"onebitadam", "onebitlamb", "zerooneadam"},
             "it compresses gradients, which changes the training")
      .Cases({"muadam", "muadamw", "musgd"},
             "its rates depend on the widths of layers")
      .Case("muon", "its updates need whole matrices, not shards")
      .Case("lamb", "its rates depend on the norms of whole layers")
      .Cases({"lion", "adagrad", "adafactor", "adamax", "nadam", "radam",
              "rmsprop", "adadelta", "asgd", "lbfgs", "rprop", "sparseadam"},
             "it is not implemented")
      .Default("");
}

static constexpr StringRef kSchedules[] = {
    "WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "LRRangeTest", "OneCycle"};

StringRef mlir::zero::baseRateName(StringRef kind) {
  return llvm::StringSwitch<StringRef>(kind)
      .Cases({"WarmupLR", "WarmupDecayLR"}, "warmup_max_lr")
      .Case("LRRangeTest", "lr_range_test_min_lr")
      .Case("OneCycle", "cycle_max_lr")
      .Default("lr");
}

std::optional<double> mlir::zero::baseRate(const ScheduleSetting &schedule) {
  auto numberOf = [&](StringRef name) -> std::optional<double> {
    auto found = schedule.numbers.find(name.str());
    if (found == schedule.numbers.end())
      return std::nullopt;
    return found->second;
  };
  if (std::optional<double> own = numberOf(baseRateName(schedule.kind)))
    return own;
  if (schedule.kind == "WarmupDecayLR" || schedule.kind == "LRRangeTest")
    return 1e-3;
  return schedule.kind == "WarmupLR" ? numberOf("lr") : std::nullopt;
}

/// Which optimizer and scheduler the file asks for: parameters depend on it.
void ConfigReader::findKinds(const ConfigValue &file) {
  auto typeOf = [&](StringRef section) -> const ConfigValue * {
    const ConfigValue *object = file.find(section);
    return object ? object->find("type") : nullptr;
  };
  const ConfigValue *object = file.find("optimizer");
  hasOptimizer = object && object->kind == Kind::Object;
  const ConfigValue *type = typeOf("optimizer");
  if (hasOptimizer && (!type || type->isAuto()))
    optimizerKind = flags.optimizer.value_or("adamw");
  else if (type && type->kind == Kind::Text) {
    std::string lower = StringRef(type->text).lower();
    if (lower == "adam" || lower == "adamw" || lower == "sgd")
      optimizerKind = lower;
  }
  object = file.find("scheduler");
  hasScheduler = object && object->kind == Kind::Object;
  type = typeOf("scheduler");
  if (type && type->kind == Kind::Text &&
      llvm::is_contained(kSchedules, type->text))
    schedulerKind = type->text;
}

void ConfigReader::resolveOptimizer() {
  StringRef key = "optimizer.type";
  if (!hasOptimizer)
    return;
  if (!value(key))
    return say(key, Verdict::Refused,
               "is missing; expected \"Adam\", \"AdamW\" or \"SGD\"");
  std::string name = text(key).value_or("");
  if (optimizerKind.empty()) {
    StringRef why = whyNot(StringRef(name).lower());
    return say(key, Verdict::Refused,
               "found " + value(key)->print() +
                   (why.empty() ? Twine("") : ", but " + why) +
                   "; expected \"Adam\", \"AdamW\" or \"SGD\"");
  }
  StringRef mode = "optimizer.params.adam_w_mode";
  std::string flag = optimizerKind;
  if (optimizerKind == "adam")
    flag = boolean(mode).value_or(true) ? "adamw" : "adam";
  if (isAuto(key))
    takeKey(key, settings.optimizer, std::optional<std::string>(),
            "--optimizer", std::optional<std::string>("adamw"));
  else
    take(key, settings.optimizer, flag, "--optimizer");
  if (value(mode))
    say(mode, Verdict::Mapped, "--optimizer " + *settings.optimizer);
  if (optimizerKind == "adam" && flag == "adamw" && !value(mode))
    say(key, entry(key).verdict,
        entry(key).becomes + ": \"Adam\" is AdamW unless adam_w_mode is false");
  resolveOptimizerNumbers(flag);
}

void ConfigReader::resolveOptimizerNumbers(StringRef name) {
  auto path = [](const char *key) {
    return std::string("optimizer.params.") + key;
  };
  takeKey(path("lr"), settings.learningRate, number(path("lr")), "--lr");
  takeKey(path("eps"), settings.epsilon, number(path("eps")), "--epsilon",
          std::optional<double>(1e-8));
  takeKey(path("weight_decay"), settings.weightDecay,
          number(path("weight_decay")), "--weight-decay",
          std::optional<double>(0));
  takeKey(path("momentum"), settings.momentum, number(path("momentum")),
          "--momentum", std::optional<double>(0));
  settings.dampening = number(path("dampening"));
  settings.biasCorrection = boolean(path("bias_correction"));
  if (std::optional<bool> nesterov = boolean(path("nesterov")))
    settings.nesterov = flags.nesterov.value_or(false) || *nesterov;
  if (name == "adamw" && !settings.weightDecay) {
    settings.weightDecay = 0;
    say(path("weight_decay"), Verdict::Used,
        "absent: --weight-decay 0, as DeepSpeed has it (PyTorch: 0.01)");
  }
  const ConfigValue *betas = value(path("betas"));
  if (!betas)
    return;
  double first = 0.9, second = 0.999;
  if (betas->kind == Kind::List) {
    first = betas->items[0].number;
    second = betas->items[1].number;
  }
  std::string shown = showNumber(first) + "," + showNumber(second);
  bool differs =
      settings.beta1 && (*settings.beta1 != first || *settings.beta2 != second);
  if (settings.beta1) {
    shown = showNumber(*settings.beta1) + "," + showNumber(*settings.beta2);
    if (differs && !betas->isAuto())
      return sayAndNote(path("betas"), Verdict::NoEffect,
                        "--betas " + shown + " goes before it");
  } else {
    settings.beta1 = first;
    settings.beta2 = second;
  }
  say(path("betas"), Verdict::Used, "--betas " + shown);
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

void ConfigReader::resolveSchedule() {
  StringRef key = "scheduler.type";
  if (!hasScheduler)
    return;
  if (schedulerKind.empty()) {
    std::string found =
        value(key) ? "found " + value(key)->print() : std::string("is missing");
    return say(key, Verdict::Refused,
               found + "; expected WarmupLR, WarmupDecayLR, WarmupCosineLR, "
                       "LRRangeTest or OneCycle (--lr-schedule has PyTorch's)");
  }
  if (flags.lrSchedule && flags.lrSchedule->kind != schedulerKind) {
    sayAndNote(key, Verdict::NoEffect,
               "--lr-schedule " + flags.lrSchedule->kind + " goes before it");
    for (ConfigEntry &row : result.entries)
      if (StringRef(row.path).starts_with("scheduler.params.") &&
          row.verdict == Verdict::Used)
        row = {row.path, row.value, Verdict::NoEffect,
               "--lr-schedule goes before it"};
    return;
  }
  ScheduleSetting schedule;
  schedule.kind = schedulerKind;
  resolveScheduleNumbers(schedule);
  resolveRates(schedule);
  if (schedulerKind == "OneCycle")
    resolveCycleMomentum(schedule);
  // Numbers of the flag go before those of the file.
  if (flags.lrSchedule)
    for (const auto &[name, number] : flags.lrSchedule->numbers)
      schedule.numbers[name] = number;
  settings.lrSchedule = schedule;
  say(key, Verdict::Used, "--lr-schedule " + schedulerKind);
}

/// Numbers are passed on by their names; texts and truth values as numbers.
void ConfigReader::resolveScheduleNumbers(ScheduleSetting &schedule) {
  std::map<std::string, double> given;
  if (flags.lrSchedule)
    given = flags.lrSchedule->numbers;
  for (const ConfigKey &key : deepSpeedKeys()) {
    StringRef path = key.path, name = path;
    if (!name.consume_front("scheduler.params.") ||
        !keys::among(schedule.kind, key.kinds) ||
        name == "last_batch_iteration")
      continue;
    std::string own = name.str();
    auto flag = given.find(own);
    bool needed = !*key.defaultValue;
    if (flag != given.end() && value(path) && !isAuto(path) &&
        number(path) != flag->second) {
      schedule.numbers[own] = flag->second;
      sayAndNote(path, Verdict::NoEffect,
                 own + "=" + showNumber(flag->second) +
                     " of --lr-schedule goes before it");
    } else if (std::optional<double> found = number(path))
      schedule.numbers[own] = *found;
    else if (std::optional<bool> truth = boolean(path))
      schedule.numbers[own] = *truth;
    else if (std::optional<std::string> word = text(path))
      schedule.numbers[own] = *word == "linear";
    else if (flag != given.end())
      say(path, Verdict::Used,
          showNumber(flag->second) + ", from --lr-schedule");
    else if (own == "total_num_steps" && isAuto(path) && settings.steps) {
      schedule.numbers[own] = double(*settings.steps);
      say(path, Verdict::Used, show(*settings.steps) + ", from --steps");
    } else if (own == "total_num_steps" && isAuto(path))
      missing(path, "--steps");
    else if (own == "warmup_num_steps" && isAuto(path))
      missing(path, "--lr-schedule " + schedule.kind + ":" + own + "=N");
    else if (needed && isAuto(path))
      missing(path, "--lr-schedule " + schedule.kind + ":" + own + "=X");
    else if (needed && entry(path).verdict != Verdict::Refused)
      say(path, Verdict::Refused, schedule.kind + " needs it");
  }
}

/// The base rate, which other rates follow.
void ConfigReader::resolveRates(ScheduleSetting &schedule) {
  for (auto [path, text] :
       {std::pair<StringRef, StringRef>{"scheduler.params.warmup_min_lr", "0"},
        {"scheduler.params.warmup_type", "log"}})
    if (isAuto(path))
      say(path, Verdict::Used, text + ", DeepSpeed's default");
  StringRef key = "scheduler.params.warmup_max_lr";
  if (isAuto(key))
    say(key, Verdict::Used, "the optimizer's lr");
  if (!settings.learningRate && isAuto("optimizer.params.lr"))
    return;
  double rate = settings.learningRate.value_or(1e-3);
  schedule.numbers["lr"] = rate;
  if (isAuto(key))
    schedule.numbers["warmup_max_lr"] = rate;
  if (flags.learningRate)
    putRate(schedule, rate);
}

/// --lr goes before a rate of the schedule's own.
void ConfigReader::putRate(ScheduleSetting &schedule, double rate) {
  std::string name = baseRateName(schedule.kind).str();
  if (baseRate(schedule) == rate)
    return;
  std::string key = "scheduler.params." + name;
  // A cycle has two rates; one of them alone makes no sense.
  if (schedule.kind == "OneCycle")
    return note(key, "the rates of the cycle hold, --lr " + showNumber(rate) +
                         " has no effect");
  schedule.numbers[name] = rate;
  if (value(key) && !isAuto(key))
    return sayAndNote(key, Verdict::NoEffect,
                      "--lr " + showNumber(rate) + " goes before it");
  say(key, Verdict::Used,
      (value(key) ? "--lr " : "absent: --lr ") + showNumber(rate));
}

/// Moves the numbers of momentum into a schedule of its own.
void ConfigReader::resolveCycleMomentum(ScheduleSetting &schedule) {
  ScheduleSetting momentum;
  momentum.kind = "OneCycleMomentum";
  for (const auto &[name, number] : schedule.numbers)
    if (name != "cycle_momentum" && name != "lr" &&
        !StringRef(name).contains("_lr"))
      momentum.numbers[name] = number;
  auto &numbers = schedule.numbers;
  for (auto it = numbers.begin(); it != numbers.end();)
    it = StringRef(it->first).contains("mom") ? numbers.erase(it)
                                              : std::next(it);
  StringRef key = "scheduler.params.cycle_momentum";
  std::string optimizer = settings.optimizer.value_or("adamw");
  if (!boolean(key).value_or(true))
    return;
  if (optimizer == "sgd")
    return say(key, Verdict::NoEffect,
               "sgd has no beta1; DeepSpeed turns it off in silence");
  settings.momentumSchedule = momentum;
  settings.beta2 = 0.99;
  if (!settings.beta1)
    settings.beta1 = 0.9;
  sayAndNote(key, Verdict::Used,
             "beta1 follows the cycle and beta2 is 0.99, as DeepSpeed has it");
}
