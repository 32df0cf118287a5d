//===- PlanMode.cpp - zero-plan M.mlir|MODEL.onnx -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a model to its plan and says what that plan will do: bytes are the
// arena's, seconds are a simulation of its streams and events.
//
//===----------------------------------------------------------------------===//

#include "Modes.h"

#include "../zero-compile/Compile.h"

#include "dialects/Plan/Plan.h"
#include "zero/Config/StepOptions.h"
#include "zero/Import/Import.h"
#include "zero/Lowering/PlanTimeline.h"
#include "zero/Schedule/OffloadChoice.h"
#include "zero/Transforms/StepUtils.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace llvm;
using namespace mlir::zero;

/// As zero-opt does without a grid.
static constexpr int64_t kDefaultRanks = 8;

namespace {
/// The plan of one stage, or why there is none.
struct StagePlan {
  int64_t stage = 0;
  std::vector<int64_t> grid; ///< empty: shards over all ranks
  bool partitioned = false;  ///< the file says its stage and ranks
  Timeline timeline;
  int64_t microBatches = 1;              ///< of a step
  std::map<TaskKind, int64_t> sentBytes; ///< by a rank in a step
  int64_t samples = 0;                   ///< of one rank and step
  int64_t tokens = 0;          ///< the same; 0 where the input is not tokens
  double flops = 0;            ///< of products and convolutions, of one rank
  std::string recompute;       ///< what was asked for
  int64_t recomputed = 0;      ///< ops of the forward pass that run twice
  double recomputeSeconds = 0; ///< that this takes
  std::vector<std::string> offload; ///< what was asked for
  std::string offloadChoice;        ///< what was chosen, as a sentence
  std::vector<std::string> offloadRules;
  int64_t hostBytes = 0, diskBytes = 0; ///< arenas
  std::map<TaskKind, double> busy;      ///< seconds by kind of task, rank 0
  std::string error;

  bool offloads() const {
    return hostBytes + diskBytes > 0 || !offload.empty();
  }
  /// Seconds that compute stands still for copies and the host.
  double offloadStall() const {
    double seconds = 0;
    for (const TimelineSpan &span : timeline.spans)
      if (span.rank == 0 && isOffload(span.kind))
        seconds += span.exposed;
    return seconds;
  }
  static bool isOffload(TaskKind kind) {
    return kind == TaskKind::CopyIn || kind == TaskKind::CopyOut ||
           kind == TaskKind::DiskRead || kind == TaskKind::DiskWrite ||
           kind == TaskKind::HostCompute;
  }
  double busySeconds(TaskKind kind) const {
    auto found = busy.find(kind);
    return found == busy.end() ? 0 : found->second;
  }

  /// Bytes by kind when most are alive.
  std::array<int64_t, kNumMemoryKinds> peak() const {
    std::array<int64_t, kNumMemoryKinds> best = {};
    int64_t most = -1;
    for (const TimelineMemory &point : timeline.memory) {
      int64_t sum = 0;
      for (int64_t bytes : point.bytes)
        sum += bytes;
      if (sum > most) {
        most = sum;
        best = point.bytes;
      }
    }
    return best;
  }
  int64_t sent(TaskKind kind) const {
    auto found = sentBytes.find(kind);
    return found == sentBytes.end() ? 0 : found->second;
  }
};
} // namespace

static mlir::OwningOpRef<mlir::ModuleOp> load(const PlanQuestion &question,
                                              mlir::MLIRContext &context) {
  if (!StringRef(question.file).ends_with(".onnx"))
    return zero_tools::parseModule(question.file, context);
  ImportOptions import;
  import.dims = question.dims;
  import.training = true;
  auto module = importOnnx(question.file, context, import);
  if (failed(module))
    return nullptr;
  return std::move(*module);
}

