//===- zero-compile.cpp - Training steps to .zplan files ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a training step in MLIR to the plan that zero-run executes.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "../zero-run/Flags.h"
#include "dialects/Zero/Zero.h"
#include "runtime/io/Files.h"
#include "zero/Cost/Machine.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <filesystem>

using namespace zero_tools;

static constexpr const char *usage =
    R"(usage: zero-compile M.mlir -o step.zplan [flags]

Compiles a training step (of zero-import --loss or zero-opt) to a .zplan file:
commands, arena sizes and machine code, for zero-run.
)";

namespace {
struct Arguments {
  std::string input, output, emit = "zplan", grid, shard = "inner", memory,
                             schedule, hostMemory, offloadPath;
  CompileOptions compile;
};
} // namespace

/// "4x8" as the sizes of the axes.
static std::vector<int64_t> parseGrid(const std::string &text) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, 'x');
  std::vector<int64_t> grid;
  int64_t ranks = 1;
  for (llvm::StringRef part : parts) {
    int64_t size = 0;
    if (part.getAsInteger(10, size) || size < 1 || size > 1024 / ranks)
      throw FlagError("--zero-grid '" + text +
                      "': expected sizes like 4x8, of 1024 ranks at most");
    ranks *= size;
    grid.push_back(size);
  }
  return grid;
}

/// "24GiB" in bytes; nothing for an empty text.
static std::optional<int64_t> parseSize(const std::string &flag,
                                        const std::string &text) {
  if (text.empty())
    return std::nullopt;
  std::optional<int64_t> bytes = mlir::zero::parseByteSize(text);
  if (!bytes || *bytes < 1)
    throw FlagError(flag + " '" + text +
                    "': expected a size like 24GiB or 1048576");
  return bytes;
}

/// The flags whose text has a form of its own.
static void readPlanFlags(Arguments &arguments) {
  CompileOptions &compile = arguments.compile;
  if (!arguments.grid.empty()) {
    if (compile.ranks)
      throw FlagError("give --zero-grid or --ranks, not both");
    compile.grid = parseGrid(arguments.grid);
  }
  if (arguments.shard != "inner" && arguments.shard != "all")
    throw FlagError("--zero-shard '" + arguments.shard +
                    "': expected inner or all");
  compile.shardAll = arguments.shard == "all";
  compile.memoryBytes = parseSize("--memory", arguments.memory);
  compile.hostMemoryBytes = parseSize("--host-memory", arguments.hostMemory);
  compile.offloadToDisk = !arguments.offloadPath.empty();
  if (!arguments.schedule.empty())
    compile.schedule = arguments.schedule;
}

