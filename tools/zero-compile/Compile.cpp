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

#include "dialects/Plan/Plan.h"
#include "dialects/Zero/Zero.h"
#include "zero/InitAll.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Plan.h"
#include "zero/Pipelines.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
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

/// Fails when the module is partitioned otherwise than asked.
static LogicalResult checkPartition(ModuleOp module,
                                    const CompileOptions &options) {
  auto stage = module->getAttrOfType<IntegerAttr>("zero.stage");
  if (stage && options.stage && stage.getInt() != *options.stage)
    return module.emitError()
           << "is partitioned for ZeRO stage " << stage.getInt()
           << ", asked for stage " << *options.stage;
  for (auto grid : module.getOps<shard::GridOp>())
    if (options.ranks && grid.getShape().size() == 1 &&
        grid.getShape().front() != *options.ranks)
      return module.emitError() << "is for " << grid.getShape().front()
                                << " ranks, asked for " << *options.ranks;
  return success();
}

/// Ranks of a module that says nothing: one, or those of its grid.
static int64_t defaultRanks(ModuleOp module) {
  return module.getOps<shard::GridOp>().empty() ? 1 : zero::kUnsetRanks;
}

static LogicalResult runPhases(ModuleOp module, const CompileOptions &options) {
  if (options.trainStep &&
      failed(train::buildTrainStep(module, *options.trainStep)))
    return failure();
  PassManager passes(module.getContext());
  if (!module->hasAttr("zero.stage")) {
    zero::ZeroOptions zeroOptions;
    zeroOptions.stage = options.stage.value_or(0);
    zeroOptions.ranks = options.ranks.value_or(defaultRanks(module));
    zero::buildZeroPipeline(passes, zeroOptions);
  } else {
    // Somebody else's partition, or one that was edited: checked as ours is.
    passes.addPass(zero::createZeroVerifyPass());
  }
  zero::buildPlanPipeline(passes);
  return passes.run(module);
}

static FailureOr<zero::KernelTarget> kernelTarget(ModuleOp module,
                                                  StringRef target) {
  if (target == "host")
    return zero::KernelTarget::host();
  if (target.consume_front("host:"))
    return zero::KernelTarget::named(target, module.getLoc());
  return module.emitError()
         << "unknown target '" << target << "', expected host or host:CPU";
}

LogicalResult zero_tools::compileToZplan(ModuleOp module,
                                         const CompileOptions &options,
                                         std::string &bytes) {
  FailureOr<zero::KernelTarget> target = kernelTarget(module, options.target);
  if (failed(target) || failed(checkPartition(module, options)) ||
      failed(runPhases(module, options)))
    return failure();
  return zero::writeZplan(module, *target, bytes);
}

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