/// What one rank trains on, computes and sends in a step.
static void addWork(mlir::plan::ProgramOp program, StagePlan &plan) {
  plan.microBatches = program.getMicroBatches();
  for (auto input : program.getBody().getOps<mlir::plan::InputOp>()) {
    auto type = mlir::cast<mlir::ShapedType>(input.getBuffer().getType());
    if (input.getRole() != mlir::plan::InputRole::Data || plan.samples ||
        type.getRank() == 0)
      continue;
    plan.samples = type.getDimSize(0) * plan.microBatches;
    if (type.getRank() == 2 && type.getElementType().isInteger())
      plan.tokens = type.getNumElements() * plan.microBatches;
  }
  // All micro-batches but the last run the commands before the end of one.
  int64_t times = plan.microBatches > 1 ? plan.microBatches - 1 : 1;
  for (mlir::Operation &op : program.getBody().front()) {
    if (mlir::isa<mlir::plan::MicroBatchEndOp>(op))
      times = 1;
    auto command = mlir::dyn_cast<mlir::plan::CommandOpInterface>(op);
    if (!command)
      continue;
    plan.flops += times * countModelFlops(command);
    int64_t sent = getSentBytes(command);
    if (auto copy = mlir::dyn_cast<mlir::plan::CopyOp>(op)) {
      mlir::MemRefType type = copy.getTarget().getType();
      sent = type.getNumElements() *
             mlir::plan::elementBytes(type.getElementType());
    }
    plan.sentBytes[getCommandKind(command)] += times * sent;
  }
}

static void addRecomputation(mlir::ModuleOp module, StagePlan &plan) {
  if (auto count = module->getAttrOfType<mlir::IntegerAttr>(kRecomputedAttr))
    plan.recomputed = count.getInt();
  if (auto seconds =
          module->getAttrOfType<mlir::FloatAttr>(kRecomputedSecondsAttr))
    plan.recomputeSeconds = seconds.getValueAsDouble();
}

/// Where things lie, and how busy that keeps links and host.
static void addOffload(mlir::plan::ProgramOp program, mlir::ModuleOp module,
                       StagePlan &plan) {
  for (auto arena : program.getBody().getOps<mlir::plan::ArenaOp>()) {
    int64_t bytes = arena.getBytes().value_or(0);
    if (arena.getSpace() == mlir::plan::Space::Host)
      plan.hostBytes = bytes;
    else if (arena.getSpace() == mlir::plan::Space::Disk)
      plan.diskBytes = bytes;
  }
  for (const TimelineSpan &span : plan.timeline.spans)
    if (span.rank == 0)
      plan.busy[span.kind] += span.end - span.start;
  plan.offloadChoice = zero_tools::getOffloadChoice(module);
  if (auto rules = module->getAttrOfType<mlir::ArrayAttr>(kOffloadRulesAttr))
    for (auto rule : rules.getAsRange<mlir::StringAttr>())
      plan.offloadRules.push_back(rule.str());
}

static StagePlan planStage(const PlanQuestion &question, const CostModel &cost,
                           int64_t stage, const std::vector<int64_t> &grid) {
  mlir::MLIRContext context;
  zero_tools::prepareContext(context);
  zero_tools::OneLineErrors errors(context, "zero-plan", question.file);
  StagePlan plan;
  plan.stage = stage;
  plan.grid = grid;
  zero_tools::CompileOptions compile;
  compile.grid = grid;
  compile.machine = question.machine;
  compile.memoryBytes = question.memoryBytes;
  compile.remat = plan.recompute = question.recompute;
  compile.offload = plan.offload = question.offload;
  compile.hostMemoryBytes = question.hostMemoryBytes;
  compile.offloadToDisk = question.disk;
  auto module = load(question, context);
  plan.partitioned = module && (*module)->hasAttr("zero.stage");
  compile.stage = plan.partitioned ? question.stage : stage;
  if (grid.empty())
    compile.ranks = plan.partitioned ? question.ranks
                                     : question.ranks.value_or(kDefaultRanks);
  if (module && StringRef(question.file).ends_with(".onnx")) {
    compile.trainStep.emplace();
    compile.trainStep->loss = question.loss;
    compile.trainStep->optimizer = question.optimizer;
    setStepOptions(question.settings, *compile.trainStep);
  }
  compile.microBatches = question.settings.accumulate;
  if (module) {
    auto planned = zero_tools::compileWithinBudget(*module, compile);
    if (succeeded(planned))
      for (auto program : (**planned).getOps<mlir::plan::ProgramOp>()) {
        plan.timeline = predictTimeline(program, cost);
        plan.stage = plan.timeline.stage;
        plan.timeline.model = question.file;
        addWork(program, plan);
        addRecomputation(**planned, plan);
        addOffload(program, **planned, plan);
        if (plan.grid.empty())
          plan.grid = plan.timeline.grid;
        return plan;
      }
  }
  plan.error = errors.error();
  return plan;
}

