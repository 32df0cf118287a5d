//===- RematTest.cpp ------------------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory of a choice is that of the program it stands for, written out op
// by op; the front is near the best of all choices, and nowhere slower than
// checkpointing whole layers in the same memory.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/Remat.h"

#include "gtest/gtest.h"
#include <algorithm>
#include <map>
#include <random>

using namespace mlir::zero;

namespace {
/// One op of a program: what it makes, and what it reads.
struct Op {
  int made = -1; ///< node; the copy of node i is i + number of nodes
  std::vector<int> reads;
  int step; ///< of the graph, or the one that it stands before
  bool isStep;
};
} // namespace

/// The program of a choice, without looking at how the library counts.
static std::vector<Op> writeOut(const RematGraph &graph,
                                const RematPoint &point) {
  int count = graph.nodes.size();
  std::vector<Op> program;
  std::map<int, int> nodeAt;
  for (int i = 0; i < count; ++i)
    nodeAt[graph.nodes[i].step] = i;
  auto source = [&](int node, bool backward) {
    return backward && point.recomputed[node] ? node + count : node;
  };
  for (int step = 0; step < graph.numSteps; ++step) {
    for (int i = 0; i < count; ++i)
      if (point.recomputed[i] && point.place[i] == step) {
        Op op{i + count, {}, step, false};
        for (RematUse use : graph.nodes[i].operands)
          op.reads.push_back(source(use.by, true));
        program.push_back(op);
      }
    Op op{-1, {}, step, true};
    if (nodeAt.count(step)) {
      op.made = nodeAt[step];
      for (RematUse use : graph.nodes[op.made].operands)
        op.reads.push_back(use.by);
    }
    for (int i = 0; i < count; ++i)
      for (RematUse use : graph.nodes[i].uses)
        if (use.by == step)
          op.reads.push_back(source(i, true));
    program.push_back(op);
  }
  return program;
}

/// Most bytes alive in the program; fails where something is read too early.
static int64_t peakOf(const RematGraph &graph, const RematPoint &point) {
  std::vector<Op> program = writeOut(graph, point);
  int count = graph.nodes.size();
  std::vector<int> made(2 * count, -1), last(2 * count, -1);
  for (int at = 0; at < int(program.size()); ++at) {
    for (int value : program[at].reads) {
      EXPECT_GE(made[value], 0) << "value " << value << " at " << at;
      last[value] = at;
    }
    if (program[at].made >= 0)
      made[program[at].made] = last[program[at].made] = at;
  }
  int64_t peak = 0;
  for (int at = 0; at < int(program.size()); ++at) {
    int64_t live = 0;
    for (int value = 0; value < 2 * count; ++value)
      if (made[value] >= 0 && made[value] <= at && at <= last[value])
        live += graph.nodes[value % count].bytes;
    for (const RematRange &range : graph.others) {
      bool there = program[at].isStep ? range.first <= program[at].step
                                      : range.first < program[at].step;
      live += there && program[at].step <= range.last ? range.bytes : 0;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

/// Layers of a chain with side branches, and a backward pass in reverse that
/// reads some of what each op read or made.
static RematGraph randomStep(std::mt19937 &random, int layers, int perLayer) {
  auto upTo = [&](int n) { return int(random() % n); };
  RematGraph graph;
  int count = layers * perLayer;
  graph.numSteps = 2 * count + 1;
  for (int i = 0; i < count; ++i) {
    RematNode node;
    node.bytes = 1 + upTo(16);
    node.product = upTo(3) == 0;
    node.seconds = node.product ? 10 + upTo(20) : 1 + upTo(3);
    node.step = node.lastForward = i;
    node.layer = i / perLayer;
    node.pinned = upTo(12) == 0;
    int back = i % perLayer ? 1 + upTo(2) : 1;
    for (int o = std::max(0, i - back); o < i; ++o) {
      node.operands.push_back({o, false});
      graph.nodes[o].lastForward = i;
    }
    graph.nodes.push_back(node);
  }
  for (int i = count; i-- != 0;) {
    int step = 2 * count - i; // the backward op of node i
    for (RematUse use : graph.nodes[i].operands)
      if (upTo(3))
        graph.nodes[use.by].uses.push_back({step, false});
    if (upTo(4) == 0)
      graph.nodes[i].uses.push_back({step, false});
    graph.others.push_back(
        {step, std::min(step + 1, graph.numSteps - 1), graph.nodes[i].bytes});
  }
  for (RematNode &node : graph.nodes)
    std::sort(node.uses.begin(), node.uses.end(),
              [](RematUse a, RematUse b) { return a.by < b.by; });
  return graph;
}

/// The least seconds for each memory, over all choices.
static std::map<int64_t, double> searchAll(const RematGraph &graph) {
  std::map<int64_t, double> best;
  int count = graph.nodes.size();
  for (int bits = 0; bits < 1 << count; ++bits) {
    std::vector<bool> kept;
    for (int i = 0; i < count; ++i)
      kept.push_back(bits >> i & 1);
    RematPoint point = evaluateRemat(graph, kept);
    auto [it, fresh] = best.try_emplace(point.peakBytes, point.seconds);
    it->second = std::min(it->second, point.seconds);
  }
  double least = 1e30; // falling with memory
  for (auto &[bytes, seconds] : best)
    seconds = least = std::min(least, seconds);
  return best;
}

TEST(Remat, MemoryIsThatOfTheProgram) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    RematGraph graph = randomStep(random, 1 + round % 4, 2 + round % 5);
    std::vector<bool> kept;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      kept.push_back(random() % 3);
    RematPoint point = evaluateRemat(graph, kept);
    ASSERT_EQ(point.peakBytes, peakOf(graph, point)) << "round " << round;
    double seconds = 0;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      seconds += point.recomputed[i] ? graph.nodes[i].seconds : 0;
      ASSERT_FALSE(point.recomputed[i] &&
                   (graph.nodes[i].pinned || point.kept[i]));
    }
    ASSERT_DOUBLE_EQ(seconds, point.seconds);
  }
}

