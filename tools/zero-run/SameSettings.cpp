//===- SameSettings.cpp - All processes have the same flags ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See SameSettings.h.
//
//===----------------------------------------------------------------------===//

#include "SameSettings.h"

#include "RunGroup.h"
#include "RunOptions.h"

#include <charconv>

using namespace zero_tools;

namespace {

/// Names and values, each with a zero byte behind it: no flag can have one.
class SettingsText {
public:
  void add(const std::string &name, const std::string &value) {
    text += name + '\0' + value + '\0';
  }
  void add(const std::string &name, double value) { add(name, words(value)); }
  template <typename Number>
  void add(const std::string &name, const std::optional<Number> &value) {
    add(name, value ? words(*value) : "");
  }
  void add(const std::string &name, const std::vector<std::string> &values) {
    std::string all;
    for (const std::string &value : values)
      all += (all.empty() ? "" : " " + name + " ") + value;
    add(name, all);
  }
  void add(const std::string &name, const std::optional<ScheduleFlag> &value) {
    std::string all;
    for (const auto &[key, number] :
         value ? value->numbers : std::map<std::string, double>())
      all += (all.empty() ? ":" : ",") + key + "=" + words(number);
    add(name, value ? value->kind + all : "");
  }
  void toggle(const std::string &name, bool value) {
    add(name, value ? "(given)" : "");
  }
  void path(const std::string &name, const std::string &value) {
    toggle(name, !value.empty());
  }

  static std::string words(int64_t value) { return std::to_string(value); }
  static std::string words(double value) {
    char buffer[32];
    return std::string(
        buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  }
  static std::string words(const std::pair<double, double> &value) {
    return words(value.first) + "," + words(value.second);
  }

  std::string text;
};

} // namespace

static void addPlan(const RunOptions &options, SettingsText &text) {
  static const char *const kinds[] = {".zplan", ".mlir", ".onnx"};
  text.add("a model named", std::string(kinds[size_t(options.kind)]));
  text.add("--zero-stage", options.stage);
  std::string grid;
  for (int64_t size : options.grid)
    grid += (grid.empty() ? "" : "x") + std::to_string(size);
  text.add("--zero-grid", grid);
  text.add("--zero-shard", std::string(options.shardAll ? "all" : "inner"));
  text.add("--zero-schedule", options.schedule);
  text.add("--memory", options.memory);
  text.add("--host-memory", options.hostMemory);
  bool file = options.machine.find('/') != std::string::npos;
  text.add("--machine", file ? "(a file)" : options.machine);
  text.add("--offload", options.offload);
  text.path("--offload-path", options.offloadPath);
  text.add("--remat", options.remat);
  text.add("--backend", options.backend);
}

static void addStep(const RunOptions &options, SettingsText &text) {
  text.add("--loss", options.loss);
  text.add("--optimizer", options.optimizer);
  text.add("--lr", options.learningRate);
  text.add("--lr-schedule", options.lrSchedule);
  text.add("--momentum", options.momentum);
  text.add("--betas", options.betas);
  text.add("--epsilon", options.epsilon);
  text.add("--weight-decay", options.weightDecay);
  text.toggle("--nesterov", options.nesterov);
  std::vector<std::string> dims, groups;
  for (const auto &[name, size] : options.dims)
    dims.push_back(name + "=" + std::to_string(size));
  text.add("--dim", dims);
  std::vector<std::string> values;
  for (const auto &[name, file] : options.values)
    values.push_back(name);
  text.add("--value", values);
  text.toggle("--forward", options.forward);
  text.add("--train", options.train);
  text.add("--freeze", options.freeze);
  text.add("--no-decay", options.noDecay);
  for (const GroupFlag &group : options.groups)
    groups.push_back(
        group.pattern + ":" +
        (group.learningRate ? "lr=" + text.words(*group.learningRate) : "") +
        (group.learningRate && group.weightDecay ? "," : "") +
        (group.weightDecay ? "weight-decay=" + text.words(*group.weightDecay)
                           : ""));
  text.add("--group", groups);
  text.add("--accumulate", options.accumulate);
  text.add("--clip", options.clipNorm);
  text.add("--clip-value", options.clipValue);
  text.add("--precision", options.precision);
  text.add("--reduce-type", options.reduceType);
  const LossScaleFlags &scale = options.lossScale;
  text.add("--loss-scale", scale.scale);
  text.add("--loss-scale-window", scale.window);
  text.add("--loss-scale-hysteresis", scale.hysteresis);
  text.add("--loss-scale-min", scale.min);
  text.add("--initial-scale-power", scale.initialPower);
}

/// What only a config says has no flag.
static void addConfig(const RunOptions &options, SettingsText &text) {
  text.toggle("consecutive_hysteresis (--config)",
              options.lossScale.consecutiveHysteresis);
  text.add("dampening (--config)", options.dampening);
  text.toggle("bias_correction (--config)", options.biasCorrection);
  text.toggle("steps that skip what is not finite (--config)",
              options.skipNonFinite);
  text.add("a schedule of the momentum (--config)", options.momentumSchedule);
}

static void addRun(const RunOptions &options, SettingsText &text) {
  text.path("--weights", options.weights);
  text.add("--steps", options.steps);
  text.add("--batch", options.batch);
  text.add("--seed", options.seed);
  text.path("--checkpoint", options.checkpoint);
  text.add("--checkpoint-every", options.checkpointEvery);
  text.add("--keep", options.keepCheckpoints);
  text.toggle("--checkpoint-sync", options.checkpointSync);
  text.path("--resume", options.resume);
  text.path("--save-weights", options.saveWeights);
  text.path("--save-hf", options.saveHf);
  text.path("--save-onnx", options.saveOnnx);
  text.add("--shard-size", options.shardBytes);
  // Process 0 writes them, out of what all send.
  text.path("--trace or --report", options.trace + options.report);
  text.toggle("--check-finite", options.checkFinite);
  text.toggle("--cuda-graph", options.cudaGraph);
  text.add("--transport", options.transport);
  text.add("--timeout", options.timeoutSeconds);
  text.add("--timeout-factor", options.timeoutFactor);
}

std::string zero_tools::sharedSettings(const RunOptions &options) {
  SettingsText text;
  addPlan(options, text);
  addStep(options, text);
  addConfig(options, text);
  addRun(options, text);
  return text.text;
}

static std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\0', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// "--lr 0.9", "--check-finite" or "no --clip".
static std::string named(const std::string &name, const std::string &value) {
  if (value.empty())
    return "no " + name;
  return value[0] == '(' ? name : name + " " + value;
}

std::string
zero_tools::findDifference(const std::vector<std::string> &settings) {
  std::vector<std::string> first = split(settings[0]);
  for (size_t rank = 1; rank < settings.size(); ++rank) {
    if (settings[rank] == settings[0])
      continue;
    std::string who = "rank " + std::to_string(rank) + " ";
    std::vector<std::string> theirs = split(settings[rank]);
    for (size_t i = 0; i + 1 < std::min(first.size(), theirs.size()); i += 2)
      if (theirs[i] == first[i] && theirs[i + 1] != first[i + 1])
        return who + "has " + named(theirs[i], theirs[i + 1]) + ", rank 0 " +
               named(first[i], first[i + 1]) +
               ": all processes of a run need the same flags";
    return who + "and rank 0 are of different versions of zero-run: all "
                 "processes of a run need the same";
  }
  return "";
}

void zero_tools::checkSameSettings(const RunOptions &options, RunGroup &group) {
  std::string difference =
      findDifference(group.allGather(sharedSettings(options)));
  if (!difference.empty())
    throw CommonError(difference);
}
