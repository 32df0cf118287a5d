//===- Compile.cpp - From a module to a plan ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of the compiler's phases, and its diagnostics as single lines.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Zero/Zero.h"
#include "zero/Cost/CostModel.h"
#include "zero/InitAll.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Plan.h"
#include "zero/Lowering/PlanTimeline.h"
#include "zero/Pipelines.h"
#include "zero/Schedule/RematModule.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

using namespace mlir;
using namespace zero_tools;

void zero_tools::prepareContext(MLIRContext &context) {
  DialectRegistry registry;
  zero::registerAllDialects(registry);
  zero::registerKernelDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

OwningOpRef<ModuleOp> zero_tools::parseModule(const std::string &path,
                                              MLIRContext &context) {
  return parseSourceFile<ModuleOp>(path, ParserConfig(&context));
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

/// Fails when the module is partitioned otherwise than asked.
static LogicalResult checkPartition(ModuleOp module,
                                    const CompileOptions &options) {
  auto stage = module->getAttrOfType<IntegerAttr>("zero.stage");
  if (stage && options.stage && stage.getInt() != *options.stage)
    return module.emitError()
           << "is partitioned for ZeRO stage " << stage.getInt()
           << ", asked for stage " << *options.stage;
  for (auto grid : module.getOps<shard::GridOp>()) {
    if (options.ranks &&
        ShapedType::getNumElements(grid.getShape()) != *options.ranks)
      return module.emitError()
             << "is for " << ShapedType::getNumElements(grid.getShape())
             << " ranks, asked for " << *options.ranks;
    if (!options.grid.empty() &&
        grid.getShape() != ArrayRef<int64_t>(options.grid))
      return module.emitError()
             << "is for a grid of [" << grid.getShape() << "], asked for ["
             << ArrayRef<int64_t>(options.grid) << "]";
  }
  return success();
}

/// Splits the step into micro-batches, unless it has as many.
static LogicalResult setMicroBatches(ModuleOp module, int64_t microBatches) {
  auto attr = module->getAttrOfType<IntegerAttr>(zero::kMicroBatchesAttr);
  if (!attr)
    return train::accumulateMicroBatches(module, microBatches);
  if (attr.getInt() == microBatches)
    return success();
  return module.emitError() << "accumulates over " << attr.getInt()
                            << " micro-batches, asked for " << microBatches;
}

/// Ranks of a module that says nothing: one, or those of its grid.
static int64_t defaultRanks(ModuleOp module) {
  return module.getOps<shard::GridOp>().empty() ? 1 : zero::kUnsetRanks;
}

/// What the ZeRO passes are asked for; `memory` in bytes, negative for no
/// limit.
static FailureOr<zero::ZeroOptions>
zeroOptions(ModuleOp module, const CompileOptions &options, int64_t memory) {
  std::string name = options.schedule.value_or("joint");
  std::optional<zero::ScheduleMode> mode = zero::parseScheduleMode(name);
  if (!mode)
    return module.emitError()
           << "unknown schedule '" << name
           << "', expected none, prefetch, keep, reorder, bucket or joint";
  zero::ZeroOptions result;
  zero::setScheduleMode(result, *mode);
  result.stage = options.stage.value_or(0);
  result.shardAxes =
      options.shardAll ? zero::ShardAxes::All : zero::ShardAxes::Inner;
  result.grid.assign(options.grid.begin(), options.grid.end());
  result.ranks = !options.grid.empty()
                     ? zero::kUnsetRanks
                     : options.ranks.value_or(defaultRanks(module));
  result.memoryBytes = memory < 0 ? zero::kUnsetMemory : memory;
  result.machine = options.machine;
  return result;
}

/// For a module that is partitioned already.
static zero::ZeroSchedulePassOptions
scheduleOnly(const zero::ZeroOptions &options) {
  zero::ZeroSchedulePassOptions result;
  result.memory = options.memoryBytes;
  result.machine = options.machine;
  result.prefetch = options.prefetch;
  result.keepGathered = options.keepGathered;
  result.reorder = options.reorder;
  result.bucket = options.bucket;
  return result;
}

/// From a step to an allocated program, in place.
static LogicalResult runPhases(ModuleOp module, const CompileOptions &options,
                               int64_t memory) {
  FailureOr<zero::ZeroOptions> zeroPasses =
      zeroOptions(module, options, memory);
  if (failed(zeroPasses))
    return failure();
  PassManager passes(module.getContext());
  if (!module->hasAttr("zero.stage")) {
    zero::buildZeroPipeline(passes, *zeroPasses);
  } else {
    if (options.schedule && zeroPasses->schedule)
      passes.addPass(zero::createZeroSchedulePass(scheduleOnly(*zeroPasses)));
    // Somebody else's partition, or one that was edited: checked as ours is.
    passes.addPass(zero::createZeroVerifyPass());
  }
  zero::buildPlanPipeline(passes);
  return passes.run(module);
}

static FailureOr<zero::KernelTarget> kernelTarget(ModuleOp module,
                                                  StringRef target) {
  if (target == "host")
    return zero::KernelTarget::host();
  if (target.consume_front("host:"))
    return zero::KernelTarget::named(target, module.getLoc());
  return module.emitError()
         << "unknown target '" << target << "', expected host or host:CPU";
}

static FailureOr<zero::Machine> machineOf(ModuleOp module, StringRef name) {
  llvm::Expected<zero::Machine> machine =
      zero::loadMachine(name.empty() ? "this-cpu" : name);
  if (machine)
    return *machine;
  return module.emitError() << llvm::toString(machine.takeError());
}

//===----------------------------------------------------------------------===//
// Budget
//===----------------------------------------------------------------------===//

/// The device arena of a planned module.
static plan::ArenaOp deviceArena(ModuleOp module) {
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto arena : program.getBody().getOps<plan::ArenaOp>())
      if (arena.getSpace() == plan::Space::Device)
        return arena;
  return {};
}

/// Plans with a schedule for `asked` bytes. Is no error if there is none; says
/// nothing at all if `quiet`.
static OwningOpRef<ModuleOp> attempt(ModuleOp module,
                                     const CompileOptions &options,
                                     int64_t asked, bool quiet) {
  OwningOpRef<ModuleOp> planned(module.clone());
  ScopedDiagnosticHandler swallow(
      module.getContext(), [&](Diagnostic &diagnostic) {
        return success(quiet ||
                       diagnostic.getSeverity() == DiagnosticSeverity::Error);
      });
  if (failed(runPhases(*planned, options, asked)))
    return {};
  return planned;
}

/// Seconds of a planned module's step.
static double plannedSeconds(ModuleOp module, const zero::CostModel &cost) {
  for (auto program : module.getOps<plan::ProgramOp>())
    return zero::predictTimeline(program, cost).stepSeconds;
  return 0;
}

/// Seconds that the compute of a planned module takes: no schedule of it is
/// faster.
static double computeSeconds(ModuleOp module, const zero::CostModel &cost) {
  double seconds = 0;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (const auto &span : zero::predictTimeline(program, cost).spans)
      if (span.rank == 0 && span.kind == zero::TaskKind::Compute)
        seconds += span.end - span.start;
  return seconds;
}

namespace {
/// Of all plans that fit, the fastest. Which are tried does not depend on the
/// budget but for where the trials begin: a larger budget tries all that a
/// smaller one does, so more memory never means a slower plan.
class BudgetSearch {
public:
  BudgetSearch(const CompileOptions &options, int64_t budget,
               const zero::CostModel &cost)
      : options(options), budget(budget), cost(cost) {}

  void tryAll(ModuleOp module);
  FailureOr<OwningOpRef<ModuleOp>> take(ModuleOp module);

private:
  void note(OwningOpRef<ModuleOp> planned);

  const CompileOptions &options;
  int64_t budget;
  const zero::CostModel &cost;
  OwningOpRef<ModuleOp> best, smallest;
  double bestSeconds = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  bool first = true;
};
} // namespace

void BudgetSearch::note(OwningOpRef<ModuleOp> planned) {
  int64_t height = deviceArena(*planned).getBytes().value_or(0);
  if (height <= budget) {
    double seconds = plannedSeconds(*planned, cost);
    if (!best || seconds < bestSeconds) {
      bestSeconds = seconds;
      best = std::move(planned);
    }
  } else if (height < least) {
    least = height;
    smallest = std::move(planned);
  }
}

/// All schedules of one module: from the fastest that the scheduler estimates
/// not far above the budget (an estimate may be above the arena's size as well
/// as below it) to the one of least memory.
void BudgetSearch::tryAll(ModuleOp module) {
  constexpr int64_t slack = 64 << 10;
  constexpr int64_t most = std::numeric_limits<int64_t>::max() / 2;
  int64_t asked = std::min(budget, most) + std::max(budget / 8, slack);
  while (asked > 0) {
    OwningOpRef<ModuleOp> planned = attempt(module, options, asked, !first);
    if (!planned)
      return;
    first = false;
    auto peak = (*planned)->getAttrOfType<IntegerAttr>(zero::kPlannedPeakAttr);
    bool tooSlow = best && computeSeconds(*planned, cost) >= bestSeconds;
    if (!tooSlow)
      note(std::move(planned));
    if (tooSlow || !peak)
      return;
    asked = std::min(asked, peak.getInt()) - 1;
  }
}

/// The fastest plan, or an error that says what is missing for `module`.
FailureOr<OwningOpRef<ModuleOp>> BudgetSearch::take(ModuleOp module) {
  if (best)
    return std::move(best);
  if (!smallest) { // for its error
    (void)runPhases(module, options, budget);
    return failure();
  }
  auto program = *smallest->getOps<plan::ProgramOp>().begin();
  InFlightDiagnostic diag = module.emitError()
                            << zero::describeMissingMemory(program, budget);
  if (options.remat.empty() || options.remat == "none")
    diag << ", recomputation (--remat auto)";
  return diag;
}

//===----------------------------------------------------------------------===//
// Recomputation
//===----------------------------------------------------------------------===//

/// Fails where `remat` is no name, or too late.
static LogicalResult checkRemat(ModuleOp module,
                                const CompileOptions &options) {
  static constexpr StringLiteral names[] = {"", "none", "selective", "full",
                                            "auto"};
  if (!llvm::is_contained(names, options.remat))
    return module.emitError() << "unknown recomputation '" << options.remat
                              << "', expected none, selective, full or auto";
  return success();
}

/// The levels to try: none, the selective one, the last, and between them one
/// for each eighth of the memory that can be saved.
static SmallVector<const zero::RematLevel *>
levelsToTry(const zero::RematLevels &all) {
  constexpr int64_t parts = 8;
  SmallVector<const zero::RematLevel *> levels;
  int64_t part =
      (all.levels.front().peakBytes - all.levels.back().peakBytes) / parts;
  for (auto [number, level] : llvm::enumerate(all.levels))
    if (levels.empty() || number == all.selective ||
        number + 1 == all.levels.size() ||
        level.peakBytes <= levels.back()->peakBytes - part)
      levels.push_back(&level);
  return levels;
}

/// Plans with recomputation as `options.remat` says. A budget below 0 is none.
static FailureOr<OwningOpRef<ModuleOp>>
planWithRemat(ModuleOp module, const CompileOptions &options, int64_t budget,
              const zero::CostModel &cost) {
  FailureOr<zero::ZeroOptions> zeroPasses =
      zeroOptions(module, options, budget);
  if (failed(zeroPasses))
    return failure();
  PassManager passes(module.getContext());
  zero::buildZeroPreparation(passes, *zeroPasses);
  if (failed(passes.run(module)))
    return failure();
  int64_t stage = zeroPasses->stage;
  FailureOr<zero::RematLevels> all = zero::findRematLevels(module, cost, stage);
  if (failed(all))
    return failure();
  SmallVector<const zero::RematLevel *> levels = {&all->perLayer};
  if (options.remat == "selective")
    levels = {&all->levels[all->selective]};
  else if (options.remat == "auto")
    levels = levelsToTry(*all);
  if (budget < 0) // then nothing is worth computing again, unless asked for
    levels.truncate(1);
  BudgetSearch search(options, budget, cost);
  OwningOpRef<ModuleOp> variant;
  for (const zero::RematLevel *level : levels) {
    variant = module.clone();
    if (failed(zero::applyRematLevel(*variant, *level, cost, stage)))
      return failure();
    if (budget < 0)
      break;
    search.tryAll(*variant);
  }
  if (budget >= 0)
    return search.take(*variant);
  if (failed(runPhases(*variant, options, budget)))
    return failure();
  return variant;
}

/// Plans without choosing what is computed again.
static FailureOr<OwningOpRef<ModuleOp>>
planAsItIs(ModuleOp module, const CompileOptions &options, int64_t budget,
           const zero::CostModel &cost) {
  if (budget >= 0) {
    BudgetSearch search(options, budget, cost);
    search.tryAll(module);
    return search.take(module);
  }
  if (failed(runPhases(module, options, budget)))
    return failure();
  return OwningOpRef<ModuleOp>(module.clone());
}

FailureOr<OwningOpRef<ModuleOp>>
zero_tools::compileWithinBudget(ModuleOp module,
                                const CompileOptions &options) {
  FailureOr<zero::Machine> machine = machineOf(module, options.machine);
  if (failed(machine) || failed(checkPartition(module, options)) ||
      failed(checkRemat(module, options)))
    return failure();
  int64_t budget = -1;
  if (options.memoryBytes)
    budget = *options.memoryBytes;
  else if (!options.machine.empty())
    budget = machine->memoryBytes - machine->reservedBytes;
  if (options.trainStep &&
      failed(train::buildTrainStep(module, *options.trainStep)))
    return failure();
  if (options.microBatches &&
      failed(setMicroBatches(module, *options.microBatches)))
    return failure();
  bool recompute = !options.remat.empty() && options.remat != "none";
  zero::CostModel cost(*machine);
  FailureOr<OwningOpRef<ModuleOp>> planned =
      recompute ? planWithRemat(module, options, budget, cost)
                : planAsItIs(module, options, budget, cost);
  if (succeeded(planned) && budget >= 0)
    for (auto program : (*planned)->getOps<plan::ProgramOp>())
      program.setBudget(budget);
  return planned;
}

LogicalResult zero_tools::compileToZplan(ModuleOp module,
                                         const CompileOptions &options,
                                         std::string &bytes) {
  FailureOr<zero::KernelTarget> target = kernelTarget(module, options.target);
  if (failed(target))
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> planned =
      compileWithinBudget(module, options);
  if (failed(planned))
    return failure();
  FailureOr<zero::Machine> machine = machineOf(module, options.machine);
  if (failed(machine))
    return failure();
  zero::CostModel cost(std::move(*machine));
  return zero::writeZplan(**planned, *target, bytes, &cost);
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// The place in a file; the importer numbers an ONNX file's nodes as lines.
static std::string describeFile(FileLineColLoc location, bool named) {
  StringRef file = location.getFilename();
  if (named || !location.getLine())
    return file.str() + ": ";
  if (file.ends_with(".onnx"))
    return file.str() + ": node number " + std::to_string(location.getLine()) +
           ": ";
  return file.str() + ":" + std::to_string(location.getLine()) + ":" +
         std::to_string(location.getColumn()) + ": ";
}

/// "FILE:LINE:COLUMN: " or "FILE: node 'NAME': ", as far as the location knows.
static std::string describe(Location location, const std::string &file) {
  std::string node;
  bool named = false;
  while (true) {
    if (auto name = dyn_cast<NameLoc>(location)) {
      node = "node '" + name.getName().str() + "': ";
      named = true;
      location = name.getChildLoc();
    } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
      location = call.getCallee();
    } else if (auto fused = dyn_cast<FusedLoc>(location);
               fused && !fused.getLocations().empty()) {
      location = fused.getLocations().front();
    } else {
      break;
    }
  }
  if (auto line = dyn_cast<FileLineColLoc>(location))
    return describeFile(line, named) + node;
  return file + ": " + node;
}

OneLineErrors::OneLineErrors(MLIRContext &context, std::string tool,
                             std::string file)
    : tool(std::move(tool)), file(std::move(file)),
      handler(&context, [this](Diagnostic &diagnostic) {
        DiagnosticSeverity severity = diagnostic.getSeverity();
        if (severity != DiagnosticSeverity::Error &&
            severity != DiagnosticSeverity::Warning)
          return;
        std::string line = describe(diagnostic.getLocation(), this->file);
        line += diagnostic.str();
        // A message may quote text with line breaks.
        for (char &c : line)
          if (c == '\n')
            c = ' ';
        if (severity == DiagnosticSeverity::Warning)
          llvm::errs() << this->tool << ": warning: " << line << "\n";
        else if (first.empty())
          first = line;
      }) {}

std::string OneLineErrors::error() const {
  return first.empty() ? file + ": failed without a message" : first;
}
