//===- StepLine.cpp - What a run prints of its steps ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See StepLine.h.
//
//===----------------------------------------------------------------------===//

#include "StepLine.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

using namespace zero_tools;

[[gnu::format(printf, 1, 2)]] static std::string text(const char *format, ...) {
  char buffer[128];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  return buffer;
}

std::string zero_tools::withThousands(double value) {
  std::string digits = text("%.0f", value);
  size_t sign = digits[0] == '-';
  if (!std::isfinite(value))
    return digits;
  for (size_t at = digits.size(); at > sign + 3;)
    digits.insert(at -= 3, ",");
  return digits;
}

std::string zero_tools::formatBytes(double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB"};
  for (const char *unit : units) {
    if (bytes < 1024)
      return text(*unit == 'B' ? "%.0f%s" : "%.2f%s", bytes, unit);
    bytes /= 1024;
  }
  return text("%.2fGiB", bytes);
}

/// "311.20", "0.0031", "0.000012".
static std::string formatRate(double value) {
  if (value >= 0.1 || value <= 0)
    return text("%.2f", value);
  return text("%.*f", 1 - int(std::floor(std::log10(value))), value);
}

bool StepLine::add(const zrt::StepMetrics &metrics, bool last) {
  bool first = !any;
  any = true;
  current = metrics;
  double time = metrics.stepMs / 1000;
  seconds += time;
  samples += metrics.samplesPerSecond * time;
  tokens += metrics.tokensPerSecond.value_or(0) * time;
  operations += metrics.teraflops.value_or(0) * time;
  peaks += metrics.mfu.value_or(0) * time;
  return options.every && (first || last || metrics.step % options.every == 0);
}

void StepLine::addSpeeds(std::vector<Piece> &line) const {
  if (seconds <= 0)
    return;
  double perRank = 1 / seconds / options.ranks;
  if (current.tokensPerSecond)
    line.push_back({"34", "tps: " + withThousands(tokens * perRank)});
  else
    line.push_back({"34", text("samples/s: %.1f", samples * perRank)});
  if (current.teraflops)
    line.push_back({"36", "tflops: " + formatRate(operations / seconds)});
  if (current.mfu)
    line.push_back({"35", text("mfu: %.2f%%", 100 * peaks / seconds)});
}

void StepLine::addChanges(std::vector<Piece> &line) {
  if (learningRate != current.learningRate)
    line.push_back({"0", text("lr: %.4g", current.learningRate)});
  if (current.lossScale && lossScale != current.lossScale)
    line.push_back({"0", text("loss_scale: %.6g", *current.lossScale)});
  if (skipped != current.skippedSteps)
    line.push_back({"1", text("skipped: %lld",
                              static_cast<long long>(current.skippedSteps))});
  learningRate = current.learningRate;
  lossScale = current.lossScale;
  skipped = current.skippedSteps;
}

std::string StepLine::format() {
  std::vector<Piece> line = {
      {"31", text("step: %2lld", static_cast<long long>(current.step))},
      {"32", text("loss: %8.5f", current.loss)}};
  if (current.gradNorm)
    line.push_back({"33", text("grad_norm: %7.4f", *current.gradNorm)});
  if (current.gradNormClipped && *current.gradNormClipped < *current.gradNorm)
    line.back().text += text(" (clipped to %.4g)", *current.gradNormClipped);
  double memory = double(current.peak.device);
  line.push_back({"36", "memory: " + formatBytes(memory)});
  if (options.memoryLimit)
    line.back().text += text("(%.2f%%)", 100 * memory / *options.memoryLimit);
  if (current.peak.host || current.peak.disk)
    line.push_back({"36", "host: " + formatBytes(double(current.peak.host))});
  if (current.peak.disk)
    line.push_back({"36", "disk: " + formatBytes(double(current.peak.disk))});
  addSpeeds(line);
  addChanges(line);
  seconds = samples = tokens = operations = peaks = 0;
  std::string joined;
  for (const Piece &piece : line) {
    joined += joined.empty() ? "" : "  ";
    joined += options.colors ? std::string("\033[") + piece.color + "m" +
                                   piece.text + "\033[0m"
                             : piece.text;
  }
  return joined;
}
