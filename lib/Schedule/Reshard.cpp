//===- Reshard.cpp - Chunks kept between forward and backward -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each variant is written into the function, made a graph, scheduled and taken
// back, so what is compared is what would run.
//
//===----------------------------------------------------------------------===//

#include "Reshard.h"

#include "zero/Transforms/StepUtils.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::zero;

namespace {
/// A repeated gather over all axes that may go over the last one instead.
struct Candidate {
  AllGatherOp gather;
  SmallVector<Value> sources; ///< by operand: what was gathered before
  Operation *lastUse;         ///< of the sources, before `gather`
  double worth;               ///< seconds saved per byte and second held
};
} // namespace

static shard::GridOp getGrid(AllGatherOp gather, SymbolTable &symbols) {
  return symbols.lookup<shard::GridOp>(gather.getGrid());
}

/// Whether the gather spans two or more axes, the last of the grid among them.
static bool spansMore(AllGatherOp gather, SymbolTable &symbols) {
  shard::GridOp grid = getGrid(gather, symbols);
  return grid && gather.getAxes().size() > 1 && gather.getDim() == 0 &&
         gather.getAxes().back() == static_cast<int64_t>(grid.getRank()) - 1;
}

/// By operand of the repeated gather `task`, what the earlier one has gathered;
/// empty where something is missing.
static SmallVector<Value> getSources(const StepFunction &step, int32_t task) {
  auto gather = cast<AllGatherOp>(step.ops[task].front());
  SmallVector<Value> sources(gather->getNumResults());
  int32_t earlier = step.graph.tasks[task].repeats;
  for (auto [place, value] : llvm::enumerate(step.results[task]))
    if (value && value.getDefiningOp() == gather)
      sources[cast<OpResult>(value).getResultNumber()] =
          step.results[earlier][place];
  if (llvm::is_contained(sources, Value()))
    return {};
  return sources;
}

/// All candidates of a step, the best first.
static std::vector<Candidate> findCandidates(const StepFunction &step,
                                             SymbolTable &symbols,
                                             const CostModel &cost) {
  const StepGraph &graph = step.graph;
  std::vector<Candidate> candidates;
  std::vector<int32_t> lastReader(graph.buffers.size(), -1);
  std::vector<double> begin; // of each task, where nothing but compute counts
  double now = 0;
  for (auto [number, task] : llvm::enumerate(graph.tasks)) {
    begin.push_back(now);
    now += task.channel == 0 ? task.seconds : 0;
    for (int32_t buffer : task.reads)
      lastReader[buffer] = number;
    if (task.repeats < 0)
      continue;
    auto gather = dyn_cast<AllGatherOp>(step.ops[number].front());
    if (!gather || !spansMore(gather, symbols))
      continue;
    int32_t last = -1;
    for (int32_t buffer : graph.tasks[task.repeats].writes)
      last = std::max(last, lastReader[buffer]);
    SmallVector<Value> sources = getSources(step, number);
    if (last < 0 || sources.empty())
      continue;
    int64_t inner = getGrid(gather, symbols).getShape().back();
    int64_t bytes = getWholeBytes(gather);
    double saved = task.seconds - cost.collective(TaskKind::AllGather, bytes,
                                                  cost.group(inner));
    double held = std::max(now - begin[last], 1e-9);
    if (saved > 0)
      candidates.push_back(
          {gather, sources, step.ops[last].back(),
           saved * inner / (held * std::max<int64_t>(bytes, 1))});
  }
  llvm::stable_sort(candidates, [](const Candidate &a, const Candidate &b) {
    return a.worth > b.worth;
  });
  return candidates;
}

/// Keeps the chunks over the last axis, and gathers these.
static void reshard(const Candidate &candidate, SymbolTable &symbols) {
  AllGatherOp gather = candidate.gather;
  shard::GridOp grid = getGrid(gather, symbols);
  OpBuilder builder(gather.getContext());
  auto axes = builder.getDenseI64ArrayAttr(grid.getRank() - 1);
  SmallVector<Type> types;
  for (Value source : candidate.sources)
    types.push_back(getLocalType(cast<RankedTensorType>(source.getType()),
                                 grid.getShape().back()));
  builder.setInsertionPointAfter(candidate.lastUse);
  auto kept = ReshardOp::create(builder, gather.getLoc(), types,
                                candidate.sources, gather.getGridAttr(), axes);
  builder.setInsertionPoint(gather);
  auto again =
      AllGatherOp::create(builder, gather.getLoc(), gather.getResultTypes(),
                          kept.getResults(), gather.getGridAttr(), axes);
  gather.replaceAllUsesWith(again.getResults());
  gather.erase();
}

