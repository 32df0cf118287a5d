//===- zero-plan.cpp - Memory, traffic and time before the run ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tool's main function: picks the mode by its flags.
//
//===----------------------------------------------------------------------===//

#include "Modes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace mlir::zero;

static cl::OptionCategory category("zero-plan options");

template <typename T>
using Flag = cl::opt<T>;

// What is planned.
static Flag<std::string> input(cl::Positional, cl::cat(category),
                               cl::desc("M.mlir|MODEL.onnx"));
static Flag<std::string> loss("loss", cl::cat(category),
                              cl::init("cross-entropy"), cl::value_desc("LOSS"),
                              cl::desc("Of an .onnx model"));
static Flag<std::string> optimizer("optimizer", cl::cat(category),
                                   cl::init("adamw"), cl::value_desc("NAME"),
                                   cl::desc("Of an .onnx model"));
static cl::list<std::string>
    dims("dim", cl::cat(category), cl::value_desc("NAME=N"),
         cl::desc("A symbolic size of an .onnx model"));
static Flag<std::string> model("model", cl::cat(category),
                               cl::value_desc("NAME"),
                               cl::desc("A model that is known by its name"));
static Flag<std::string>
    shape("shape", cl::cat(category), cl::value_desc("SIZES"),
          cl::desc("A model by its sizes: d_model=4096,layers=32,heads=32"
                   "[,kv_heads=,ffn=,vocab=,gated=,tied=,positions=,experts=,"
                   "experts_used=]"));
static Flag<double> params("params", cl::cat(category), cl::init(0),
                           cl::value_desc("N"),
                           cl::desc("Only bytes of parameters, gradients and "
                                    "Adam states for N parameters"));
static Flag<int64_t> sampleTokens("seq", cl::cat(category), cl::init(2048),
                                  cl::value_desc("N"),
                                  cl::desc("Tokens of a sample"));

// Where.
static Flag<std::string>
    machineName("machine", cl::cat(category), cl::value_desc("NAME|FILE.json"),
                cl::desc("A preset or a machine file (default: h100)"));
static Flag<int64_t> ranks("ranks", cl::cat(category), cl::init(0),
                           cl::value_desc("N"),
                           cl::desc("Ranks (default: all of the machine)"));
static Flag<std::string>
    memory("memory", cl::cat(category), cl::value_desc("80GiB"),
           cl::desc("Budget of a rank (default: what the machine has)"));
static Flag<std::string>
    softwareName("software", cl::cat(category), cl::init("zero"),
                 cl::value_desc("NAME"),
                 cl::desc("What runs the step: zero, or a framework to compare "
                          "with (fsdp2, llm-foundry, ...)"));

// How.
static Flag<int64_t> stage("zero-stage", cl::cat(category), cl::init(-1),
                           cl::value_desc("0-3"),
                           cl::desc("Only this stage (default: all)"));
static Flag<std::string>
    grid("grid", cl::cat(category), cl::value_desc("RxS"),
         cl::desc("R replicas of S shards (default: shard over all ranks)"));
static Flag<int64_t> batch("batch", cl::cat(category), cl::init(0),
                           cl::value_desc("B"),
                           cl::desc("Samples of a micro-batch and rank"));
static Flag<int64_t> microBatches("accumulate", cl::cat(category), cl::init(1),
                                  cl::value_desc("A"),
                                  cl::desc("Micro-batches of a step"));
static Flag<int64_t>
    globalBatch("global-batch", cl::cat(category), cl::init(0),
                cl::value_desc("N"),
                cl::desc("With --auto: samples of a step on all ranks"));
static Flag<std::string>
    precision("precision", cl::cat(category), cl::init("mixed"),
              cl::value_desc("TYPE"),
              cl::desc("f32, mixed (bf16 and f32 states), bf16 or f8"));
static Flag<std::string> recompute("recompute", cl::cat(category),
                                   cl::value_desc("KIND"),
                                   cl::desc("none, selective or full; of a "
                                            "file also auto"));
static cl::alias remat("remat", cl::cat(category),
                       cl::desc("The same as --recompute"),
                       cl::aliasopt(recompute));
