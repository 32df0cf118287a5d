//===- zero-run.cpp - Training on N ranks ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trains an ONNX model, a training step in MLIR, or a compiled plan. The first
// two are compiled in this process, of several by process 0; from then on only
// the runtime works.
//
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"
#include "ExportWeights.h"
#include "Flags.h"
#include "Forward.h"
#include "LoadedModel.h"
#include "RunTarget.h"
#include "RunTimeline.h"
#include "SameSettings.h"
#include "StepSettings.h"
#include "Summary.h"
#include "TemporaryFolder.h"
#include "Terminal.h"
#include "Training.h"

#include "runtime/io/Files.h"
#include "runtime/io/HuggingFace.h"
#include "zero/Cost/Machine.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

using namespace zero_tools;

/// The machine of --machine.
static std::optional<mlir::zero::Machine> machineOf(const RunOptions &options) {
  if (options.machine.empty())
    return std::nullopt;
  auto machine = mlir::zero::loadMachine(options.machine);
  if (!machine)
    throw std::runtime_error(llvm::toString(machine.takeError()));
  return std::move(*machine);
}

/// The type that a program computes in, by the name that machines have for it.
static std::string computeType(const zrt::Program &program) {
  for (uint32_t i = 0; i < program.info().num_parameters; ++i) {
    zrt_parameter_info parameter = program.parameter(i);
    if (parameter.role == ZRT_TRAINED && parameter.dtype == ZRT_BF16)
      return "bf16";
    if (parameter.role == ZRT_TRAINED && parameter.dtype == ZRT_F16)
      return "f16";
  }
  return "f32";
}

/// What the metrics are shares of.
static void setMachine(Training &training, const mlir::zero::Machine &machine,
                       const zrt::Program &program) {
  training.setDeviceMemory(double(machine.memoryBytes));
  for (const std::string &type : {computeType(program), std::string("f32")}) {
    auto peak = machine.peakFlops.find(type);
    if (peak == machine.peakFlops.end())
      continue;
    training.setPeakFlops(peak->second);
    return;
  }
}

/// A plan uses the memory that it says, whatever it was planned for.
static void checkBudget(const RunOptions &options, const zrt::Program &program,
                        zrt_space space) {
  bool device = space == ZRT_DEVICE;
  std::optional<int64_t> budget =
      device ? budgetOf(options) : hostBudgetOf(options);
  uint64_t planned = zrt_program_planned_bytes(program.get(), space);
  if (budget && planned > uint64_t(*budget))
    throw std::runtime_error(
        options.model + ": needs " + std::to_string(planned) + " bytes of " +
        (device ? "device" : "host") + " memory on each rank, " +
        (device ? "--memory" : "--host-memory") + " allows " +
        std::to_string(*budget));
}

/// Of all processes; each rank's times count from when its process began the
/// step.
static SpansByRank gatherSpans(const Training &training, RunGroup &group) {
  std::vector<zrt_span> own = spansOf(training.runtime(), group.rank());
  size_t size = own.size() * sizeof(zrt_span);
  SpansByRank all;
  for (const std::string &theirs : group.allGather(
           std::string(reinterpret_cast<const char *>(own.data()), size))) {
    all.emplace_back(own.size());
    std::memcpy(all.back().data(), theirs.data(),
                std::min(size, theirs.size()));
  }
  return all;
}

static void writeTimelines(const RunOptions &options, RunGroup *group,
                           const zrt::Program &program,
                           const Training &training,
                           const std::string &offloadChoice) {
  if (options.trace.empty() && options.report.empty())
    return;
  if (!training.metrics().step)
    throw CommonError("--trace and --report show the last step, and none was "
                      "run");
  SpansByRank spans;
  if (group)
    spans = gatherSpans(training, *group);
  if (group && group->rank() != 0)
    return;
  std::vector<mlir::zero::Timeline> timelines;
  if (auto predicted =
          predictedTimeline(program, options.model, options.machine))
    timelines.push_back(std::move(*predicted));
  timelines.push_back(measuredTimeline(program, training.runtime(),
                                       options.model, options.machine,
                                       std::move(spans)));
  for (mlir::zero::Timeline &timeline : timelines)
    timeline.offload = offloadChoice;
  if (llvm::Error failed = mlir::zero::writeTimelineFiles(
          timelines, options.trace, options.report))
    throw std::runtime_error(llvm::toString(std::move(failed)));
}