/// What all ranks train on in a second.
static double rate(const StagePlan &plan, int64_t ofRank) {
  double seconds = plan.timeline.stepSeconds;
  return seconds > 0 ? double(ofRank) * plan.timeline.ranks / seconds : 0;
}

/// Of the f32 peak of `machine`, counting products and convolutions.
static double utilization(const StagePlan &plan, const Machine &machine) {
  auto peak = machine.peakFlops.find("f32");
  return peak == machine.peakFlops.end() || plan.timeline.stepSeconds <= 0
             ? 0
             : plan.flops / (plan.timeline.stepSeconds * peak->second);
}

/// Copies between memory spaces.
static constexpr std::pair<StringLiteral, TaskKind> kLinks[] = {
    {"device to host", TaskKind::CopyOut},
    {"host to device", TaskKind::CopyIn},
    {"disk to host", TaskKind::DiskRead},
    {"host to disk", TaskKind::DiskWrite}};

static void printPlans(ArrayRef<StagePlan> plans, int64_t best,
                       const Machine &machine, raw_ostream &os) {
  auto line = [&](StringRef name,
                  function_ref<std::string(const StagePlan &)> text) {
    os << formatv("  {0,-20}", name);
    for (const StagePlan &plan : plans)
      os << formatv(" {0,12}", plan.error.empty() ? text(plan) : "-");
    os << '\n';
  };
  os << formatv("  {0,-20}", "stage");
  for (const StagePlan &plan : plans)
    os << formatv(" {0,12}", plan.stage);
  os << '\n';
  line("grid", [](const StagePlan &p) {
    return join(
        map_range(p.grid, [](int64_t size) { return std::to_string(size); }),
        "x");
  });
  if (any_of(plans, [](const StagePlan &p) { return p.microBatches > 1; }))
    line("micro-batches",
         [](const StagePlan &p) { return std::to_string(p.microBatches); });
  os << "bytes of a rank\n";
  line("arena", [](const StagePlan &p) {
    return formatv("{0}", p.timeline.plannedPeak).str();
  });
  line("lower bound", [](const StagePlan &p) {
    return formatv("{0}", p.timeline.lowerBound).str();
  });
  bool offloads =
      any_of(plans, [](const StagePlan &p) { return p.offloads(); });
  if (offloads) {
    line("host arena",
         [](const StagePlan &p) { return std::to_string(p.hostBytes); });
    line("disk arena",
         [](const StagePlan &p) { return std::to_string(p.diskBytes); });
  }
  os << "at the peak\n";
  for (size_t kind = 0; kind != kNumMemoryKinds; ++kind)
    line(memoryKindName(static_cast<MemoryKind>(kind)),
         [&](const StagePlan &p) { return formatBytes(p.peak()[kind]); });
  os << "sent by a rank in a step\n";
  for (auto [name, kind] :
       {std::pair("all-gather", TaskKind::AllGather),
        std::pair("reduce-scatter", TaskKind::ReduceScatter),
        std::pair("all-reduce", TaskKind::AllReduce)})
    line(name, [kind = kind](const StagePlan &p) {
      return formatv("{0}", p.sent(kind)).str();
    });
  if (offloads)
    for (auto [name, kind] : kLinks)
      line(name, [kind = kind](const StagePlan &p) {
        return std::to_string(p.sent(kind));
      });
  os << "time\n";
  line("step", [](const StagePlan &p) {
    return formatSeconds(p.timeline.stepSeconds);
  });
  line("exposed", [](const StagePlan &p) {
    return formatSeconds(p.timeline.exposedSeconds);
  });
  if (offloads) {
    line("stalls for offload",
         [](const StagePlan &p) { return formatSeconds(p.offloadStall()); });
    line("host busy", [](const StagePlan &p) {
      return formatSeconds(p.busySeconds(TaskKind::HostCompute));
    });
  }
  if (any_of(plans, [](const StagePlan &p) { return p.recompute != "none"; })) {
    line("recomputed",
         [](const StagePlan &p) { return formatSeconds(p.recomputeSeconds); });
    line("ops that run twice",
         [](const StagePlan &p) { return std::to_string(p.recomputed); });
  }
  line("samples/s", [](const StagePlan &p) {
    return formatv("{0:f1}", rate(p, p.samples)).str();
  });
  if (any_of(plans, [](const StagePlan &p) { return p.tokens > 0; }))
    line("tokens/s", [](const StagePlan &p) {
      return formatv("{0:f0}", rate(p, p.tokens)).str();
    });
  line("MFU, products", [&](const StagePlan &p) {
    return formatv("{0:f1} %", 100 * utilization(p, machine)).str();
  });
  os << '\n';
  for (const StagePlan &plan : plans)
    if (!plan.error.empty())
      os << "Stage " << plan.stage << ": " << plan.error << '\n';
  if (best < 0)
    return;
  os << "Fastest that fits: stage " << plans[best].stage << ".\n";
  if (!plans[best].offloadChoice.empty())
    os << "  " << plans[best].offloadChoice << '\n';
  for (const std::string &note : plans[best].timeline.notes)
    os << "  " << note << '\n';
}