static cl::list<std::string>
    offload("offload", cl::cat(category), cl::value_desc("RULE"),
            cl::desc("What lives outside device memory: "
                     "KIND[@GLOB]=device|host|disk[:RATIO], KIND one of "
                     "optimizer, gradients, parameters, activations; or auto, "
                     "or none (default). With --model whole kinds or ratios of "
                     "their layers"));
static Flag<std::string>
    hostMemory("host-memory", cl::cat(category), cl::value_desc("64GiB"),
               cl::desc("Budget of a rank's host memory (default: its part of "
                        "what the machine has)"));
static Flag<std::string>
    offloadPath("offload-path", cl::cat(category), cl::value_desc("DIR"),
                cl::desc("There will be a folder for a disk arena: --offload "
                         "auto may use it"));
static Flag<int64_t>
    recomputeLayers("recompute-layers", cl::cat(category), cl::init(-1),
                    cl::value_desc("N"),
                    cl::desc("Layers that recompute (default: all)"));
static Flag<int64_t> prefetch("prefetch", cl::cat(category), cl::init(1),
                              cl::value_desc("N"),
                              cl::desc("Gathers that run ahead"));
static Flag<int64_t> bucketLayers("bucket-layers", cl::cat(category),
                                  cl::init(1), cl::value_desc("N"),
                                  cl::desc("Layers of one collective"));
static Flag<int64_t>
    keepLayers("keep-layers", cl::cat(category), cl::init(0),
               cl::value_desc("N"),
               cl::desc("Layers that stay gathered from forward to backward "
                        "(default 0; --auto: as many as fit)"));
static Flag<bool> automatic("auto", cl::cat(category),
                            cl::desc("The fastest plan that fits"));
static Flag<bool> stats("search-stats", cl::cat(category),
                        cl::desc("With --auto: plans tried, to stderr"));

// Answers.
static Flag<bool> json("json", cl::cat(category), cl::desc("Answer as JSON"));
static Flag<std::string> report("report", cl::cat(category),
                                cl::value_desc("R.html"),
                                cl::desc("A picture of the fastest plan"));
static Flag<std::string> trace("trace", cl::cat(category),
                               cl::value_desc("T.json"),
                               cl::desc("A trace of it for Perfetto"));

// Other modes.
static Flag<std::string>
    printMachineName("print-machine", cl::cat(category),
                     cl::value_desc("NAME|FILE.json"),
                     cl::desc("Print a machine as a machine file"));
static Flag<std::string> validateFile("validate", cl::cat(category),
                                      cl::value_desc("FILE.csv"),
                                      cl::desc("Compare with measured steps"));
static Flag<std::string>
    allocateFile("allocate", cl::cat(category), cl::value_desc("FILE.csv"),
                 cl::desc("Place the buffers of an allocation instance "
                          "(columns id,lower,upper,size)"));
static Flag<int64_t>
    capacity("capacity", cl::cat(category), cl::init(-1),
             cl::value_desc("bytes"),
             cl::desc("With --allocate: exit 1 if the arena is larger"));

static Flag<bool> calibrate("calibrate", cl::cat(category),
                            cl::desc("Time this machine with --ranks ranks "
                                     "and print its machine file"));
static Flag<std::string> output("o", cl::cat(category), cl::value_desc("FILE"),
                                cl::desc("With --calibrate: the machine file"));

static Flag<std::string>
    configFile("config", cl::cat(category), cl::value_desc("DS.json"),
               cl::desc("A DeepSpeed config: stage, ranks, batch, accumulation "
                        "and precision that no flag says; of an .onnx model "
                        "the whole step"));

static cl::alias gridAlias("zero-grid", cl::cat(category), cl::aliasopt(grid),
                           cl::desc("The same as --grid"));

static int fail(const Twine &message) {
  errs() << "zero-plan: " << message << '\n';
  return 1;
}

static std::string unknown(StringRef flag, StringRef value,
                           ArrayRef<StringRef> known) {
  StringRef close = closestName(value, known);
  std::string hint =
      close.empty() ? "" : "; did you mean '" + close.str() + "'?";
  return formatv("--{0}: unknown '{1}'{2} Known: {3}", flag, value,
                 hint.empty() ? ";" : hint, join(known, ", "))
      .str();
}

