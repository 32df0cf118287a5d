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
  std::string input, output;
  CompileOptions compile;
};
} // namespace

static std::optional<Arguments> parse(int argc, char **argv) {
  Arguments arguments;
  Flags flags(usage);
  flags.text("-o", &arguments.output, "step.zplan", "the file to write");
  flags.integer("--zero-stage", &arguments.compile.stage, 0, 3, "K",
                "ZeRO stage 0 to 3 (default 0, or the module's)");
  flags.integer("--ranks", &arguments.compile.ranks, 1, 1024, "N",
                "number of ranks (default 1, or the module's)");
  flags.text("--target", &arguments.compile.target, "TARGET",
             "host (this machine, default) or host:CPU");
  auto inputs = flags.parse(argc, argv);
  if (!inputs)
    return std::nullopt;
  if (inputs->size() != 1)
    throw FlagError(inputs->empty() ? "no input: expected an .mlir file"
                                    : "more than one input: " + (*inputs)[0] +
                                          " and " + (*inputs)[1]);
  if (arguments.output.empty())
    throw FlagError("-o is missing: the file to write");
  if (!arguments.compile.target.compare(0, 4, "cuda"))
    throw FlagError("not available yet: --target " + arguments.compile.target);
  arguments.input = inputs->front();
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
  module.walk([&](mlir::zero::ParamOp param) {
    if (auto file = param.getInitFile())
      param.setInitFile(
          std::filesystem::proximate(from / file->str(), to).string());
  });
}

static void run(const Arguments &arguments) {
  zrt::MappedFile readable(arguments.input);
  zrt::refuseOverwrite(arguments.output, {arguments.input});
  mlir::MLIRContext context;
  prepareContext(context);
  OneLineErrors errors(context, "zero-compile", arguments.input);
  std::string bytes;
  auto module = parseModule(arguments.input, context);
  if (module)
    moveWeightPaths(*module, arguments);
  if (!module || failed(compileToZplan(*module, arguments.compile, bytes)))
    throw std::runtime_error(errors.error());
  zrt::AtomicFile file(arguments.output);
  file.write(bytes);
  file.commit();
}

int main(int argc, char **argv) {
  try {
    if (auto arguments = parse(argc, argv))
      run(*arguments);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "zero-compile: error: %s\n", error.what());
    return 1;
  }
}