static std::optional<Arguments> parse(int argc, char **argv) {
  Arguments arguments;
  Flags flags(usage);
  flags.text("-o", &arguments.output, "step.zplan", "the file to write");
  flags.toggle("--forward", &arguments.compile.forward,
               "the forward pass alone is the program: of a module that "
               "zero-import made without --loss");
  flags.integer("--zero-stage", &arguments.compile.stage, 0, 3, "K",
                "ZeRO stage 0 to 3 (default 0, or the module's)");
  flags.integer("--ranks", &arguments.compile.ranks, 1, 1024, "N",
                "number of ranks (default 1, or the module's)");
  flags.integer("--accumulate", &arguments.compile.microBatches, 1, 1 << 20,
                "A",
                "micro-batches of a step, whose gradients are averaged "
                "(default 1, or the module's)");
  flags.text("--zero-grid", &arguments.grid, "RxS",
             "grid of ranks instead of --ranks: sharded over S, replicated "
             "over R");
  flags.text("--memory", &arguments.memory, "SIZE",
             "device memory of a rank that the plan keeps to, like 24GiB");
  flags.text("--machine", &arguments.compile.machine, "NAME",
             "the machine to plan for, a preset or a .json file; also gives "
             "the budget unless --memory does (default this-cpu, no budget)");
  flags.text("--zero-shard", &arguments.shard, "AXES",
             "inner (default) or all: the axes of a grid of two that the state "
             "is cut over");
  flags.text("--zero-schedule", &arguments.schedule, "WHAT",
             "none, prefetch, keep, reorder, bucket or joint (default joint, "
             "or as the module is)");
  flags.text("--remat", &arguments.compile.remat, "WHAT",
             "what the backward pass computes again: none (default), "
             "selective, full (whole layers), or auto: what --memory needs");
  flags.list("--offload", &arguments.compile.offload, "RULE",
             "what lives outside device memory: KIND[@GLOB]=device|host|disk"
             "[:RATIO], KIND one of optimizer, gradients, parameters, "
             "activations; or auto: what --memory needs; or none (default)");
  flags.text("--host-memory", &arguments.hostMemory, "SIZE",
             "host memory of a rank that the plan keeps to (default what "
             "--machine has, no limit without it)");
  flags.text("--offload-path", &arguments.offloadPath, "DIR",
             "there will be a folder for a disk arena: --offload auto may use "
             "it");
  flags.text("--emit", &arguments.emit, "FORM",
             "zplan (default), plan: the program as MLIR, or ptx: the kernels "
             "of a GPU and, as comments, their launches");
  flags.text("--target", &arguments.compile.target, "TARGET",
             "host (this machine, default), host:CPU, or GPUs: cuda:sm_80, "
             "cuda:sm_90 or cuda:sm_100");
  auto inputs = flags.parse(argc, argv);
  if (!inputs)
    return std::nullopt;
  if (inputs->size() != 1)
    throw FlagError(inputs->empty() ? "no input: expected an .mlir file"
                                    : "more than one input: " + (*inputs)[0] +
                                          " and " + (*inputs)[1]);
  if (arguments.output.empty())
    throw FlagError("-o is missing: the file to write");
  if (arguments.emit != "zplan" && arguments.emit != "plan" &&
      arguments.emit != "ptx")
    throw FlagError("--emit '" + arguments.emit +
                    "': expected zplan, plan or ptx");
  if (arguments.emit == "ptx" &&
      arguments.compile.target.compare(0, 5, "cuda:"))
    throw FlagError("--emit ptx: --target " + arguments.compile.target +
                    " has no PTX; give a GPU such as cuda:sm_90");
  arguments.input = inputs->front();
  readPlanFlags(arguments);
  return arguments;
}

static std::filesystem::path folderOf(const std::string &file) {
  return std::filesystem::absolute(file).parent_path();
}

/// A module names its weights relative to its own folder, a plan relative to
/// the plan's.
static void moveWeightPaths(mlir::ModuleOp module, const Arguments &arguments) {
  std::filesystem::path from = folderOf(arguments.input);
  std::filesystem::path to = folderOf(arguments.output);
  if (from.lexically_normal() == to.lexically_normal())
    return;
  auto move = [&](auto symbol) {
    if (auto file = symbol.getInitFile())
      symbol.setInitFile(
          std::filesystem::proximate(from / file->str(), to).string());
  };
  module.walk([&](mlir::zero::ParamOp param) { move(param); });
  module.walk([&](mlir::zero::StateOp state) { move(state); });
}

/// The bytes of the output file.
static llvm::LogicalResult
compile(mlir::ModuleOp module, const Arguments &arguments, std::string &bytes) {
  std::string choice;
  if (arguments.emit == "zplan") {
    if (failed(compileToZplan(module, arguments.compile, bytes, &choice)))
      return llvm::failure();
  } else {
    auto planned = compileWithinBudget(module, arguments.compile);
    if (failed(planned))
      return llvm::failure();
    choice = getOffloadChoice(**planned);
    if (arguments.emit == "ptx") {
      if (failed(printDeviceCode(**planned, arguments.compile, bytes)))
        return llvm::failure();
    } else {
      llvm::raw_string_ostream os(bytes);
      (*planned)->print(os);
      os << "\n";
    }
  }
  if (!choice.empty())
    llvm::errs() << "zero-compile: note: " << choice << "\n";
  return llvm::success();
}

static void run(const Arguments &arguments) {
  zrt::MappedFile readable(arguments.input);
  zrt::refuseOverwrite(arguments.output, {arguments.input});
  mlir::MLIRContext context;
  prepareContext(context);
  OneLineErrors errors(context, "zero-compile", arguments.input);
  auto module = parseModule(arguments.input, context);
  if (module)
    moveWeightPaths(*module, arguments);
  std::string bytes;
  if (!module || failed(compile(*module, arguments, bytes)))
    throw std::runtime_error(errors.error());
  zrt::AtomicFile file(arguments.output);
  file.write(bytes);
  file.commit();
}

int main(int argc, char **argv) {
  zrt::reportFileSizeLimit();
  try {
    if (auto arguments = parse(argc, argv))
      run(*arguments);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "zero-compile: error: %s\n", error.what());
    return 1;
  }
}
