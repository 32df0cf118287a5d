//===- zero-import.cpp - ONNX to MLIR -------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Imports an ONNX model into the train and zero dialects and, with --loss,
// makes it a training step.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/TrainStep.h"
#include "zero/Config/StepOptions.h"
#include "zero/Import/Import.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace cl = llvm::cl;
namespace path = llvm::sys::path;

static cl::OptionCategory category("zero-import options");

static cl::opt<std::string> inputFile(cl::Positional, cl::Required,
                                      cl::desc("MODEL.onnx"),
                                      cl::cat(category));
static cl::opt<std::string> outputFile("o", cl::desc("Output file"),
                                       cl::value_desc("M.mlir"), cl::init("-"),
                                       cl::cat(category));
static cl::opt<std::string>
    weightsFile("weights",
                cl::desc("Where to write the weights; by default beside the "
                         "output, with the extension .safetensors"),
                cl::value_desc("M.safetensors"), cl::cat(category));
static cl::list<std::string> dims("dim",
                                  cl::desc("Size of a symbolic dimension"),
                                  cl::value_desc("NAME=N"), cl::cat(category));
static cl::opt<bool>
    listParams("list-params",
               cl::desc("Print which tensors are trained, and why; without -o "
                        "nothing else is written"),
               cl::cat(category));
static cl::list<std::string>
    trainPatterns("train", cl::desc("Train the tensors that match"),
                  cl::value_desc("PATTERN"), cl::cat(category));
static cl::list<std::string>
    freezePatterns("freeze",
                   cl::desc("Do not train the tensors that match (wins over "
                            "--train)"),
                   cl::value_desc("PATTERN"), cl::cat(category));

static cl::opt<std::string>
    loss("loss",
         cl::desc("Make a training step with this loss: cross-entropy, "
                  "causal-lm, mse, bce (with :OUTPUT to choose an output) or "
                  "output:NAME"),
         cl::cat(category));
static cl::opt<std::string>
    labels("labels",
           cl::desc("causal-lm: the labels are the token input ('input', the "
                    "default) or an argument ('separate')"),
           cl::init("input"), cl::cat(category));
static cl::opt<std::string>
    optimizer("optimizer", cl::desc("adamw (default), adam, sgd or none"),
              cl::init("adamw"), cl::cat(category));
static cl::opt<double> momentum("momentum", cl::desc("sgd: momentum"),
                                cl::init(0.0), cl::cat(category));
static cl::opt<double> dampening("dampening",
                                 cl::desc("sgd: dampening of the momentum"),
                                 cl::init(0.0), cl::cat(category));
static cl::opt<bool> nesterov("nesterov", cl::desc("sgd: Nesterov momentum"),
                              cl::cat(category));
static cl::opt<double>
    weightDecay("weight-decay",
                cl::desc("Weight decay (default: 0.01 for adamw, else 0)"),
                cl::cat(category));
static cl::opt<std::string> betas("betas",
                                  cl::desc("adam, adamw: decay of the moments"),
                                  cl::value_desc("a,b"), cl::init("0.9,0.999"),
                                  cl::cat(category));
static cl::opt<double>
    epsilon("epsilon", cl::desc("adam, adamw: added to the denominator"),
            cl::init(1e-8), cl::cat(category));

static cl::opt<std::string>
    configFile("config",
               cl::desc("A DeepSpeed config for the step; flags go before what "
                        "it says"),
               cl::value_desc("DS.json"), cl::cat(category));
static cl::opt<double>
    learningRate("lr", cl::desc("--config: base rate of its schedule"),
                 cl::value_desc("LR"), cl::cat(category));
static cl::opt<int64_t> steps("steps",
                              cl::desc("--config: steps of its schedule"),
                              cl::value_desc("K"), cl::cat(category));
static cl::opt<std::string>
    precision("precision",
              cl::desc("--config: what \"auto\" means, f32, bf16 or fp16"),
              cl::value_desc("TYPE"), cl::cat(category));

static bool failWith(const Twine &message) {
  llvm::errs() << "zero-import: error: " << message << "\n";
  return false;
}

static bool readDims(std::map<std::string, int64_t> &sizes) {
  for (StringRef dim : dims) {
    auto [name, text] = dim.rsplit('=');
    int64_t size = 0;
    if (name.empty() || text.getAsInteger(10, size) || size <= 0)
      return failWith("--dim " + dim + ": expected NAME=N with a positive N");
    sizes[name.str()] = size;
  }
  return true;
}

static bool readStepOptions(train::TrainStepOptions &options) {
  options.loss = loss;
  options.labels = labels;
  options.optimizer = optimizer;
  options.momentum = momentum;
  options.dampening = dampening;
  options.nesterov = nesterov;
  if (weightDecay.getNumOccurrences())
    options.weightDecay = weightDecay;
  options.epsilon = epsilon;
  auto [first, second] = StringRef(betas).split(',');
  if (first.getAsDouble(options.beta1) || second.getAsDouble(options.beta2))
    return failWith("--betas " + betas + ": expected two numbers, a,b");
  return true;
}

