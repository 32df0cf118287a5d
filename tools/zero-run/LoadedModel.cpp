//===- LoadedModel.cpp - The program that a run executes ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See LoadedModel.h.
//
//===----------------------------------------------------------------------===//

#include "LoadedModel.h"

#include "Flags.h"

#include "InputValues.h"
#include "RunTarget.h"
#include "StepSettings.h"
#include "Terminal.h"
#include "Training.h"

#include "runtime/io/Dataset.h"
#include "zero/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <unistd.h>

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
           const std::string &weightsFolder, mlir::zero::FoundTraining &found) {
  if (options.kind == ModelKind::Mlir)
    return parseModule(options.model, context);
  mlir::zero::ImportOptions import;
  import.dims = options.dims;
  import.train = options.train;
  import.freeze = options.freeze;
  import.weightsPath = weightsFolder + "/" + weightsName;
  import.weightsName = weightsName;
  import.training = !options.forward;
  import.batch = options.batch;
  import.values = readValues(options.values);
  if (options.loss.empty() && !options.forward)
    import.found = &found;
  auto module = mlir::zero::importOnnx(options.model, context, import);
  if (failed(module))
    return nullptr;
  return std::move(*module);
}

/// Without a loss an ONNX model has to have a step of its own, which flags do
/// not change.
static void checkStep(const RunOptions &options,
                      const mlir::zero::FoundTraining &found) {
  if (options.kind != ModelKind::Onnx || !options.loss.empty() ||
      options.forward)
    return;
  if (!found.step)
    throw FlagError(options.model +
                    ": an ONNX model needs --loss to be trained");
  for (const char *flag :
       {"--optimizer", "--momentum", "--betas", "--epsilon", "--weight-decay",
        "--nesterov", "--clip", "--clip-value", "--precision", "--reduce-type",
        "--loss-scale", "--lr-schedule", "--no-decay", "--group"})
    if (options.given.count(flag))
      throw FlagError(std::string(flag) + " needs --loss: " + options.model +
                      " has a training step of its own otherwise");
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
  mlir::zero::FoundTraining found;
  auto module = loadModule(options, context, weightsFolder, found);
  if (module && found.gradients)
    compile.trainStep = trainStepOptions(options, found);
  else if (module)
    checkStep(options, found);
  if (module && compile.trainStep)
    setLabels(options, *module, *compile.trainStep);
  if (!module ||
      failed(compileToZplan(*module, compile, bytes, &offloadChoice)))
    throw std::runtime_error(errors.error());
  if (!offloadChoice.empty())
    printMessage("note", offloadChoice);
  return bytes;
}

/// The weights of an ONNX model, in a folder of this process.
static void importWeights(const RunOptions &options, LoadedModel &model) {
  model.initFolder = model.temporary.emplace().path();
  mlir::MLIRContext context;
  prepareContext(context);
  OneLineErrors errors(context, "zero-run", options.model);
  mlir::zero::FoundTraining found;
  if (!loadModule(options, context, model.initFolder, found))
    throw std::runtime_error(errors.error());
}

/// Process 0 compiles, and all have its plan, so that all have the same. The
/// folder with the weights is its own: processes of other machines make one.
static void compileTogether(const RunOptions &options, RunGroup *group,
                            LoadedModel &model) {
  bool onnx = options.kind == ModelKind::Onnx;
  std::string plan;
  if (!group || group->rank() == 0) {
    if (onnx && group && !group->temporaryFolder().empty())
      model.temporary.emplace(group->temporaryFolder());
    else if (onnx)
      model.temporary.emplace();
    if (onnx)
      model.initFolder = model.temporary->path();
    plan = compileModel(options, model.initFolder, model.offloadChoice);
  }
  if (group) {
    plan = group->broadcast(plan);
    if (onnx)
      model.initFolder = group->broadcast(model.initFolder);
    if (onnx && access((model.initFolder + "/" + weightsName).c_str(), R_OK))
      importWeights(options, model);
  }
  require(model.program.loadBytes(plan.data(), plan.size()));
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash ? slash : 1);
}

void zero_tools::loadModel(const RunOptions &options, RunGroup *group,
                           LoadedModel &model) {
  model.initFolder = folderOf(options.model);
  if (options.kind == ModelKind::Plan)
    require(model.program.loadFile(options.model));
  else
    compileTogether(options, group, model);
}
