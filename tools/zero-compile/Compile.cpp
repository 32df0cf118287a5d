//===- Compile.cpp - From a module to a plan ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of the compiler's phases, and its diagnostics as single lines.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "Budget.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Zero/Zero.h"
#include "zero/Autodiff/Attention.h"
#include "zero/Cost/CostModel.h"
#include "zero/InitAll.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Plan.h"
#include "zero/Schedule/OffloadChoice.h"
#include "zero/Schedule/OpWork.h"
#include "zero/Transforms/Offload.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace zero_tools;

void zero_tools::prepareContext(MLIRContext &context) {
  DialectRegistry registry;
  zero::registerAllDialects(registry);
  zero::registerKernelDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

OwningOpRef<ModuleOp> zero_tools::parseModule(const std::string &path,
                                              MLIRContext &context) {
  return parseSourceFile<ModuleOp>(path, ParserConfig(&context));
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

/// Fails when the module is partitioned otherwise than asked.
static LogicalResult checkPartition(ModuleOp module,
                                    const CompileOptions &options) {
  auto stage = module->getAttrOfType<IntegerAttr>("zero.stage");
  if (stage && options.stage && stage.getInt() != *options.stage)
    return module.emitError()
           << "is partitioned for ZeRO stage " << stage.getInt()
           << ", asked for stage " << *options.stage;
  for (auto grid : module.getOps<shard::GridOp>()) {
    if (options.ranks &&
        ShapedType::getNumElements(grid.getShape()) != *options.ranks)
      return module.emitError()
             << "is for " << ShapedType::getNumElements(grid.getShape())
             << " ranks, asked for " << *options.ranks;
    if (!options.grid.empty() &&
        grid.getShape() != ArrayRef<int64_t>(options.grid))
      return module.emitError()
             << "is for a grid of [" << grid.getShape() << "], asked for ["
             << ArrayRef<int64_t>(options.grid) << "]";
  }
  return success();
}

/// Splits the step into micro-batches, unless it has as many.
static LogicalResult setMicroBatches(ModuleOp module, int64_t microBatches) {
  auto attr = module->getAttrOfType<IntegerAttr>(zero::kMicroBatchesAttr);
  if (!attr)
    return train::accumulateMicroBatches(module, microBatches);
  if (attr.getInt() == microBatches)
    return success();
  return module.emitError() << "accumulates over " << attr.getInt()
                            << " micro-batches, asked for " << microBatches;
}

/// Fails where `remat` is no name, or too late.
static LogicalResult checkRemat(ModuleOp module,
                                const CompileOptions &options) {
  static constexpr StringLiteral names[] = {"", "none", "selective", "full",
                                            "auto"};
  if (!llvm::is_contained(names, options.remat))
    return module.emitError() << "unknown recomputation '" << options.remat
                              << "', expected none, selective, full or auto";
  return success();
}

/// Fails where a rule cannot be read, or "auto" or "none" is not alone.
static LogicalResult checkOffload(ModuleOp module,
                                  const CompileOptions &options) {
  for (const std::string &text : options.offload) {
    std::string wrong;
    if (text == "auto" || text == "none") {
      if (options.offload.size() > 1)
        return module.emitError()
               << "offload '" << text
               << "' stands alone, but there are other rules: '"
               << llvm::join(options.offload, "', '") << "'";
    } else if (failed(zero::parseOffloadRule(text, wrong))) {
      return module.emitError() << wrong;
    }
  }
  return success();
}

/// Makes a training step of the module unless it is one. Attention is a library
/// function, where the target's library has it.
static LogicalResult buildStep(ModuleOp module, const CompileOptions &options) {
  auto library = StringRef(options.target).starts_with("cuda:")
                     ? train::AttentionLibrary::Gpu
                     : train::AttentionLibrary::Host;
  if (options.trainStep) {
    train::TrainStepOptions step = *options.trainStep;
    step.attention = library;
    if (failed(train::buildTrainStep(module, step)))
      return failure();
  }
  if (options.forward && failed(train::buildForwardStep(module)))
    return failure();
  train::decomposeAttention(module, library);
  return success();
}

FailureOr<OwningOpRef<ModuleOp>>
zero_tools::compileWithinBudget(ModuleOp module,
                                const CompileOptions &options) {
  FailureOr<zero::Machine> machine =
      zero::findMachine(module.getLoc(), options.machine);
  if (failed(machine) || failed(checkPartition(module, options)) ||
      failed(checkRemat(module, options)) ||
      failed(checkOffload(module, options)))
    return failure();
  Budgets budgets;
  if (options.memoryBytes)
    budgets.device = *options.memoryBytes;
  else if (!options.machine.empty())
    budgets.device = machine->memoryBytes - machine->reservedBytes;
  if (options.hostMemoryBytes)
    budgets.host = *options.hostMemoryBytes;
  else if (!options.machine.empty() && machine->hostMemoryBytes > 0)
    budgets.host = machine->hostMemoryOfRank();
  if (failed(buildStep(module, options)))
    return failure();
  if (options.microBatches &&
      failed(setMicroBatches(module, *options.microBatches)))
    return failure();
  zero::CostModel cost(*machine);
  FailureOr<OwningOpRef<ModuleOp>> planned =
      planWithin(module, options, budgets, cost);
  if (succeeded(planned) && budgets.device >= 0)
    for (auto program : (*planned)->getOps<plan::ProgramOp>())
      program.setBudget(budgets.device);
  return planned;
}

std::string zero_tools::getOffloadChoice(ModuleOp planned) {
  auto said = planned->getAttrOfType<StringAttr>(zero::kOffloadChoiceAttr);
  return said ? said.str() : "";
}

LogicalResult zero_tools::compileToZplan(ModuleOp module,
                                         const CompileOptions &options,
                                         std::string &bytes,
                                         std::string *offloadChoice) {
  FailureOr<zero::KernelTarget> target =
      zero::KernelTarget::parse(options.target, module.getLoc());
  if (failed(target))
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> planned =
      compileWithinBudget(module, options);
  if (failed(planned))
    return failure();
  FailureOr<zero::Machine> machine =
      zero::findMachine(module.getLoc(), options.machine);
  if (failed(machine))
    return failure();
  if (offloadChoice)
    *offloadChoice = getOffloadChoice(**planned);
  zero::CostModel cost(std::move(*machine));
  return zero::writeZplan(**planned, *target, bytes, &cost);
}

/// "gelu_8x30: gelu_8x30<<<(1, 1, 1), (256, 1, 1), 0>>>(0, 1)"
static void printLaunch(llvm::raw_ostream &os, StringRef kernel,
                        const zero::DeviceLaunch &launch) {
  auto printSizes = [&](ArrayRef<uint32_t> sizes) {
    os << "(";
    llvm::interleaveComma(sizes, os);
    os << ")";
  };
  os << "// " << kernel << ": " << launch.entry << "<<<";
  printSizes(launch.grid);
  os << ", ";
  printSizes(launch.block);
  os << ", " << launch.sharedBytes << ">>>(";
  llvm::interleaveComma(launch.arguments, os, [&](int32_t argument) {
    if (argument < 0)
      os << "scratch";
    else
      os << argument;
  });
  os << ")\n";
}

LogicalResult zero_tools::printDeviceCode(ModuleOp planned,
                                          const CompileOptions &options,
                                          std::string &text) {
  FailureOr<zero::KernelTarget> target =
      zero::KernelTarget::parse(options.target, planned.getLoc());
  if (failed(target))
    return failure();
  FailureOr<zero::DeviceCode> code =
      zero::compileDeviceKernels(planned, *target);
  if (failed(code))
    return failure();
  llvm::raw_string_ostream os(text);
  for (const zero::DeviceKernel &kernel : code->kernels) {
    for (const zero::DeviceLaunch &launch : kernel.launches)
      printLaunch(os, kernel.name, launch);
    if (kernel.scratchBytes)
      os << "// " << kernel.name << ": " << kernel.scratchBytes
         << " bytes of scratch memory\n";
  }
  os << code->ptx;
  return success();
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// The place in a file; the importer numbers an ONNX file's nodes as lines.
static std::string describeFile(FileLineColLoc location, bool named) {
  StringRef file = location.getFilename();
  if (named || !location.getLine())
    return file.str() + ": ";
  if (file.ends_with(".onnx"))
    return file.str() + ": node number " + std::to_string(location.getLine()) +
           ": ";
  return file.str() + ":" + std::to_string(location.getLine()) + ":" +
         std::to_string(location.getColumn()) + ": ";
}

/// "FILE:LINE:COLUMN: " or "FILE: node 'NAME': ", as far as the location knows.
static std::string describe(Location location, const std::string &file) {
  std::string node;
  bool named = false;
  while (true) {
    if (auto name = dyn_cast<NameLoc>(location)) {
      node = "node '" + name.getName().str() + "': ";
      named = true;
      location = name.getChildLoc();
    } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
      location = call.getCallee();
    } else if (auto fused = dyn_cast<FusedLoc>(location);
               fused && !fused.getLocations().empty()) {
      location = fused.getLocations().front();
    } else {
      break;
    }
  }
  if (auto line = dyn_cast<FileLineColLoc>(location))
    return describeFile(line, named) + node;
  return file + ": " + node;
}

OneLineErrors::OneLineErrors(MLIRContext &context, std::string tool,
                             std::string file)
    : tool(std::move(tool)), file(std::move(file)),
      handler(&context, [this](Diagnostic &diagnostic) {
        DiagnosticSeverity severity = diagnostic.getSeverity();
        if (severity != DiagnosticSeverity::Error &&
            severity != DiagnosticSeverity::Warning)
          return;
        std::string line = describe(diagnostic.getLocation(), this->file);
        line += diagnostic.str();
        // A message may quote text with line breaks.
        for (char &c : line)
          if (c == '\n')
            c = ' ';
        if (severity == DiagnosticSeverity::Warning)
          llvm::errs() << this->tool << ": warning: " << line << "\n";
        else if (first.empty())
          first = line;
      }) {}

std::string OneLineErrors::error() const {
  return first.empty() ? file + ": failed without a message" : first;
}
