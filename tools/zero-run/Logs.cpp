//===- Logs.cpp - Metrics under the names of other systems ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Logs.h.
//
//===----------------------------------------------------------------------===//

#include "Logs.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"
#include "runtime/io/TensorBoard.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

using namespace zero_tools;

static constexpr double gib = 1024.0 * 1024 * 1024;

static std::vector<NamedMetric> hfMetrics(const zrt::StepMetrics &m) {
  return {{"train/loss", m.loss},
          {"train/grad_norm", m.gradNorm},
          {"train/learning_rate", m.learningRate},
          {"train/epoch", m.epoch}};
}

static std::vector<NamedMetric> deepspeedMetrics(const zrt::StepMetrics &m) {
  return {{"Train/Samples/train_loss", m.loss},
          {"Train/Samples/lr", m.learningRate},
          {"Train/Samples/loss_scale", m.lossScale}};
}

/// The runtime's arenas are both what is in use and what is reserved.
static std::vector<NamedMetric>
torchtitanMetrics(const zrt::StepMetrics &m, uint32_t ranks,
                  std::optional<double> memoryLimit) {
  auto scaled = [](std::optional<double> value, double factor) {
    return value ? std::optional<double>(*value * factor) : value;
  };
  double memory = double(m.peak.device);
  std::optional<double> share;
  if (memoryLimit)
    share = 100 * memory / *memoryLimit;
  return {{"loss_metrics/global_avg_loss", m.loss},
          {"loss_metrics/global_max_loss", m.maxLoss},
          {"grad_norm", m.gradNorm},
          {"n_tokens_seen", m.tokensPerSecond
                                ? std::optional<double>(double(m.tokensSeen))
                                : std::nullopt},
          {"lr", m.learningRate},
          {"throughput(tps)", scaled(m.tokensPerSecond, 1.0 / ranks)},
          {"tflops", m.teraflops},
          {"mfu(%)", scaled(m.mfu, 100)},
          {"time_metrics/end_to_end(s)", m.stepMs / 1000},
          {"time_metrics/data_loading(s)", m.dataMs / 1000},
          {"time_metrics/data_loading(%)", 100 * m.dataMs / m.stepMs},
          {"memory/max_active(GiB)", memory / gib},
          {"memory/max_active(%)", share},
          {"memory/max_reserved(GiB)", memory / gib},
          {"memory/max_reserved(%)", share},
          {"memory/num_alloc_retries", 0},
          {"memory/num_ooms", 0}};
}

std::vector<NamedMetric>
zero_tools::namedMetrics(const std::string &system,
                         const zrt::StepMetrics &metrics, uint32_t ranks,
                         std::optional<double> memoryLimit) {
  if (system == "hf")
    return hfMetrics(metrics);
  if (system == "deepspeed")
    return deepspeedMetrics(metrics);
  return torchtitanMetrics(metrics, ranks, memoryLimit);
}

std::string zero_tools::axisName(const std::string &system) {
  return system == "deepspeed" ? "samples" : "step";
}

int64_t zero_tools::axisValue(const std::string &system,
                              const zrt::StepMetrics &metrics) {
  return system == "deepspeed" ? metrics.samplesSeen : metrics.step;
}

std::string zero_tools::csvField(std::string text) {
  for (char &c : text)
    if (uint8_t(c) < 32 || c == 127)
      c = ' ';
  if (!text.empty() && std::string("=+-@").find(text.front()) != text.npos)
    text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"") == text.npos)
    return text;
  std::string quoted = "\"";
  for (char c : text)
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

/// A number as spreadsheets and pandas read it.
static std::string csvNumber(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  return zrt::jsonNumber(value);
}

class Logs::Sink {
public:
  virtual ~Sink() = default;
  virtual void write(int64_t at, const std::vector<NamedMetric> &values) = 0;
};

class Logs::CsvSink : public Sink {
public:
  /// What is before the first line after `last` of the axis stays; 0: nothing.
  CsvSink(const std::string &path, const std::string &header, int64_t last,
          const zrt::LogFile::Warn &warn)
      : file(path, last ? sortUpTo(path, header, last) : nullptr, warn) {
    if (file.beganEmpty())
      file.write(header + "\n");
  }

  void write(int64_t at, const std::vector<NamedMetric> &values) override {
    std::string line = std::to_string(at);
    for (const NamedMetric &metric : values)
      line += "," + (metric.value ? csvNumber(*metric.value) : "");
    file.write(line + "\n");
  }

private:
  static zrt::LogFile::Sort sortUpTo(const std::string &path,
                                     const std::string &header, int64_t last) {
    using Line = zrt::LogFile::Line;
    auto commas = [](std::string_view line) {
      return std::count(line.begin(), line.end(), ',');
    };
    return [=, first = true](std::string_view line) mutable {
      if (std::exchange(first, false)) {
        if (line != header)
          throw zrt::IoError(path, "has other columns than this run writes; "
                                   "give another --log-dir or the "
                                   "--metric-names that it was begun with");
        return Line::Stays;
      }
      int64_t at = 0;
      auto end = std::from_chars(line.data(), line.data() + line.size(), at);
      bool number = end.ec == std::errc();
      if (number && at > last)
        return Line::Later;
      return number && commas(line) == commas(header) ? Line::Stays
                                                      : Line::Unreadable;
    };
  }

  zrt::LogFile file;
};

class Logs::TensorBoardSink : public Sink {
public:
  TensorBoardSink(const std::string &folder, int64_t last)
      : file(folder, last ? last : -1) {}

  void write(int64_t at, const std::vector<NamedMetric> &values) override {
    zrt::Scalars scalars;
    for (const NamedMetric &metric : values)
      if (metric.value)
        scalars.emplace_back(metric.name, *metric.value);
    file.write(at, scalars);
  }

private:
  zrt::TensorBoardFile file;
};

Logs::Logs(const LogOptions &options) : options(options) {
  if (options.kinds.empty())
    return;
  std::error_code failed;
  std::filesystem::create_directories(options.folder, failed);
  if (failed)
    throw zrt::IoError(options.folder,
                       "cannot create the folder: " + failed.message());
  bool samples = axisName(options.names) == "samples";
  int64_t last = samples ? options.samplesAtResume : options.resumedAt;
  std::string header = csvField(axisName(options.names));
  for (const NamedMetric &metric : namedMetrics(options.names, {}, 1, {}))
    header += "," + csvField(metric.name);
  for (const std::string &kind : options.kinds) {
    if (kind == "csv")
      sinks.push_back(std::make_unique<CsvSink>(options.folder + "/" + csvName,
                                                header, last, options.warn));
    else
      sinks.push_back(std::make_unique<TensorBoardSink>(options.folder, last));
  }
}

Logs::~Logs() = default;

void Logs::write(const zrt::StepMetrics &metrics) {
  std::vector<NamedMetric> values =
      namedMetrics(options.names, metrics, options.ranks, options.memoryLimit);
  for (const std::unique_ptr<Sink> &sink : sinks)
    sink->write(axisValue(options.names, metrics), values);
}
