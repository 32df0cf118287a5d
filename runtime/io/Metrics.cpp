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

#include "runtime/io/Json.h"

#include <charconv>

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

static std::string transfers(const StepMetrics &m) {
  return "{" + member("to_host", m.toHostBytes) + "," +
         member("to_device", m.toDeviceBytes) + "," +
         member("disk_read", m.diskReadBytes) + "," +
         member("disk_write", m.diskWriteBytes) + "}";
}

std::string zrt::formatMetrics(const StepMetrics &m) {
  std::string line =
      "{" + member("step", uint64_t(m.step)) + "," + member("loss", m.loss);
  if (m.gradNorm)
    line += "," + member("grad_norm", *m.gradNorm);
  if (m.gradNormClipped)
    line += "," + member("grad_norm_clipped", *m.gradNormClipped);
  line += "," + member("lr", m.learningRate);
  if (m.lossScale)
    line += "," + member("loss_scale", *m.lossScale);
  if (m.skipped)
    line += "," + member("skipped", std::string(*m.skipped ? "true" : "false"));
  line += "," + member("step_ms", m.stepMs) + "," +
          member("samples_per_s", m.samplesPerSecond);
  if (m.tokensPerSecond)
    line += "," + member("tokens_per_s", *m.tokensPerSecond);
  if (m.teraflops)
    line += "," + member("tflops", *m.teraflops);
  if (m.mfu)
    line += "," + member("mfu", *m.mfu);
  line += "," + member("micro_batches", uint64_t(m.microBatches)) + "," +
          member("samples", uint64_t(m.samplesSeen)) + "," +
          member("data_ms", m.dataMs);
  line += ",\"comm_bytes\":{" + member("all_gather", m.allGatherBytes) + "," +
          member("reduce_scatter", m.reduceScatterBytes) + "," +
          member("all_reduce", m.allReduceBytes) + "}," +
          member("comm_padding_bytes", m.commPaddingBytes) + "," +
          member("exposed_comm_ms", m.exposedCommMs) + "," +
          member("transfer_bytes", transfers(m)) + "," +
          member("transfer_ms", m.transferMs) + "," +
          member("host_ms", m.hostMs) + "," +
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

/// The step that a line of formatMetrics, or the beginning of one, is of.
static std::optional<int64_t> stepOf(std::string_view line) {
  constexpr std::string_view begin = "{\"step\":";
  int64_t step = 0;
  if (line.substr(0, begin.size()) != begin)
    return std::nullopt;
  const char *end = line.data() + line.size();
  auto number = std::from_chars(line.data() + begin.size(), end, step);
  if (number.ec != std::errc())
    return std::nullopt;
  return step;
}

static LogFile::Sort sortUpTo(int64_t last) {
  if (!last)
    return nullptr;
  return [last](std::string_view line) {
    std::optional<int64_t> step = stepOf(line);
    if (step && *step > last)
      return LogFile::Line::Later;
    return step && line.back() == '}' ? LogFile::Line::Stays
                                      : LogFile::Line::Unreadable;
  };
}

MetricsFile::MetricsFile(const std::string &path, int64_t resumedAt,
                         const LogFile::Warn &warn)
    : file(path, sortUpTo(resumedAt), warn) {}

void MetricsFile::write(const StepMetrics &metrics) {
  file.write(formatMetrics(metrics) + "\n");
}
