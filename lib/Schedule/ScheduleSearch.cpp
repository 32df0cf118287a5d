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
static constexpr int64_t kStatesOfSearch = 16; ///< what starting one costs
static constexpr double kWorthwhile = 0.005;
/// What nothing is worse than.
static const Trade kNone{
    std::numeric_limits<double>::max(), {kUnlimited, kUnlimited}, {}};
/// Uses of buffers that all trials together may look at.
static constexpr int64_t kWork = 14'000'000;

/// A problem with what placing it needs.
struct Search::Variant {
  std::vector<int32_t> order;
  size_t number = 0; ///< of the order
  BucketRule rule;
  std::shared_ptr<Problem> problem;
  std::shared_ptr<const Decisions> decisions;
  std::vector<int64_t> least;
  int64_t lowest = 0; ///< no placement needs less of the device
  Trade fastest;      ///< without a limit
};

Search::Search(const StepGraph &graph, const SchedulerOptions &options)
    : graph(graph), orders({graphOrder(graph)}) {
  if (options.reorder)
    for (std::vector<int32_t> &order : otherOrders(graph))
      if (!llvm::is_contained(orders, order))
        orders.push_back(std::move(order));
  bound = lowerBound(graph, options);
  costOfTrial = graph.tasks.size() + 1;
  for (const StepTask &task : graph.tasks)
    costOfTrial += task.reads.size() + task.writes.size();
  usesHost = llvm::any_of(graph.buffers, [](const StepBuffer &buffer) {
    return buffer.space != MemorySpace::Device;
  });
  hostLimit = kUnlimited;
}

/// Keeps the trade if no other is at least as good in all.
void Search::add(double seconds, Bytes peak, const Recipe &recipe) {
  auto isBeaten = [](const Trade &trade, double otherSeconds, Bytes otherPeak) {
    return otherSeconds <= trade.seconds && otherPeak.isWithin(trade.peak);
  };
  Trade trade{seconds, peak, recipe};
  if (llvm::any_of(front, [&](const Trade &other) {
        return isBeaten(trade, other.seconds, other.peak);
      }))
    return;
  llvm::erase_if(front, [&](const Trade &other) {
    return isBeaten(other, seconds, peak);
  });
  auto rank = [](const Trade &trade) {
    return std::make_tuple(trade.seconds, trade.peak.device, trade.peak.host);
  };
  auto after = llvm::partition_point(
      front, [&](const Trade &other) { return rank(other) < rank(trade); });
  front.insert(after, std::move(trade));
}

Schedule Search::make(const Recipe &recipe) const {
  if (recipe.schedule)
    return *recipe.schedule;
  Problem problem(graph, *recipe.decisions);
  Placement placement = place(problem, leastMemory(problem), recipe.policy);
  delayStarts(problem, placement);
  return std::move(placement.schedule);
}

Trade Search::tryOne(const Problem &problem, llvm::ArrayRef<int64_t> least,
                     const Recipe &recipe) {
  --trialsLeft;
  Placement placement = place(problem, least, recipe.policy);
  if (!placement.feasible)
    return kNone;
  Trade trade{0, {}, recipe};
  delayStarts(problem, placement);
  trade.seconds = placement.seconds;
  trade.peak = placement.peak;
  add(trade.seconds, trade.peak, recipe);
  return trade;
}

Search::Variant Search::makeVariant(llvm::ArrayRef<int32_t> order,
                                    const BucketRule &rule,
                                    std::vector<int32_t> dropped) const {
  Variant variant;
  variant.order = order.vec();
  Decisions decisions{variant.order, {}, std::move(dropped)};
  variant.problem = std::make_shared<Problem>(graph, decisions);
  variant.rule = rule;
  if (rule.kind != BucketRule::None) {
    std::vector<int64_t> least;
    if (rule.parts > 0)
      least = leastMemory(*variant.problem);
    decisions.buckets = makeBuckets(*variant.problem, least, rule);
    if (!decisions.buckets.empty())
      variant.problem = std::make_shared<Problem>(graph, decisions);
  }
  variant.decisions = std::make_shared<Decisions>(std::move(decisions));
  if (variant.problem->valid) {
    variant.least = leastMemory(*variant.problem);
    variant.lowest =
        *std::max_element(variant.least.begin(), variant.least.end());
  }
  return variant;
}

