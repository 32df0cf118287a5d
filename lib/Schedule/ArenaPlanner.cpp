//===- ArenaPlanner.cpp - Offsets for buffers in an arena -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass first; then a search in each part of the time that is too high.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/ArenaPlanner.h"

#include "ArenaSearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <numeric>

using namespace mlir::zero;
using namespace mlir::zero::arena;
using llvm::ArrayRef;

int64_t mlir::zero::maxLiveBytes(ArrayRef<LiveRange> ranges) {
  return maxLoad(makeProblem(ranges));
}

namespace {
/// Places the buffers of one arena. Sizes and heights are in units: the
/// largest number of bytes that divides every aligned size.
class Planner {
public:
  Planner(ArrayRef<LiveRange> ranges, const ArenaOptions &options);
  ArenaPlan plan();

private:
  /// A stretch of time that no buffer crosses into or out of.
  struct Part {
    Problem problem;
    std::vector<uint32_t> items; // of the whole, per item of `problem`
    std::vector<int64_t> offsets;
    int64_t height = 0;
  };
  void makeUnits();
  void placeInOnePass();
  std::vector<Part> split() const;
  void take(Part &part, std::vector<int64_t> offsets, const char *name);
  void reorder(Part &part, int64_t goal, int64_t &effort);
  void lower(Part &part, int64_t goal, int64_t effort);
  void minimise(Part &part, int64_t goal, int64_t effort);
  Verdict tryHeight(Part &part, Search &search, int64_t limit, int64_t &effort,
                    int64_t atMost);
  void search();
  void setOffsets(ArenaPlan &plan) const;
  int64_t goal() const;

  ArrayRef<LiveRange> ranges;
  const ArenaOptions &options;
  std::vector<uint32_t> placed; // the range of each item: those with bytes
  Problem problem;
  int64_t unit = 1;
  int64_t bound = 0; // maxLoad, in units
  std::vector<int64_t> offsets;
  int64_t height = 0;
  const char *method = "nothing to place";
};
} // namespace

Planner::Planner(ArrayRef<LiveRange> ranges, const ArenaOptions &options)
    : ranges(ranges), options(options) {
  for (auto [i, range] : llvm::enumerate(ranges))
    if (range.bytes > 0 && range.last >= range.first)
      placed.push_back(i);
  // The largest first; the height does not depend on the order of the ranges.
  llvm::stable_sort(placed, [&](uint32_t a, uint32_t b) {
    const LiveRange &x = ranges[a], &y = ranges[b];
    return std::tie(y.bytes, x.first, x.last) <
           std::tie(x.bytes, y.first, y.last);
  });
  std::vector<LiveRange> aligned;
  for (uint32_t i : placed) {
    aligned.push_back(ranges[i]);
    aligned.back().bytes = llvm::alignTo(ranges[i].bytes, options.alignment);
  }
  problem = makeProblem(aligned);
  makeUnits();
  bound = maxLoad(problem);
}

void Planner::makeUnits() {
  unit = 0;
  for (const Item &item : problem.items)
    unit = std::gcd(unit, item.size);
  unit = std::max<int64_t>(unit, 1);
  for (Item &item : problem.items)
    item.size /= unit;
}

/// Units to reach before a search stops or is not begun.
int64_t Planner::goal() const {
  if (options.capacity >= 0)
    return options.capacity / unit;
  return bound + int64_t(double(bound) * options.worthwhileGap);
}

static constexpr Order kOrders[] = {Order::Longest, Order::Largest,
                                    Order::LargestArea, Order::Widest};

void Planner::placeInOnePass() {
  method = "one pass";
  for (Order order : kOrders) {
    std::vector<int64_t> found = fitSkyline(problem, sortItems(problem, order));
    int64_t foundHeight = heightOf(problem, found);
    if (offsets.empty() || foundHeight < height) {
      offsets = std::move(found);
      height = foundHeight;
    }
    if (height == bound)
      return;
  }
}

/// The parts that are higher than the goal.
std::vector<Planner::Part> Planner::split() const {
  std::vector<int32_t> crossed(problem.numSections + 1, 0); // then summed up
  for (const Item &item : problem.items) {
    crossed[item.first + 1] += 1;
    crossed[item.end] -= 1;
  }
  std::partial_sum(crossed.begin(), crossed.end(), crossed.begin());
  std::vector<int32_t> partOf(problem.numSections), firstSection;
  for (int32_t s = 0; s < problem.numSections; ++s) {
    if (crossed[s] == 0)
      firstSection.push_back(s);
    partOf[s] = firstSection.size() - 1;
  }
  std::vector<Part> parts(firstSection.size());
  for (auto [i, item] : llvm::enumerate(problem.items)) {
    int32_t k = partOf[item.first];
    Part &part = parts[k];
    part.problem.items.push_back(item);
    Item &local = part.problem.items.back();
    local.first -= firstSection[k];
    local.end -= firstSection[k];
    part.problem.numSections = std::max(part.problem.numSections, local.end);
    part.items.push_back(i);
    part.offsets.push_back(offsets[i]);
    part.height = std::max(part.height, offsets[i] + item.size);
  }
  llvm::erase_if(parts, [&](const Part &p) { return p.height <= goal(); });
  return parts;
}