/// Reads --grid, --precision, --recompute and --software. Empty, or what is
/// wrong.
static std::string readChoices(ModelQuestion &question) {
  if (!grid.empty()) {
    auto [first, second] = StringRef(grid).split('x');
    int64_t replicas, shards;
    if (first.getAsInteger(10, replicas) || second.getAsInteger(10, shards) ||
        replicas < 1 || shards < 1)
      return "--grid: found '" + grid +
             "'; expected replicas x shards, like 4x8";
    if (ranks == 0)
      question.space.base.ranks = replicas * shards;
    if (replicas * shards != question.space.base.ranks)
      return formatv("--grid: {0} has {1} ranks; expected {2}", grid,
                     replicas * shards, question.space.base.ranks)
          .str();
    question.space.replicas = replicas;
  }
  StringRef precisions[] = {"f32", "mixed", "bf16", "f8"};
  StringRef recomputes[] = {"none", "selective", "full"};
  auto *type = llvm::find(precisions, StringRef(precision));
  if (type == std::end(precisions))
    return unknown("precision", precision, precisions);
  question.space.base.precision =
      static_cast<Precision>(type - std::begin(precisions));
  if (!recompute.empty()) {
    auto *kind = llvm::find(recomputes, StringRef(recompute));
    if (kind == std::end(recomputes))
      return unknown("recompute", recompute, recomputes);
    question.space.recompute =
        static_cast<Recompute>(kind - std::begin(recomputes));
  }
  question.software = findSoftware(softwareName);
  if (!question.software) {
    std::vector<StringRef> names;
    for (const Software &software : knownSoftware())
      names.push_back(software.name);
    return unknown("software", softwareName, names);
  }
  return {};
}

/// Reads the rules of --offload. Empty, or what is wrong.
static std::string readOffload(std::vector<OffloadRule> &rules, bool &search) {
  search = false;
  for (const std::string &text : offload) {
    if (text == "auto" || text == "none") {
      if (offload.size() > 1)
        return "--offload " + text + " stands alone; found " +
               join(offload, ", ");
      search = text == "auto";
      continue;
    }
    std::string wrong;
    mlir::FailureOr<OffloadRule> rule = parseOffloadRule(text, wrong);
    if (failed(rule))
      return "--offload: " + wrong;
    rules.push_back(*rule);
  }
  return {};
}

/// Reads --offload for a model without tensors. Empty, or what is wrong.
static std::string readModelOffload(ModelQuestion &question) {
  std::string wrong = readOffload(question.offload, question.space.offload);
  for (const OffloadRule &rule : question.offload)
    if (rule.pattern != "*")
      return "--offload: --model and --shape have no tensors for the pattern "
             "'" +
             rule.pattern +
             "'; give a whole kind or a ratio, like "
             "optimizer=host:0.5";
  question.space.disk = !offloadPath.empty();
  question.space.hostBytes = question.machine.hostMemoryBytes > 0
                                 ? question.machine.hostMemoryOfRank()
                                 : -1;
  if (wrong.empty() && !hostMemory.empty()) {
    std::optional<int64_t> bytes = parseByteSize(hostMemory);
    if (!bytes)
      return "--host-memory: found '" + hostMemory +
             "'; expected bytes, as a whole number or like 64GiB";
    question.space.hostBytes = *bytes;
  }
  return wrong;
}

