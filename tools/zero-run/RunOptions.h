//===- RunOptions.h - Flags of zero-run -------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the command line of zero-run says.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_RUNOPTIONS_H
#define ZERO_TOOLS_ZERO_RUN_RUNOPTIONS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zero_tools {

enum class ModelKind { Plan, Mlir, Onnx };

struct RunOptions {
  std::string model;
  ModelKind kind = ModelKind::Plan;

  // What is compiled: flags that a plan already decides are refused with one.
  std::optional<int64_t> ranks, stage;
  /// Shape of a grid whose product is `ranks`; empty: none.
  std::vector<int64_t> grid;
  /// State is cut over all axes of it, not the last alone.
  bool shardAll = false;
  /// Device memory of a rank ("24GiB"), the machine whose times decide (a
  /// preset or a .json file) and what is scheduled; empty: not said.
  std::string memory, machine, schedule;
  std::string loss, optimizer;
  std::optional<double> momentum, weightDecay, epsilon;
  std::optional<std::pair<double, double>> betas;
  bool nesterov = false;
  std::map<std::string, int64_t> dims;
  std::vector<std::string> train, freeze;
  /// The compiling flags that were given, in words.
  std::string compileFlags;

  // What is run.
  std::string data, weights, metrics, saveWeights, trace, report;
  std::optional<int64_t> steps, batch, threads;
  double learningRate = 1e-3;
  bool summary = false;
};

/// Parses and checks the command line; nothing after --help. Throws FlagError.
std::optional<RunOptions> parseRunOptions(int argc, char **argv);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_RUNOPTIONS_H