/// What a placement prefers, besides its limit.
static constexpr struct {
  double lead;
  bool fetchFirst, urgentFirst, lateDrains, longestFirst;
} kPolicies[] = {{0, false, false, false, false},
                 {-1, false, true, false, false},
                 {-1, false, false, false, false},
                 {0, true, false, false, false},
                 {0, false, false, true, false},
                 {1, false, false, false, false},
                 {-1, true, true, true, false},
                 {-1, false, false, true, false},
                 // Only where tasks follow each other outside of compute.
                 {0, false, false, false, true},
                 {-1, false, false, false, true}};
static constexpr size_t kNumPolicies = std::size(kPolicies);
static constexpr size_t kNumHostPolicies = 2; ///< the last of them

static bool isBetter(const Trade &a, const Trade &b) {
  return std::make_tuple(a.seconds, a.peak.device, a.peak.host) <
         std::make_tuple(b.seconds, b.peak.device, b.peak.host);
}

/// The better of `best` and what the given policies place.
Trade Search::tryPolicies(const Variant &variant, int64_t limit, Trade best,
                          llvm::ArrayRef<size_t> policies) {
  for (size_t number : policies) {
    // Nothing to gain once nothing stalls for want of memory.
    if (trialsLeft <= 0 ||
        best.seconds <=
            std::max(bound, variant.fastest.seconds) * (1 + kWorthwhile / 100))
      break;
    auto [lead, fetchFirst, urgentFirst, lateDrains, longestFirst] =
        kPolicies[number];
    PlacePolicy policy{{limit, hostLimit}, false,      lead,        fetchFirst,
                       urgentFirst,        lateDrains, longestFirst};
    Trade trade =
        tryOne(*variant.problem, variant.least, {variant.decisions, policy});
    if (isBetter(trade, best)) {
      best = trade;
      favorite = number;
    }
  }
  return best;
}

/// The policies that are likely to be best.
Trade Search::tryFew(const Variant &variant, int64_t limit, bool overlap) {
  if (!overlap) {
    PlacePolicy policy;
    policy.limit = {limit, hostLimit};
    policy.serial = true;
    return tryOne(*variant.problem, variant.least, {variant.decisions, policy});
  }
  // With free memory only the order of reductions matters.
  size_t second = limit == kUnlimited || favorite == 0 ? 1 : favorite;
  return tryPolicies(variant, limit, kNone, {size_t(0), second});
}

/// The policies that `tryFew` left out.
Trade Search::tryOthers(const Variant &variant, int64_t limit, Trade best) {
  std::vector<size_t> others;
  size_t last = usesHost ? kNumPolicies : kNumPolicies - kNumHostPolicies;
  for (size_t number = 1; number != last; ++number)
    if (number != favorite)
      others.push_back(number);
  return tryPolicies(variant, limit, best, others);
}

/// Bucket rules to try; the first is none.
static std::vector<BucketRule> bucketRules(const SchedulerOptions &options) {
  int64_t bytes = options.bucketBytes;
  std::vector<BucketRule> rules = {{BucketRule::None, 0, 0, 0, 0}};
  if (!options.bucket)
    return rules;
  rules.push_back({BucketRule::Lateness, 0, bytes, 0, 0});
  rules.push_back({BucketRule::Unit, 0, bytes, 0, 0});
  rules.push_back({BucketRule::Share, 0.5, bytes, 0, 0});
  rules.push_back({BucketRule::Share, 0.1, bytes, 0, 0});
  return rules;
}

/// Orders and buckets, the fastest first: every order with the first rules, and
/// the fastest and the leanest of the orders with the others.
std::vector<Search::Variant>
Search::findVariants(const SchedulerOptions &options) {
  std::vector<Variant> variants;
  auto tryVariant = [&](size_t order, const BucketRule &rule) {
    Variant variant = makeVariant(orders[order], rule, {});
    if (!variant.problem->valid ||
        (rule.kind != BucketRule::None && variant.decisions->buckets.empty()))
      return;
    variant.number = order;
    variant.fastest = tryFew(variant, kUnlimited, options.prefetch);
    variants.push_back(std::move(variant));
  };
  std::vector<BucketRule> rules = bucketRules(options);
  size_t numOrders = options.reorder ? orders.size() : 1;
  size_t numFirst = std::min<size_t>(rules.size(), 2);
  for (size_t order = 0; order != numOrders; ++order)
    for (size_t rule = 0; rule != numFirst; ++rule)
      tryVariant(order, rules[rule]);
  auto fastest = std::min_element(
      variants.begin(), variants.end(), [](const Variant &a, const Variant &b) {
        return a.fastest.seconds < b.fastest.seconds;
      });
  auto leanest = std::min_element(
      variants.begin(), variants.end(),
      [](const Variant &a, const Variant &b) { return a.lowest < b.lowest; });
  std::set<size_t> best = {size_t(0), fastest->number, leanest->number};
  for (size_t order : best)
    for (size_t rule = numFirst; rule != rules.size(); ++rule)
      tryVariant(order, rules[rule]);
  llvm::stable_sort(variants, [](const Variant &a, const Variant &b) {
    return std::make_pair(a.fastest.seconds, a.lowest) <
           std::make_pair(b.fastest.seconds, b.lowest);
  });
  return variants;
}

