//===- PlanOutput.cpp - Plans as a table and as JSON ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See PlanOutput.h.
//
//===----------------------------------------------------------------------===//

#include "PlanOutput.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <functional>

using namespace llvm;
using namespace mlir::zero;

Utilization mlir::zero::utilization(const StepPlanner &planner,
                                    const StepConfig &config,
                                    const TimeParts &time) {
  const Machine &machine = planner.getCost().getMachine();
  // f8 products are counted against the bf16 peak, as torchtitan does.
  auto peak = machine.peakFlops.find(
      config.precision == Precision::F32 ? "f32" : "bf16");
  if (peak == machine.peakFlops.end() || time.step <= 0)
    return {};
  FlopsPerToken flops = flopsPerToken(planner.getShape(), config.seq);
  double scale = tokensPerSecond(config, time) / config.ranks / peak->second;
  return {flops.palm * scale, flops.torchtitan * scale, flops.megatron * scale};
}

static std::string gridText(const StepConfig &config) {
  if (config.replicas == 1)
    return formatv("{0}", config.ranks).str();
  return formatv("{0}x{1}", config.replicas, config.shards()).str();
}

static std::string recomputeText(const StepConfig &config) {
  std::string text = recomputeName(config.recompute).str();
  if (config.recompute != Recompute::None && config.recomputeLayers >= 0)
    text += formatv(" {0}", config.recomputeLayers).str();
  return text;
}

static std::string percent(double part) {
  return formatv("{0:f1} %", 100 * part).str();
}

namespace {
/// A line of the table: its name and its text for a row.
struct Line {
  StringLiteral name;
  std::function<std::string(const PlanRow &)> text;
};
} // namespace

static bool anyOffload(const PlanAnswer &answer) {
  return any_of(answer.rows,
                [](const PlanRow &row) { return row.config.offload.any(); });
}

/// "24", "all", "8 disk".
static std::string shareText(const OffloadShare &share) {
  if (share.layers == 0)
    return "-";
  return (share.layers < 0 ? "all" : std::to_string(share.layers)) +
         (share.disk ? " disk" : "");
}

/// What is offloaded, in layers.
static std::vector<Line> offloadLines() {
  auto part = [](OffloadShare StepOffload::*share) {
    return [share](const PlanRow &row) {
      return shareText(row.config.offload.*share);
    };
  };
  return {{"optimizer states", part(&StepOffload::optimizer)},
          {"gradients", part(&StepOffload::gradients)},
          {"parameters", part(&StepOffload::parameters)},
          {"activations", part(&StepOffload::activations)}};
}

/// What offload adds to bytes, traffic and time.
static std::vector<Line> otherMemoryLines() {
  auto part = [](int64_t MemoryParts::*field) {
    return [field](const PlanRow &row) {
      return formatBytes(row.estimate.memory.*field);
    };
  };
  return {{"of it staging", part(&MemoryParts::staging)},
          {"host memory", part(&MemoryParts::host)},
          {"disk", part(&MemoryParts::disk)}};
}

static std::vector<Line> copyLines() {
  auto part = [](int64_t TrafficParts::*field) {
    return [field](const PlanRow &row) {
      return formatBytes(row.estimate.traffic.*field);
    };
  };
  return {{"device to host", part(&TrafficParts::toHost)},
          {"host to device", part(&TrafficParts::toDevice)},
          {"disk to host", part(&TrafficParts::diskRead)},
          {"host to disk", part(&TrafficParts::diskWrite)}};
}

static std::vector<Line> memoryLines() {
  auto part = [](int64_t MemoryParts::*field) {
    return [field](const PlanRow &row) {
      return formatBytes(row.estimate.memory.*field);
    };
  };
  return {
      {"parameters", part(&MemoryParts::parameters)},
      {"gradients", part(&MemoryParts::gradients)},
      {"optimizer states", part(&MemoryParts::optimizer)},
      {"gathered window", part(&MemoryParts::gathered)},
      {"activations", part(&MemoryParts::activations)},
      {"logits", part(&MemoryParts::logits)},
      {"all of it",
       [](const PlanRow &row) {
         return formatBytes(row.estimate.memory.total());
       }},
  };
}