/// The files that a run writes. Those of checkpoints, and of TensorBoard, have
/// names that no other output has by chance.
static std::vector<zrt::OutputPath> outputsOf(const RunOptions &options) {
  std::vector<zrt::OutputPath> outputs = {
      {"--metrics", options.metrics},
      {"--trace", options.trace},
      {"--report", options.report},
      {"--save-weights", options.saveWeights},
      {"--save-outputs", options.saveOutputs},
      {"--save-onnx", options.saveOnnx},
      {"--checkpoint", options.checkpoint, /*folder=*/true},
      {"--log-dir", options.logDir, /*folder=*/true},
      {"--save-hf", options.saveHf, /*folder=*/true}};
  for (const std::string &kind : options.logs)
    if (kind == "csv")
      outputs.push_back({"--log csv", options.logDir + "/" + csvName});
  if (!options.saveHf.empty())
    for (const std::string &path : zrt::huggingFaceOutputs(options.saveHf))
      outputs.push_back({"--save-hf", path});
  return outputs;
}

static void checkPaths(const RunOptions &options) {
  // A missing file is known before minutes of compilation.
  for (const std::string &path : {options.model, options.data})
    if (!path.empty())
      zrt::MappedFile readable(path);
  if (!options.weights.empty())
    zrt::openWeights(options.weights);
  if (!options.saveHf.empty())
    zrt::checkHuggingFaceFolder(options.saveHf);
  std::vector<zrt::OutputPath> outputs = outputsOf(options);
  for (const zrt::OutputPath &output : outputs)
    if (!output.folder) // a folder may have weights beside what is written
      zrt::refuseOverwrite(output.path, {options.model, options.data,
                                         options.weights, options.config});
  zrt::refuseSameOutput(outputs);
}

/// A plan has the number of micro-batches that it has.
static void checkAccumulation(const RunOptions &options,
                              const zrt::Program &program) {
  zrt_program_info info = program.info();
  int64_t planned = info.micro_batches;
  if (options.accumulate && *options.accumulate != planned)
    throw std::runtime_error(
        "--accumulate " + std::to_string(*options.accumulate) + ": " +
        options.model + " has steps of " + std::to_string(planned) +
        (planned == 1 ? " micro-batch" : " micro-batches"));
}

/// The model with the trained weights, by way of a file of them.
static void saveOnnx(const RunOptions &options, RunGroup *group,
                     Training &training) {
  TemporaryFolder folder;
  ExportRequest request;
  request.model = options.model;
  request.weights = folder.path() + "/trained.safetensors";
  request.output = options.saveOnnx;
  request.train = options.train;
  request.freeze = options.freeze;
  training.saveWeights(request.weights);
  if (!group || group->rank() == 0)
    exportWeights(request, [](const std::string &text) {
      printMessage("warning", text);
    });
}

/// Writes what is to be written of a run that is over.
static void writeResults(const RunOptions &options, RunGroup *group,
                         Training &training, const LoadedModel &model) {
  writeTimelines(options, group, model.program, training, model.offloadChoice);
  if (!options.saveWeights.empty())
    training.saveWeights(options.saveWeights);
  if (!options.saveOnnx.empty())
    saveOnnx(options, group, training);
  if (!options.saveHf.empty())
    training.saveHuggingFace(
        options.saveHf,
        uint64_t(options.shardBytes.value_or(zrt::huggingFaceShardBytes)));
  if (options.summary && (!group || group->rank() == 0))
    printSummary(model.program, training.metrics());
}

/// The steps. An error is told to the other processes before anything here
/// ends.
static void train(const RunOptions &options, RunGroup *group,
                  Training &training, LoadedModel &model) {
  try {
    training.setInitialValues();
    if (group && options.kind == ModelKind::Onnx)
      group->barrier(); // all have read them
    // So that nothing is left of a run that is killed.
    model.temporary.reset();
    training.run();
    writeResults(options, group, training, model);
    if (group)
      group->barrier();
  } catch (const std::exception &error) {
    if (group)
      group->report(error);
    throw;
  }
}

/// The outputs, without training. An error is told as in train().
static void runForward(const RunOptions &options, RunGroup *group,
                       LoadedModel &model) {
  try {
    Forward forward(
        options, model.program, model.initFolder,
        [](const std::string &text) { printMessage("warning", text); }, group);
    if (group && options.kind == ModelKind::Onnx)
      group->barrier(); // all have read them
    model.temporary.reset();
    forward.run();
    if (group)
      group->barrier();
  } catch (const std::exception &error) {
    if (group)
      group->report(error);
    throw;
  }
}