TEST(Remat, FrontIsOrderedAndSelectiveRepeatsNoProduct) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    RematGraph graph = randomStep(random, 3, 5);
    RematFront front = rematFront(graph);
    ASSERT_EQ(front.points.front().seconds, 0);
    ASSERT_EQ(front.points.front().peakBytes, rematNone(graph).peakBytes);
    for (size_t i = 1; i < front.points.size(); ++i) {
      ASSERT_LT(front.points[i].peakBytes, front.points[i - 1].peakBytes);
      ASSERT_GE(front.points[i].seconds, front.points[i - 1].seconds);
    }
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      ASSERT_FALSE(front.points[front.selective].recomputed[i] &&
                   graph.nodes[i].product);
  }
}

TEST(Remat, NeverSlowerThanWholeLayersInTheSameMemory) {
  std::mt19937 random(3);
  int faster = 0;
  for (int round = 0; round < 200; ++round) {
    RematGraph graph = randomStep(random, 2 + round % 5, 3 + round % 4);
    RematPoint layers = rematPerLayer(graph);
    RematFront front = rematFront(graph);
    const RematPoint &ours = front.points[front.within(layers.peakBytes)];
    ASSERT_LE(ours.peakBytes, layers.peakBytes);
    ASSERT_LE(ours.seconds, layers.seconds);
    faster += ours.seconds < layers.seconds;
  }
  EXPECT_GT(faster, 150); // else the comparison shows nothing
}

TEST(Remat, NearTheBestOfAllChoices) {
  std::mt19937 random(4);
  double sum = 0, worst = 1;
  int compared = 0;
  for (int round = 0; round < 100; ++round) {
    RematGraph graph = randomStep(random, 2 + round % 2, 4 + round % 2);
    if (graph.nodes.size() > 12)
      continue;
    RematFront front = rematFront(graph);
    for (auto [bytes, seconds] : searchAll(graph)) {
      const RematPoint &ours = front.points[front.within(bytes)];
      if (ours.peakBytes > bytes)
        continue;
      double ratio = (ours.seconds + 1) / (seconds + 1);
      sum += ratio;
      worst = std::max(worst, ratio);
      ++compared;
    }
  }
  RecordProperty("mean", std::to_string(sum / compared));
  RecordProperty("worst", std::to_string(worst));
  EXPECT_GT(compared, 300);
  EXPECT_LT(sum / compared, 1.1);
}

TEST(Remat, EqualInputGivesEqualOutput) {
  std::mt19937 random(5);
  RematGraph graph = randomStep(random, 6, 6);
  RematFront a = rematFront(graph), b = rematFront(graph);
  ASSERT_EQ(a.points.size(), b.points.size());
  for (size_t i = 0; i < a.points.size(); ++i)
    EXPECT_EQ(a.points[i].kept, b.points[i].kept);
}

TEST(Remat, StepWithoutForwardPass) {
  RematFront front = rematFront({});
  EXPECT_EQ(front.points.size(), 1u);
  EXPECT_EQ(front.selective, 0u);
}