/// The state that `chunk` was cut from, if that is still the same at `gather`,
/// and the op that has gathered it.
static std::pair<Value, AllGatherOp> getState(Value chunk, Operation *gather) {
  auto kept = chunk.getDefiningOp<ReshardOp>();
  if (!kept)
    return {};
  Value whole = kept.getInputs()[cast<OpResult>(chunk).getResultNumber()];
  auto first = whole.getDefiningOp<AllGatherOp>();
  if (!first || first->getBlock() != gather->getBlock())
    return {};
  Value state = first.getInputs()[cast<OpResult>(whole).getResultNumber()];
  auto read = state.getDefiningOp<ReadOp>();
  for (Operation *op = first; read && op != gather; op = op->getNextNode())
    if (auto assign = dyn_cast<AssignOp>(op);
        assign && assign.getSymbolAttr() == read.getSymbolAttr())
      return {};
  return {read ? state : Value(), first};
}

/// The other way round, where the state is still what it was.
static void takeBack(AllGatherOp gather) {
  SmallVector<Value> states;
  AllGatherOp first;
  llvm::SmallSetVector<Operation *, 2> reshards;
  for (Value chunk : gather.getInputs()) {
    auto [state, from] = getState(chunk, gather);
    if (!state || (first && (first.getAxesAttr() != from.getAxesAttr() ||
                             first.getGridAttr() != from.getGridAttr())))
      return;
    first = from;
    states.push_back(state);
    reshards.insert(chunk.getDefiningOp());
  }
  if (!first)
    return;
  OpBuilder builder(gather);
  auto again =
      AllGatherOp::create(builder, gather.getLoc(), gather.getResultTypes(),
                          states, first.getGridAttr(), first.getAxesAttr());
  gather.replaceAllUsesWith(again.getResults());
  gather.erase();
  for (Operation *op : reshards)
    if (op->use_empty())
      op->erase();
}

static void takeAllBack(Block &body) {
  for (auto gather : llvm::make_early_inc_range(body.getOps<AllGatherOp>()))
    takeBack(gather);
}

/// Whether `a` is the better schedule.
static bool isBetter(const ScheduleResult &a, const ScheduleResult &b) {
  auto rank = [](const ScheduleResult &result) {
    return std::make_tuple(
        !result.feasible, result.feasible ? 0 : result.missingBytes,
        result.simulated.seconds, result.simulated.peakBytes);
  };
  return rank(a) < rank(b);
}

/// The graph of `func` with `count` of its candidates resharded.
static FailureOr<StepFunction> makeVariant(FunctionOpInterface func,
                                           SymbolTable &symbols,
                                           const CostModel &cost,
                                           size_t count) {
  FailureOr<StepFunction> step = buildStepGraph(func, symbols, cost);
  if (failed(step) || count == 0)
    return step;
  std::vector<Candidate> candidates = findCandidates(*step, symbols, cost);
  for (const Candidate &candidate : ArrayRef(candidates).take_front(count))
    reshard(candidate, symbols);
  return buildStepGraph(func, symbols, cost);
}

FailureOr<ReshardedStep>
zero::scheduleResharded(FunctionOpInterface func, SymbolTable &symbols,
                        const CostModel &cost,
                        const SchedulerOptions &options) {
  Block &body = func.getFunctionBody().front();
  // Applying a schedule makes them anew.
  for (auto release : llvm::make_early_inc_range(body.getOps<ReleaseOp>()))
    release.erase();
  if (options.keepGathered)
    takeAllBack(body);
  FailureOr<StepFunction> step = buildStepGraph(func, symbols, cost);
  if (failed(step))
    return failure();
  ScheduleResult best = scheduleStep(step->graph, options);
  size_t all =
      options.keepGathered ? findCandidates(*step, symbols, cost).size() : 0;
  constexpr size_t kParts = 4;
  size_t chosen = 0, tried = 0;
  for (size_t part = 1; part <= kParts; ++part) {
    size_t count = llvm::divideCeil(all * part, kParts);
    if (count == tried)
      continue;
    tried = count;
    FailureOr<StepFunction> variant = makeVariant(func, symbols, cost, count);
    if (failed(variant))
      return failure();
    ScheduleResult result = scheduleStep(variant->graph, options);
    if (isBetter(result, best)) {
      best = std::move(result);
      chosen = count;
    }
    takeAllBack(body);
  }
  if (tried) // the function was rewritten since
    step = makeVariant(func, symbols, cost, chosen);
  if (failed(step))
    return failure();
  return ReshardedStep{std::move(*step), std::move(best)};
}
