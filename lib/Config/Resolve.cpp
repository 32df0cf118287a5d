//===- Resolve.cpp - Stages, batches and logs of a config -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the keys around the training step into settings.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir::zero;
using llvm::StringRef;
using llvm::Twine;

using Verdict = ConfigVerdict;

static constexpr StringRef kTrain = "train_batch_size";
static constexpr StringRef kMicro = "train_micro_batch_size_per_gpu";
static constexpr StringRef kSteps = "gradient_accumulation_steps";

//===----------------------------------------------------------------------===//
// Stage and grid
//===----------------------------------------------------------------------===//

void ConfigReader::resolveZero() {
  if (std::optional<bool> old = boolean("zero_optimization")) {
    take("zero_optimization", settings.stage, int64_t(*old), "--zero-stage");
    return;
  }
  takeKey("zero_optimization.stage", settings.stage,
          integer("zero_optimization.stage"), "--zero-stage");
  StringRef overlap = "zero_optimization.overlap_comm";
  if (std::optional<bool> overlaps = boolean(overlap))
    take(overlap, settings.schedule, std::string(*overlaps ? "joint" : "none"),
         "--zero-schedule");
  else if (isAuto(overlap))
    say(overlap, Verdict::Used,
        "--zero-schedule " + settings.schedule.value_or("joint"));
  resolveGrid();
}

