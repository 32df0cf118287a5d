//===- GridTest.cpp - Tests of ranks on grids -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives over some axes of a grid against sums that are written down here
// from the coordinates, and sharded parameters with replicas.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Grid.h"
#include "PlanBuilder.h"

using namespace zrt;
using namespace zrt::test;

namespace {
using Shape = std::vector<uint32_t>;
constexpr int64_t count = 19;

uint32_t product(const Shape &shape) {
  uint32_t ranks = 1;
  for (uint32_t size : shape)
    ranks *= size;
  return ranks;
}

Shape coordinates(const Shape &shape, uint32_t rank) {
  Shape result(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; rank /= shape[axis])
    result[axis] = rank % shape[axis];
  return result;
}

/// Ranks that agree with `rank` on all axes but `axes`, ascending.
Shape groupOf(const Shape &shape, uint32_t rank, Shape axes) {
  Shape group;
  for (uint32_t other = 0; other < product(shape); ++other) {
    Shape a = coordinates(shape, rank), b = coordinates(shape, other);
    for (uint32_t axis : axes)
      b[axis] = a[axis];
    if (a == b || axes.empty())
      group.push_back(other);
  }
  return group;
}

std::vector<float> valuesOf(uint32_t rank) {
  std::vector<float> values = numbers(rank + 1, count);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= (i + rank) % 3 ? 1.0f : 1e4f;
  return values;
}

/// The mean along the innermost axis (`inner` ranks in a row), and of those.
std::vector<float> mean(const Shape &group, uint32_t inner) {
  std::vector<float> result(count, 0.0f);
  for (size_t row = 0; row < group.size(); row += inner) {
    std::vector<float> part = valuesOf(group[row]);
    for (size_t i = 0; i < part.size(); ++i) {
      for (size_t member = 1; member < inner; ++member)
        part[i] += valuesOf(group[row + member])[i];
      part[i] /= float(inner);
      result[i] = row ? result[i] + part[i] : part[i];
    }
  }
  for (float &value : result)
    value /= float(group.size() / inner);
  return result;
}

struct Case {
  Shape shape, axes;
};
const Case cases[] = {
    {{2, 2}, {0}},       {{2, 2}, {1}},    {{2, 2}, {0, 1}},
    {{2, 2}, {}},        {{2, 3}, {0}},    {{2, 3}, {1}},
    {{3, 2}, {0}},       {{3, 2}, {1}},    {{1, 2}, {0}},
    {{2, 1}, {1}},       {{2, 3, 2}, {1}}, {{2, 3, 2}, {0, 2}},
    {{2, 3, 2}, {0, 1}}, {{2, 1, 2}, {2}},
};

PlanBuilder planOf(const Case &one) {
  PlanBuilder plan(product(one.shape));
  plan.program.grid = one.shape;
  return plan;
}

void setValues(Running &running, const Case &one) {
  for (uint32_t rank = 0; rank < product(one.shape); ++rank)
    running.set("x", int(rank), valuesOf(rank));
}

/// Elements of a chunk, then zeros.
std::vector<float> chunk(const std::vector<float> &whole, uint32_t position,
                         int64_t size) {
  std::vector<float> result(size, 0.0f);
  for (int64_t i = 0; i < size; ++i)
    if (position * size + i < count)
      result[i] = whole[position * size + i];
  return result;
}
} // namespace

TEST(Grid, Groups) {
  for (const Case &one : cases) {
    Grid grid(one.shape);
    std::vector<bool> seen(product(one.shape), false);
    for (const Shape &group : grid.groups(one.axes)) {
      EXPECT_EQ(group.size(), grid.groupSize(one.axes));
      for (uint32_t rank : group) {
        EXPECT_EQ(group, groupOf(one.shape, rank, one.axes));
        EXPECT_EQ(rank % grid.shards(), coordinates(one.shape, rank).back());
        EXPECT_FALSE(seen[rank]);
        seen[rank] = true;
      }
    }
  }
}