static void writePlan(json::OStream &json, const StagePlan &plan) {
  json.attribute("stage", plan.stage);
  json.attributeArray("grid", [&] {
    for (int64_t size : plan.grid)
      json.value(size);
  });
  json.attribute("micro_batches", plan.microBatches);
  json.attribute("fits", plan.error.empty());
  if (!plan.error.empty())
    return json.attribute("error", plan.error);
  json.attribute("arena_bytes", plan.timeline.plannedPeak);
  json.attribute("lower_bound_bytes", plan.timeline.lowerBound);
  json.attributeObject("peak_bytes", [&] {
    std::array<int64_t, kNumMemoryKinds> peak = plan.peak();
    for (size_t kind = 0; kind != kNumMemoryKinds; ++kind)
      json.attribute(memoryKindName(static_cast<MemoryKind>(kind)), peak[kind]);
  });
  json.attribute("host_bytes", plan.hostBytes);
  json.attribute("disk_bytes", plan.diskBytes);
  json.attributeObject("traffic_bytes", [&] {
    json.attribute("all_gather", plan.sent(TaskKind::AllGather));
    json.attribute("reduce_scatter", plan.sent(TaskKind::ReduceScatter));
    json.attribute("all_reduce", plan.sent(TaskKind::AllReduce));
    json.attribute("to_host", plan.sent(TaskKind::CopyOut));
    json.attribute("to_device", plan.sent(TaskKind::CopyIn));
    json.attribute("disk_read", plan.sent(TaskKind::DiskRead));
    json.attribute("disk_write", plan.sent(TaskKind::DiskWrite));
  });
  json.attributeObject("seconds", [&] {
    json.attribute("step", plan.timeline.stepSeconds);
    json.attribute("exposed", plan.timeline.exposedSeconds);
    json.attribute("exposed_offload", plan.offloadStall());
    json.attribute("to_host", plan.busySeconds(TaskKind::CopyOut));
    json.attribute("to_device", plan.busySeconds(TaskKind::CopyIn));
    json.attribute("disk_read", plan.busySeconds(TaskKind::DiskRead));
    json.attribute("disk_write", plan.busySeconds(TaskKind::DiskWrite));
    json.attribute("host", plan.busySeconds(TaskKind::HostCompute));
  });
  json.attributeObject("offload", [&] {
    json.attributeArray("rules", [&] {
      for (const std::string &rule :
           plan.offloadRules.empty() ? plan.offload : plan.offloadRules)
        json.value(rule);
    });
    json.attribute("choice", plan.offloadChoice);
  });
  json.attributeObject("recompute", [&] {
    json.attribute("mode", plan.recompute);
    json.attribute("ops", plan.recomputed);
    json.attribute("seconds", plan.recomputeSeconds);
  });
  json.attribute("samples_per_s", rate(plan, plan.samples));
  if (plan.tokens)
    json.attribute("tokens_per_s", rate(plan, plan.tokens));
  json.attribute("flops", plan.flops);
  json.attributeArray("limits", [&] {
    for (const std::string &note : plan.timeline.notes)
      json.value(note);
  });
}

