//===- Budget.cpp - The fastest plan within a budget ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A larger budget tries all plans that a smaller one does, so more memory never
// means a slower plan. What is left out is what is too large, or what no plan
// that was tried can be slower than.
//
//===----------------------------------------------------------------------===//

#include "Budget.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Zero/Zero.h"
#include "zero/Cost/Processor.h"
#include "zero/Lowering/Plan.h"
#include "zero/Lowering/PlanTimeline.h"
#include "zero/Pipelines.h"
#include "zero/Schedule/OffloadChoice.h"
#include "zero/Schedule/RematModule.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"

#include <limits>
#include <tuple>

using namespace mlir;
using namespace zero_tools;

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

/// Ranks of a module that says nothing: one, or those of its grid.
static int64_t defaultRanks(ModuleOp module) {
  return module.getOps<shard::GridOp>().empty() ? 1 : zero::kUnsetRanks;
}

/// Whether what is offloaded is chosen here.
static bool isAuto(const CompileOptions &options) {
  return options.offload.size() == 1 && options.offload.front() == "auto";
}

/// The options with rules instead of "auto" or "none".
static CompileOptions withRules(const CompileOptions &options,
                                ArrayRef<zero::OffloadRule> rules = {}) {
  CompileOptions result = options;
  result.offload.clear();
  for (const zero::OffloadRule &rule : rules)
    result.offload.push_back(zero::printOffloadRule(rule));
  return result;
}

/// What the ZeRO passes are asked for.
static FailureOr<zero::ZeroOptions> zeroOptions(ModuleOp module,
                                                const CompileOptions &options,
                                                const Budgets &budgets) {
  std::string name = options.schedule.value_or("joint");
  std::optional<zero::ScheduleMode> mode = zero::parseScheduleMode(name);
  if (!mode)
    return module.emitError()
           << "unknown schedule '" << name
           << "', expected none, prefetch, keep, reorder, bucket or joint";
  auto orNone = [](int64_t bytes) {
    return bytes < 0 ? zero::kUnsetMemory : bytes;
  };
  zero::ZeroOptions result;
  zero::setScheduleMode(result, *mode);
  result.stage = options.stage.value_or(0);
  result.shardAxes =
      options.shardAll ? zero::ShardAxes::All : zero::ShardAxes::Inner;
  result.grid.assign(options.grid.begin(), options.grid.end());
  result.ranks = !options.grid.empty()
                     ? zero::kUnsetRanks
                     : options.ranks.value_or(defaultRanks(module));
  result.memoryBytes = orNone(budgets.device);
  result.hostMemoryBytes = orNone(budgets.host);
  result.offload = options.offload;
  result.machine = options.machine;
  return result;
}

/// For a module that is partitioned already.
static zero::ZeroSchedulePassOptions
scheduleOnly(const zero::ZeroOptions &options) {
  zero::ZeroSchedulePassOptions result;
  result.memory = options.memoryBytes;
  result.hostMemory = options.hostMemoryBytes;
  result.machine = options.machine;
  result.prefetch = options.prefetch;
  result.keepGathered = options.keepGathered;
  result.reorder = options.reorder;
  result.bucket = options.bucket;
  return result;
}

/// From a step to one that is partitioned and scheduled, in place.
/// `options.offload` are rules.
static LogicalResult runZeroPhases(ModuleOp module,
                                   const CompileOptions &options,
                                   const Budgets &budgets) {
  FailureOr<zero::ZeroOptions> zeroPasses =
      zeroOptions(module, options, budgets);
  if (failed(zeroPasses))
    return failure();
  PassManager passes(module.getContext());
  if (!module->hasAttr(zero::kStageAttr)) {
    zero::buildZeroPipeline(passes, *zeroPasses);
  } else {
    if (!options.offload.empty()) {
      zero::ZeroOffloadPassOptions offload;
      llvm::append_range(offload.rules, options.offload);
      passes.addPass(zero::createZeroOffloadPass(offload));
    }
    if (options.schedule && zeroPasses->schedule)
      passes.addPass(zero::createZeroSchedulePass(scheduleOnly(*zeroPasses)));
    // Somebody else's partition, or one that was edited: checked as ours is.
    passes.addPass(zero::createZeroVerifyPass());
  }
  return passes.run(module);
}

