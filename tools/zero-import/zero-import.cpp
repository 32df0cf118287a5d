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

#include "StepFlags.h"

#include "../zero-run/ExportWeights.h"

#include "../zero-run/Flags.h"
#include "../zero-run/InputValues.h"

#include "dialects/Zero/Zero.h"
#include "zero/Autodiff/TrainStep.h"
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
                         "output, with the extension .safetensors, and "
                         "nowhere where the output is standard output"),
                cl::value_desc("M.safetensors"), cl::cat(category));
static cl::list<std::string> dims("dim",
                                  cl::desc("Size of a symbolic dimension"),
                                  cl::value_desc("NAME=N"), cl::cat(category));
static cl::opt<int64_t>
    batch("batch",
          cl::desc("Import a model that was exported at a fixed batch at this "
                   "one, where that is provably possible"),
          cl::value_desc("N"), cl::init(0), cl::cat(category));
static cl::list<std::string>
    values("value",
           cl::desc("This input is a constant: the tensor of its name in a "
                    "safetensors or .npz file; NAME= is an optional without "
                    "an element, or a sequence without tensors"),
           cl::value_desc("NAME=FILE"), cl::cat(category));
static cl::opt<int64_t> moeCapacity(
    "moe-capacity",
    cl::desc("Mixture of experts: the most tokens that an expert takes, the "
             "first of the batch; by default all there can be"),
    cl::value_desc("N"), cl::cat(category));
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
static cl::opt<bool> raiseAttention(
    "raise-attention",
    cl::desc("With --loss, for GPUs: attention is one operation only in the "
             "types and sizes that cuDNN has"),
    cl::cat(category));

static cl::opt<std::string> exportFile(
    "export",
    cl::desc("Write the model, as ONNX to -o, with these trained weights"),
    cl::value_desc("WEIGHTS.safetensors"), cl::cat(category));
static cl::opt<std::string> optimizerModel(
    "optimizer-model",
    cl::desc("The optimizer of a training model of onnxruntime; by default "
             "optimizer_model.onnx beside it"),
    cl::value_desc("O.onnx"), cl::cat(category));
static cl::opt<std::string>
    ortCheckpoint("ort-checkpoint",
                  cl::desc("The weights of a training model of onnxruntime; by "
                           "default the file checkpoint beside it"),
                  cl::value_desc("FILE"), cl::cat(category));

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

static bool readBatch(zero::ImportOptions &options) {
  if (!batch.getNumOccurrences())
    return true;
  if (batch < 1)
    return failWith("--batch " + Twine(batch) + ": expected at least 1");
  options.batch = batch;
  return true;
}

static bool readInputValues(zero::ImportOptions &options) {
  try {
    options.values =
        zero_tools::readValues(zero_tools::parseNamedFiles("--value", values));
  } catch (const std::exception &error) {
    return failWith(error.what());
  }
  return true;
}

static void printNote(const std::string &note) {
  llvm::errs() << "zero-import: note: " << note << "\n";
}

/// The options of the step that --loss asks for.
static bool readStepOptions(train::TrainStepOptions &options) {
  try {
    options = zero_tools::readStepFlags(loss, printNote);
  } catch (const std::exception &error) {
    return failWith(error.what());
  }
  if (raiseAttention && loss.empty())
    return failWith("--raise-attention needs --loss: it says how a step is "
                    "made");
  options.labels = labels;
  options.attention = raiseAttention ? train::AttentionLibrary::Gpu
                                     : train::AttentionLibrary::Host;
  return true;
}

/// Makes a step of what was imported, with --loss or where the model computes
/// gradients itself.
static bool makeStep(ModuleOp module, const zero::FoundTraining &found,
                     train::TrainStepOptions step) {
  if (loss.empty() && !found.gradients) {
    std::string flag = zero_tools::firstStepFlag();
    return flag.empty() ||
           failWith(flag + " needs --loss: it says how a step is made");
  }
  try {
    if (found.gradients)
      step = zero_tools::readStepFlags(found, printNote);
  } catch (const std::exception &error) {
    return failWith(error.what());
  }
  return succeeded(train::buildTrainStep(module, step));
}

/// --export: the model again, with other weights.
static bool writeOnnx() {
  if (!outputFile.getNumOccurrences() || outputFile == "-")
    return failWith("--export needs -o, the ONNX file to write");
  zero_tools::ExportRequest request;
  request.model = inputFile;
  request.weights = exportFile;
  request.output = outputFile;
  request.train = trainPatterns;
  request.freeze = freezePatterns;
  try {
    zero_tools::exportWeights(request, [](const std::string &text) {
      llvm::errs() << "zero-import: warning: " << text << "\n";
    });
  } catch (const std::exception &error) {
    return failWith(error.what());
  }
  return true;
}

/// Chooses the weights file and how the module names it: by its plain name
/// where it lies beside the module. Who writes to standard output did not ask
/// for a file.
static void placeWeights(zero::ImportOptions &options) {
  bool isPiped = outputFile == "-";
  SmallString<128> weights(weightsFile);
  if (weights.empty()) {
    weights = isPiped ? path::filename(inputFile) : outputFile;
    path::replace_extension(weights, "safetensors");
  }
  bool beside = path::parent_path(weights) ==
                (isPiped ? "" : path::parent_path(outputFile));
  options.weightsName =
      (beside ? path::filename(weights) : weights.str()).str();
  if (!isPiped || weightsFile.getNumOccurrences())
    options.weightsPath = std::string(weights);
}

/// Says that the module names a file of weights that is not written.
static void noteMissingWeights(ModuleOp module,
                               const zero::ImportOptions &options) {
  bool hasWeights = false;
  auto look = [&](auto symbol) { hasWeights |= bool(symbol.getInitFile()); };
  module.walk([&](zero::ParamOp param) { look(param); });
  module.walk([&](zero::StateOp state) { look(state); });
  if (options.weightsPath.empty() && hasWeights)
    printNote("weights are not written: --weights FILE writes those that the "
              "module names '" +
              options.weightsName + "'");
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
  if (exportFile.getNumOccurrences())
    return writeOnnx();
  zero::ImportOptions options;
  train::TrainStepOptions step;
  std::vector<zero::ParamReport> report;
  if (!readDims(options.dims) || !readStepOptions(step) ||
      !readInputValues(options) || !readBatch(options))
    return false;
  options.train = trainPatterns;
  options.freeze = freezePatterns;
  if (moeCapacity.getNumOccurrences()) {
    if (moeCapacity <= 0)
      return failWith("--moe-capacity: expected a positive number");
    options.rowCapacity = moeCapacity;
  }
  options.training = !loss.empty();
  options.optimizerModel = optimizerModel;
  options.checkpoint = ortCheckpoint;
  zero::FoundTraining found;
  if (loss.empty())
    options.found = &found;
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
  if (!makeStep(**module, found, step))
    return false;
  if (listParams)
    zero::printParamReport(llvm::outs(), report);
  if (!listOnly && !writeModule(**module))
    return false;
  if (!listOnly)
    noteMissingWeights(**module, options);
  weights.releaseFile();
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // --mlir-print-debuginfo shows each operation's ONNX node.
  registerAsmPrinterCLOptions();
  cl::HideUnrelatedOptions({&category, &zero_tools::stepCategory});
  cl::ParseCommandLineOptions(
      argc, argv,
      "Imports an ONNX model as a module of the train and zero dialects.\n");
  return run() ? 0 : 1;
}