/// The better of `best`, which `variant` reached, and placements with several
/// parts of the memory given to gathers that stay.
Trade Search::tryKeeping(const Variant &variant, int64_t limit, Trade best,
                         const SchedulerOptions &options) {
  if (!options.keepGathered)
    return best;
  std::vector<Repeat> repeats = findRepeats(*variant.problem);
  std::vector<int32_t> previous;
  Variant bestVariant;
  for (double part : {1.0, 0.5, 0.25}) {
    if (repeats.empty() || trialsLeft <= 0 ||
        best.seconds <= bound * (1 + kWorthwhile / 10))
      break;
    int64_t keepLimit = kUnlimited;
    if (limit != kUnlimited)
      keepLimit = variant.lowest + part * (limit - variant.lowest);
    std::vector<int32_t> dropped =
        chooseDropped(repeats, variant.least, keepLimit);
    if (dropped.empty() || dropped == previous)
      break;
    previous = dropped;
    Variant kept = makeVariant(variant.order, variant.rule, std::move(dropped));
    if (!kept.problem->valid)
      continue;
    Trade trade = tryFew(kept, limit, options.prefetch);
    if (isBetter(trade, best)) {
      best = trade;
      bestVariant = std::move(kept);
    }
    if (limit == kUnlimited)
      break;
  }
  if (bestVariant.problem && options.prefetch)
    best = tryOthers(bestVariant, limit, best);
  return best;
}

/// Of the variants that fit, which are sorted by time: the fastest, the
/// leanest, and one between that no other beats in both; and `last` again.
static std::vector<size_t> pickVariants(llvm::ArrayRef<int64_t> lowest,
                                        int64_t limit, size_t last) {
  std::vector<size_t> best;
  for (size_t i = 0; i != lowest.size(); ++i)
    if (lowest[i] <= limit && (best.empty() || lowest[i] < lowest[best.back()]))
      best.push_back(i);
  if (best.empty())
    return best;
  std::vector<size_t> picked;
  for (size_t i : {best.front(), best[best.size() / 2], best.back(), last})
    if (lowest[i] <= limit && !llvm::is_contained(picked, i))
      picked.push_back(i);
  return picked;
}

/// The fastest schedule within a limit. `winner` is the variant that was best
/// before, and becomes the one that is best now.
Trade Search::tryLimit(const std::vector<Variant> &variants, int64_t limit,
                       size_t &winner, const SchedulerOptions &options) {
  std::vector<int64_t> lowest;
  for (const Variant &variant : variants)
    lowest.push_back(variant.lowest);
  std::vector<Variant> fitted; // buckets made for this limit
  if (options.bucket && limit != kUnlimited)
    for (double parts : {1.5, 3.0, 6.0}) {
      BucketRule rule{BucketRule::Lateness, 0, options.bucketBytes, parts,
                      limit};
      fitted.push_back(makeVariant(variants[winner].order, rule, {}));
    }
  Trade best = kNone;
  const Variant *bestVariant = nullptr;
  auto consider = [&](const Variant &variant) {
    Trade trade = kNone;
    if (variant.problem->valid && variant.lowest <= limit)
      trade = tryFew(variant, limit, options.prefetch);
    if (!isBetter(trade, best))
      return false;
    best = trade;
    bestVariant = &variant;
    return true;
  };
  for (size_t i : pickVariants(lowest, limit, winner))
    if (consider(variants[i]))
      winner = i;
  for (const Variant &variant : fitted)
    consider(variant);
  if (!bestVariant)
    return best;
  if (options.prefetch)
    best = tryOthers(*bestVariant, limit, best);
  return tryKeeping(*bestVariant, limit, best, options);
}