/// From a step to an allocated program, in place.
static LogicalResult runPhases(ModuleOp module, const CompileOptions &options,
                               const Budgets &budgets) {
  if (failed(runZeroPhases(module, options, budgets)))
    return failure();
  PassManager passes(module.getContext());
  zero::buildPlanPipeline(passes,
                          StringRef(options.target).starts_with("cuda:"));
  return passes.run(module);
}

/// Bytes of an arena of a planned module.
static int64_t arenaBytes(ModuleOp module, plan::Space space) {
  for (auto program : module.getOps<plan::ProgramOp>())
    return zero::getArenaBytes(program, space);
  return 0;
}

/// Plans with a schedule for `asked` bytes. Is no error if there is none; says
/// nothing at all if `quiet`.
static OwningOpRef<ModuleOp> attempt(ModuleOp module,
                                     const CompileOptions &options,
                                     const Budgets &asked, bool quiet) {
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

/// Seconds that no schedule of a planned module's step is faster than: what the
/// device or the host computes, both where these are one. (Copies may be
/// dropped or put together by another schedule.)
static double leastSeconds(ModuleOp module, const zero::CostModel &cost) {
  double device = 0, host = 0;
  int64_t ranks = 1;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    zero::Timeline timeline = zero::predictTimeline(program, cost);
    ranks = timeline.ranks;
    for (const auto &span : timeline.spans)
      if (span.rank == 0 && span.kind == zero::TaskKind::Compute)
        device += span.end - span.start;
      else if (span.rank == 0 && span.kind == zero::TaskKind::HostCompute)
        host += span.end - span.start;
  }
  return std::max(
      {device, host,
       zero::processorSeconds(cost.getMachine(), ranks, device + host)});
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

namespace {
/// Of all plans that fit, the fastest.
class BudgetSearch {
public:
  BudgetSearch(const Budgets &budgets, const zero::CostModel &cost)
      : budgets(budgets), cost(cost) {}

  void tryAll(ModuleOp module, const CompileOptions &options);
  void tryParts(ModuleOp module, const CompileOptions &options);
  void tryOffload(ModuleOp module, const CompileOptions &options,
                  const zero::OffloadChoices &choices, bool coarse);
  FailureOr<OwningOpRef<ModuleOp>> take(ModuleOp module,
                                        const CompileOptions &options);

  bool fits() const { return bool(best); }
  bool offloads() const { return bestElsewhere > 0; }

private:
  void note(OwningOpRef<ModuleOp> planned);
  bool isTooSlow(ModuleOp planned) const;
  int64_t missing(ModuleOp planned) const;
  void tryLevel(ModuleOp module, const CompileOptions &options,
                const zero::OffloadChoices &choices, size_t number);

  Budgets budgets;
  const zero::CostModel &cost;
  OwningOpRef<ModuleOp> best, smallest;
  double bestSeconds = 0; ///< by which plans are compared: times `handicap`
  int64_t bestElsewhere = 0;
  /// Of the plans that are made: bytes that live outside of device memory, and
  /// what their seconds are multiplied by.
  int64_t elsewhere = 0;
  double handicap = 1;
  int64_t least = std::numeric_limits<int64_t>::max();
  /// Of the plans since it was set to the largest number.
  int64_t leastHost = 0;
  double secondsWithout = 0; ///< without offload, and without a limit
  /// Of the choices that may be made, the one that frees the most.
  std::vector<zero::OffloadRule> leanest;
  int64_t mostFreed = 0;
  bool first = true;
};
} // namespace

/// By how much `planned` is above the budgets, in all spaces.
int64_t BudgetSearch::missing(ModuleOp planned) const {
  auto above = [](int64_t bytes, int64_t budget) {
    return budget < 0 ? 0 : std::max<int64_t>(bytes - budget, 0);
  };
  return above(arenaBytes(planned, plan::Space::Device), budgets.device) +
         above(arenaBytes(planned, plan::Space::Host), budgets.host);
}

void BudgetSearch::note(OwningOpRef<ModuleOp> planned) {
  leastHost = std::min(leastHost, arenaBytes(*planned, plan::Space::Host));
  int64_t over = missing(*planned);
  if (over == 0) {
    double seconds = handicap * plannedSeconds(*planned, cost);
    if (!best ||
        std::tie(seconds, elsewhere) < std::tie(bestSeconds, bestElsewhere)) {
      bestSeconds = seconds;
      bestElsewhere = elsewhere;
      best = std::move(planned);
    }
  } else if (over < least) {
    least = over;
    smallest = std::move(planned);
  }
}

/// Whether no schedule of what `planned` is of is faster than the best plan.
bool BudgetSearch::isTooSlow(ModuleOp planned) const {
  if (!best)
    return false;
  double least = handicap * leastSeconds(planned, cost);
  return std::tie(least, elsewhere) >= std::tie(bestSeconds, bestElsewhere);
}

/// More than any step needs.
static constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;

/// The most that a schedule may be estimated at to be tried for `budget`: an
/// estimate may be above the arena's size as well as below it.
static int64_t withSlack(int64_t budget) {
  constexpr int64_t slack = 64 << 10;
  return budget < 0 ? budget
                    : std::min(budget, kMost) + std::max(budget / 8, slack);
}

/// All schedules of one module: from the fastest that the scheduler estimates
/// not far above the budget to the one of least memory: each is the fastest of
/// less memory than the one before. Where the host's arena is larger than was
/// estimated, less is asked for.
void BudgetSearch::tryAll(ModuleOp module, const CompileOptions &options) {
  constexpr int hostTrials = 4;
  Budgets asked = budgets;
  asked.device = withSlack(budgets.device);
  int hostTrial = 0;
  bool any = false;
  while (asked.device != 0) {
    OwningOpRef<ModuleOp> planned = attempt(module, options, asked, !first);
    if (!planned && any)
      return;
    if (!planned && asked.host >= 0) { // how much of it would be needed?
      asked.host = -1;
      planned = attempt(module, options, asked, !first);
      if (planned)
        note(std::move(planned));
    }
    if (!planned)
      return;
    first = false;
    any = true;
    auto peak = (*planned)->getAttrOfType<IntegerAttr>(zero::kPlannedPeakAttr);
    int64_t overHost =
        budgets.host < 0
            ? 0
            : arenaBytes(*planned, plan::Space::Host) - budgets.host;
    bool tooSlow = isTooSlow(*planned);
    if (!tooSlow)
      note(std::move(planned));
    // A module that is scheduled already stays as it is.
    bool fixed = !peak || (asked.device >= 0 && peak.getInt() > asked.device);
    if (tooSlow || fixed)
      return;
    if (overHost > 0 && overHost < asked.host && ++hostTrial < hostTrials) {
      asked.host -= overHost;
      continue;
    }
    if (asked.device < 0)
      return;
    asked.device = std::min(asked.device, peak.getInt()) - 1;
  }
}

/// Some schedules of one module, for fixed parts of the memory that its fastest
/// takes, whatever the budget is.
void BudgetSearch::tryParts(ModuleOp module, const CompileOptions &options) {
  constexpr int64_t parts = 16;
  OwningOpRef<ModuleOp> fastest(module.clone());
  ScopedDiagnosticHandler swallow(module.getContext(),
                                  [](Diagnostic &) { return success(); });
  if (failed(runZeroPhases(*fastest, options, {kMost, budgets.host})))
    return;
  auto peak = (*fastest)->getAttrOfType<IntegerAttr>(zero::kPlannedPeakAttr);
  if (!peak) // scheduled already: it stays as it is
    return tryAll(module, options);
  int64_t before = -1;
  for (int64_t part = parts; part > 0; --part) {
    int64_t asked = (peak.getInt() + parts - 1) / parts * part;
    if (asked > withSlack(budgets.device) || (before >= 0 && before <= asked))
      continue;
    OwningOpRef<ModuleOp> planned =
        attempt(module, options, {asked, budgets.host}, /*quiet=*/true);
    if (!planned || isTooSlow(*planned))
      return;
    before =
        (*planned)->getAttrOfType<IntegerAttr>(zero::kPlannedPeakAttr).getInt();
    note(std::move(planned));
  }
}

/// The fastest plan, or an error that says what is missing for `module`.
FailureOr<OwningOpRef<ModuleOp>>
BudgetSearch::take(ModuleOp module, const CompileOptions &options) {
  if (best) {
    if (auto said =
            (*best)->getAttrOfType<StringAttr>(zero::kOffloadChoiceAttr))
      zero::remarkOffload(*best, said.getValue());
    return std::move(best);
  }
  if (!smallest) { // for its error
    (void)runPhases(module,
                    isAuto(options) ? withRules(options, leanest) : options,
                    budgets);
    return failure();
  }
  auto program = *smallest->getOps<plan::ProgramOp>().begin();
  bool tooLarge = budgets.device >= 0 &&
                  arenaBytes(*smallest, plan::Space::Device) > budgets.device;
  if (!tooLarge)
    return module.emitError() << zero::describeMissingMemory(
               program, budgets.host, plan::Space::Host);
  InFlightDiagnostic diag = module.emitError() << zero::describeMissingMemory(
                                program, budgets.device);
  if (options.remat.empty() || options.remat == "none")
    diag << ", recomputation (--remat auto)";
  if (options.offload.empty())
    diag << ", offload (--offload auto)";
  int64_t host = arenaBytes(*smallest, plan::Space::Host);
  if (budgets.host >= 0 && host > budgets.host)
    diag << "; and " << host << " bytes of host memory, " << host - budgets.host
         << " more than the budget of " << budgets.host;
  return diag;
}

//===----------------------------------------------------------------------===//
// Offload
//===----------------------------------------------------------------------===//

/// What can be offloaded of `module`, a step.
static FailureOr<zero::OffloadChoices>
findChoices(ModuleOp module, const CompileOptions &options,
            const zero::CostModel &cost) {
  OwningOpRef<ModuleOp> partitioned(module.clone());
  if (!module->hasAttr(zero::kStageAttr)) {
    FailureOr<zero::ZeroOptions> zeroPasses =
        zeroOptions(module, withRules(options), {});
    if (failed(zeroPasses))
      return failure();
    zeroPasses->schedule = false;
    PassManager passes(module.getContext());
    zero::buildZeroPipeline(passes, *zeroPasses);
    if (failed(passes.run(*partitioned)))
      return failure();
  }
  return zero::findOffloadChoices(*partitioned, cost);
}

/// All schedules with one choice of what is offloaded. Host memory also holds
/// what is on its way: where it is too small for that, more goes to disk.
void BudgetSearch::tryLevel(ModuleOp module, const CompileOptions &options,
                            const zero::OffloadChoices &choices,
                            size_t number) {
  constexpr int trials = 4;
  int64_t room = budgets.host;
  for (int trial = 0; trial != trials; ++trial) {
    std::optional<zero::OffloadLevel> level =
        choices.level(number, room, options.offloadToDisk);
    if (!level)
      return;
    if (level->deviceBytes > mostFreed) {
      mostFreed = level->deviceBytes;
      leanest = level->rules;
    }
    // Where all fits, it has to be worth it.
    elsewhere = level->deviceBytes;
    handicap = elsewhere > 0 ? 1 + zero::kLeastOffloadGain : 1;
    ModuleOp before = best.get();
    leastHost = std::numeric_limits<int64_t>::max();
    CompileOptions asked = withRules(options, level->rules);
    if (choices.isWhole(number))
      tryAll(module, asked);
    else
      tryParts(module, asked);
    if (best.get() != before)
      zero::noteOffload(*best, *level,
                        zero::explainOffload(choices, *level,
                                             bestSeconds / handicap,
                                             secondsWithout));
    bool tooLarge = leastHost != std::numeric_limits<int64_t>::max() &&
                    budgets.host >= 0 && leastHost > budgets.host;
    if (!tooLarge || !options.offloadToDisk || room == 0)
      return;
    room = std::max<int64_t>(
        std::min(room, level->hostBytes) - (leastHost - budgets.host), 0);
  }
}

/// Nothing; whole kinds, since these are often the fastest and what follows can
/// then be left at once; parts. `coarse`: a third of the parts.
void BudgetSearch::tryOffload(ModuleOp module, const CompileOptions &options,
                              const zero::OffloadChoices &choices,
                              bool coarse) {
  if (secondsWithout == 0)
    if (auto planned = attempt(module, withRules(options), {}, /*quiet=*/true))
      secondsWithout = plannedSeconds(*planned, cost);
  tryLevel(module, options, choices, 0);
  if (fits() && !coarse && !zero::mayOffloadForSpeed(cost))
    return;
  for (bool whole : {true, false})
    for (size_t number = 1; number < choices.size(); ++number)
      if (choices.isWhole(number) == whole &&
          (whole || !coarse || number % 3 == 0))
        tryLevel(module, options, choices, number);
}

//===----------------------------------------------------------------------===//
// Recomputation
//===----------------------------------------------------------------------===//

/// The levels to try: none, the selective one, the last, and between them one
/// for each of `parts` of the memory that can be saved.
static SmallVector<const zero::RematLevel *>
levelsToTry(const zero::RematLevels &all, int64_t parts) {
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

/// The steps to plan, with recomputation as `options.remat` says. Without a
/// budget nothing is worth computing again, unless asked for.
static FailureOr<std::vector<OwningOpRef<ModuleOp>>>
makeVariants(ModuleOp module, const CompileOptions &options,
             const Budgets &budgets, const zero::CostModel &cost) {
  std::vector<OwningOpRef<ModuleOp>> variants;
  if (options.remat.empty() || options.remat == "none") {
    variants.emplace_back(module.clone());
    return variants;
  }
  FailureOr<zero::ZeroOptions> zeroPasses =
      zeroOptions(module, options, budgets);
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
    levels = levelsToTry(*all, 8);
  if (budgets.device < 0)
    levels.truncate(1);
  for (const zero::RematLevel *level : levels) {
    variants.emplace_back(module.clone());
    if (failed(zero::applyRematLevel(*variants.back(), *level, cost, stage)))
      return failure();
  }
  return variants;
}

FailureOr<OwningOpRef<ModuleOp>>
zero_tools::planWithin(ModuleOp module, const CompileOptions &asked,
                       const Budgets &budgets, const zero::CostModel &cost) {
  CompileOptions options = asked;
  if (options.offload.size() == 1 && options.offload.front() == "none")
    options.offload.clear();
  // Without a budget nothing has to be anywhere else.
  if (budgets.device < 0 && isAuto(options))
    options.offload.clear();
  FailureOr<std::vector<OwningOpRef<ModuleOp>>> variants =
      makeVariants(module, options, budgets, cost);
  if (failed(variants))
    return failure();
  if (budgets.device < 0 && budgets.host < 0) {
    if (failed(runPhases(*variants->front(), options, budgets)))
      return failure();
    return std::move(variants->front());
  }
  BudgetSearch search(budgets, cost);
  for (OwningOpRef<ModuleOp> &variant : *variants) {
    if (!isAuto(options)) {
      search.tryAll(*variant, options);
      continue;
    }
    FailureOr<zero::OffloadChoices> choices =
        findChoices(*variant, options, cost);
    if (failed(choices))
      return failure();
    search.tryOffload(*variant, options, *choices,
                      /*coarse=*/&variant != &variants->front());
    if (search.fits() && &variant == &variants->front() && !search.offloads() &&
        !zero::mayOffloadForSpeed(cost))
      break;
  }
  return search.take(*variants->back(), options);
}