static std::vector<Line> trafficLines() {
  auto part = [](int64_t TrafficParts::*field) {
    return [field](const PlanRow &row) {
      return formatBytes(row.estimate.traffic.*field);
    };
  };
  return {{"all-gather", part(&TrafficParts::allGather)},
          {"reduce-scatter", part(&TrafficParts::reduceScatter)},
          {"all-reduce", part(&TrafficParts::allReduce)}};
}

static std::vector<Line> timeLines(const StepPlanner &planner) {
  // Plans that do not fit have no speed.
  auto fitting = [](std::function<std::string(const PlanRow &)> text) {
    return [text](const PlanRow &row) {
      return row.fits ? text(row) : std::string("-");
    };
  };
  auto used = [&planner](double Utilization::*field) {
    return [&planner, field](const PlanRow &row) {
      return percent(utilization(planner, row.config, row.estimate.time).*
                     field);
    };
  };
  return {
      {"step", fitting([](const PlanRow &row) {
         return formatSeconds(row.estimate.time.step);
       })},
      {"exposed", fitting([](const PlanRow &row) {
         return formatSeconds(row.estimate.time.exposed());
       })},
      {"tokens/s", fitting([](const PlanRow &row) {
         return formatv("{0:f0}",
                        tokensPerSecond(row.config, row.estimate.time))
             .str();
       })},
      {"tokens/s and rank", fitting([](const PlanRow &row) {
         return formatv("{0:f0}",
                        tokensPerSecond(row.config, row.estimate.time) /
                            row.config.ranks)
             .str();
       })},
      {"MFU, PaLM", fitting(used(&Utilization::palm))},
      {"MFU, torchtitan", fitting(used(&Utilization::torchtitan))},
      {"MFU, Megatron", fitting(used(&Utilization::megatron))},
  };
}

static std::vector<Line> choiceLines() {
  return {
      {"stage",
       [](const PlanRow &row) {
         return formatv("{0}", row.config.stage).str();
       }},
      {"grid", [](const PlanRow &row) { return gridText(row.config); }},
      {"batch x accumulate",
       [](const PlanRow &row) {
         return formatv("{0}x{1}", row.config.batch, row.config.accumulate)
             .str();
       }},
      {"recompute",
       [](const PlanRow &row) { return recomputeText(row.config); }},
      {"layers per bucket",
       [](const PlanRow &row) {
         return formatv("{0}", row.config.bucketLayers).str();
       }},
      {"gathers ahead",
       [](const PlanRow &row) {
         return row.config.stage == 3
                    ? formatv("{0}", row.config.prefetch).str()
                    : std::string("-");
       }},
      {"layers kept",
       [](const PlanRow &row) {
         return row.config.stage == 3
                    ? formatv("{0}", row.config.keepLayers).str()
                    : std::string("-");
       }},
  };
}

static void printLines(const PlanAnswer &answer, StringRef title,
                       const std::vector<Line> &lines, raw_ostream &os) {
  if (!title.empty())
    os << title << '\n';
  for (const Line &line : lines) {
    os << formatv("  {0,-20}", line.name);
    for (const PlanRow &row : answer.rows)
      os << formatv(" {0,12}", line.text(row));
    os << '\n';
  }
}

