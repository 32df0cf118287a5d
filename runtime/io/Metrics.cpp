//===- Metrics.cpp - One line of JSON a step ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Formatting of metrics.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Metrics.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"

#include <cerrno>
#include <cstring>

using namespace zrt;

static std::string member(const char *name, const std::string &value) {
  return std::string("\"") + name + "\":" + value;
}

static std::string member(const char *name, double value) {
  return member(name, jsonNumber(value));
}

static std::string member(const char *name, uint64_t value) {
  return member(name, std::to_string(value));
}

static std::string spaces(const SpaceBytes &bytes) {
  return "{" + member("device", bytes.device) + "," +
         member("host", bytes.host) + "," + member("disk", bytes.disk) + "}";
}

std::string zrt::formatMetrics(const StepMetrics &m) {
  std::string line =
      "{" + member("step", uint64_t(m.step)) + "," + member("loss", m.loss);
  if (m.gradNorm)
    line += "," + member("grad_norm", *m.gradNorm);
  line += "," + member("lr", m.learningRate) + "," +
          member("step_ms", m.stepMs) + "," +
          member("samples_per_s", m.samplesPerSecond);
  if (m.tokensPerSecond)
    line += "," + member("tokens_per_s", *m.tokensPerSecond);
  if (m.mfu)
    line += "," + member("mfu", *m.mfu);
  line += ",\"comm_bytes\":{" + member("all_gather", m.allGatherBytes) + "," +
          member("reduce_scatter", m.reduceScatterBytes) + "," +
          member("all_reduce", m.allReduceBytes) + "}," +
          member("comm_padding_bytes", m.commPaddingBytes) + "," +
          member("exposed_comm_ms", m.exposedCommMs) + "," +
          member("peak_bytes", spaces(m.peak)) + "," +
          member("planned_peak_bytes", spaces(m.plannedPeak)) + "," +
          member("gathered_bytes", m.gatheredBytes) + "," +
          member("planned_gathered_bytes", m.plannedGatheredBytes);
  line += ",\"state_bytes\":{" + member("parameters", m.parameterBytes) + "," +
          member("gradients", m.gradientBytes) + "," +
          member("optimizer", m.optimizerBytes) + "}," +
          member("state_padding_bytes", m.statePaddingBytes);
  return line + "}";
}

MetricsFile::MetricsFile(const std::string &path)
    : path(path), file(std::fopen(path.c_str(), "we")) {
  if (!file)
    throw IoError(path, std::string("cannot create: ") + std::strerror(errno));
}

MetricsFile::~MetricsFile() { std::fclose(file); }

void MetricsFile::write(const StepMetrics &metrics) {
  std::string line = formatMetrics(metrics) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file) != line.size() ||
      std::fflush(file))
    throw IoError(path, std::string("cannot write: ") + std::strerror(errno));
}
