//===- ArenaSearch.cpp - Branch and bound for one arena -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Branching, jumping back, and restarts.
//
//===----------------------------------------------------------------------===//

#include "ArenaSearch.h"

#include "llvm/ADT/STLExtras.h"
#include <limits>
#include <numeric>

using namespace mlir::zero::arena;
using llvm::SmallVector;

static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

/// Rules that solve the most of the published hard instances in few nodes, in
/// turn: they fail on different ones.
static constexpr Strategy kStrategies[] = {
    {Strategy::LowFailures, Strategy::Shortest, Strategy::Widest},
    {Strategy::Fewest, Strategy::Flush, Strategy::Fullest},
    {Strategy::LowFailures, Strategy::Flush, Strategy::Fullest},
    {Strategy::Failures, Strategy::Flush, Strategy::Fullest},
};

/// Nodes of the first runs, and how many looks at items cost as much as a node.
static constexpr int64_t kFirstNodes = 2000, kLooksPerNode = 1024;

/// Failed nodes remembered, and places tried for each.
static constexpr size_t kTableSize = 1 << 18, kTableProbes = 4;

Search::Search(const Problem &problem)
    : state(problem), rank(problem.items.size()), table(kTableSize, 0) {
  conflicts.assign(state.maxLevels() + 1, {});
}

//===----------------------------------------------------------------------===//
// Order of the items
//===----------------------------------------------------------------------===//

/// The strategy's rank, shaken after the first round of all strategies.
void Search::rankItems(const Strategy &strategy, uint64_t round) {
  llvm::ArrayRef<Item> items = state.problem.items;
  uint64_t cycle = round / std::size(kStrategies);
  double noise = 0.3 * (1 + cycle % 3);
  std::vector<double> keys(items.size());
  for (auto [i, item] : llvm::enumerate(items)) {
    keys[i] = item.end - item.first;
    if (strategy.rank == Strategy::Fullest) {
      int64_t fullest = *std::max_element(state.pending.begin() + item.first,
                                          state.pending.begin() + item.end);
      keys[i] = double(fullest) * 1e9 + double(item.size) * item.life * 1e-6;
    }
    if (cycle > 0)
      keys[i] *= 1 + noise * (mixBits(round << 32 ^ i) % 1024) / 1024;
  }
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](uint32_t a, uint32_t b) {
    return std::tie(keys[b], a) < std::tie(keys[a], b);
  });
  for (auto [k, i] : llvm::enumerate(order))
    rank[i] = k;
}

/// How well the item fits on section `s`'s floor: lower is better.
int64_t Search::fitOf(const Item &item, Part part, int32_t s) const {
  int64_t floor = state.floor[s], top = floor + item.size;
  auto side = [&](bool inner, int32_t neighbour) -> int64_t {
    bool wall = neighbour < part.first || neighbour >= part.end;
    if (inner) // a step of the item's size is new
      return strategy.fit == Strategy::Shortest ? item.size : 0;
    int64_t height = wall ? kInfinite : state.floor[neighbour];
    if (strategy.fit == Strategy::Flush)
      return height == top ? -1 : 0;
    return height >= top ? -item.size : (top - height) - (height - floor);
  };
  auto isInner = [&](int32_t neighbour) {
    return neighbour >= part.first && neighbour < part.end &&
           state.floor[neighbour] == floor;
  };
  return side(isInner(item.first - 1), item.first - 1) +
         side(isInner(item.end), item.end);
}

