//===- Summary.cpp - Memory and traffic beside the formulas ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas are those of the ZeRO paper for single-precision training: of a
// model with P trained parameters, each of parameters, gradients and optimizer
// state is held whole or as one of N parts.
//
//===----------------------------------------------------------------------===//

#include "Summary.h"

#include <cstdio>

using namespace zero_tools;

namespace {
/// Bytes over all ranks, as the program lists them.
struct ModelBytes {
  double trained = 0;   // of parameters with gradients
  double frozen = 0;    // of parameters without
  double optimizer = 0; // of optimizer state
};
} // namespace

static ModelBytes modelBytes(const zrt::Program &program) {
  ModelBytes bytes;
  for (uint32_t i = 0; i < program.info().num_parameters; ++i) {
    zrt_parameter_info parameter = program.parameter(i);
    if (parameter.role == ZRT_TRAINED)
      bytes.trained += double(parameter.bytes);
    else if (parameter.role == ZRT_FROZEN)
      bytes.frozen += double(parameter.bytes);
    else if (parameter.role == ZRT_STATE)
      bytes.optimizer += double(parameter.bytes);
  }
  return bytes;
}

static void row(const char *name, double actual, double formula) {
  std::printf("  %-20s %12.0f %14.0f\n", name, actual, formula);
}

static void plainRow(const char *name, double first) {
  std::printf("  %-20s %12.0f\n", name, first);
}

static void printState(const zrt_program_info &info, const ModelBytes &model,
                       const zrt::StepMetrics &metrics) {
  double part = 1.0 / info.shards;
  double parameters =
      (model.trained + model.frozen) * (info.stage >= 3 ? part : 1);
  double gradients = model.trained * (info.stage >= 2 ? part : 1);
  double optimizer = model.optimizer * (info.stage >= 1 ? part : 1);
  std::printf("%-20s %14s %14s\n", "state of a rank", "bytes", "formula");
  row("parameters", metrics.parameterBytes, parameters);
  row("gradients", metrics.gradientBytes, gradients);
  row("optimizer state", metrics.optimizerBytes, optimizer);
  row("together",
      metrics.parameterBytes + metrics.gradientBytes + metrics.optimizerBytes,
      parameters + gradients + optimizer);
  plainRow("padding", metrics.statePaddingBytes);
  if (info.window_bytes)
    plainRow("gathered at once", double(info.window_bytes));
}

static void printTraffic(const zrt_program_info &info, const ModelBytes &model,
                         const zrt::StepMetrics &metrics) {
  // Hybrid sharding: gathers and scatters among shards, the rest among
  // replicas.
  double ranks = info.ranks, shards = info.shards;
  double share = model.trained * (shards - 1) / shards;
  double replicas = info.stage == 0 ? ranks : ranks / shards;
  double reduced = info.stage == 0 ? model.trained : model.trained / shards;
  // Stages 2 and 3 reduce in each micro-batch, stage 3 gathers in each.
  double batches = info.micro_batches;
  double gathers = info.stage == 0 ? 0 : info.stage == 3 ? 2 * batches : 1;
  double scatters = info.stage == 0 ? 0 : info.stage == 1 ? 1 : batches;
  std::printf("%-20s %14s %14s\n", "sent in a step", "bytes", "formula");
  row("all_gather", metrics.allGatherBytes, gathers * share);
  // The formula gathers everything twice; the plan gathers again only what the
  // backward pass reads and did not find gathered.
  if (info.stage == 3)
    plainRow("  not gathered again", gathers * share - metrics.allGatherBytes);
  row("reduce_scatter", metrics.reduceScatterBytes, scatters * share);
  row("all_reduce", metrics.allReduceBytes,
      2 * reduced * (replicas - 1) / replicas);
  plainRow("padding", metrics.commPaddingBytes);
}

/// What offload copies in a step; nothing where nothing is offloaded.
static void printTransfers(const zrt::StepMetrics &metrics) {
  if (!metrics.plannedPeak.host && !metrics.plannedPeak.disk)
    return;
  std::printf("%-20s %14s\n", "copied in a step", "bytes");
  plainRow("device to host", metrics.toHostBytes);
  plainRow("host to device", metrics.toDeviceBytes);
  plainRow("read from disk", metrics.diskReadBytes);
  plainRow("written to disk", metrics.diskWriteBytes);
}

void zero_tools::printSummary(const zrt::Program &program,
                              const zrt::StepMetrics &metrics) {
  zrt_program_info info = program.info();
  ModelBytes model = modelBytes(program);
  std::printf("\nZeRO stage %u, %u ranks, %.0f trained bytes, bytes of one "
              "rank without padding\n",
              info.stage, info.ranks, model.trained);
  printState(info, model, metrics);
  std::printf("%-20s %14s %14s\n", "arenas of a rank", "touched", "planned");
  row("device", double(metrics.peak.device),
      double(metrics.plannedPeak.device));
  row("host", double(metrics.peak.host), double(metrics.plannedPeak.host));
  row("disk", double(metrics.peak.disk), double(metrics.plannedPeak.disk));
  printTraffic(info, model, metrics);
  printTransfers(metrics);
}
