//===- zero-report.cpp - Traces to pictures -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Draws steps that were planned or run before, from the traces of zero-plan and
// zero-run: one of each gives a report that overlays them.
//
//===----------------------------------------------------------------------===//

#include "../zero-run/Flags.h"
#include "runtime/io/Files.h"
#include "zero/Report/Timeline.h"

#include <cstdio>

using namespace zero_tools;
using mlir::zero::Timeline;

static constexpr const char *usage =
    R"(usage: zero-report TRACE.json... [--report R.html] [--trace T.json]

Draws traces of zero-plan and zero-run. A predicted and a measured one are
overlaid, in one picture or in one trace.
)";

namespace {
struct Arguments {
  std::vector<std::string> inputs;
  std::string report, trace;
};
} // namespace

static std::optional<Arguments> parse(int argc, char **argv) {
  Arguments arguments;
  Flags flags(usage);
  flags.text("--report", &arguments.report, "R.html",
             "write a report: one HTML file");
  flags.text("--trace", &arguments.trace, "T.json",
             "write one trace of all inputs, for Perfetto");
  auto inputs = flags.parse(argc, argv);
  if (!inputs)
    return std::nullopt;
  arguments.inputs = std::move(*inputs);
  if (arguments.inputs.empty())
    throw FlagError("no input: expected a trace of zero-plan or zero-run");
  if (arguments.report.empty() && arguments.trace.empty())
    throw FlagError("--report or --trace is missing: the file to write");
  return arguments;
}

static void check(llvm::Error error) {
  if (error)
    throw std::runtime_error(toString(std::move(error)));
}

static void run(const Arguments &arguments) {
  zrt::refuseOverwrite(arguments.report, arguments.inputs);
  zrt::refuseOverwrite(arguments.trace, arguments.inputs);
  zrt::refuseSameOutput(
      {{"--report", arguments.report}, {"--trace", arguments.trace}});
  std::vector<Timeline> timelines;
  for (const std::string &input : arguments.inputs) {
    auto read = mlir::zero::readTrace(input);
    check(read.takeError());
    for (Timeline &timeline : *read)
      timelines.push_back(std::move(timeline));
  }
  check(writeTimelineFiles(timelines, arguments.trace, arguments.report));
}

int main(int argc, char **argv) {
  zrt::reportFileSizeLimit();
  try {
    if (auto arguments = parse(argc, argv))
      run(*arguments);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "zero-report: error: %s\n", error.what());
    return 1;
  }
}
