//===- ArenaFit.cpp - Placements in one pass ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sections of time, and the skyline that items are dropped on.
//
//===----------------------------------------------------------------------===//

#include "ArenaFit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <numeric>
#include <queue>

using namespace mlir::zero;
using namespace mlir::zero::arena;
using llvm::ArrayRef;

static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max();

/// The finalizer of SplitMix64.
uint64_t arena::mixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

Problem arena::makeProblem(ArrayRef<LiveRange> ranges) {
  struct Event {
    int64_t time;
    bool ends;
    size_t item;
  };
  std::vector<Event> events;
  events.reserve(2 * ranges.size());
  for (auto [i, range] : llvm::enumerate(ranges)) {
    if (range.last < range.first)
      continue; // never alive
    events.push_back({range.first, false, i});
    events.push_back({range.last, true, i});
  }
  // Lifetimes include their last moment: at one time all begin before any ends.
  llvm::sort(events, [](const Event &a, const Event &b) {
    return std::tie(a.time, a.ends, a.item) < std::tie(b.time, b.ends, b.item);
  });
  Problem problem;
  problem.items.resize(ranges.size());
  int32_t section = 0;
  bool ended = false;
  for (const Event &event : events) {
    Item &item = problem.items[event.item];
    if (event.ends) {
      item.end = section + 1;
    } else {
      section += ended;
      item.first = section;
      item.size = ranges[event.item].bytes;
      item.life =
          double(ranges[event.item].last) - ranges[event.item].first + 1;
    }
    ended = event.ends;
  }
  problem.numSections = events.empty() ? 0 : section + 1;
  return problem;
}

int64_t arena::maxLoad(const Problem &problem) {
  std::vector<int64_t> change(problem.numSections + 1, 0);
  for (const Item &item : problem.items) {
    change[item.first] += item.size;
    change[item.end] -= item.size;
  }
  int64_t load = 0, most = 0;
  for (int64_t c : change)
    most = std::max(most, load += c);
  return most;
}

int64_t arena::heightOf(const Problem &problem, ArrayRef<int64_t> offsets) {
  int64_t height = 0;
  for (auto [item, offset] : llvm::zip_equal(problem.items, offsets))
    height = std::max(height, offset + item.size);
  return height;
}

//===----------------------------------------------------------------------===//
// Which items lie within a stretch of sections
//===----------------------------------------------------------------------===//

namespace {
/// A tree over the points (first, end) of the items, halved by one coordinate
/// and then the other. A node knows the best rank among its items.
class ContainmentTree {
public:
  /// `rank[i]` of item i: lower is better, all differ.
  ContainmentTree(ArrayRef<Item> items, std::vector<uint32_t> rank);

  /// Removes and returns the best item within [first, end), or -1.
  int64_t takeBest(int32_t first, int32_t end);

private:
  static constexpr uint32_t kGone = ~0u;
  static constexpr uint32_t kLeafSize = 8;

  /// A node and the stretch of `points` below it.
  struct Place {
    size_t node;
    uint32_t begin, end;
    bool isLeaf() const { return end - begin <= kLeafSize; }
    uint32_t middle() const { return begin + (end - begin) / 2; }
    Place left() const { return {2 * node + 1, begin, middle()}; }
    Place right() const { return {2 * node + 2, middle(), end}; }
  };
  struct Node {
    int32_t maxFirst = 0, minEnd = 0; // of the items below
    uint32_t best = kGone;            // rank
  };
  struct Query {
    int32_t first, end;
    uint32_t best; // rank found so far
    uint32_t point;
  };
  void build(Place place, bool byFirst);
  void search(Place place, Query &query) const;
  void remove(Place place, uint32_t point);
  void refresh(Place place);

  ArrayRef<Item> items;
  std::vector<uint32_t> rank;   // kGone: taken
  std::vector<uint32_t> points; // items in the order of the leaves
  std::vector<Node> nodes;      // children of k: 2k+1 and 2k+2
};
} // namespace

ContainmentTree::ContainmentTree(ArrayRef<Item> items,
                                 std::vector<uint32_t> rank)
    : items(items), rank(std::move(rank)), points(items.size()) {
  std::iota(points.begin(), points.end(), 0);
  size_t leaves = 1;
  while (leaves * kLeafSize < items.size())
    leaves *= 2;
  nodes.resize(2 * leaves - 1);
  build({0, 0, uint32_t(items.size())}, /*byFirst=*/true);
}