static void printPlansAsJson(const PlanQuestion &question,
                             ArrayRef<StagePlan> plans, int64_t best,
                             raw_ostream &os) {
  json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("model", question.file);
    json.attribute("machine", question.machine);
    json.attributeArray("plans", [&] {
      for (const StagePlan &plan : plans)
        json.object([&] { writePlan(json, plan); });
    });
    json.attribute("best", best);
  });
  os << '\n';
}

/// The grids to try: what was asked for, or with a search also those of two
/// axes.
static std::vector<std::vector<int64_t>> gridsOf(const PlanQuestion &question) {
  std::vector<std::vector<int64_t>> grids = {question.grid};
  int64_t ranks = question.ranks.value_or(kDefaultRanks);
  if (question.search && question.grid.empty())
    for (int64_t replicas = 2; replicas < ranks; ++replicas)
      if (ranks % replicas == 0)
        grids.push_back({replicas, ranks / replicas});
  return grids;
}

/// The plans to choose from. A file that is partitioned has one.
static std::vector<StagePlan> makePlans(const PlanQuestion &question,
                                        const CostModel &cost) {
  std::vector<StagePlan> plans;
  for (int64_t stage = 0; stage <= 3; ++stage) {
    if (question.stage && *question.stage != stage)
      continue;
    for (const std::vector<int64_t> &grid : gridsOf(question)) {
      // Stage 0 shards nothing: a grid changes nothing.
      if (stage == 0 && !grid.empty() && question.grid.empty())
        continue;
      plans.push_back(planStage(question, cost, stage, grid));
      if (plans.back().partitioned)
        return plans;
    }
  }
  return plans;
}

int mlir::zero::runPlan(const PlanQuestion &question) {
  Expected<Machine> machine = loadMachine(question.machine);
  if (!machine) {
    errs() << "zero-plan: " << toString(machine.takeError()) << '\n';
    return 1;
  }
  CostModel cost(std::move(*machine));
  std::vector<StagePlan> plans = makePlans(question, cost);
  int64_t best = -1;
  for (size_t i = 0; i != plans.size(); ++i)
    if (plans[i].error.empty() &&
        (best < 0 ||
         plans[i].timeline.stepSeconds < plans[best].timeline.stepSeconds))
      best = i;
  if (best < 0) {
    errs() << "zero-plan: " << plans.back().error << '\n';
    return 1;
  }
  if (question.json)
    printPlansAsJson(question, plans, best, outs());
  else
    printPlans(plans, best, cost.getMachine(), outs());
  if (Error error = writeTimelineFiles(plans[best].timeline, question.trace,
                                       question.report)) {
    errs() << "zero-plan: " << toString(std::move(error)) << '\n';
    return 1;
  }
  return 0;
}
