//===- MeasuredSteps.cpp - Published training steps ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the rows of a table into steps that can be planned.
//
//===----------------------------------------------------------------------===//

#include "CsvTable.h"
#include "zero/Planner/Validate.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace llvm;
using namespace mlir::zero;

namespace {
/// Reads one row; keeps the first error.
class RowReader {
public:
  RowReader(const CsvTable &table, size_t row, StringRef path, bool anyMachine)
      : table(table), row(row), path(path), anyMachine(anyMachine) {}

  MeasuredStep read();
  std::string error;

private:
  const CsvTable &table;
  size_t row;
  StringRef path;
  bool anyMachine;

  void fail(StringRef column, StringRef expected) {
    if (error.empty())
      error = (path + ":" + Twine(table.line(row)) + ": " + column + " is '" +
               table.get(row, column) + "'; expected " + expected)
                  .str();
  }
  StringRef text(StringRef column) const { return table.get(row, column); }
  int64_t integer(StringRef column, int64_t fallback = -1);
  double number(StringRef column);
  bool flag(StringRef column, bool fallback);

  void readShape(MeasuredStep &step);
  void readConfig(MeasuredStep &step);
  void readMachine(MeasuredStep &step);
  void readSoftware(MeasuredStep &step);
  void readTime(MeasuredStep &step);
};
} // namespace

/// A whole number above 0; `fallback` where the field is empty, if it is one.
int64_t RowReader::integer(StringRef column, int64_t fallback) {
  StringRef field = text(column);
  if (field.empty() && fallback >= 0)
    return fallback;
  int64_t value;
  double real;
  if (!field.getAsInteger(10, value) && value > 0)
    return value;
  if (!field.getAsDouble(real) && real >= 1 && real < 9e18 &&
      real == std::floor(real))
    return static_cast<int64_t>(real);
  fail(column, "a whole number, 1 or more");
  return 1;
}

double RowReader::number(StringRef column) {
  double value;
  if (text(column).getAsDouble(value) || !std::isfinite(value) || value <= 0) {
    fail(column, "a number above 0");
    return 1;
  }
  return value;
}

bool RowReader::flag(StringRef column, bool fallback) {
  std::string field = text(column).lower();
  if (field.empty())
    return fallback;
  if (field == "1" || field == "true" || field == "yes")
    return true;
  if (field != "0" && field != "false" && field != "no")
    fail(column, "0 or 1");
  return false;
}

void RowReader::readShape(MeasuredStep &step) {
  ModelShape &shape = step.shape;
  step.model = text("model").str();
  if (text("d_model").empty() && !step.model.empty()) {
    Expected<ModelShape> known = findModel(step.model);
    if (known) {
      shape = *known;
      return;
    }
    consumeError(known.takeError());
  }
  shape.hidden = integer("d_model");
  shape.layers = integer("layers");
  shape.heads = integer("heads");
  shape.kvHeads = integer("kv_heads", shape.heads);
  shape.ffn = integer("ffn", 4 * shape.hidden);
  shape.gated = flag("gated", false);
  // 50,257 of GPT-2, padded as Megatron does.
  shape.vocab = integer("vocab", 51200);
  shape.tied = flag("tied_embeddings", !shape.gated);
  if (step.model.empty())
    step.model =
        ("gpt-" + Twine(shape.hidden) + "x" + Twine(shape.layers)).str();
  shape.name = step.model;
  std::string wrong = checkShape(shape);
  if (!wrong.empty() && error.empty())
    error = (path + ":" + Twine(table.line(row)) + ": " + wrong).str();
}

static int64_t stageOf(StringRef sharding) {
  std::string name = sharding.lower();
  return StringSwitch<int64_t>(name)
      .Cases({"zero3", "3", "fsdp", "full_shard", "hybrid_shard", "hsdp"}, 3)
      .Cases({"zero2", "2", "shard_grad_op"}, 2)
      .Cases({"zero1", "1"}, 1)
      .Cases({"zero0", "0", "ddp", "no_shard"}, 0)
      .Default(-1);
}