void ContainmentTree::build(Place place, bool byFirst) {
  if (!place.isLeaf()) {
    auto at = [&](uint32_t k) { return points.begin() + k; };
    std::nth_element(at(place.begin), at(place.middle()), at(place.end),
                     [&](uint32_t a, uint32_t b) {
                       int32_t x = byFirst ? items[a].first : items[a].end;
                       int32_t y = byFirst ? items[b].first : items[b].end;
                       return std::tie(x, a) < std::tie(y, b);
                     });
    build(place.left(), !byFirst);
    build(place.right(), !byFirst);
  }
  refresh(place);
}

/// Sets a node from its items or children.
void ContainmentTree::refresh(Place place) {
  Node node{std::numeric_limits<int32_t>::min(),
            std::numeric_limits<int32_t>::max(), kGone};
  if (place.isLeaf()) {
    for (uint32_t k = place.begin; k < place.end; ++k) {
      if (rank[points[k]] == kGone)
        continue;
      node.maxFirst = std::max(node.maxFirst, items[points[k]].first);
      node.minEnd = std::min(node.minEnd, items[points[k]].end);
      node.best = std::min(node.best, rank[points[k]]);
    }
  } else {
    for (size_t child : {place.left().node, place.right().node}) {
      node.maxFirst = std::max(node.maxFirst, nodes[child].maxFirst);
      node.minEnd = std::min(node.minEnd, nodes[child].minEnd);
      node.best = std::min(node.best, nodes[child].best);
    }
  }
  nodes[place.node] = node;
}

void ContainmentTree::search(Place place, Query &query) const {
  const Node &node = nodes[place.node];
  if (node.best >= query.best || node.maxFirst < query.first ||
      node.minEnd > query.end)
    return;
  if (place.isLeaf()) {
    for (uint32_t k = place.begin; k < place.end; ++k) {
      const Item &item = items[points[k]];
      if (rank[points[k]] < query.best && item.first >= query.first &&
          item.end <= query.end) {
        query.best = rank[points[k]];
        query.point = k;
      }
    }
    return;
  }
  bool rightFirst =
      nodes[place.right().node].best < nodes[place.left().node].best;
  search(rightFirst ? place.right() : place.left(), query);
  search(rightFirst ? place.left() : place.right(), query);
}

void ContainmentTree::remove(Place place, uint32_t point) {
  if (place.isLeaf())
    rank[points[point]] = kGone;
  else
    remove(point < place.middle() ? place.left() : place.right(), point);
  refresh(place);
}

int64_t ContainmentTree::takeBest(int32_t first, int32_t end) {
  Place root{0, 0, uint32_t(items.size())};
  Query query{first, end, kGone, 0};
  search(root, query);
  if (query.best == kGone)
    return -1;
  remove(root, query.point);
  return points[query.point];
}

//===----------------------------------------------------------------------===//
// The skyline
//===----------------------------------------------------------------------===//

