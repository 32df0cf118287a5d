//===- zero-run.cpp - Training on N ranks ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trains an ONNX model, a training step in MLIR, or a compiled plan. The first
// two are compiled in this process; from then on only the runtime works.
//
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"
#include "Flags.h"
#include "RunTarget.h"
#include "RunTimeline.h"
#include "StepSettings.h"
#include "Summary.h"
#include "TemporaryFolder.h"
#include "Terminal.h"
#include "Training.h"

#include "runtime/io/Dataset.h"
#include "runtime/io/Files.h"
#include "runtime/io/HuggingFace.h"
#include "zero/Cost/Machine.h"
#include "zero/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdio>
#include <optional>

using namespace zero_tools;

static constexpr const char *weightsName = "weights.safetensors";

/// Samples of a rank: the first dimension of the model's first input.
static std::optional<int64_t> batchOf(mlir::ModuleOp module) {
  auto forward = module.lookupSymbol<mlir::func::FuncOp>("forward");
  if (!forward || !forward.getNumArguments())
    return std::nullopt;
  auto type =
      llvm::dyn_cast<mlir::RankedTensorType>(forward.getArgument(0).getType());
  if (!type || !type.getRank())
    return std::nullopt;
  return type.getDimSize(0);
}

/// What the data says about labels: their shape tells the class axis, and
/// without labels the tokens are the labels.
static void setLabels(const RunOptions &options, mlir::ModuleOp module,
                      mlir::train::TrainStepOptions &step) {
  auto shape = zrt::dataShape(options.data, "labels");
  auto batch = batchOf(module);
  if (!shape)
    step.labels = "input";
  else if (batch && !shape->empty()) {
    shape->front() = *batch;
    step.labelsShape.emplace(shape->begin(), shape->end());
  }
}

static mlir::OwningOpRef<mlir::ModuleOp>
loadModule(const RunOptions &options, mlir::MLIRContext &context,
           const std::string &weightsFolder) {
  if (options.kind == ModelKind::Mlir)
    return parseModule(options.model, context);
  mlir::zero::ImportOptions import;
  import.dims = options.dims;
  import.train = options.train;
  import.freeze = options.freeze;
  import.weightsPath = weightsFolder + "/" + weightsName;
  import.weightsName = weightsName;
  import.training = true;
  auto module = mlir::zero::importOnnx(options.model, context, import);
  if (failed(module))
    return nullptr;
  return std::move(*module);
}

/// The bytes of the plan for an .mlir or .onnx file. Says what was chosen to
/// live outside device memory.
static std::string compileModel(const RunOptions &options,
                                const std::string &weightsFolder,
                                std::string &offloadChoice) {
  mlir::MLIRContext context;
  prepareContext(context);
  OneLineErrors errors(context, "zero-run", options.model);
  CompileOptions compile = compileOptions(options);
  compile.target = targetOf(options.backend);
  std::string bytes;
  auto module = loadModule(options, context, weightsFolder);
  if (module && compile.trainStep)
    setLabels(options, *module, *compile.trainStep);
  if (!module ||
      failed(compileToZplan(*module, compile, bytes, &offloadChoice)))
    throw std::runtime_error(errors.error());
  if (!offloadChoice.empty())
    printMessage("note", offloadChoice);
  return bytes;
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash ? slash : 1);
}

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

static void writeTimelines(const RunOptions &options,
                           const zrt::Program &program,
                           const Training &training,
                           const std::string &offloadChoice) {
  if (options.trace.empty() && options.report.empty())
    return;
  if (!training.metrics().step)
    throw std::runtime_error("--trace and --report show the last step, and "
                             "none was run");
  std::vector<mlir::zero::Timeline> timelines;
  if (auto predicted =
          predictedTimeline(program, options.model, options.machine))
    timelines.push_back(std::move(*predicted));
  timelines.push_back(measuredTimeline(program, training.runtime(),
                                       options.model, options.machine));
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

/// The exit status.
static int run(const RunOptions &options) {
  checkPaths(options);
  std::optional<mlir::zero::Machine> machine = machineOf(options);
  zrt::Program program;
  std::string offloadChoice; // empty: nothing was to be chosen
  std::optional<TemporaryFolder> temporary;
  std::string initFolder = folderOf(options.model);
  if (options.kind == ModelKind::Onnx)
    initFolder = temporary.emplace().path();
  if (options.kind == ModelKind::Plan) {
    require(program.loadFile(options.model));
  } else {
    std::string plan = compileModel(options, initFolder, offloadChoice);
    require(program.loadBytes(plan.data(), plan.size()));
  }
  checkTarget(options, program);
  checkBudget(options, program, ZRT_DEVICE);
  checkBudget(options, program, ZRT_HOST);
  checkAccumulation(options, program);
  Training training(options, program, initFolder, [](const std::string &text) {
    printMessage("warning", text);
  });
  if (machine)
    setMachine(training, *machine, program);
  training.setInitialValues();
  temporary.reset(); // so that nothing is left of a run that is killed
  training.run();
  writeTimelines(options, program, training, offloadChoice);
  if (!options.saveWeights.empty())
    training.saveWeights(options.saveWeights);
  if (!options.saveHf.empty())
    training.saveHuggingFace(
        options.saveHf,
        uint64_t(options.shardBytes.value_or(zrt::huggingFaceShardBytes)));
  if (options.summary)
    printSummary(program, training.metrics());
  return training.terminated() ? Checkpointing::terminatedExitCode : 0;
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
    if (!options->config.empty())
      applyConfig(*options,
                  [](const std::string &text) { printMessage("note", text); });
    return run(*options);
  } catch (const std::exception &error) {
    printMessage("error", error.what());
    return 1;
  }
}