/// The full search is for parts of which it can look at every section.
static bool isSearchable(const Problem &problem, int64_t height) {
  constexpr size_t kMaxItems = 1500;
  constexpr int64_t kMaxIncidences = 500000;
  if (height > std::numeric_limits<int64_t>::max() / 4)
    return false; // it adds heights up
  int64_t incidences = 0;
  for (const Item &item : problem.items)
    incidences += item.end - item.first;
  return problem.items.size() <= kMaxItems && incidences <= kMaxIncidences;
}

/// Keeps the lower of two placements.
void Planner::take(Part &part, std::vector<int64_t> offsets, const char *name) {
  int64_t height = heightOf(part.problem, offsets);
  if (height >= part.height)
    return;
  part.offsets = std::move(offsets);
  part.height = height;
  method = name;
}

/// Searches below `limit`; what is found is then the part's.
Verdict Planner::tryHeight(Part &part, Search &search, int64_t limit,
                           int64_t &effort, int64_t atMost) {
  int64_t slice = std::min(effort, atMost);
  effort -= slice;
  Verdict verdict = search.run(limit, slice);
  effort += slice;
  if (verdict == Verdict::Found)
    take(part, search.offsets(), "search");
  return verdict;
}

/// By halves between the goal and what is reached, first with little
/// effort for each height, then with more; at last all that is left goes into
/// one unit lower, which may prove that nothing is.
void Planner::minimise(Part &part, int64_t goal, int64_t effort) {
  Search search(part.problem);
  int64_t possible = std::max(bound, goal); // lower: impossible or no use
  for (int64_t slice : {effort / 64, effort / 16, effort / 4, effort}) {
    int64_t low = possible; // lower heights are impossible or given up
    int64_t limit = low;
    while (part.height > low && effort > 0) {
      Verdict verdict = tryHeight(part, search, limit, effort, slice);
      if (verdict != Verdict::Found)
        low = limit + 1;
      if (verdict == Verdict::Impossible)
        possible = low;
      limit = low + (part.height - 1 - low) / 2;
    }
  }
}

/// Other orders first: they are cheap, and all there is for large parts.
void Planner::reorder(Part &part, int64_t goal, int64_t &effort) {
  for (Order order : kOrders) {
    int64_t slice = effort / std::size(kOrders);
    if (part.height <= goal || slice < 2 * costOfFit(part.problem))
      return;
    effort -= slice;
    take(part, fitReordered(part.problem, order, goal, slice), "reordering");
    effort += slice;
  }
}

/// Effort for other orders before a search.
static constexpr int64_t kReordering = 50000;

/// Below the capacity, or as low as it is worth.
void Planner::lower(Part &part, int64_t goal, int64_t effort) {
  bool searchable = isSearchable(part.problem, part.height);
  int64_t slice = searchable ? std::min(effort / 8, kReordering) : effort;
  effort -= slice;
  reorder(part, goal, slice);
  effort += slice;
  if (part.height <= goal || !searchable)
    return;
  if (options.capacity < 0)
    return minimise(part, goal, effort);
  Search search(part.problem);
  tryHeight(part, search, goal, effort, effort);
}

void Planner::search() {
  if (options.effort <= 0 || height <= goal() ||
      (options.capacity >= 0 && goal() < bound))
    return;
  std::vector<Part> parts = split();
  llvm::stable_sort(
      parts, [](const Part &a, const Part &b) { return a.height > b.height; });
  int64_t effort = options.effort / parts.size();
  int64_t reached = goal(); // no use in a part that is lower than others
  for (Part &part : parts) {
    if (part.height > reached)
      lower(part, reached, effort);
    reached = std::max(reached, part.height);
    for (auto [k, item] : llvm::enumerate(part.items))
      offsets[item] = part.offsets[k];
  }
  height = heightOf(problem, offsets);
}

ArenaPlan Planner::plan() {
  if (!problem.items.empty()) {
    placeInOnePass();
    search();
  }
  ArenaPlan plan;
  plan.method = method;
  plan.offsets.assign(ranges.size(), 0);
  for (const LiveRange &range : ranges) // also those that are never alive
    plan.height = std::max(plan.height, range.bytes);
  int64_t padding = 0;
  for (auto [i, offset] : llvm::zip_equal(placed, offsets)) {
    int64_t bytes = ranges[i].bytes;
    plan.offsets[i] = offset * unit;
    plan.height = std::max(plan.height, plan.offsets[i] + bytes);
    padding = std::max<int64_t>(
        padding, llvm::alignTo(bytes, options.alignment) - bytes);
  }
  // Only the highest buffer of the fullest moment may leave its padding out.
  plan.lowerBound = std::max(maxLiveBytes(ranges), bound * unit - padding);
  return plan;
}

ArenaPlan mlir::zero::planArena(ArrayRef<LiveRange> ranges,
                                const ArenaOptions &options) {
  return Planner(ranges, options).plan();
}

ArenaPlan mlir::zero::planArena(ArrayRef<LiveRange> ranges, int64_t alignment) {
  ArenaOptions options;
  options.alignment = alignment;
  return planArena(ranges, options);
}