void mlir::zero::printTable(const PlanAnswer &answer, raw_ostream &os) {
  const StepPlanner &planner = *answer.planner;
  const ModelShape &shape = planner.getShape();
  const StepConfig &first = answer.rows.front().config;
  os << formatv("{0}: {1:N} parameters, sequence {2}, {3} on {4} ranks of {5} "
                "({6} a node), {7} a rank\n\n",
                shape.name, shape.size(first.seq), first.seq,
                precisionName(first.precision), first.ranks,
                planner.getCost().getMachine().name,
                planner.getCost().getMachine().ranksPerNode,
                formatBytes(answer.memoryBytes));
  printLines(answer, "", choiceLines(), os);
  bool offload = anyOffload(answer);
  if (offload)
    printLines(answer, "offloaded layers, from the last", offloadLines(), os);
  printLines(answer, "bytes of a rank", memoryLines(), os);
  if (offload)
    printLines(answer, "", otherMemoryLines(), os);
  printLines(answer, "",
             {{"fits",
               [&](const PlanRow &row) {
                 int64_t over =
                     row.estimate.memory.total() - answer.memoryBytes;
                 return row.fits   ? std::string("yes")
                        : over > 0 ? "+" + formatBytes(over)
                                   : std::string("not the host");
               }}},
             os);
  printLines(answer, "sent by a rank in a step", trafficLines(), os);
  if (offload)
    printLines(answer, "", copyLines(), os);
  printLines(answer, "time", timeLines(planner), os);
  if (offload)
    printLines(answer, "",
               {{"stalls for offload",
                 [](const PlanRow &row) {
                   return row.fits
                              ? formatSeconds(row.estimate.time.exposedOffload)
                              : std::string("-");
                 }}},
               os);
  os << '\n';
  for (size_t i = 0; i != answer.rows.size(); ++i) {
    const PlanRow &row = answer.rows[i];
    bool best = static_cast<int64_t>(i) == answer.best;
    if (row.fits && !best)
      continue;
    os << (best ? "Fastest that fits: stage " : "Does not fit: stage ")
       << row.config.stage << (best ? ".\n" : "");
    if (!best) {
      int64_t over = row.estimate.memory.total() - answer.memoryBytes;
      os << (over > 0 ? " by " + formatBytes(over) : " in host memory")
         << (row.notes.empty() ? "" : "; would fit: ") << join(row.notes, "; ")
         << ".\n";
      continue;
    }
    for (const std::string &note : row.notes)
      os << "  " << note << '\n';
  }
  for (const std::string &note : answer.notes)
    os << "note: " << note << '\n';
}

static void writeConfig(json::OStream &json, const StepPlanner &planner,
                        const StepConfig &config) {
  json.attribute("stage", config.stage);
  json.attributeArray("grid", [&] {
    if (config.replicas > 1)
      json.value(config.replicas);
    json.value(config.shards());
  });
  json.attribute("batch", config.batch);
  json.attribute("accumulate", config.accumulate);
  json.attribute("recompute", recomputeName(config.recompute));
  if (config.recompute != Recompute::None && config.recomputeLayers >= 0)
    json.attribute("recompute_layers", config.recomputeLayers);
  json.attribute("bucket_layers", config.bucketLayers);
  json.attribute("prefetch", config.prefetch);
  json.attribute("keep_layers", config.keepLayers);
  json.attribute("kept_parameters", planner.keptParameters(config));
  json.attributeObject("offload", [&] {
    auto share = [&](StringRef name, const OffloadShare &of) {
      json.attributeObject(name, [&] {
        json.attribute("layers", of.layers); // -1: all of it
        json.attribute("memory", of.layers == 0 ? "device"
                                 : of.disk      ? "disk"
                                                : "host");
      });
    };
    share("optimizer", config.offload.optimizer);
    share("gradients", config.offload.gradients);
    share("parameters", config.offload.parameters);
    share("activations", config.offload.activations);
  });
}

static void writeMemory(json::OStream &json, const MemoryParts &memory,
                        int64_t budget) {
  json.attributeObject("memory_bytes", [&] {
    json.attribute("parameters", memory.parameters);
    json.attribute("gradients", memory.gradients);
    json.attribute("optimizer", memory.optimizer);
    json.attribute("state", memory.state());
    json.attribute("gathered", memory.gathered);
    json.attribute("activations", memory.activations);
    json.attribute("logits", memory.logits);
    json.attribute("inputs", memory.inputs);
    json.attribute("staging", memory.staging);
    json.attribute("total", memory.total());
    json.attribute("budget", budget);
    json.attribute("host", memory.host);
    json.attribute("disk", memory.disk);
  });
}

