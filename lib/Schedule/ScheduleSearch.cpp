//===- ScheduleSearch.cpp - The best trades of time and memory -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ScheduleSearch.h.
//
//===----------------------------------------------------------------------===//

#include "ScheduleSearch.h"
#include "ScheduleExact.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>
#include <set>

using namespace mlir::zero;

static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
/// States that branch and bound may visit, and how much faster it has to be.
static constexpr int64_t kExactStates = 60'000;
static constexpr double kWorthwhile = 0.005;

/// A problem with what placing it needs.
struct Search::Variant {
  std::vector<int32_t> order;
  bool hasRule = false;
  BucketRule rule;
  std::shared_ptr<Problem> problem;
  std::shared_ptr<const Decisions> decisions;
  std::vector<int64_t> least;
  int64_t lowest = 0; ///< no placement needs less
  Trade fastest;      ///< without a limit
};

Search::Search(const StepGraph &graph, const SchedulerOptions &options)
    : graph(graph), orders({graphOrder(graph)}) {
  if (options.reorder)
    for (std::vector<int32_t> &order : otherOrders(graph))
      if (!llvm::is_contained(orders, order))
        orders.push_back(std::move(order));
  costOfTrial = graph.tasks.size() + 1;
  for (const StepTask &task : graph.tasks)
    costOfTrial += task.reads.size() + task.writes.size();
}

/// Keeps the trade if no other is at least as good in both.
void Search::add(double seconds, int64_t peak, const Recipe &recipe) {
  auto after = llvm::partition_point(
      front, [&](const Trade &other) { return other.seconds <= seconds; });
  if (after != front.begin() && std::prev(after)->peakBytes <= peak)
    return;
  auto first = llvm::partition_point(
      front, [&](const Trade &other) { return other.seconds < seconds; });
  auto last = first;
  while (last != front.end() && last->peakBytes >= peak)
    ++last;
  first = front.erase(first, last);
  front.insert(first, {seconds, peak, recipe});
}

Schedule Search::make(const Recipe &recipe) const {
  if (recipe.schedule)
    return *recipe.schedule;
  Problem problem(graph, *recipe.decisions);
  Placement placement = place(problem, leastMemory(problem), recipe.policy);
  delayStarts(graph, placement.schedule);
  return std::move(placement.schedule);
}

Trade Search::tryOne(const Problem &problem, llvm::ArrayRef<int64_t> least,
                     const Recipe &recipe) {
  --trialsLeft;
  Placement placement = place(problem, least, recipe.policy);
  Trade trade{std::numeric_limits<double>::max(), kUnlimited, recipe};
  if (!placement.feasible)
    return trade;
  delayStarts(graph, placement.schedule);
  SimulatedStep simulated = simulate(graph, placement.schedule);
  trade.seconds = simulated.seconds;
  trade.peakBytes = simulated.peakBytes;
  add(trade.seconds, trade.peakBytes, recipe);
  return trade;
}

Search::Variant Search::makeVariant(llvm::ArrayRef<int32_t> order,
                                    const BucketRule *rule,
                                    std::vector<int32_t> dropped) const {
  Variant variant;
  variant.order = order.vec();
  Decisions decisions{variant.order, {}, std::move(dropped)};
  variant.problem = std::make_shared<Problem>(graph, decisions);
  if (rule) {
    variant.hasRule = true;
    variant.rule = *rule;
    decisions.buckets = makeBuckets(*variant.problem, *rule);
    if (!decisions.buckets.empty())
      variant.problem = std::make_shared<Problem>(graph, decisions);
  }
  variant.decisions = std::make_shared<Decisions>(std::move(decisions));
  if (variant.problem->valid) {
    variant.least = leastMemory(*variant.problem);
    variant.lowest = *std::max_element(variant.least.begin(),
                                       variant.least.end());
  }
  return variant;
}

/// The fastest placement under a limit, of several policies.
Trade Search::tryAll(const Variant &variant, int64_t limit, bool overlap) {
  PlacePolicy policy;
  policy.limit = limit;
  policy.serial = !overlap;
  Recipe recipe{variant.decisions, policy};
  Trade best = tryOne(*variant.problem, variant.least, recipe);
  if (!overlap)
    return best;
  struct {
    double lead;
    bool fetchFirst, urgentFirst, lateDrains;
  } policies[] = {{-1, false, false, false}, {0, true, false, false},
                  {-1, false, true, false},  {0, false, false, true},
                  {1, false, false, false},  {-1, true, true, true},
                  {-1, false, false, true}};
  for (auto [lead, fetchFirst, urgentFirst, lateDrains] : policies) {
    if (trialsLeft <= 0)
      break;
    recipe.policy.lead = lead;
    recipe.policy.fetchFirst = fetchFirst;
    recipe.policy.urgentFirst = urgentFirst;
    recipe.policy.lateDrains = lateDrains;
    Trade trade = tryOne(*variant.problem, variant.least, recipe);
    if (std::make_pair(trade.seconds, trade.peakBytes) <
        std::make_pair(best.seconds, best.peakBytes))
      best = trade;
  }
  return best;
}

