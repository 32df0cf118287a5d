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
    bool improved = false;
  };
  void makeUnits();
  void placeInOnePass();
  std::vector<Part> split() const;
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
  std::vector<LiveRange> aligned;
  for (auto [i, range] : llvm::enumerate(ranges)) {
    if (range.bytes == 0)
      continue;
    placed.push_back(i);
    aligned.push_back(range);
    aligned.back().bytes = llvm::alignTo(range.bytes, options.alignment);
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

void Planner::placeInOnePass() {
  static constexpr std::pair<Order, const char *> kOrders[] = {
      {Order::Longest, "one pass, longest first"},
      {Order::Largest, "one pass, largest first"},
      {Order::LargestArea, "one pass, largest area first"},
      {Order::Widest, "one pass, most neighbours first"}};
  height = std::numeric_limits<int64_t>::max();
  for (auto [order, name] : kOrders) {
    std::vector<int64_t> found = fitSkyline(problem, order);
    int64_t foundHeight = heightOf(problem, found);
    if (foundHeight < height) {
      offsets = std::move(found);
      height = foundHeight;
      method = name;
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

/// Searches below `limit`; what is found is then the part's.
Verdict Planner::tryHeight(Part &part, Search &search, int64_t limit,
                           int64_t &effort, int64_t atMost) {
  int64_t slice = std::min(effort, atMost);
  effort -= slice;
  Verdict verdict = search.run(limit, slice);
  effort += slice;
  if (verdict == Verdict::Found) {
    part.offsets = search.offsets();
    part.height = heightOf(part.problem, part.offsets);
    part.improved = true;
  }
  return verdict;
}

/// The lower bound, then by halves, then all that is left of `effort` on one
/// unit lower.
void Planner::minimise(Part &part, int64_t goal, int64_t effort) {
  Search search(part.problem);
  if (options.capacity >= 0) {
    tryHeight(part, search, goal, effort, effort);
    return;
  }
  int64_t slice = effort / 8;
  int64_t low = bound; // lower heights are impossible, or were given up
  for (int64_t limit = low; part.height > std::max(low, goal) && effort > 0;
       limit = low + (part.height - 1 - low) / 2)
    if (tryHeight(part, search, limit, effort, slice) != Verdict::Found)
      low = limit + 1;
  while (part.height > std::max(bound, goal) && effort > 0)
    if (tryHeight(part, search, part.height - 1, effort, effort) ==
        Verdict::Impossible)
      break;
}

/// The full search is for parts of which it can look at every section.
static bool isSearchable(const Problem &problem) {
  constexpr size_t kMaxItems = 2500;
  constexpr int64_t kMaxIncidences = 500000;
  int64_t incidences = 0;
  for (const Item &item : problem.items)
    incidences += item.end - item.first;
  return problem.items.size() <= kMaxItems && incidences <= kMaxIncidences;
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
    if (part.height > reached && isSearchable(part.problem))
      minimise(part, reached, effort);
    reached = std::max(reached, part.height);
    for (auto [k, item] : llvm::enumerate(part.items))
      offsets[item] = part.offsets[k];
    if (part.improved)
      method = "search";
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