void RowReader::readConfig(MeasuredStep &step) {
  StepConfig &config = step.config;
  config.seq = integer("seq");
  config.ranks = integer("gpus");
  config.batch = integer("micro_batch");
  if (text("grad_accum").empty() && !text("global_batch").empty())
    config.accumulate = std::max<int64_t>(1, integer("global_batch") /
                                                 (config.ranks * config.batch));
  else
    config.accumulate = integer("grad_accum", 1);

  // Data parallel runs of Megatron-DeepSpeed shard their optimizer.
  config.stage = text("sharding").empty() ? 1 : stageOf(text("sharding"));
  if (config.stage < 0)
    fail("sharding", "zero0, zero1, zero2, zero3 or hsdp");

  std::string precision = text("precision").lower();
  bool pure = flag("pure_low_precision", false);
  if (StringRef(precision).contains("fp8") ||
      StringRef(precision).contains("float8"))
    config.precision = Precision::F8;
  else if (precision == "fp32" || precision == "f32")
    config.precision = Precision::F32;
  else
    config.precision = pure ? Precision::Bf16 : Precision::Mixed;

  std::string again = text("activation_checkpointing").lower();
  int64_t layers;
  if (again.empty() || again == "0" || again == "none" || again == "false")
    config.recompute = Recompute::None;
  else if (StringRef(again).starts_with("selective"))
    config.recompute = Recompute::Selective;
  else if (again == "1" || again == "full" || again == "true")
    config.recompute = Recompute::Full;
  else if (!StringRef(again).getAsInteger(10, layers) && layers > 1) {
    config.recompute = Recompute::Full;
    config.recomputeLayers = layers;
  } else
    fail("activation_checkpointing",
         "0, 1, selective, or how many layers are recomputed");
}

/// Bytes per second and rank of "1600Gbps" (of a node), "400Gbps/gpu"; 0 if the
/// text says nothing.
static double lineRateOf(StringRef text, int64_t ranksPerNode) {
  std::string lower = text.lower();
  StringRef rest = lower;
  unsigned long long gigabits;
  if (rest.consumeInteger(10, gigabits) || gigabits == 0)
    return 0;
  double scale = rest.consume_front("tbps") ? 1e12 / 8 : 1e9 / 8;
  rest.consume_front("gbps");
  bool perRank = rest.starts_with("/gpu") || rest.starts_with("/rank");
  return gigabits * scale / (perRank ? 1 : ranksPerNode);
}

void RowReader::readMachine(MeasuredStep &step) {
  step.gpu = text("gpu").str();
  std::string name = text("gpu").lower();
  llvm::replace(name, '_', '-');
  StringRef gpu = name;
  // The longest of these that the name begins with.
  static constexpr std::pair<StringLiteral, StringLiteral> known[] = {
      {"a100-40", "a100-40"},
      {"a100-80", "a100-80"},
      {"a100", "a100-80"},
      {"a800", "a100-80"},
      {"h100-96gb-500w", "h100-96"},
      {"h100-80", "h100"},
      {"h100-96", "h100-96"},
      {"h100", "h100"},
      {"h800", "h100"},
      {"h200", "h200"},
      {"gb200", "b200"},
      {"b200", "b200"},
      {"gh200", "gh200"},
      {"rtx4090", "rtx4090-pcie"},
      {"rtx-4090", "rtx4090-pcie"},
      {"4090", "rtx4090-pcie"},
      {"this-cpu", "this-cpu"},
  };
  StringRef best;
  for (const auto &[prefix, preset] : known)
    if (gpu.starts_with(prefix) && prefix.size() > best.size()) {
      best = prefix;
      step.machine = preset.str();
    }
  if (best.empty() && !anyMachine)
    return fail("gpu", "one of a100, h100, h200, b200, gh200, rtx4090 (or give "
                       "its machine file with --machine)");
  if (best == "a100" || best == "a800" || best == "h800" || best == "gb200" ||
      (best == "h100" && gpu != best))
    step.note = ("gpu " + step.gpu + " taken as " + step.machine);
  step.ranksPerNode = integer("gpus_per_node", 8);
  step.lineRate = lineRateOf(text("inter_node"), step.ranksPerNode);
  std::string sharding = text("sharding").lower();
  if ((sharding == "hsdp" || sharding == "hybrid_shard") &&
      step.config.ranks % step.ranksPerNode == 0)
    step.config.replicas = step.config.ranks / step.ranksPerNode;
}