/// Orders and buckets that are best in time or in memory.
std::vector<Search::Variant>
Search::findVariants(const SchedulerOptions &options) {
  std::vector<const BucketRule *> rules = {nullptr};
  int64_t bytes = options.bucketBytes;
  const BucketRule allRules[] = {{BucketRule::Unit, 0, bytes},
                                 {BucketRule::Share, 0.5, bytes},
                                 {BucketRule::Share, 0.1, bytes},
                                 {BucketRule::Lateness, 0, bytes},
                                 {BucketRule::Lateness, 0, bytes / 4},
                                 {BucketRule::Lateness, 0, bytes / 16}};
  if (options.bucket)
    for (const BucketRule &rule : allRules)
      rules.push_back(&rule);
  std::vector<Variant> variants;
  size_t numOrders = options.reorder ? orders.size() : 1;
  for (size_t order = 0; order != numOrders; ++order)
    for (const BucketRule *rule : rules) {
      Variant variant = makeVariant(orders[order], rule, {});
      if (!variant.problem->valid ||
          (rule && variant.decisions->buckets.empty()))
        continue;
      variant.fastest = tryAll(variant, kUnlimited, options.prefetch);
      variants.push_back(std::move(variant));
      // The rest is chosen from the fastest and the leanest of all.
    }
  llvm::stable_sort(variants, [](const Variant &a, const Variant &b) {
    return std::make_pair(a.fastest.seconds, a.lowest) <
           std::make_pair(b.fastest.seconds, b.lowest);
  });
  return variants;
}

/// Walks down from unlimited memory.
void Search::walk(const Variant &variant, const SchedulerOptions &options) {
  std::vector<Repeat> repeats;
  if (options.keepGathered)
    repeats = findRepeats(*variant.problem);
  int64_t limit = kUnlimited;
  std::set<std::vector<int32_t>> tried;
  while (trialsLeft > 0) {
    Trade best = tryAll(variant, limit, options.prefetch);
    int64_t top = std::min(limit, best.peakBytes);
    for (double part : {1.0, 0.75, 0.5, 0.25}) {
      if (repeats.empty() || trialsLeft <= 0)
        break;
      int64_t keepLimit = kUnlimited;
      if (limit != kUnlimited)
        keepLimit = variant.lowest + part * (limit - variant.lowest);
      std::vector<int32_t> dropped =
          chooseDropped(repeats, variant.least, keepLimit);
      if (dropped.empty())
        break;
      Variant kept =
          makeVariant(variant.order, variant.hasRule ? &variant.rule : nullptr,
                      std::move(dropped));
      if (!kept.problem->valid)
        continue;
      Trade trade = tryAll(kept, limit, options.prefetch);
      if (trade.seconds < best.seconds)
        best = trade;
      if (limit == kUnlimited)
        break;
    }
    if (best.peakBytes == kUnlimited || best.peakBytes <= variant.lowest)
      return;
    top = limit == kUnlimited ? best.peakBytes : std::min(limit, top);
    limit = top - std::max<int64_t>(1, (top - variant.lowest) / 16);
    if (limit < variant.lowest)
      return;
  }
}

/// A faster placement of `problem` than `best` within `limit`, or `best`.
Trade Search::improveOne(const Problem &problem, const Trade &best,
                         int64_t limit, int64_t &statesLeft) {
  Trade trade = best;
  while (statesLeft > 0) {
    Placement placement = placeExactly(
        problem, limit, trade.seconds * (1 - kWorthwhile), statesLeft);
    if (!placement.feasible)
      break;
    delayStarts(graph, placement.schedule);
    SimulatedStep simulated = simulate(graph, placement.schedule);
    trade.seconds = simulated.seconds;
    trade.peakBytes = simulated.peakBytes;
    trade.recipe.schedule =
        std::make_shared<Schedule>(std::move(placement.schedule));
    add(trade.seconds, trade.peakBytes, trade.recipe);
  }
  return trade;
}

/// Small steps: at each limit where the front has a step, branch and bound over
/// all sets of dropped gathers.
void Search::improve(const Variant &variant, const SchedulerOptions &options) {
  std::vector<Repeat> repeats;
  if (options.keepGathered)
    repeats = findRepeats(*variant.problem);
  if (variant.problem->numNodes > 64 || repeats.size() > 8)
    return;
  std::vector<Variant> variants;
  for (unsigned set = 0; set != 1u << repeats.size(); ++set) {
    std::vector<int32_t> dropped;
    for (auto [number, repeat] : llvm::enumerate(repeats))
      if (set >> number & 1)
        dropped.push_back(repeat.task);
    variants.push_back(
        makeVariant(variant.order, variant.hasRule ? &variant.rule : nullptr,
                    std::move(dropped)));
  }
  int64_t limit = kUnlimited, statesLeft = kExactStates;
  while (statesLeft > 0) {
    auto within = llvm::find_if(
        front, [&](const Trade &trade) { return trade.peakBytes <= limit; });
    Trade best{std::numeric_limits<double>::max(), kUnlimited, {}};
    if (within != front.end())
      best = *within;
    // What one limit leaves over is for the next ones.
    int64_t states = std::min(statesLeft, kExactStates / 10), given = states;
    for (const Variant &candidate : variants)
      if (candidate.problem->valid)
        best = improveOne(*candidate.problem, best, limit, states);
    statesLeft -= given - states;
    if (best.peakBytes == kUnlimited)
      return;
    limit = best.peakBytes - 1;
  }
}

void Search::explore(const SchedulerOptions &options) {
  trialsLeft = std::clamp<int64_t>(30'000'000 / costOfTrial, 64, 4000);
  std::vector<Variant> variants = findVariants(options);
  size_t leanest = 0;
  for (size_t i = 0; i != variants.size(); ++i)
    if (variants[i].lowest < variants[leanest].lowest)
      leanest = i;
  std::vector<size_t> chosen = {0};
  for (size_t i : {leanest, size_t(1), size_t(2)})
    if (i < variants.size() && !llvm::is_contained(chosen, i))
      chosen.push_back(i);
  int64_t share = trialsLeft / chosen.size();
  int64_t rest = trialsLeft;
  for (size_t i : chosen) {
    trialsLeft = share;
    walk(variants[i], options);
    rest -= share - trialsLeft;
    if (options.prefetch)
      improve(variants[i], options);
  }
  trialsLeft = rest;
}