/// The first of items that are equal stands for all.
SmallVector<int32_t> Search::candidatesInOrder(Part part, int32_t s) {
  llvm::ArrayRef<Item> items = state.problem.items;
  std::vector<std::tuple<int64_t, uint32_t, int32_t>> found;
  for (int32_t i : state.covering[s])
    if (state.isCandidate(i, s))
      found.push_back({fitOf(items[i], part, s), rank[i], i});
  llvm::sort(found);
  SmallVector<int32_t> result;
  for (auto [fit, itemRank, i] : found) {
    auto equal = [&, i = i](int32_t j) {
      return items[i].first == items[j].first && items[i].end == items[j].end &&
             items[i].size == items[j].size;
    };
    if (llvm::none_of(result, equal))
      result.push_back(i);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Where to branch
//===----------------------------------------------------------------------===//

/// Lower is more urgent.
double Search::urgency(int32_t s) {
  double slack = double(state.slack(s)) / double(state.limit);
  double ways = state.numCandidates(s) + (slack > 0);
  switch (strategy.section) {
  case Strategy::Fewest:
    return ways * 1e6 + slack;
  case Strategy::Failures:
    return (ways - 0.999) / state.weight[s];
  case Strategy::LowFailures:
    return (ways - 0.999) / state.weight[s] *
           (1 + 4 * double(state.floor[s]) / double(state.limit));
  }
  return 0;
}

/// The most urgent open section of the skyline's valleys, or -1.
int32_t Search::chooseSection(Part part) {
  int32_t best = -1;
  double bestUrgency = std::numeric_limits<double>::max();
  auto isHigher = [&](int32_t s, int64_t floor) {
    return s < part.first || s >= part.end || state.floor[s] > floor;
  };
  for (int32_t s = part.first; s < part.end;) {
    int32_t begin = s;
    int64_t floor = state.floor[s];
    while (s < part.end && state.floor[s] == floor)
      ++s;
    if (!isHigher(begin - 1, floor) || !isHigher(s, floor))
      continue;
    for (int32_t t = begin; t < s; ++t) {
      if (state.closed[t])
        continue;
      double u = urgency(t);
      if (u < bestUrgency) {
        bestUrgency = u;
        best = t;
      }
    }
  }
  return best;
}

/// Parts of `part` with open items, smallest first.
std::vector<Search::Part> Search::split(Part part) const {
  std::vector<Part> parts;
  for (int32_t s = part.first; s < part.end; ++s) {
    if (state.numOpen[s] == 0)
      continue;
    if (state.crossing[s] > 0 && !parts.empty() && parts.back().end == s)
      parts.back().end = s + 1;
    else
      parts.push_back({s, s + 1});
  }
  llvm::stable_sort(
      parts, [](Part a, Part b) { return a.end - a.first < b.end - b.first; });
  return parts;
}

//===----------------------------------------------------------------------===//
// Failures seen before
//===----------------------------------------------------------------------===//

/// Of the open items and the floors they lie over.
uint64_t Search::hash(Part part) const {
  uint64_t h = mixBits(state.limit);
  for (int32_t s = part.first; s < part.end; ++s) {
    h ^= mixBits(state.openHash[s] + s);
    h += mixBits(mixBits(2 * s + state.closed[s]) ^ state.floor[s]);
  }
  h = mixBits(h);
  return h ? h : 1; // 0 marks a free place
}

bool Search::isKnownFailure(uint64_t key) const {
  for (size_t k = 0; k < kTableProbes; ++k)
    if (table[(key + k) % kTableSize] == key)
      return true;
  return false;
}

void Search::remember(uint64_t key) {
  size_t k = 0;
  while (k < kTableProbes && table[(key + k) % kTableSize])
    ++k;
  if (k == kTableProbes)
    k = mixBits(key) % kTableProbes;
  table[(key + k) % kTableSize] = key;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

/// Places what is open in `part`. If that is impossible, `conflicts` of the
/// present level holds the decisions to blame, and the state is as before.
Verdict Search::visit(Part part) {
  ++nodes;
  if (nodes > maxNodes || cost() > maxCost)
    return Verdict::GaveUp;
  size_t mark = state.mark();
  if (!state.propagate(part.first, part.end, conflicts[state.level])) {
    state.undo(mark);
    return Verdict::Impossible;
  }
  std::vector<Part> parts = split(part);
  Verdict verdict =
      parts.size() == 1 ? branch(parts.front()) : visitParts(std::move(parts));
  if (verdict == Verdict::Impossible)
    state.undo(mark);
  return verdict;
}

Verdict Search::visitParts(std::vector<Part> parts) {
  int32_t level = state.level;
  for (Part part : parts) {
    Verdict verdict = visit(part);
    if (verdict == Verdict::Impossible) {
      // The parts before it are decided, but had no influence.
      if (state.level != level)
        conflicts[level] = conflicts[state.level];
      state.level = level;
    }
    if (verdict != Verdict::Found)
      return verdict;
  }
  return Verdict::Found;
}

Verdict Search::branch(Part part) {
  Decisions blame(state.words(), 0);
  uint64_t key = hash(part);
  int32_t section = isKnownFailure(key) ? -1 : chooseSection(part);
  if (section < 0) {
    for (int32_t s = part.first; s < part.end; ++s)
      state.explain(s, blame);
    conflicts[state.level] = std::move(blame);
    return Verdict::Impossible;
  }
  if (state.level + 1 >= state.maxLevels())
    return Verdict::GaveUp;
  // Why no other item can rest here.
  state.explain(section, blame);
  for (int32_t i : state.covering[section])
    if (state.open[i] && !state.isCandidate(i, section))
      state.explainStart(i, blame);
  SmallVector<int32_t> choices = candidatesInOrder(part, section);
  if (state.slack(section) > 0)
    choices.push_back(-1); // nothing rests here
  for (int32_t i : choices) {
    size_t mark = state.mark();
    if (i >= 0)
      state.place(i, state.floor[section]);
    else
      state.close(section);
    ++state.level;
    Verdict verdict = visit(part);
    if (verdict != Verdict::Impossible)
      return verdict;
    --state.level;
    state.undo(mark);
    const Decisions &failed = conflicts[state.level + 1];
    if (!(failed[state.level / 64] >> (state.level % 64) & 1)) {
      blame = failed; // this decision had no part in it
      break;
    }
    for (size_t w = 0; w < blame.size(); ++w)
      blame[w] |= failed[w];
    blame[state.level / 64] &= ~(uint64_t(1) << (state.level % 64));
  }
  remember(key);
  conflicts[state.level] = std::move(blame);
  return Verdict::Impossible;
}

int64_t Search::cost() const { return nodes + state.looks / kLooksPerNode; }

Verdict Search::attempt(int64_t limit) {
  strategy = kStrategies[round % std::size(kStrategies)];
  state.reset(limit);
  std::fill(state.weight.begin(), state.weight.end(), 1.0);
  rankItems(strategy, round);
  ++round;
  nodes = 0;
  state.looks = 0;
  return visit({0, state.problem.numSections});
}

Verdict Search::run(int64_t limit, int64_t &effort) {
  int64_t firstNodes = std::max<int64_t>(kFirstNodes, 4 * rank.size());
  for (uint64_t k = 0; effort > 0; ++k) {
    maxNodes = firstNodes * (1 + k / (2 * std::size(kStrategies)));
    maxCost = effort;
    Verdict verdict = attempt(limit);
    effort -= cost();
    if (verdict != Verdict::GaveUp)
      return verdict;
  }
  return Verdict::GaveUp;
}
