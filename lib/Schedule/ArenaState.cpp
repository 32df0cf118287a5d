//===- ArenaState.cpp - A partial placement and what follows --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Propagation with explanations, and undo by a trail.
//
//===----------------------------------------------------------------------===//

#include "ArenaState.h"

#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir::zero::arena;

static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max();

State::State(const Problem &problem)
    : problem(problem), covering(problem.numSections),
      weight(problem.numSections, 1.0) {
  for (auto [i, item] : llvm::enumerate(problem.items))
    for (int32_t s = item.first; s < item.end; ++s)
      covering[s].push_back(i);
  // Each item is placed once; closings come on top.
  numWords = (2 * problem.items.size() + problem.numSections) / 64 + 2;
  for (Worklist *list : {&risen, &touched, &checked})
    list->has.assign(problem.numSections, false);
}

void State::reset(int64_t newLimit) {
  size_t n = problem.items.size(), sections = problem.numSections;
  limit = newLimit;
  level = 0;
  floor.assign(sections, 0);
  pending.assign(sections, 0);
  closed.assign(sections, false);
  numOpen.assign(sections, 0);
  crossing.assign(sections + 1, 0);
  openHash.assign(sections, 0);
  open.assign(n, false);
  start.assign(n, 0);
  offset.assign(n, 0);
  reasons.assign(sections * numWords, 0);
  startSection.assign(n, 0);
  candidates.assign(sections, -1);
  trail.clear();
  savedReasons.clear();
  for (auto [i, item] : llvm::enumerate(problem.items)) {
    startSection[i] = item.first;
    restore(i);
  }
  for (size_t s = 0; s < sections; ++s)
    risen.add(s);
}

//===----------------------------------------------------------------------===//
// Changes and their undoing
//===----------------------------------------------------------------------===//

void State::forgetCounts(int32_t i) {
  const Item &item = problem.items[i];
  std::fill(candidates.begin() + item.first, candidates.begin() + item.end, -1);
}

void State::setFloor(int32_t s, int64_t height, bool isClosed) {
  trail.push_back({Change::Section, s, floor[s], closed[s]});
  floor[s] = height;
  closed[s] = isClosed;
  candidates[s] = -1;
  risen.add(s);
}

/// Words above the current level's are zero and need no saving.
void State::saveReason(int32_t s) {
  size_t used = usedWords();
  trail.push_back({Change::Reason, s, 0, int32_t(used)});
  savedReasons.insert(savedReasons.end(), reason(s), reason(s) + used);
}

void State::explain(int32_t s, Decisions &set) const {
  const uint64_t *from = &reasons[size_t(s) * numWords];
  for (size_t w = 0, used = usedWords(); w < used; ++w)
    set[w] |= from[w];
}

/// Item `i` is no longer open.
void State::remove(int32_t i, int64_t at) {
  const Item &item = problem.items[i];
  trail.push_back({Change::Place, i, 0, 0});
  open[i] = false;
  offset[i] = at;
  openHash[item.first] ^= mixBits(i);
  for (int32_t s = item.first; s < item.end; ++s) {
    crossing[s] -= s > item.first;
    pending[s] -= item.size;
    --numOpen[s];
    setFloor(s, at + item.size, false);
  }
}

void State::restore(int32_t i) {
  const Item &item = problem.items[i];
  open[i] = true;
  openHash[item.first] ^= mixBits(i);
  for (int32_t s = item.first; s < item.end; ++s) {
    crossing[s] += s > item.first;
    pending[s] += item.size;
    ++numOpen[s];
  }
  forgetCounts(i);
}

void State::decideAt(int32_t s) {
  saveReason(s);
  reason(s)[level / 64] |= uint64_t(1) << (level % 64);
}

void State::place(int32_t i, int64_t at) {
  for (int32_t s = problem.items[i].first; s < problem.items[i].end; ++s)
    decideAt(s);
  remove(i, at);
}

void State::close(int32_t s) {
  decideAt(s);
  setFloor(s, floor[s], true);
}

void State::undo(size_t mark) {
  while (trail.size() > mark) {
    Change change = trail.back();
    trail.pop_back();
    switch (change.kind) {
    case Change::Section:
      floor[change.index] = change.value;
      closed[change.index] = change.extra;
      candidates[change.index] = -1;
      break;
    case Change::Start:
      start[change.index] = change.value;
      startSection[change.index] = change.extra;
      forgetCounts(change.index);
      break;
    case Change::Place:
      restore(change.index);
      break;
    case Change::Reason:
      std::copy(savedReasons.end() - change.extra, savedReasons.end(),
                reason(change.index));
      savedReasons.resize(savedReasons.size() - change.extra);
      break;
    }
  }
}

int32_t State::numCandidates(int32_t s) {
  if (candidates[s] < 0) {
    looks += covering[s].size();
    candidates[s] = llvm::count_if(
        covering[s], [&](int32_t i) { return isCandidate(i, s); });
  }
  return candidates[s];
}

//===----------------------------------------------------------------------===//
// Propagation
//===----------------------------------------------------------------------===//

bool State::fail(int32_t s) {
  weight[s] += 1;
  risen.clear();
  touched.clear();
  checked.clear();
  return false;
}

/// Items over a section whose floor rose start no lower.
bool State::raiseStarts(int32_t s, Decisions &conflict) {
  touched.add(s);
  looks += covering[s].size();
  int64_t least = floor[s] + closed[s];
  for (int32_t i : covering[s]) {
    if (!open[i] || start[i] >= least)
      continue;
    trail.push_back({Change::Start, i, start[i], startSection[i]});
    start[i] = least;
    startSection[i] = s;
    if (least + problem.items[i].size > limit) {
      explain(s, conflict);
      return fail(s);
    }
    forgetCounts(i);
    for (int32_t t = problem.items[i].first; t < problem.items[i].end; ++t)
      touched.add(t);
  }
  return true;
}