void RowReader::readSoftware(MeasuredStep &step) {
  step.source =
      (text("source").empty() ? text("framework") : text("source")).str();
  std::string lower = StringRef(step.source).lower();
  StringRef source = lower;
  StringRef name;
  if (source.contains("foundry"))
    name = "llm-foundry";
  else if (source.contains("torchtitan"))
    name = source.contains("compile") ? "fsdp2-compile" : "fsdp2";
  else if (source.ends_with("fsdp1") || source.ends_with(" fsdp"))
    name = "fsdp1";
  else if (source.contains("yafsdp"))
    name = "yafsdp";
  else if (source.contains("fms"))
    name = "fms-fsdp";
  else if (source.contains("megatron") || source.contains("vtrain"))
    name = "megatron-deepspeed";
  else if (const Software *exact = findSoftware(source))
    name = exact->name;
  if (name.empty()) {
    name = "fsdp2";
    step.note = ("source '" + step.source + "' taken as fsdp2");
  }
  step.software = findSoftware(name);
}

void RowReader::readTime(MeasuredStep &step) {
  if (!text("step_s").empty()) {
    step.seconds = number("step_s");
  } else if (!text("step_ms").empty()) {
    step.seconds = number("step_ms") / 1e3;
  } else {
    double rate = number("tokens_per_s_per_gpu");
    step.seconds = static_cast<double>(step.config.batch) * step.config.seq *
                   step.config.accumulate / rate;
  }
  step.params = text("params").empty() ? 0 : integer("params");
}

MeasuredStep RowReader::read() {
  MeasuredStep step;
  step.line = table.line(row);
  readShape(step);
  readConfig(step);
  readMachine(step);
  readSoftware(step);
  readTime(step);
  if (error.empty()) {
    std::string wrong = checkConfig(step.shape, step.config);
    if (!wrong.empty())
      error = (path + ":" + Twine(step.line) + ": " + wrong).str();
  }
  return step;
}

Expected<std::vector<MeasuredStep>>
mlir::zero::readMeasuredSteps(StringRef path, bool anyMachine) {
  Expected<CsvTable> table = CsvTable::read(path);
  if (!table)
    return table.takeError();
  auto missing = [&](StringRef what) {
    return createStringError(inconvertibleErrorCode(),
                             path + ": the header has no column " + what +
                                 "; docs/planning.md lists the columns");
  };
  for (StringRef column : {"seq", "gpus", "micro_batch", "gpu"})
    if (!table->has(column))
      return missing("'" + column.str() + "'");
  if (!table->has("model"))
    for (StringRef column : {"d_model", "layers", "heads"})
      if (!table->has(column))
        return missing("'" + column.str() + "'");
  if (!table->has("step_s") && !table->has("step_ms") &&
      !table->has("tokens_per_s_per_gpu"))
    return missing("'step_s', 'step_ms' or 'tokens_per_s_per_gpu'");
  std::vector<MeasuredStep> steps;
  for (size_t row = 0, e = table->numRows(); row != e; ++row) {
    RowReader reader(*table, row, path, anyMachine);
    steps.push_back(reader.read());
    if (!reader.error.empty())
      return createStringError(inconvertibleErrorCode(), reader.error);
  }
  return steps;
}
