//===- zrt-step.cpp - Runs steps of a compiled program --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trains a .zplan for some steps and prints what came of it as one line of
// JSON: losses, times, memory, and by kernel what it moves or computes. It
// needs the runtime alone, so it runs where the compiler is not. Weights and
// data come from files, or from a seed: then they are the same on every
// machine.
//
//===----------------------------------------------------------------------===//

#include "StepData.h"

#include "runtime/io/Files.h"
#include "zero-rt/Session.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

using nlohmann::json;
using namespace zrt::bench;

namespace {
struct Options {
  std::string plan, weights, data;
  uint32_t steps = 10, warmup = 0;
  double learningRate = 1e-3;
  bool graph = false, kernels = false;
  int device = -1;
  int64_t peaks = 0; // write a program of this size to `plan`
};

constexpr const char *usage =
    "usage: zrt-step PLAN.zplan [--weights F.safetensors] [--data "
    "F.safetensors]\n"
    "         [--steps N] [--warmup N] [--lr X] [--device N] [--graph] "
    "[--kernels]\n"
    "Prints JSON. --warmup: steps before the measured ones. --kernels: times by "
    "kernel.\n"
    "       zrt-step --write-peaks SIZE PLAN.zplan\n"
    "Writes a program that shows what a GPU can do at most.\n";

[[noreturn]] void quit(const std::string &message) {
  std::cerr << "error: " << message << "\n";
  std::exit(1);
}

void require(const zrt::Status &failed) {
  if (failed)
    quit(failed.message());
}
} // namespace

static Options parse(int argc, char **argv) {
  Options options;
  std::vector<std::string> words(argv + 1, argv + argc);
  for (size_t at = 0; at < words.size(); ++at) {
    const std::string &word = words[at];
    auto value = [&]() -> const std::string & {
      if (at + 1 == words.size())
        quit(word + " needs a value\n" + usage);
      return words[++at];
    };
    if (word == "--weights")
      options.weights = value();
    else if (word == "--data")
      options.data = value();
    else if (word == "--steps")
      options.steps = uint32_t(std::stoul(value()));
    else if (word == "--warmup")
      options.warmup = uint32_t(std::stoul(value()));
    else if (word == "--lr")
      options.learningRate = std::stod(value());
    else if (word == "--device")
      options.device = std::stoi(value());
    else if (word == "--write-peaks")
      options.peaks = std::stoll(value());
    else if (word == "--graph")
      options.graph = true;
    else if (word == "--kernels")
      options.kernels = true;
    else if (word[0] != '-' && options.plan.empty())
      options.plan = word;
    else
      quit("unknown argument " + word + "\n" + usage);
  }
  if (options.plan.empty())
    quit(std::string("which program?\n") + usage);
  return options;
}

/// Runs one step; its loss, or the first number of the first output.
static double runStep(zrt::Session &session, const zrt::Program &program,
                      StepData &data, uint64_t step, const Options &options) {
  zrt_program_info info = program.info();
  for (uint32_t micro = 0; micro < info.micro_batches; ++micro) {
    for (uint32_t index = 0; index < info.num_inputs; ++index)
      for (uint32_t rank = 0; rank < info.ranks; ++rank) {
        const std::vector<uint8_t> &values =
            data.input(program.input(index), step * info.micro_batches + micro,
                       rank, info.ranks, step, options.learningRate);
        require(
            session.setInput(index, int(rank), values.data(), values.size()));
      }
    require(micro + 1 < info.micro_batches ? session.accumulate()
                                           : session.step());
  }
  int64_t loss = std::max<int64_t>(0, program.findOutput("loss"));
  if (!info.num_outputs)
    return 0;
  std::vector<double> values(program.output(uint32_t(loss)).elements);
  require(session.readOutput(uint32_t(loss), values.data(), values.size()));
  return values.empty() ? 0 : values[0];
}

static json memoryOf(const zrt::Program &program,
                     const zrt_counters &counters) {
  json memory;
  static const char *const names[] = {"device", "host", "disk"};
  for (int space = 0; space < ZRT_NUM_SPACES; ++space)
    memory[names[space]] = {
        {"planned", zrt_program_planned_bytes(program.get(), zrt_space(space))},
        {"peak", counters.peak_bytes[space]}};
  memory["workspace"] = counters.library_workspace_bytes;
  return memory;
}

/// Milliseconds of a step: all, the fastest and the median.
static json timesOf(std::vector<double> ms) {
  json times = {{"all", ms}};
  std::sort(ms.begin(), ms.end());
  if (!ms.empty()) {
    times["least"] = ms.front();
    times["median"] = ms[ms.size() / 2];
  }
  return times;
}

static void setParameters(zrt::Session &session, const zrt::Program &program,
                          StepData &data) {
  for (uint32_t index = 0; index < program.info().num_parameters; ++index) {
    zrt_parameter_info info = program.parameter(index);
    if (info.init != ZRT_INIT_FILE)
      continue;
    std::vector<uint8_t> values = data.parameter(info);
    require(session.setParameter(index, values.data(), values.size()));
  }
}

static int run(const Options &options) {
  zrt::Program program;
  require(program.loadFile(options.plan));
  zrt_session_options sessionOptions = {};
  sessionOptions.device = options.device;
  sessionOptions.graph = options.graph;
  StepData data(options.weights, options.data);
  zrt::Session session;
  require(session.create(program, &sessionOptions));
  setParameters(session, program, data);

  std::vector<double> losses, ms;
  double before = 0;
  for (uint32_t step = 0; step < options.warmup + options.steps; ++step) {
    if (step == options.warmup) {
      session.resetCounters();
      before = 0;
    }
    losses.push_back(runStep(session, program, data, step, options));
    double now = session.counters().step_ms;
    if (step >= options.warmup)
      ms.push_back(now - before);
    before = now;
  }
  zrt_counters counters = session.counters();
  zrt_program_info info = program.info();
  double steps = std::max(1u, options.steps);
  json result = {{"name", info.name},
                 {"target", info.target},
                 {"ranks", info.ranks},
                 {"graph", options.graph},
                 {"flops_per_rank", info.flops_per_rank},
                 {"samples_per_rank", info.samples_per_rank},
                 {"planned_ms", info.planned_step_ms},
                 {"losses", losses},
                 {"step_ms", timesOf(ms)},
                 {"library_ms", counters.library_ms / steps},
                 {"kernel_ms", counters.kernel_ms / steps},
                 {"comm_ms", counters.comm_ms / steps},
                 {"exposed_ms", counters.exposed_comm_ms / steps},
                 {"transfer_ms", counters.transfer_ms / steps},
                 {"host_ms", counters.host_ms / steps},
                 {"memory", memoryOf(program, counters)}};
  if (options.kernels && !options.graph) {
    std::vector<double> commandMs(info.num_commands);
    require(zrt_session_command_ms(session.get(), 0, commandMs.data(),
                                   commandMs.size()));
    result["kernels"] =
        json::parse(describeKernels(options.plan, commandMs, options.steps));
  }
  std::cout << result.dump() << "\n";
  return 0;
}

int main(int argc, char **argv) {
  try {
    Options options = parse(argc, argv);
    if (!options.peaks)
      return run(options);
    writePeaks(options.plan, options.peaks);
    return 0;
  } catch (const std::exception &error) {
    quit(error.what());
  }
}