/// Reads the sizes of the step and the budget. Empty, or what is wrong.
static std::string readSizes(ModelQuestion &question) {
  const Machine &machine = question.machine;
  SearchSpace &space = question.space;
  if (ranks < 0 || (ranks.getNumOccurrences() && ranks == 0))
    return formatv("--ranks: found {0}; expected 1 or more", int64_t(ranks));
  space.base.ranks =
      ranks > 0 ? int64_t(ranks) : machine.nodes * machine.ranksPerNode;
  space.base.seq = sampleTokens;
  space.base.accumulate = microBatches;
  space.base.prefetch = prefetch;
  space.base.bucketLayers = bucketLayers;
  space.base.recomputeLayers = recomputeLayers;
  space.globalBatch = globalBatch;
  space.base.keepLayers = keepLayers;
  if (stage.getNumOccurrences())
    space.stage = stage;
  if (batch.getNumOccurrences())
    space.batch = batch;
  constexpr int64_t mostSamples = int64_t(1) << 40;
  if (globalBatch.getNumOccurrences() &&
      (globalBatch < 1 || globalBatch > mostSamples))
    return formatv("--global-batch: found {0}; expected 1 to {1}",
                   int64_t(globalBatch), mostSamples);
  space.memoryBytes = machine.memoryBytes - machine.reservedBytes;
  if (!memory.empty()) {
    std::optional<int64_t> bytes = parseByteSize(memory);
    if (!bytes)
      return "--memory: found '" + memory +
             "'; expected bytes, as a whole number or like 80GiB";
    if (*bytes > machine.memoryBytes)
      question.notes.push_back(formatv(
          "the budget, {0}, is more than a rank of {1} has, {2}",
          formatBytes(*bytes), machine.name, formatBytes(machine.memoryBytes)));
    space.memoryBytes = *bytes;
  }
  if (space.base.ranks > machine.ranksPerNode &&
      machine.interNode.bandwidth <= 0)
    return formatv("{0} ranks need {1} nodes, but machine {2} has no "
                   "inter_node.bandwidth",
                   space.base.ranks,
                   (space.base.ranks + machine.ranksPerNode - 1) /
                       machine.ranksPerNode,
                   machine.name);
  return {};
}

//===----------------------------------------------------------------------===//
// Config
//===----------------------------------------------------------------------===//

/// What --config says; `ranks` is how many there are. Empty, or what is wrong.
static std::string readConfig(std::optional<int64_t> ranks,
                              RunSettings &settings) {
  ConfigQuestion question;
  question.complete = false; // learning rates and the like do not matter
  question.flags.ranks = ranks;
  if (stage.getNumOccurrences())
    question.flags.stage = stage;
  if (batch.getNumOccurrences())
    question.flags.batch = batch;
  if (microBatches.getNumOccurrences())
    question.flags.accumulate = microBatches;
  if (optimizer.getNumOccurrences())
    question.flags.optimizer = optimizer;
  Expected<ConfigResult> result = readDeepSpeedConfigFile(configFile, question);
  if (!result)
    return toString(result.takeError());
  std::vector<std::string> refused = result->refusals();
  if (!refused.empty())
    return configFile + ": " + refused.front();
  for (const std::string &note : result->notes)
    errs() << "zero-plan: note: " << configFile << ": " << note << '\n';
  settings = std::move(result->settings);
  return {};
}

/// As if the flag had been given, unless it was.
static void give(cl::Option &flag, const Twine &value) {
  std::string text = value.str();
  if (!flag.getNumOccurrences())
    flag.addOccurrence(1, flag.ArgStr, text);
}

static void giveRanks(const RunSettings &settings) {
  if (settings.stage)
    give(stage, Twine(*settings.stage));
  if (settings.grid.size() == 2 && !grid.getNumOccurrences())
    give(grid, Twine(settings.grid[0]) + "x" + Twine(settings.grid[1]));
  else if (settings.ranks)
    give(ranks, Twine(*settings.ranks));
}

static void giveOffload(const RunSettings &settings) {
  if (!offload.getNumOccurrences())
    for (const std::string &rule : settings.offload)
      offload.push_back(rule);
  if (settings.offloadPath)
    give(offloadPath, *settings.offloadPath);
}

/// A config's settings as flags of --model.
static std::string giveModelFlags(const Machine &machine) {
  if (configFile.empty())
    return {};
  RunSettings settings;
  int64_t all =
      ranks > 0 ? int64_t(ranks) : machine.nodes * machine.ranksPerNode;
  std::string wrong = readConfig(all, settings);
  if (!wrong.empty())
    return wrong;
  giveRanks(settings);
  if (settings.batch && !automatic)
    give(batch, Twine(*settings.batch));
  if (settings.accumulate && !automatic)
    give(microBatches, Twine(*settings.accumulate));
  if (settings.batch && settings.accumulate && automatic)
    give(globalBatch, Twine(*settings.batch * *settings.accumulate * all));
  give(precision,
       settings.precision.value_or("f32") == "f32" ? "f32" : "mixed");
  giveOffload(settings);
  return {};
}

