//===- fit-machines.cpp - Constants of machines and frameworks -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fit-machines STEPS.csv... > FittedRows.inc
//
// Fits the named constants below on every other row of each source and machine,
// in the order of the files, and says how far the model is from these and from
// the others. Constants go to stderr, to be written into lib/Cost/Presets.cpp
// and lib/Planner/Software.cpp; the hashes of the fitted rows to stdout, for
// lib/Planner/FittedRows.inc.
//
//===----------------------------------------------------------------------===//

#include "LeastSquares.h"

#include "zero/Planner/Validate.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;
using namespace mlir::zero;

namespace {
/// Everything that a fit may change.
struct World {
  std::map<std::string, Machine> machines;
  std::map<std::string, Software> software;
};

/// A fitted constant and the places that hold it.
struct Constant {
  std::string name;
  std::vector<std::function<double &(World &)>> places;
};
} // namespace

static Constant machineField(StringRef name, std::vector<std::string> machines,
                             std::function<double &(Machine &)> field) {
  Constant constant{join(machines, "+") + "." + name.str(), {}};
  for (const std::string &machine : machines)
    constant.places.push_back([machine, field](World &world) -> double & {
      return field(world.machines.at(machine));
    });
  return constant;
}

static Constant machineConstant(StringRef name,
                                std::vector<std::string> machines) {
  std::string key = name.str();
  return machineField(name, std::move(machines), [key](Machine &m) -> double & {
    return m.constants[key];
  });
}

static Constant softwareField(StringRef name, std::vector<std::string> software,
                              double Software::*field) {
  Constant constant{join(software, "+") + "." + name.str(), {}};
  for (const std::string &one : software)
    constant.places.push_back([one, field](World &world) -> double & {
      return world.software.at(one).*field;
    });
  return constant;
}

static std::vector<Constant> fittedConstants() {
  std::vector<std::string> a100 = {"a100-40", "a100-80"},
                           h100 = {"h100", "h100-96"},
                           all = {"a100-40", "a100-80", "h100", "h100-96"};
  std::vector<std::string> eager = {"llm-foundry", "fsdp1", "yafsdp", "fsdp2",
                                    "megatron-deepspeed"};
  auto efficiency = [](Machine &m) -> double & { return m.matmulEfficiency; };
  auto network = [](Machine &m) -> double & { return m.interNode.bandwidth; };
  auto hop = [](Machine &m) -> double & { return m.interNode.latency; };
  return {
      machineField("matmul_efficiency", {"a100-40"}, efficiency),
      machineField("matmul_efficiency", {"a100-80"}, efficiency),
      machineField("matmul_efficiency", {"h100"}, efficiency),
      machineField("matmul_efficiency", {"h100-96"}, efficiency),
      machineConstant("matmul_half_rows", all),
      machineConstant("matmul_half_dim", all),
      machineField("inter_node.bandwidth", a100, network),
      machineField("inter_node.bandwidth", h100, network),
      machineField("inter_node.latency", all, hop),
      machineConstant("overlap_slowdown", all),
      machineConstant("channel_sharing", all),
      softwareField("f8_products", {"llm-foundry"}, &Software::f8Products),
      softwareField("attention", {"llm-foundry"}, &Software::attention),
      softwareField("elementwise", {"llm-foundry"}, &Software::elementwise),
      softwareField("elementwise", {"megatron-deepspeed"},
                    &Software::elementwise),
      softwareField("attention_passes", {"megatron-deepspeed"},
                    &Software::attentionPasses),
      softwareField("loss_passes", eager, &Software::lossPasses),
      softwareField("layer_seconds", eager, &Software::layerSeconds),
      softwareField("batch_seconds", eager, &Software::batchSeconds),
      softwareField("update", eager, &Software::update),
      softwareField("update_layer_seconds", eager,
                    &Software::updateLayerSeconds),
      softwareField("full_recompute", eager, &Software::fullRecompute),
  };
}

static double relativeError(World &world, const MeasuredStep &step) {
  return predictStep(step, world.machines.at(step.machine),
                     world.software.at(step.software->name.str())) /
             step.seconds -
         1;
}

static void report(World &world, StringRef title,
                   const std::vector<MeasuredStep> &steps) {
  std::map<std::string, std::vector<double>> bySource;
  std::vector<double> predicted;
  for (const MeasuredStep &step : steps) {
    double error = relativeError(world, step);
    bySource[step.software->name.str() + " " + step.machine].push_back(error);
    bySource["all"].push_back(error);
    predicted.push_back(step.seconds * (1 + error));
  }
  errs() << title << '\n';
  for (auto &[name, errors] : bySource) {
    ErrorSummary s = summarizeErrors(errors);
    errs() << formatv("  {0,-30} rows {1,4} median {2:f2}% p95 {3:f2}% "
                      "max {4:f2}% bias {5:f2}%\n",
                      name, s.rows, s.medianPercent, s.p95Percent, s.maxPercent,
                      s.biasPercent);
  }
  errs() << formatv("  pair order {0:f2}%\n",
                    pairOrderPercent(steps, predicted));
}

int main(int argc, char **argv) {
  std::vector<MeasuredStep> steps, fitted, others;
  std::map<std::string, int> seen;
  for (int i = 1; i < argc; ++i) {
    Expected<std::vector<MeasuredStep>> read = readMeasuredSteps(argv[i]);
    if (!read) {
      errs() << "fit-machines: " << toString(read.takeError()) << '\n';
      return 1;
    }
    for (MeasuredStep &step : *read) {
      int &count = seen[step.software->name.str() + " " + step.machine];
      (count++ % 2 ? others : fitted).push_back(step);
      steps.push_back(step);
    }
  }
  World world;
  for (StringRef name : machinePresets())
    world.machines[name.str()] = cantFail(loadMachine(name));
  for (const Software &software : knownSoftware())
    world.software[software.name.str()] = software;

  std::vector<Constant> constants = fittedConstants();
  std::vector<double> start;
  for (Constant &constant : constants)
    start.push_back(std::log(std::max(constant.places.front()(world), 1e-12)));
  auto set = [&](const std::vector<double> &x) {
    for (size_t i = 0; i != x.size(); ++i)
      for (auto &place : constants[i].places)
        place(world) = std::exp(x[i]);
  };
  std::vector<double> best = RobustFit().run(start, [&](auto &x) {
    set(x);
    std::vector<double> residuals;
    for (const MeasuredStep &step : fitted)
      residuals.push_back(std::log(1 + relativeError(world, step)));
    return residuals;
  });
  // Three digits are what the rows can tell.
  for (double &x : best)
    x = std::log(std::stod(formatv("{0:E2}", std::exp(x)).str()));
  set(best);
  for (size_t i = 0; i != best.size(); ++i)
    errs() << formatv("{0,-60} {1:E2}\n", constants[i].name, std::exp(best[i]));
  report(world, "fitted", fitted);
  report(world, "not fitted", others);
  report(world, "all", steps);

  std::vector<uint64_t> hashes;
  for (const MeasuredStep &step : fitted)
    hashes.push_back(measuredStepHash(step));
  llvm::sort(hashes);
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  for (uint64_t hash : hashes)
    outs() << format_hex(hash, 18) << "ull,\n";
  return 0;
}