/// `R x S` for MiCS's groups and the secondary groups of ZeRO++.
void ConfigReader::resolveGrid() {
  for (auto [name, all] :
       {std::pair<const char *, bool>{"zero_optimization.mics_shard_size",
                                      false},
        {"zero_optimization.zero_hpz_partition_size", true}}) {
    int64_t size = integer(name).value_or(1);
    if (!value(name))
      continue;
    if (size < 1 + int64_t(all)) {
      say(name, Verdict::NoEffect, "asks for nothing");
    } else if (settings.stage.value_or(0) < 3) {
      say(name, Verdict::NoEffect, "for stage 3; DeepSpeed ignores it below");
    } else if (!settings.grid.empty()) {
      sayAndNote(name, Verdict::NoEffect, "--zero-grid goes before it");
    } else if (!settings.ranks) {
      if (!ranksLater)
        say(name, Verdict::Refused, "needs the number of ranks; give --ranks");
      else
        say(name, Verdict::Mapped,
            "--zero-grid (ranks/" + Twine(size) + ")x" + Twine(size));
    } else if (*settings.ranks % size) {
      say(name, Verdict::Refused,
          "found " + Twine(size) + "; expected a divisor of the " +
              Twine(*settings.ranks) + " ranks");
    } else if (*settings.ranks == size) {
      say(name, Verdict::NoEffect, "all ranks are one group");
    } else {
      settings.grid = {*settings.ranks / size, size};
      if (all)
        settings.shardAll = true;
      say(name, Verdict::Mapped,
          "--zero-grid " + Twine(settings.grid[0]) + "x" + Twine(size) +
              (all ? " --zero-shard all" : ""));
    }
  }
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// train = micro-batch x accumulation x ranks; what is missing is derived.
void ConfigReader::resolveBatches() {
  bool overridden = false;
  std::optional<int64_t> micro = integer(kMicro), steps = integer(kSteps);
  if (micro) {
    overridden |= settings.batch && settings.batch != micro;
    take(kMicro, settings.batch, *micro, "--batch");
  }
  if (steps) {
    overridden |= settings.accumulate && settings.accumulate != steps;
    take(kSteps, settings.accumulate, *steps, "--accumulate");
  }
  std::optional<int64_t> train = integer(kTrain);
  if (!train && !value(kTrain) && !value(kMicro) && value(kSteps) &&
      !settings.batch)
    return say(kSteps, Verdict::Refused,
               "alone it says no batch; give " + kTrain + " or " + kMicro);
  // A flag that changes a factor changes the product.
  if (train && overridden)
    sayAndNote(kTrain, Verdict::NoEffect,
               "the flags give other numbers of samples");
  else if (train)
    splitBatch(*train, settings.batch.has_value(),
               settings.accumulate.has_value());
  describeBatches(overridden);
}

/// Derives what is missing of a given batch.
void ConfigReader::splitBatch(int64_t train, bool microGiven, bool stepsGiven) {
  if (!settings.ranks && microGiven && stepsGiven) {
    int64_t others = *settings.batch * *settings.accumulate;
    if (train % others || train / others > 1024)
      return say(kTrain, Verdict::Refused,
                 "found " + Twine(train) + "; expected " +
                     Twine(*settings.batch) + " x " +
                     Twine(*settings.accumulate) +
                     " times the number of ranks, at most 1024");
    settings.ranks = train / others;
    return say(kTrain, Verdict::Used,
               "--ranks " + Twine(*settings.ranks) + ": " + Twine(train) +
                   " / (" + Twine(*settings.batch) + " x " +
                   Twine(*settings.accumulate) + ")");
  }
  if (!settings.ranks && ranksLater)
    return say(kTrain, Verdict::Used,
               "micro-batch x accumulation x ranks; give --ranks to see them");
  int64_t ranks = settings.ranks.value_or(1);
  int64_t micro = settings.batch.value_or(1);
  int64_t steps = settings.accumulate.value_or(1);
  if (!stepsGiven && microGiven)
    steps = std::max<int64_t>(train / (micro * ranks), 1);
  else if (!microGiven)
    micro = std::max<int64_t>(train / (steps * ranks), 1);
  settings.batch = micro;
  settings.accumulate = steps;
  checkBatches(train, micro, steps, ranks);
}

void ConfigReader::checkBatches(int64_t train, int64_t micro, int64_t steps,
                                int64_t ranks) {
  std::string product = (Twine(micro) + " x " + Twine(steps) + " x " +
                         Twine(ranks) + (ranks == 1 ? " rank" : " ranks"))
                            .str();
  if (micro * steps * ranks == train)
    return say(kTrain, Verdict::Used, product);
  say(kTrain, Verdict::Refused,
      "found " + Twine(train) + "; " + product + " is " +
          Twine(micro * steps * ranks) +
          (flags.ranks ? "" : "; --ranks says how many ranks there are"));
}

/// The rows of factors that the file leaves open, or leaves out.
void ConfigReader::describeBatches(bool overridden) {
  bool derived = integer(kTrain) && !overridden;
  if (isAuto(kMicro) || (derived && !value(kMicro) && settings.batch))
    say(kMicro, Verdict::Used,
        !settings.batch ? "the model's, or --batch"
        : flags.batch   ? show(*settings.batch) + ", from --batch"
                        : "--batch " + show(*settings.batch));
  bool open = derived && !settings.accumulate;
  if (isAuto(kSteps) && !open && !settings.accumulate)
    settings.accumulate = 1;
  if (isAuto(kSteps) && open)
    say(kSteps, Verdict::Used, "train_batch_size / (micro-batch x ranks)");
  else if (isAuto(kSteps) || (derived && !value(kSteps) && !open))
    say(kSteps, Verdict::Used,
        flags.accumulate ? show(*settings.accumulate) + ", from --accumulate"
                         : "--accumulate " + show(*settings.accumulate));
  if (!isAuto(kTrain))
    return;
  if (settings.batch && settings.ranks)
    say(kTrain, Verdict::Used,
        Twine(*settings.batch) + " x " +
            Twine(settings.accumulate.value_or(1)) + " x " +
            Twine(*settings.ranks) + " ranks");
  else
    say(kTrain, Verdict::Used, "micro-batch x accumulation x ranks");
}

//===----------------------------------------------------------------------===//
// Clipping and logs
//===----------------------------------------------------------------------===//

void ConfigReader::resolveClipping() {
  StringRef key = "gradient_clipping";
  if (settings.clipValue.value_or(0) > 0) {
    if (value(key))
      sayAndNote(key, Verdict::NoEffect, "--clip-value goes before it");
    return;
  }
  if (value(key))
    return takeKey(key, settings.clipNorm, number(key), "--clip",
                   std::optional<double>(1.0));
  if (settings.clipNorm)
    return;
  settings.clipNorm = 1.0;
  sayAndNote(key, Verdict::Used,
             "absent: --clip 1, as DeepSpeed 0.19 has it (older ones did not "
             "clip; 0 turns it off)");
}

void ConfigReader::resolveLog(StringRef section, StringRef kind) {
  std::string enabled = (section + ".enabled").str();
  if (!boolean(enabled).value_or(false))
    return;
  for (const std::string &log : flags.logs)
    if (log == kind)
      return say(enabled, Verdict::Used, "--log " + kind);
  if (!flags.logs.empty())
    return sayAndNote(enabled, Verdict::NoEffect,
                      "--log " + flags.logs.front() + " goes before it");
  std::string path = (section + ".output_path").str();
  std::string job = (section + ".job_name").str();
  std::string folder = text(path).value_or("");
  if (!folder.empty() && folder.back() != '/')
    folder += '/';
  folder += text(job).value_or("DeepSpeedJobName");
  settings.logs.push_back(kind.str());
  say(enabled, Verdict::Used, "--log " + kind);
  if (!settings.metricNames)
    settings.metricNames = "deepspeed";
  bool other = settings.logDir && *settings.logDir != folder;
  if (!settings.logDir)
    settings.logDir = folder;
  std::string text = "--log-dir " + *settings.logDir;
  for (const std::string &key : {path, job})
    if (value(key))
      say(key, other ? Verdict::NoEffect : Verdict::Used,
          other ? text + " is for all logs" : text);
}

void ConfigReader::resolveLogs() {
  std::optional<int64_t> every = integer("steps_per_print");
  if (number("steps_per_print") && !every) // Infinity
    every = 0;
  takeKey("steps_per_print", settings.logEvery, every, "--log-every",
          std::optional<int64_t>(10));
  resolveLog("tensorboard", "tensorboard");
  resolveLog("csv_monitor", "csv");
}

//===----------------------------------------------------------------------===//
// What DeepSpeed ignores in silence
//===----------------------------------------------------------------------===//

void ConfigReader::nameIgnored() {
  StringRef live = "zero_optimization.stage3_max_live_parameters";
  if (integer(live) == 0)
    sayAndNote(live, Verdict::NoEffect,
               "0 says that no parameter may be gathered, which DeepSpeed "
               "ignores in silence; --memory bounds all bytes");
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

void ConfigReader::read(const ConfigValue &file) {
  findKinds(file);
  readSection("", file, "");
  resolveZero();
  resolveBatches();
  resolvePrecision();
  resolveOptimizer();
  resolveSchedule();
  resolveClipping();
  resolveLogs();
  resolveOffload();
  nameIgnored();
}

llvm::Expected<ConfigResult>
mlir::zero::readDeepSpeedConfig(StringRef text,
                                const ConfigQuestion &question) {
  llvm::Expected<ConfigValue> file = parseConfig(text);
  if (!file)
    return file.takeError();
  ConfigResult result;
  ConfigReader(question, result).read(*file);
  return result;
}

llvm::Expected<ConfigResult>
mlir::zero::readDeepSpeedConfigFile(const std::string &path,
                                    const ConfigQuestion &question) {
  auto wrong = [&](const Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   path + message);
  };
  llvm::sys::fs::file_status status;
  if (std::error_code failed = llvm::sys::fs::status(path, status))
    return wrong(": cannot open: " + failed.message());
  // Devices may never end; a pipe is what a shell makes of <(command).
  if (status.type() != llvm::sys::fs::file_type::regular_file &&
      status.type() != llvm::sys::fs::file_type::fifo_file)
    return wrong(": is no file");
  if (status.getSize() > kMaxConfigBytes)
    return wrong(": has " + Twine(status.getSize()) +
                 " bytes; a config has at most " + Twine(kMaxConfigBytes));
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return wrong(": cannot read: " + buffer.getError().message());
  llvm::Expected<ConfigResult> result =
      readDeepSpeedConfig((*buffer)->getBuffer(), question);
  if (result)
    return result;
  return wrong(":" + llvm::toString(result.takeError()));
}

std::vector<std::string> ConfigResult::refusals() const {
  std::vector<std::string> lines;
  for (const ConfigEntry &entry : entries)
    if (entry.verdict == ConfigVerdict::Refused)
      lines.push_back(entry.path + ": " + entry.becomes);
  return lines;
}