/// A config's settings for a file.
static std::string giveFileFlags(PlanQuestion &question) {
  if (configFile.empty())
    return {};
  std::optional<int64_t> given;
  if (ranks > 0)
    given = ranks;
  std::string wrong = readConfig(given, question.settings);
  giveRanks(question.settings);
  giveOffload(question.settings);
  // The length of a run changes no byte.
  if (auto &schedule = question.settings.lrSchedule)
    if (schedule->kind == "WarmupDecayLR" || schedule->kind == "WarmupCosineLR")
      schedule->numbers.emplace("total_num_steps", 1000);
  return wrong;
}

static int runModelFlags() {
  ModelQuestion question;
  std::string name = machineName.empty() ? "h100" : std::string(machineName);
  Expected<Machine> machine = loadMachine(name);
  if (!machine)
    return fail(toString(machine.takeError()));
  question.machine = std::move(*machine);
  if (machineName.empty())
    question.notes.push_back("no --machine: h100");
  if (std::string wrong = giveModelFlags(question.machine); !wrong.empty())
    return fail(wrong);
  question.model = model;
  question.shape = shape;
  question.search = automatic;
  question.json = json;
  question.stats = stats;
  question.report = report;
  question.trace = trace;
  std::string wrong = readSizes(question);
  if (wrong.empty())
    wrong = readChoices(question);
  if (wrong.empty())
    wrong = readModelOffload(question);
  if (!wrong.empty())
    return fail(wrong);
  return runModel(question);
}

/// Names a flag of `flags` that was given; empty if none was.
static StringRef firstGiven(std::initializer_list<const cl::Option *> flags) {
  for (const cl::Option *flag : flags)
    if (flag->getNumOccurrences())
      return flag->ArgStr;
  return {};
}

/// A flag that would have no effect is a mistake. Empty, or what is wrong.
static std::string checkEffects() {
  StringRef idle;
  bool sized = !model.empty() || !shape.empty();
  if (!sized) {
    idle = firstGiven({&batch, &sampleTokens, &microBatches, &globalBatch,
                       &precision, &recomputeLayers, &prefetch, &bucketLayers,
                       &keepLayers, &softwareName, &stats});
    if (!idle.empty())
      return formatv("--{0} is for --model and --shape", idle).str();
  }
  if (input.empty()) {
    // The list overloads its operator&.
    idle = firstGiven({&loss, &optimizer, std::addressof(dims)});
    if (!idle.empty())
      return formatv("--{0} is for a file", idle).str();
  }
  idle = automatic ? firstGiven({&prefetch, &bucketLayers, &keepLayers})
                   : firstGiven({&globalBatch, &stats});
  if (!idle.empty())
    return formatv(automatic ? "--{0} is what --auto chooses"
                             : "--{0} is for --auto",
                   idle)
        .str();
  if (globalBatch.getNumOccurrences() && microBatches.getNumOccurrences())
    return "--accumulate follows from --global-batch";
  if (recomputeLayers.getNumOccurrences() && recompute.empty())
    return "--recompute-layers is for --recompute";
  return {};
}

/// Reads a size; false if it is none.
static bool readMemory(StringRef text, std::optional<int64_t> &bytes) {
  if (text.empty())
    return true;
  bytes = parseByteSize(text);
  return bytes.has_value();
}