/// all_reduce on its own stream, reduce_scatter and a gather back over the same
/// axes: all to the bit.
TEST(Grid, Collectives) {
  for (const Case &one : cases) {
    PlanBuilder plan = planOf(one);
    plan.streams(1, 1);
    uint32_t size = Grid(one.shape).groupSize(one.axes);
    int64_t part = (count + size - 1) / size;
    uint32_t x = plan.input("x", {count}), y = plan.buffer("y", {count});
    uint32_t s = plan.buffer("s", {part});
    uint32_t g = plan.buffer("g", {part * size});
    fb::CommandT &reduce =
        plan.collective(fb::Op_AllReduce, x, y, count, count, true);
    reduce.axes = one.axes;
    place(reduce, 1, {}, 0);
    plan.collective(fb::Op_ReduceScatter, x, s, count, part, true).axes =
        one.axes;
    plan.collective(fb::Op_AllGather, s, g, count, part).axes = one.axes;
    for (uint32_t buffer : {y, s, g})
      plan.output(buffer);
    Running running(plan);
    for (int step = 0; step < 2; ++step) {
      setValues(running, one);
      running.step();
    }
    for (uint32_t rank = 0; rank < product(one.shape); ++rank) {
      Shape group = groupOf(one.shape, rank, one.axes);
      uint32_t position =
          std::find(group.begin(), group.end(), rank) - group.begin();
      std::vector<float> expected = mean(
          group,
          one.shape[one.axes.empty() ? one.shape.size() - 1 : one.axes.back()]);
      EXPECT_EQ(running.get(0, rank), expected);
      EXPECT_EQ(running.get(1, rank), chunk(expected, position, part));
      expected.resize(part * size, 0.0f);
      EXPECT_EQ(running.get(2, rank), expected);
    }
    // A rank sends (n-1)/n of the elements in its group of n.
    zrt_counters counters = running.session.counters();
    uint64_t sent = 2 * count * 4 * (size - 1) * product(one.shape) / size;
    EXPECT_EQ(counters.comm_bytes_times_ranks[ZRT_ALL_GATHER], sent);
    EXPECT_EQ(counters.comm_bytes_times_ranks[ZRT_REDUCE_SCATTER], sent);
    EXPECT_EQ(counters.comm_bytes_times_ranks[ZRT_ALL_REDUCE], 2 * sent);
    uint64_t padding =
        2 * (part * size - count) * 4 * (size - 1) * product(one.shape) / size;
    EXPECT_EQ(counters.comm_padding_bytes_times_ranks[ZRT_ALL_GATHER], padding);
  }
}

/// Hybrid sharding: the gradient is scattered in the shard axis, then averaged
/// over the replicas; together that is the mean over all ranks.
TEST(Grid, ScatterThenReduceIsTheMeanOfAll) {
  for (const Shape &shape : {Shape{2, 2}, Shape{2, 3}, Shape{3, 1}}) {
    Case one{shape, {1}};
    PlanBuilder plan = planOf(one);
    int64_t part = (count + shape[1] - 1) / shape[1];
    uint32_t x = plan.input("x", {count}), s = plan.buffer("s", {part});
    plan.collective(fb::Op_ReduceScatter, x, s, count, part, true).axes = {1};
    plan.collective(fb::Op_AllReduce, s, s, part, part, true).axes = {0};
    plan.output(s);
    // The last shards are padded, on each replica.
    uint64_t padding = (part * shape[1] - count) * 4;
    plan.program.buffers[s]->padding_bytes = padding * shape[0];
    Running running(plan);
    setValues(running, one);
    running.step();
    std::vector<float> all = mean(groupOf(shape, 0, {}), shape.back());
    for (uint32_t rank = 0; rank < product(shape); ++rank) {
      std::vector<float> expected = chunk(all, rank % shape[1], part);
      std::vector<float> got = running.get(0, rank);
      EXPECT_EQ(got, expected) << "rank " << rank; // as one all_reduce
    }
    zrt_counters counters = running.session.counters();
    EXPECT_EQ(counters.comm_bytes_times_ranks[ZRT_ALL_REDUCE],
              2 * (shape[0] - 1) * count * 4);
    EXPECT_EQ(counters.comm_padding_bytes_times_ranks[ZRT_ALL_REDUCE],
              2 * (shape[0] - 1) * padding);
  }
}

