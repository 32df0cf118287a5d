//===- RunOptions.h - Flags of zero-run -------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the command line of zero-run says.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_RUNOPTIONS_H
#define ZERO_TOOLS_ZERO_RUN_RUNOPTIONS_H

#include "LaunchSettings.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zero_tools {

enum class ModelKind { Plan, Mlir, Onnx };

/// `--lr-schedule KIND:key=value,...`; the training step checks kinds and keys.
struct ScheduleFlag {
  std::string kind;
  std::map<std::string, double> numbers;
};

/// `--group PATTERN:lr=L,weight-decay=W`; what is absent is as for the others.
struct GroupFlag {
  std::string pattern;
  std::optional<double> learningRate, weightDecay;
};

/// What is absent is DeepSpeed's default.
struct LossScaleFlags {
  /// 0: dynamic, as DeepSpeed has it.
  std::optional<double> scale, min;
  std::optional<int64_t> window, hysteresis, initialPower;
  /// The hysteresis is full again after a clean step (of a config alone).
  bool consecutiveHysteresis = false;
};

struct RunOptions {
  std::string model;
  ModelKind kind = ModelKind::Plan;

  // What is compiled: flags that a plan already decides are refused with one.
  std::optional<int64_t> ranks, stage;
  /// Shape of a grid whose product is `ranks`; empty: none.
  std::vector<int64_t> grid;
  /// State is cut over all axes of it, not the last alone.
  bool shardAll = false;
  /// Device memory of a rank ("24GiB"), the machine whose times decide (a
  /// preset or a .json file) and what is scheduled; empty: not said.
  std::string memory, machine, schedule;
  /// What lives outside device memory: rules as "optimizer=host", or one that
  /// is "none" or "auto"; a rank's host memory ("64GiB"; empty: not said).
  std::vector<std::string> offload;
  std::string hostMemory;
  std::string loss, optimizer;
  std::optional<double> momentum, weightDecay, epsilon;
  std::optional<std::pair<double, double>> betas;
  bool nesterov = false;
  std::map<std::string, int64_t> dims;
  /// Inputs of an ONNX model that are constants, and the files with these.
  std::map<std::string, std::string> values;
  std::vector<std::string> train, freeze;
  /// Micro-batches of a step.
  std::optional<int64_t> accumulate;
  /// Global norm, and bound of each element, that gradients are clipped to.
  std::optional<double> clipNorm, clipValue;
  /// "f32", "bf16" or "fp16", of compute and of reduced gradients; empty: not
  /// said.
  std::string precision, reduceType;
  LossScaleFlags lossScale;
  std::optional<ScheduleFlag> lrSchedule;
  /// Of a config alone: sgd's dampening, Adam without bias corrections, steps
  /// that change nothing where gradients are not finite, and the momentum.
  double dampening = 0;
  bool biasCorrection = true, skipNonFinite = false;
  std::optional<ScheduleFlag> momentumSchedule;
  /// Patterns of parameters without weight decay; "auto": biases and norms.
  std::vector<std::string> noDecay;
  std::vector<GroupFlag> groups;
  /// "none", "selective", "full" or "auto"; empty: not said.
  std::string remat;
  /// The compiling flags that were given, in words.
  std::string compileFlags;

  /// Nothing is trained; the outputs are written to a file.
  bool forward = false;
  std::string saveOutputs;

  // What is run.
  std::string data, weights, metrics, saveWeights, saveOnnx, trace, report;
  std::optional<int64_t> steps, batch, threads;
  /// "host", "cuda" or "cuda:sm_90"; empty: not said.
  std::string backend;
  /// Folder of what is on disk, and threads of the host's part of a step, of a
  /// rank.
  std::string offloadPath;
  std::optional<int64_t> hostThreads;
  double learningRate = 1e-3;
  bool summary = false;

  // The processes of the run, and how long they wait for each other, in
  // seconds.
  LaunchFlags launch;
  std::string transport;
  std::optional<double> timeoutFactor, timeoutSeconds, connectSeconds;
  /// Who says how many ranks there are: for messages.
  std::string ranksSource = "--ranks";
  /// A step on a GPU is captured once and launched as one graph.
  bool cudaGraph = false;

  // A DeepSpeed config, whose settings are those of flags that were not given.
  std::string config;
  bool explainConfig = false;

  // Checkpoints. `keep`: how many; absent: all.
  std::string checkpoint, resume;
  std::optional<int64_t> checkpointEvery, keepCheckpoints;
  /// Of random numbers: kept with the state. Absent: 0.
  std::optional<int64_t> seed;
  /// The run goes on only when a checkpoint is on disk.
  bool checkpointSync = false;
  /// A folder for weights in Hugging Face's form, in files of at most
  /// `shardBytes` (default: their 5 GB).
  std::string saveHf;
  std::optional<int64_t> shardBytes;

  // Logs: "csv" and "tensorboard", each at most once.
  std::vector<std::string> logs;
  std::string logDir;
  /// "hf", "deepspeed" or "torchtitan".
  std::string metricNames = "torchtitan";
  /// Steps between step lines; 0: none.
  int64_t logEvery = 10;
  /// Stop at the first tensor with a NaN or infinity.
  bool checkFinite = false;

  /// Names of the flags that were on the command line.
  std::set<std::string> given;
};

/// Parses and checks the command line; nothing after --help. Throws FlagError.
std::optional<RunOptions> parseRunOptions(int argc, char **argv);

/// Rules between the settings of a run, wherever they come from. Throws
/// FlagError.
void checkRunOptions(const RunOptions &options);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_RUNOPTIONS_H