/// Flags that look as if there were other processes. GPUs of one process have
/// the limits of time as well.
static void noteUnused(const RunOptions &options, const zrt::Program &program) {
  std::vector<const char *> flags = {"--master-addr", "--master-port",
                                     "--transport", "--connect-timeout"};
  if (!strncmp(program.info().target, "host", 4))
    flags.insert(flags.end(), {"--timeout", "--timeout-factor"});
  for (const char *flag : flags)
    if (options.given.count(flag))
      printMessage("note",
                   std::string(flag) +
                       " has no effect: this is the only process of the run");
}

/// The exit status. `group`: the processes of the run, or null.
static int run(const RunOptions &options, RunGroup *group) {
  checkPaths(options);
  std::optional<mlir::zero::Machine> machine = machineOf(options);
  LoadedModel model;
  loadModel(options, group, model);
  const zrt::Program &program = model.program;
  checkTarget(options, program);
  if (!group)
    noteUnused(options, program);
  checkBudget(options, program, ZRT_DEVICE);
  checkBudget(options, program, ZRT_HOST);
  checkAccumulation(options, program);
  if (options.forward) {
    runForward(options, group, model);
    return 0;
  }
  Training training(
      options, program, model.initFolder,
      [](const std::string &text) { printMessage("warning", text); }, group);
  if (machine)
    setMachine(training, *machine, program);
  train(options, group, training, model);
  return training.terminated() ? Checkpointing::terminatedExitCode : 0;
}

static void readConfig(RunOptions &options, bool first) {
  if (!options.config.empty())
    applyConfig(options, [&](const std::string &text) {
      if (first)
        printMessage("note", text);
    });
}

/// This process and others, one rank each.
static int runInGroup(RunOptions &options, const Launched &launched) {
  GroupSettings settings;
  settings.transport = options.transport;
  settings.timeoutFactor = options.timeoutFactor;
  settings.timeoutSeconds = options.timeoutSeconds;
  settings.connectSeconds = options.connectSeconds;
  std::unique_ptr<RunGroup> group;
  try {
    group = std::make_unique<RunGroup>(launched, settings);
  } catch (const PeerError &) {
    return RunGroup::peerFailedExitCode;
  }
  try {
    readConfig(options, group->rank() == 0);
    checkSameSettings(options, *group);
    return run(options, group.get());
  } catch (const std::exception &error) {
    return group->fail(error);
  }
}

/// A rank a process.
static void setRanks(RunOptions &options, int64_t processes,
                     const std::string &source) {
  if (options.ranks && *options.ranks != processes) {
    std::string ranks = std::to_string(*options.ranks);
    throw FlagError((options.grid.empty()
                         ? "--ranks " + ranks
                         : "--zero-grid has " + ranks + " ranks") +
                    ": there are " + std::to_string(processes) +
                    " processes (" + source + "), of one rank each");
  }
  options.ranks = processes;
  options.ranksSource = source;
}

/// The exit status.
static int start(RunOptions &options) {
  Launched launched;
  launched.settings = launchSettings(options.launch, environmentVariable);
  int64_t processes = options.launch.processes.value_or(1);
  if (options.launch.processes && launched.settings.size > 1)
    throw FlagError("--processes " + std::to_string(processes) +
                    " starts all processes, but this is already one of " +
                    std::to_string(launched.settings.size) + " (" +
                    launched.settings.source + ")");
  if (processes > 1) {
    setRanks(options, processes, "--processes");
    int exitCode = 0;
    // The launcher's, which a process that is killed does not take along.
    std::optional<TemporaryFolder> folder;
    if (options.kind == ModelKind::Onnx)
      folder.emplace();
    std::optional<Launched> started =
        launchProcesses(uint32_t(processes), exitCode);
    if (!started)
      return exitCode;
    launched = *started;
    if (folder)
      launched.folder = folder->disown();
  } else if (launched.settings.size > 1) {
    setRanks(options, launched.settings.size, launched.settings.source);
  }
  if (launched.settings.size > 1)
    return runInGroup(options, launched);
  readConfig(options, true);
  return run(options, nullptr);
}

int main(int argc, char **argv) {
  zrt::reportFileSizeLimit();
  try {
    std::optional<RunOptions> options = parseRunOptions(argc, argv);
    if (!options)
      return 0;
    resolveRates(*options);
    if (options->explainConfig)
      return explainConfig(*options) ? 0 : 1;
    return start(*options);
  } catch (const std::exception &error) {
    printMessage("error", error.what());
    return 1;
  }
}