/// The shard in its place in the whole goes by the coordinate, not the rank.
TEST(Grid, ShardsInPlace) {
  Case one{{2, 2}, {1}};
  PlanBuilder plan = planOf(one);
  uint32_t x = plan.input("x", {count});
  uint32_t whole = plan.buffer("whole", {20});
  uint32_t shard = plan.chunkOf(whole, 10);
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  plan.operand(copy, x);
  plan.operand(copy, whole, 0, {count}, {1});
  plan.collective(fb::Op_ReduceScatter, whole, shard, count, 10, true).axes = {
      1};
  plan.collective(fb::Op_AllGather, shard, whole, count, 10).axes = {1};
  plan.output(whole);
  Running running(plan);
  setValues(running, one);
  running.step();
  for (uint32_t rank = 0; rank < 4; ++rank) {
    std::vector<float> expected = mean(groupOf(one.shape, rank, one.axes), 2);
    expected.push_back(0);
    EXPECT_EQ(running.get(0, rank), expected);
  }
  // Over the other axis a rank's part is not where its shard is.
  plan.program.commands[1]->axes = {0};
  EXPECT_EQ(loadError(plan), "command 1 (reduce_scatter): source whole and "
                             "target whole.chunk overlap, but the shard is not "
                             "at its place in the whole");
}

/// A sharded parameter is set on every replica and read from the first.
TEST(Grid, ShardedParameters) {
  for (const Shape &shape : {Shape{2, 2}, Shape{2, 3}, Shape{3, 1}}) {
    Case one{shape, {1}};
    PlanBuilder plan = planOf(one);
    fb::ParameterT &w = plan.parameter("w", {7, 2}, true);
    int64_t part = w.chunk_rows * 2;
    uint32_t g = plan.buffer("g", {part * shape[1]});
    plan.collective(fb::Op_AllGather, w.buffer, g, 14, part).axes = {1};
    plan.output(g);
    zrt_session_options options = {};
    options.check = 1;
    Running running(plan, options);
    zrt_program_info info = running.program.info();
    EXPECT_EQ(Shape(info.grid, info.grid + info.num_axes), shape);
    EXPECT_EQ(running.program.parameter(0).gathers, 1u);
    std::vector<float> values = numbers(5, 14), got(14);
    ASSERT_FALSE(running.session.setParameter(0, values.data(), 14 * 4));
    running.step();
    ASSERT_FALSE(running.session.getParameter(0, got.data(), 14 * 4));
    EXPECT_EQ(got, values);
    values.resize(part * shape[1], 0.0f);
    for (uint32_t rank = 0; rank < product(shape); ++rank)
      EXPECT_EQ(running.get(0, rank), values);
  }
}

TEST(Grid, CheckFindsReplicasThatDiffer) {
  Case one{{2, 2}, {1}};
  PlanBuilder plan = planOf(one);
  uint32_t x = plan.input("x", {4});
  fb::ParameterT &w = plan.parameter("w", {8}, true, fb::Init_Zeros);
  plan.launch("double4", {x, w.buffer});
  zrt_session_options options = {};
  options.check = 1;
  Running running(plan, options);
  for (int rank = 0; rank < 4; ++rank)
    running.set("x", rank, std::vector<float>(4, float(rank % 2)));
  running.step();
  for (int rank = 0; rank < 4; ++rank)
    running.set("x", rank, std::vector<float>(4, float(rank)));
  EXPECT_EQ(running.session.step().message(),
            "check: parameter w differs between rank 0 and 2");
}