/// What the flags say already.
static zero::RunSettings flagSettings(const train::TrainStepOptions &options) {
  zero::RunSettings flags;
  auto given = [](auto &flag, auto value, auto &setting) {
    if (flag.getNumOccurrences())
      setting = value;
  };
  given(optimizer, std::string(optimizer), flags.optimizer);
  given(momentum, double(momentum), flags.momentum);
  given(dampening, double(dampening), flags.dampening);
  given(nesterov, bool(nesterov), flags.nesterov);
  given(weightDecay, double(weightDecay), flags.weightDecay);
  given(betas, options.beta1, flags.beta1);
  given(betas, options.beta2, flags.beta2);
  given(epsilon, double(epsilon), flags.epsilon);
  given(learningRate, double(learningRate), flags.learningRate);
  given(steps, int64_t(steps), flags.steps);
  given(precision, std::string(precision), flags.precision);
  return flags;
}

/// What --config says of the step; stages and ranks come later.
static bool readConfig(train::TrainStepOptions &options) {
  if (configFile.empty()) {
    if (learningRate.getNumOccurrences() || steps.getNumOccurrences() ||
        precision.getNumOccurrences())
      return failWith("--lr, --steps and --precision are for --config");
    return true;
  }
  if (loss.empty())
    return failWith("--config needs --loss: it says how a step is made");
  if (precision.getNumOccurrences() && precision != "f32" &&
      precision != "bf16" && precision != "fp16")
    return failWith("--precision " + precision +
                    ": expected f32, bf16 or fp16");
  zero::ConfigQuestion question;
  question.flags = flagSettings(options);
  question.anyRanks = true;
  llvm::Expected<zero::ConfigResult> result =
      zero::readDeepSpeedConfigFile(configFile, question);
  if (!result)
    return failWith(llvm::toString(result.takeError()));
  std::vector<std::string> refused = result->refusals();
  if (!refused.empty())
    return failWith(configFile + ": " + refused.front());
  for (const std::string &note : result->notes)
    llvm::errs() << "zero-import: note: " << configFile << ": " << note << "\n";
  zero::setStepOptions(result->settings, options);
  return true;
}

/// Chooses the weights file and how the module names it: by its plain name
/// where it lies beside the module.
static void placeWeights(zero::ImportOptions &options) {
  SmallString<128> weights(weightsFile);
  if (weights.empty()) {
    weights = outputFile == "-" ? path::filename(inputFile) : outputFile;
    path::replace_extension(weights, "safetensors");
  }
  options.weightsPath = std::string(weights);
  bool beside = path::parent_path(weights) ==
                (outputFile == "-" ? "" : path::parent_path(outputFile));
  options.weightsName =
      beside ? path::filename(weights).str() : options.weightsPath;
}

/// Fails where an output is the model itself, which writing would destroy.
static bool keepsInput(StringRef output) {
  if (!llvm::sys::fs::equivalent(output, inputFile))
    return true;
  return failWith("'" + output.str() +
                  "' is the model that is imported; write to another file");
}

static bool writeModule(ModuleOp module) {
  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> out =
      openOutputFile(outputFile, &error);
  if (!out)
    return failWith(error);
  module->print(out->os());
  out->os().flush();
  if (std::error_code failed = out->os().error()) {
    out->os().clear_error(); // else the stream ends the program, in its words
    return failWith("cannot write '" + outputFile + "': " + failed.message());
  }
  out->keep();
  return true;
}

static bool run() {
  zero::ImportOptions options;
  train::TrainStepOptions step;
  std::vector<zero::ParamReport> report;
  if (!readDims(options.dims) || !readStepOptions(step) || !readConfig(step))
    return false;
  options.train = trainPatterns;
  options.freeze = freezePatterns;
  options.training = !loss.empty();
  bool listOnly = listParams && !outputFile.getNumOccurrences();
  if (listParams)
    options.report = &report;
  if (!listOnly)
    placeWeights(options);
  if (!listOnly &&
      (!keepsInput(outputFile) || !keepsInput(options.weightsPath)))
    return false;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    zero::printImportDiagnostic(llvm::errs(), "zero-import", diagnostic);
  });
  bool replaces = llvm::sys::fs::exists(options.weightsPath);
  FailureOr<OwningOpRef<ModuleOp>> module =
      zero::importOnnx(inputFile, context, options);
  if (failed(module))
    return false;
  // Weights without a module are of no use; those that were there stay.
  llvm::FileRemover weights(options.weightsPath,
                            /*deleteIt=*/!listOnly && !replaces);
  if (!loss.empty() && failed(train::buildTrainStep(**module, step)))
    return false;
  if (listParams)
    zero::printParamReport(llvm::outs(), report);
  if (!listOnly && !writeModule(**module))
    return false;
  weights.releaseFile();
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // --mlir-print-debuginfo shows each operation's ONNX node.
  registerAsmPrinterCLOptions();
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Imports an ONNX model as a module of the train and zero dialects.\n");
  return run() ? 0 : 1;
}