/// Places the section's last item if it is the last in all its sections: the
/// lowest place is as good as any.
bool State::placeIfAlone(int32_t s, int32_t i) {
  const Item &item = problem.items[i];
  for (int32_t t = item.first; t < item.end; ++t)
    if (numOpen[t] != 1)
      return false;
  remove(i, start[i]);
  return true;
}

/// The floor is where the lowest item can start; what waits must fit above.
bool State::raiseFloor(int32_t s, Decisions &conflict) {
  if (numOpen[s] == 0)
    return true;
  checked.add(s);
  looks += covering[s].size();
  int64_t least = kInfinite;
  int32_t last = -1;
  for (int32_t i : covering[s]) {
    if (!open[i])
      continue;
    least = std::min(least, start[i]);
    last = i;
  }
  if (numOpen[s] == 1 && placeIfAlone(s, last))
    return true;
  if (least > floor[s] + closed[s]) {
    saveReason(s);
    Decisions why(numWords, 0);
    for (int32_t i : covering[s])
      if (open[i])
        explainStart(i, why);
    for (size_t w = 0; w < usedWords(); ++w)
      reason(s)[w] |= why[w];
    setFloor(s, least, false);
  }
  if (slack(s) < closed[s]) {
    explain(s, conflict);
    return fail(s);
  }
  return true;
}

bool State::settle(Decisions &conflict) {
  while (!risen.list.empty() || !touched.list.empty()) {
    if (!risen.list.empty()) {
      if (!raiseStarts(risen.pop(), conflict))
        return false;
    } else if (!raiseFloor(touched.pop(), conflict)) {
      return false;
    }
  }
  return true;
}

/// A run of closed sections of one height, [begin, stop): nothing rests on it,
/// so its items rest on one of its neighbours or higher.
bool State::raiseRun(int32_t begin, int32_t stop, int32_t first, int32_t end,
                     bool &changed, Decisions &conflict) {
  auto height = [&](int32_t s) {
    return s >= first && s < end && numOpen[s] > 0 ? floor[s] : kInfinite;
  };
  int64_t lower = std::min(height(begin - 1), height(stop));
  if (lower <= floor[begin])
    return true; // a neighbour may still take items of this height
  Decisions why(numWords, 0);
  for (int32_t s = std::max(begin - 1, 0);
       s <= std::min(stop, problem.numSections - 1); ++s)
    explain(s, why);
  if (lower == kInfinite) {
    conflict = why;
    return fail(begin);
  }
  for (int32_t s = begin; s < stop; ++s) {
    saveReason(s);
    std::copy(why.begin(), why.begin() + usedWords(), reason(s));
    setFloor(s, lower, false);
  }
  changed = true;
  return true;
}

bool State::raiseClosed(int32_t first, int32_t end, bool &changed,
                        Decisions &conflict) {
  for (int32_t s = first; s < end;) {
    if (!closed[s] || numOpen[s] == 0) {
      ++s;
      continue;
    }
    int32_t begin = s;
    while (s < end && closed[s] && numOpen[s] > 0 && floor[s] == floor[begin])
      ++s;
    if (!raiseRun(begin, s, first, end, changed, conflict))
      return false;
  }
  return true;
}

/// One after another from their earliest starts, the items over a section must
/// end below the limit: below each start, what cannot lie there is wasted.
bool State::fitsFromAbove(int32_t s, Decisions &conflict) {
  byStart.clear();
  int64_t highest = floor[s];
  for (int32_t i : covering[s]) {
    if (!open[i])
      continue;
    byStart.push_back({start[i], i});
    highest = std::max(highest, start[i]);
  }
  looks += covering[s].size();
  // Starts are few: from the lowest up, without sorting.
  int64_t room = slack(s) + floor[s], below = 0;
  for (int64_t at = floor[s]; highest - below > room;) {
    int64_t next = kInfinite;
    int64_t sizes = 0;
    for (auto [itemStart, i] : byStart) {
      if (itemStart < at || itemStart > next)
        continue;
      sizes = itemStart < next ? problem.items[i].size
                               : sizes + problem.items[i].size;
      next = itemStart;
    }
    looks += byStart.size();
    if (next - below > room)
      return blameHighStarts(s, conflict);
    below += sizes;
    at = next + 1;
  }
  return true;
}

/// The fewest items that cannot all end below the limit.
bool State::blameHighStarts(int32_t s, Decisions &conflict) {
  llvm::sort(byStart);
  int64_t sum = 0;
  size_t k = byStart.size();
  do {
    --k;
    sum += problem.items[byStart[k].second].size;
  } while (byStart[k].first + sum <= limit);
  for (; k < byStart.size(); ++k)
    explainStart(byStart[k].second, conflict);
  return fail(s);
}

bool State::propagate(int32_t first, int32_t end, Decisions &conflict) {
  conflict.assign(numWords, 0);
  for (bool changed = true; changed;) {
    changed = false;
    if (!settle(conflict) || !raiseClosed(first, end, changed, conflict))
      return false;
  }
  for (size_t k = 0; k < checked.list.size(); ++k)
    if (numOpen[checked.list[k]] > 1 &&
        !fitsFromAbove(checked.list[k], conflict))
      return false;
  checked.clear();
  return true;
}