/// Walks down from unlimited memory.
void Search::descend(const std::vector<Variant> &variants,
                     const SchedulerOptions &options) {
  int64_t least = kUnlimited, limit = kUnlimited;
  for (const Variant &variant : variants)
    least = std::min(least, variant.lowest);
  int64_t levels = std::clamp<int64_t>(trialsLeft / 32, 8, 64);
  size_t winner = 0;
  while (trialsLeft > 0 && limit >= least) {
    Trade best = tryLimit(variants, limit, winner, options);
    int64_t top = std::min(limit, best.peak.device);
    if (top == kUnlimited)
      return;
    limit = top - std::max<int64_t>(1, (top - least) / levels);
  }
}

/// The same with less and less host memory, down to the least. Where that is
/// depends on the step alone, so that the front does not depend on a budget.
void Search::descendHost(const std::vector<Variant> &variants,
                         const SchedulerOptions &options, int64_t trials) {
  int64_t least = kUnlimited, most = 0;
  for (const Variant &variant : variants)
    least = std::min(least, leastHostMemory(*variant.problem));
  for (const Trade &trade : front)
    most = std::max(most, trade.peak.host);
  constexpr int64_t parts[] = {48, 32, 20, 12, 6, 0}; // of 64
  for (int64_t part : parts) {
    int64_t limit = least + (most - least) * part / 64;
    if (limit >= most || limit == hostLimit)
      continue;
    hostLimit = limit;
    trialsLeft = trials;
    descend(variants, options);
  }
  hostLimit = kUnlimited;
}

/// A faster placement of `problem` than `best` within `limit`, or `best`.
Trade Search::improveOne(const Problem &problem, const Trade &best,
                         int64_t limit, int64_t &states) {
  Trade trade = best;
  while (states > 0) {
    states -= kStatesOfSearch;
    Placement placement = placeExactly(
        problem, {limit, hostLimit}, trade.seconds * (1 - kWorthwhile), states);
    if (!placement.feasible)
      break;
    delayStarts(problem, placement);
    trade.seconds = placement.seconds;
    trade.peak = placement.peak;
    trade.recipe.schedule =
        std::make_shared<Schedule>(std::move(placement.schedule));
    add(trade.seconds, trade.peak, trade.recipe);
  }
  return trade;
}

/// Small steps: at each limit where the front has a step, branch and bound over
/// all sets of dropped gathers.
void Search::improve(const Variant &variant, const SchedulerOptions &options) {
  std::vector<Repeat> repeats;
  if (options.keepGathered)
    repeats = findRepeats(*variant.problem);
  if (variant.problem->numNodes > 64 || repeats.size() > 6)
    return;
  std::vector<Variant> variants;
  for (unsigned set = 0; set != 1u << repeats.size(); ++set) {
    std::vector<int32_t> dropped;
    for (auto [number, repeat] : llvm::enumerate(repeats))
      if (set >> number & 1)
        dropped.push_back(repeat.task);
    variants.push_back(
        makeVariant(variant.order, variant.rule, std::move(dropped)));
  }
  int64_t limit = kUnlimited;
  while (statesLeft > 0) {
    auto within = llvm::find_if(front, [&](const Trade &trade) {
      return trade.peak.isWithin({limit, hostLimit});
    });
    Trade best = kNone;
    if (within != front.end())
      best = *within;
    // What one limit leaves over is for the next ones.
    int64_t states = std::min(statesLeft, kExactStates / 10), given = states;
    for (const Variant &candidate : variants)
      if (candidate.problem->valid)
        best = improveOne(*candidate.problem, best, limit, states);
    statesLeft -= given - states;
    if (best.peak.device == kUnlimited)
      return;
    limit = best.peak.device - 1;
  }
}

void Search::explore(const SchedulerOptions &options, int64_t part) {
  trialsLeft = std::clamp<int64_t>(kWork / part / costOfTrial, 48, 2000);
  favorite = 0;
  std::vector<Variant> variants = findVariants(options);
  int64_t trials = trialsLeft / 4;
  descend(variants, options);
  if (usesHost)
    descendHost(variants, options, trials);
  // Small steps only, and there the best two.
  statesLeft = kExactStates;
  for (size_t i = 0; options.prefetch && i < variants.size() && i != 2; ++i)
    improve(variants[i], options);
}