static void writeSpeed(json::OStream &json, const StepPlanner &planner,
                       const PlanRow &row) {
  const TimeParts &time = row.estimate.time;
  json.attributeObject("seconds", [&] {
    json.attribute("step", time.step);
    json.attribute("forward", time.forward);
    json.attribute("backward", time.backward);
    json.attribute("recompute", time.recompute);
    json.attribute("head", time.head);
    json.attribute("update", time.update);
    json.attribute("slowdown", time.slowdown);
    json.attribute("exposed", time.exposed());
    json.attribute("exposed_all_gather", time.exposedGather);
    json.attribute("exposed_reduce", time.exposedReduce);
    json.attribute("all_gather", time.gather);
    json.attribute("reduce", time.reduce);
    json.attribute("exposed_offload", time.exposedOffload);
    json.attribute("to_host", time.toHost);
    json.attribute("to_device", time.toDevice);
    json.attribute("disk_read", time.diskRead);
    json.attribute("disk_write", time.diskWrite);
    json.attribute("host", time.host);
  });
  double rate = tokensPerSecond(row.config, time);
  json.attribute("tokens_per_s", rate);
  json.attribute("tokens_per_s_per_rank", rate / row.config.ranks);
  Utilization used = utilization(planner, row.config, time);
  json.attributeObject("mfu", [&] {
    json.attribute("palm", used.palm);
    json.attribute("torchtitan", used.torchtitan);
    json.attribute("megatron", used.megatron);
  });
}

static void writeRow(json::OStream &json, const PlanAnswer &answer,
                     const PlanRow &row) {
  json.object([&] {
    writeConfig(json, *answer.planner, row.config);
    json.attribute("fits", row.fits);
    writeMemory(json, row.estimate.memory, answer.memoryBytes);
    json.attributeObject("traffic_bytes", [&] {
      json.attribute("all_gather", row.estimate.traffic.allGather);
      json.attribute("reduce_scatter", row.estimate.traffic.reduceScatter);
      json.attribute("all_reduce", row.estimate.traffic.allReduce);
      json.attribute("to_host", row.estimate.traffic.toHost);
      json.attribute("to_device", row.estimate.traffic.toDevice);
      json.attribute("disk_read", row.estimate.traffic.diskRead);
      json.attribute("disk_write", row.estimate.traffic.diskWrite);
    });
    if (row.fits)
      writeSpeed(json, *answer.planner, row);
    else
      json.attribute("missing_bytes",
                     row.estimate.memory.total() - answer.memoryBytes);
    json.attributeArray(row.fits ? "limits" : "would_fit", [&] {
      for (const std::string &note : row.notes)
        json.value(note);
    });
  });
}

void mlir::zero::printJson(const PlanAnswer &answer, raw_ostream &os) {
  const StepPlanner &planner = *answer.planner;
  const ModelShape &shape = planner.getShape();
  const StepConfig &first = answer.rows.front().config;
  FlopsPerToken flops = flopsPerToken(shape, first.seq);
  json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("model", shape.name);
    json.attribute("parameters", shape.size(first.seq));
    json.attribute("seq", first.seq);
    json.attribute("machine", planner.getCost().getMachine().name);
    json.attribute("software", planner.getSoftware().name);
    json.attribute("ranks", first.ranks);
    json.attribute("precision", precisionName(first.precision));
    json.attributeObject("flops_per_token", [&] {
      json.attribute("palm", flops.palm);
      json.attribute("torchtitan", flops.torchtitan);
      json.attribute("megatron", flops.megatron);
    });
    json.attributeArray("plans", [&] {
      for (const PlanRow &row : answer.rows)
        writeRow(json, answer, row);
    });
    json.attribute("best", answer.best);
    json.attributeArray("notes", [&] {
      for (const std::string &note : answer.notes)
        json.value(note);
    });
  });
  os << '\n';
}
