//===- bench-schedule.cpp - Our schedules beside others' rules ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   bench-schedule [MACHINE]    one line per model, ranks and rule: what the
//                               rule does, what ours does with no more memory,
//                               and the least memory at which ours is no slower
//   bench-schedule --speed      processor seconds of the scheduler by number of
//                               tasks
//
//===----------------------------------------------------------------------===//

#include "ModelStep.h"
#include "Rivals.h"
#include "zero/Schedule/Scheduler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <ctime>

using namespace mlir::zero;

static double toGiB(int64_t bytes) {
  return static_cast<double>(bytes) / (int64_t(1) << 30);
}

namespace {
struct Rule {
  std::string name;
  Schedule schedule;
};
} // namespace

static std::vector<Rule> rivals(const StepGraph &graph, int64_t memoryBytes) {
  return {{"serial", serialSchedule(graph)},
          {"FSDP2, depth 1", scheduleFsdp2(graph, 1)},
          {"FSDP2, depth 2", scheduleFsdp2(graph, 2)},
          {"DeepCompile", scheduleDeepCompile(graph, memoryBytes)},
          {"greedy buckets", scheduleGreedyBuckets(graph)}};
}

static void compare(const LlamaShape &shape, const CostModel &cost,
                    int64_t ranks) {
  const Machine &machine = cost.getMachine();
  StepGraph graph = llamaStep(shape, cost, ranks);
  int64_t memory = machine.memoryBytes - machine.reservedBytes;
  SchedulerOptions options;
  options.memoryBytes = memory;
  ScheduleResult ours = scheduleStep(graph, options);
  if (!ours.feasible)
    return;
  auto print = [&](const std::string &rule, const SimulatedStep &step) {
    auto fastest = llvm::find_if(ours.front, [&](const ParetoPoint &point) {
      return point.peakBytes <= std::min(memory, step.peakBytes);
    });
    auto leanest =
        llvm::find_if(llvm::reverse(ours.front), [&](const ParetoPoint &point) {
          return point.seconds <= step.seconds;
        });
    llvm::outs() << llvm::format(
        "| %-11s | %4d | %4d | %-14s | %9.1f | %7.1f | %6.2f%s |",
        shape.name.c_str(), int(shape.tokens), int(ranks), rule.c_str(),
        step.seconds * 1e3, step.exposedSeconds * 1e3, toGiB(step.peakBytes),
        step.peakBytes > memory ? "!" : " ");
    if (fastest == ours.front.end() || leanest == ours.front.rend())
      llvm::outs() << "         - |     - |      - |\n";
    else
      llvm::outs() << llvm::format(
          " %9.1f | %5.3f | %6.2f |\n", fastest->seconds * 1e3,
          step.seconds / fastest->seconds, toGiB(leanest->peakBytes));
  };
  for (const Rule &rule : rivals(graph, memory))
    print(rule.name, simulate(graph, rule.schedule));
  print("ours", ours.simulated);
  llvm::outs() << llvm::format(
      "| %-11s | %4d | %4d | lower bound    | %9.1f | %7.1f |         |        "
      "   |"
      "       |        |\n",
      shape.name.c_str(), int(shape.tokens), int(ranks),
      ours.lowerBoundSeconds * 1e3,
      (ours.lowerBoundSeconds - ours.simulated.computeSeconds) * 1e3);
}

/// Seconds by number of tasks: layers of an 8B model.
static void measureSpeed(const CostModel &cost) {
  for (int64_t layers : {11, 34, 114, 341, 1136, 3409, 11363}) {
    LlamaShape shape = llama8b();
    shape.layers = layers;
    StepGraph graph = llamaStep(shape, cost, 256);
    std::clock_t start = std::clock();
    ScheduleResult result = scheduleStep(graph, {});
    double elapsed = double(std::clock() - start) / CLOCKS_PER_SEC;
    llvm::outs() << llvm::format(
        "%8zu tasks %8.3f s, gap %.4f\n", graph.tasks.size(), elapsed,
        result.simulated.seconds / result.lowerBoundSeconds);
    llvm::outs().flush();
  }
}

int main(int argc, char **argv) {
  bool speed = argc > 1 && llvm::StringRef(argv[1]) == "--speed";
  llvm::Expected<Machine> machine =
      loadMachine(argc > 1 && !speed ? argv[1] : "h100");
  if (!machine) {
    llvm::errs() << llvm::toString(machine.takeError()) << "\n";
    return 1;
  }
  CostModel cost(std::move(*machine));
  if (speed) {
    measureSpeed(cost);
    return 0;
  }
  llvm::outs()
      << "| model       | tokens a rank | ranks | rule | step ms | exposed ms "
         "| peak GiB | ours, no more memory, ms | ratio | ours, no slower, GiB "
         "|\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (LlamaShape shape : {llama8b(), llama70b(), llama405b()})
    for (int64_t tokens : {8192, 2048}) {
      shape.tokens = tokens;
      for (int64_t ranks : {8, 64, 256, 1024})
        compare(shape, cost, ranks);
    }
  return 0;
}