static int runPlanFlags() {
  PlanQuestion question;
  if (std::string wrong = giveFileFlags(question); !wrong.empty())
    return fail(wrong);
  question.file = input;
  question.machine =
      machineName.empty() ? "this-cpu" : std::string(machineName);
  question.loss = loss;
  question.optimizer = optimizer;
  question.search = automatic;
  question.json = json;
  question.report = report;
  question.trace = trace;
  if (ranks.getNumOccurrences() && ranks < 1)
    return fail("--ranks: expected 1 or more");
  if (ranks > 0)
    question.ranks = ranks;
  if (stage.getNumOccurrences()) {
    if (stage < 0 || stage > 3)
      return fail("--zero-stage: expected 0 to 3");
    question.stage = stage;
  }
  question.recompute = recompute.empty() ? "none" : std::string(recompute);
  StringRef recomputes[] = {"none", "selective", "full", "auto"};
  if (!is_contained(recomputes, StringRef(question.recompute)))
    return fail(unknown("recompute", question.recompute, recomputes));
  if (!readMemory(memory, question.memoryBytes))
    return fail("--memory: found '" + memory +
                "'; expected bytes, as a whole number or like 80GiB");
  if (!readMemory(hostMemory, question.hostMemoryBytes))
    return fail("--host-memory: found '" + hostMemory +
                "'; expected bytes, as a whole number or like 64GiB");
  std::vector<OffloadRule> rules;
  bool search;
  if (std::string wrong = readOffload(rules, search); !wrong.empty())
    return fail(wrong);
  question.offload.assign(offload.begin(), offload.end());
  question.disk = !offloadPath.empty();
  for (const std::string &dim : dims) {
    auto [name, size] = StringRef(dim).split('=');
    int64_t value;
    if (name.empty() || size.getAsInteger(10, value) || value < 1)
      return fail("--dim: found '" + dim + "'; expected NAME=N");
    question.dims[name.str()] = value;
  }
  if (!grid.empty()) {
    auto [replicas, shards] = StringRef(grid).split('x');
    question.grid.resize(2);
    if (replicas.getAsInteger(10, question.grid[0]) ||
        shards.getAsInteger(10, question.grid[1]) || question.grid[0] < 1 ||
        question.grid[1] < 1)
      return fail("--grid: found '" + grid +
                  "'; expected replicas x shards, like 4x8");
    question.ranks = question.grid[0] * question.grid[1];
  }
  return runPlan(question);
}

static int runPrintMachine() {
  Expected<Machine> machine = loadMachine(printMachineName);
  if (!machine)
    return fail(toString(machine.takeError()));
  outs() << printMachine(*machine);
  return 0;
}

static int runValidateFlags() {
  if (machineName.empty())
    return runValidate(validateFile, nullptr);
  Expected<Machine> machine = loadMachine(machineName);
  if (!machine)
    return fail(toString(machine.takeError()));
  return runValidate(validateFile, &*machine);
}

/// A flag whose value is empty: a variable that a script did not set.
static std::string checkEmpty() {
  for (const Flag<std::string> *flag :
       {&model, &shape, &machineName, &memory, &hostMemory, &offloadPath,
        &softwareName, &grid, &precision, &recompute, &report, &trace,
        &printMachineName, &output, &validateFile, &allocateFile, &configFile})
    if (flag->getNumOccurrences() && flag->empty())
      return ("--" + flag->ArgStr + " has an empty value").str();
  return {};
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "zero-plan: memory, traffic and time before the run\n");
  if (std::string empty = checkEmpty(); !empty.empty())
    return fail(empty);
  if (!allocateFile.empty())
    return runAllocate(allocateFile, capacity);
  if (!printMachineName.empty())
    return runPrintMachine();
  if (calibrate)
    return runCalibrate(ranks.getNumOccurrences() ? ranks : 2, output);
  if (!validateFile.empty())
    return runValidateFlags();
  if (params.getNumOccurrences()) {
    if (!(params >= 1) || ranks < 0)
      return fail("--params: expected 1 or more parameters and ranks");
    return runState(params, std::max<int64_t>(ranks, 1), json);
  }
  std::string idle = checkEffects();
  if (!idle.empty())
    return fail(idle);
  if (!input.empty() && (!model.empty() || !shape.empty()))
    return fail("give a file, --model or --shape, not two of them");
  if (!input.empty())
    return runPlanFlags();
  if (!model.empty() || !shape.empty())
    return runModelFlags();
  return fail("nothing to do; see --help");
}