std::vector<uint32_t> arena::sortItems(const Problem &problem, Order order) {
  ArrayRef<Item> items = problem.items;
  auto key = [&](const Item &item) -> std::pair<double, double> {
    switch (order) {
    case Order::Longest:
      return {item.life, double(item.size)};
    case Order::Widest:
      return {item.end - item.first, double(item.size)};
    case Order::Largest:
      return {double(item.size), item.life};
    case Order::LargestArea:
      return {item.life * double(item.size), item.life};
    }
    return {0, 0};
  };
  std::vector<uint32_t> sorted(items.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::vector<std::pair<double, double>> keys;
  for (const Item &item : items)
    keys.push_back(key(item));
  llvm::sort(sorted, [&](uint32_t a, uint32_t b) {
    return std::tie(keys[b], a) < std::tie(keys[a], b);
  });
  return sorted;
}

namespace {
/// Heights over the sections: stretches of one height, in order.
class Skyline {
public:
  explicit Skyline(int32_t numSections);

  struct Stretch {
    int32_t first, end;
    int64_t height;
    int64_t previous, next; // stretches; -1: none
    bool live = true;
  };
  /// A lowest stretch, wider than all its equals beside it.
  int64_t lowest();
  const Stretch &operator[](int64_t k) const { return stretches[k]; }
  /// Puts [first, end) of stretch k on `height`.
  void split(int64_t k, int32_t first, int32_t end, int64_t height);
  /// To the height of its lower neighbour.
  void raise(int64_t k);

private:
  int64_t add(int32_t first, int32_t end, int64_t height, int64_t previous);
  void absorbNext(int64_t k);
  void push(int64_t k);

  std::vector<Stretch> stretches;
  using Entry = std::pair<int64_t, int64_t>; // height, stretch
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
};
} // namespace

Skyline::Skyline(int32_t numSections) { add(0, numSections, 0, -1); }

void Skyline::push(int64_t k) { queue.push({stretches[k].height, k}); }

int64_t Skyline::add(int32_t first, int32_t end, int64_t height,
                     int64_t previous) {
  int64_t k = stretches.size();
  int64_t next = previous < 0 ? -1 : stretches[previous].next;
  stretches.push_back({first, end, height, previous, next});
  if (previous >= 0)
    stretches[previous].next = k;
  if (next >= 0)
    stretches[next].previous = k;
  push(k);
  return k;
}

void Skyline::absorbNext(int64_t k) {
  int64_t gone = stretches[k].next;
  stretches[gone].live = false;
  stretches[k].end = stretches[gone].end;
  stretches[k].next = stretches[gone].next;
  if (stretches[k].next >= 0)
    stretches[stretches[k].next].previous = k;
}

int64_t Skyline::lowest() {
  for (;;) {
    auto [height, k] = queue.top();
    if (stretches[k].live && stretches[k].height == height)
      break;
    queue.pop();
  }
  int64_t k = queue.top().second;
  auto equal = [&](int64_t other) {
    return other >= 0 && stretches[other].height == stretches[k].height;
  };
  while (equal(stretches[k].next))
    absorbNext(k);
  while (equal(stretches[k].previous)) {
    k = stretches[k].previous;
    absorbNext(k);
  }
  return k;
}

void Skyline::split(int64_t k, int32_t first, int32_t end, int64_t height) {
  int64_t old = stretches[k].height;
  int32_t oldEnd = stretches[k].end;
  int64_t last = k;
  if (first > stretches[k].first) {
    stretches[k].end = first;
    last = add(first, end, height, k);
  } else {
    stretches[k].end = end;
    stretches[k].height = height;
    push(k);
  }
  if (end < oldEnd)
    add(end, oldEnd, old, last);
}

void Skyline::raise(int64_t k) {
  const Stretch &stretch = stretches[k];
  int64_t height = kInfinite;
  for (int64_t other : {stretch.previous, stretch.next})
    if (other >= 0)
      height = std::min(height, stretches[other].height);
  stretches[k].height = height;
  push(k);
}

std::vector<int64_t> arena::fitSkyline(const Problem &problem,
                                       ArrayRef<uint32_t> order) {
  std::vector<uint32_t> rank(order.size());
  for (auto [k, item] : llvm::enumerate(order))
    rank[item] = k;
  std::vector<int64_t> offsets(problem.items.size(), 0);
  ContainmentTree tree(problem.items, std::move(rank));
  Skyline skyline(problem.numSections);
  for (size_t placed = 0; placed < problem.items.size();) {
    int64_t k = skyline.lowest();
    int64_t height = skyline[k].height;
    int64_t i = tree.takeBest(skyline[k].first, skyline[k].end);
    if (i < 0) {
      skyline.raise(k);
      continue;
    }
    const Item &item = problem.items[i];
    offsets[i] = height;
    skyline.split(k, item.first, item.end, height + item.size);
    ++placed;
  }
  return offsets;
}

int64_t arena::costOfFit(const Problem &problem) {
  return problem.items.size() + 1;
}

std::vector<int64_t> arena::fitReordered(const Problem &problem, Order first,
                                         int64_t goal, int64_t &effort) {
  const int64_t costOfPass = costOfFit(problem);
  std::vector<uint32_t> order = sortItems(problem, first);
  std::vector<int64_t> best = fitSkyline(problem, order);
  int64_t height = heightOf(problem, best);
  std::vector<std::pair<uint64_t, uint32_t>> keys(order.size());
  for (uint64_t round = 0; height > goal && effort > costOfPass; ++round) {
    effort -= costOfPass;
    for (auto [k, i] : llvm::enumerate(order)) {
      bool sticksOut = best[i] + problem.items[i].size > goal;
      uint64_t stays = sticksOut ? mixBits(round << 32 ^ i) % 1024 : 1024;
      keys[k] = {k * stays, i};
    }
    llvm::sort(keys);
    std::vector<uint32_t> tried;
    for (auto [key, i] : keys)
      tried.push_back(i);
    std::vector<int64_t> offsets = fitSkyline(problem, tried);
    int64_t found = heightOf(problem, offsets);
    if (found > height)
      continue;
    height = found;
    best = std::move(offsets);
    order = std::move(tried);
  }
  return best;
}
