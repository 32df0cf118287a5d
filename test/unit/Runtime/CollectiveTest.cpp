//===- CollectiveTest.cpp - Tests of collectives --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each collective on 1 to 8 ranks against its definition, bit for bit, with
// uneven and empty shards and in place.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "runtime/core/NarrowFloat.h"

using namespace zrt;
using namespace zrt::test;

namespace {
const uint32_t rankCounts[] = {1, 2, 3, 4, 5, 8};
/// Fewer elements than ranks (empty shards), uneven, even, and more than the
/// block in which the runtime adds.
const int64_t elementCounts[] = {1, 3, 7, 40, 1029, 5003};

/// Input of one rank, in which adding in another order changes bits.
std::vector<float> valuesOf(uint32_t rank, int64_t count) {
  std::vector<float> values = numbers(rank + 1, count);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= (i + rank) % 3 ? 1.0f : 1e4f;
  return values;
}

/// The definition: add in rank order, then divide.
std::vector<float> sum(uint32_t ranks, int64_t count, bool average) {
  std::vector<float> result = valuesOf(0, count);
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    std::vector<float> next = valuesOf(rank, count);
    for (int64_t i = 0; i < count; ++i)
      result[i] += next[i];
  }
  for (float &value : result)
    if (average)
      value /= float(ranks);
  return result;
}

int64_t chunkOf(int64_t count, uint32_t ranks) {
  return (count + ranks - 1) / ranks;
}

void setValues(Running &running, uint32_t ranks, int64_t count) {
  for (uint32_t rank = 0; rank < ranks; ++rank)
    running.set("x", rank, valuesOf(rank, count));
}

/// What a rank's chunk has to be: its elements, then zeros.
std::vector<float> chunk(const std::vector<float> &whole, uint32_t rank,
                         int64_t size) {
  std::vector<float> result(size, 0.0f);
  for (int64_t i = 0; i < size; ++i)
    if (rank * size + i < int64_t(whole.size()))
      result[i] = whole[rank * size + i];
  return result;
}
} // namespace

TEST(Collective, AllReduce) {
  for (uint32_t ranks : rankCounts)
    for (int64_t count : elementCounts)
      for (bool average : {false, true}) {
        PlanBuilder plan(ranks);
        uint32_t x = plan.input("x", {count}), y = plan.buffer("y", {count});
        plan.collective(fb::Op_AllReduce, x, y, count, count, average);
        plan.output(y);
        Running running(plan);
        setValues(running, ranks, count);
        running.step();
        for (uint32_t rank = 0; rank < ranks; ++rank)
          EXPECT_EQ(running.get(0, rank), sum(ranks, count, average))
              << ranks << " ranks, " << count << " elements, rank " << rank;
      }
}

TEST(Collective, AllReduceInPlace) {
  for (uint32_t ranks : rankCounts) {
    PlanBuilder plan(ranks);
    uint32_t x = plan.input("x", {1029});
    plan.collective(fb::Op_AllReduce, x, x, 1029, 1029, true);
    plan.output(x);
    Running running(plan);
    setValues(running, ranks, 1029);
    running.step();
    for (uint32_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(running.get(0, rank), sum(ranks, 1029, true)) << ranks;
  }
}

TEST(Collective, ReduceScatter) {
  for (uint32_t ranks : rankCounts)
    for (int64_t count : elementCounts) {
      PlanBuilder plan(ranks);
      int64_t size = chunkOf(count, ranks);
      uint32_t x = plan.input("x", {count}), y = plan.buffer("y", {size});
      plan.collective(fb::Op_ReduceScatter, x, y, count, size, true);
      plan.output(y);
      zrt_session_options poison = {};
      poison.poison = 1; // so that padding is zero only if it was written
      Running running(plan, poison);
      setValues(running, ranks, count);
      running.step();
      for (uint32_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(running.get(0, rank),
                  chunk(sum(ranks, count, true), rank, size))
            << ranks << " ranks, " << count << " elements, rank " << rank;
    }
}

TEST(Collective, AllGather) {
  for (uint32_t ranks : rankCounts)
    for (int64_t count : elementCounts) {
      PlanBuilder plan(ranks);
      int64_t size = chunkOf(count, ranks);
      uint32_t x = plan.input("x", {size});
      uint32_t y = plan.buffer("y", {int64_t(ranks) * size});
      plan.collective(fb::Op_AllGather, x, y, count, size);
      plan.output(y);
      zrt_session_options poison = {};
      poison.poison = 1;
      Running running(plan, poison);
      std::vector<float> whole = numbers(9, count);
      for (uint32_t rank = 0; rank < ranks; ++rank)
        running.set("x", rank, chunk(whole, rank, size));
      running.step();
      std::vector<float> padded = whole;
      padded.resize(ranks * size, 0.0f);
      for (uint32_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(running.get(0, rank), padded)
            << ranks << " ranks, " << count << " elements, rank " << rank;
    }
}

/// reduce_scatter then all_gather, both with the shard at its place in the
/// whole, is all_reduce to the bit.
TEST(Collective, InPlacePairEqualsAllReduce) {
  for (uint32_t ranks : rankCounts)
    for (int64_t count : elementCounts) {
      PlanBuilder plan(ranks);
      int64_t size = chunkOf(count, ranks);
      uint32_t x = plan.input("x", {count});
      uint32_t reduced = plan.buffer("reduced", {count});
      uint32_t whole = plan.buffer("whole", {int64_t(ranks) * size});
      uint32_t shard = plan.chunkOf(whole, size);
      plan.collective(fb::Op_AllReduce, x, reduced, count, count, true);
      fb::CommandT &copy = plan.command(fb::Op_Copy);
      plan.operand(copy, x);
      plan.operand(copy, whole, 0, {count}, {1});
      plan.collective(fb::Op_ReduceScatter, whole, shard, count, size, true);
      plan.collective(fb::Op_AllGather, shard, whole, count, size);
      plan.output(reduced);
      plan.output(whole);
      Running running(plan);
      setValues(running, ranks, count);
      running.step();
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        std::vector<float> expected = running.get(0, rank);
        EXPECT_EQ(expected, sum(ranks, count, true));
        expected.resize(ranks * size, 0.0f);
        EXPECT_EQ(running.get(1, rank), expected)
            << ranks << " ranks, " << count << " elements, rank " << rank;
      }
    }
}

/// Several tensors in one bucket, f64, and the counters of bytes.
TEST(Collective, BucketAndBytes) {
  const uint32_t ranks = 3;
  PlanBuilder plan(ranks);
  uint32_t a = plan.input("a", {10}), b = plan.input("b", {3}, fb::DType_F64);
  uint32_t sa = plan.buffer("sa", {4});
  uint32_t sb = plan.buffer("sb", {1}, fb::DType_F64);
  uint32_t ga = plan.buffer("ga", {12});
  fb::CommandT &scatter =
      plan.collective(fb::Op_ReduceScatter, a, sa, 10, 4, false);
  auto piece = std::make_unique<fb::PieceT>();
  piece->source = b;
  piece->target = sb;
  piece->elements = 3;
  piece->chunk = 1;
  scatter.pieces.push_back(std::move(piece));
  plan.collective(fb::Op_AllGather, sa, ga, 10, 4);
  plan.collective(fb::Op_AllReduce, b, b, 3, 3, false);
  plan.output(ga);
  plan.output(sb);
  plan.output(b);
  Running running(plan);
  for (int step = 0; step < 2; ++step) {
    running.set("a", ZRT_ALL_RANKS, std::vector<float>(10, 1.0f));
    for (uint32_t rank = 0; rank < ranks; ++rank)
      running.set("b", rank, std::vector<double>{1e-9 + rank, 1, 2});
    running.step();
  }
  std::vector<float> expected(12, 3.0f);
  expected[10] = expected[11] = 0;
  EXPECT_EQ(running.get(0, 2), expected);
  double first = 0;
  for (int rank = 0; rank < 3; ++rank)
    first += 1e-9 + rank;
  EXPECT_EQ(running.get<double>(1, 0), std::vector<double>{first});
  EXPECT_EQ(running.get<double>(2, 1), (std::vector<double>{first, 3, 6}));

  zrt_counters counters = running.session.counters();
  EXPECT_EQ(counters.steps, 2u);
  const uint64_t *bytes = counters.comm_bytes_times_ranks;
  EXPECT_EQ(bytes[ZRT_REDUCE_SCATTER], 2u * 2 * (10 * 4 + 3 * 8));
  EXPECT_EQ(bytes[ZRT_ALL_GATHER], 2u * 2 * 10 * 4);
  EXPECT_EQ(bytes[ZRT_ALL_REDUCE], 2u * 2 * 2 * 3 * 8);
  const uint64_t *padding = counters.comm_padding_bytes_times_ranks;
  EXPECT_EQ(padding[ZRT_REDUCE_SCATTER], 2u * 2 * 2 * 4);
  EXPECT_EQ(padding[ZRT_ALL_GATHER], 2u * 2 * 2 * 4);
  EXPECT_EQ(padding[ZRT_ALL_REDUCE], 0u);
  EXPECT_GT(counters.exposed_comm_ms, 0.0);
  EXPECT_GE(counters.step_ms, counters.exposed_comm_ms);
  running.session.resetCounters();
  EXPECT_EQ(running.session.counters().comm_bytes_times_ranks[ZRT_ALL_GATHER],
            0u);
}

/// No rank writes a source while another still reads it, nor reads one that is
/// not yet complete: each round writes, communicates, and wipes.
TEST(Collective, OrderWithItsNeighbours) {
  const uint32_t ranks = 4;
  const int64_t count = 100000, size = count / ranks, rounds = 10;
  for (fb::Op op : {fb::Op_AllGather, fb::Op_ReduceScatter, fb::Op_AllReduce}) {
    bool gathers = op == fb::Op_AllGather;
    int64_t sourceSize = gathers ? size : count;
    int64_t targetSize = op == fb::Op_ReduceScatter ? size : count;
    PlanBuilder plan(ranks);
    uint32_t x = plan.input("x", {sourceSize});
    uint32_t source = plan.buffer("source", {sourceSize});
    for (int64_t round = 0; round < rounds; ++round) {
      uint32_t target = plan.buffer("target", {targetSize});
      fb::CommandT &copy = plan.command(fb::Op_Copy);
      plan.operand(copy, x);
      plan.operand(copy, source);
      plan.collective(op, source, target, count,
                      op == fb::Op_AllReduce ? count : size);
      plan.operand(plan.command(fb::Op_Fill), source);
      plan.output(target);
    }
    Running running(plan);
    running.set("x", ZRT_ALL_RANKS, std::vector<float>(sourceSize, 1.0f));
    running.step();
    std::vector<float> expected(targetSize, gathers ? 1.0f : float(ranks));
    for (uint32_t round = 0; round < rounds; ++round)
      for (uint32_t rank = 0; rank < ranks; ++rank)
        EXPECT_TRUE(running.get(round, rank) == expected)
            << "operation " << op << ", round " << round << ", rank " << rank;
  }
}

//===----------------------------------------------------------------------===//
// bf16 and f16
//===----------------------------------------------------------------------===//

namespace {
/// Values of one rank whose f32 sums round differently than sums of halves.
template <typename Narrow>
std::vector<Narrow> narrowValues(uint32_t rank, int64_t count) {
  std::vector<Narrow> values(count);
  std::vector<float> wide = valuesOf(rank, count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = Narrow::round(wide[i] * 0.37f);
  return values;
}

/// The ranks' values added in f32 in their order, divided, rounded once.
template <typename Narrow>
std::vector<Narrow> narrowMean(std::vector<std::vector<Narrow>> sources) {
  std::vector<Narrow> result = sources[0];
  for (size_t i = 0; i < result.size(); ++i) {
    float sum = sources[0][i].widen();
    for (size_t rank = 1; rank < sources.size(); ++rank)
      sum += sources[rank][i].widen();
    result[i] = Narrow::round(sum / float(sources.size()));
  }
  return result;
}

template <typename Narrow>
std::vector<uint16_t> bitsOf(const std::vector<Narrow> &values, size_t begin,
                             size_t size) {
  std::vector<uint16_t> bits(size, 0);
  for (size_t i = 0; i < size && begin + i < values.size(); ++i)
    bits[i] = values[begin + i].bits;
  return bits;
}

template <typename Narrow>
void checkNarrow(fb::DType type, uint32_t ranks, int64_t count) {
  PlanBuilder plan(ranks);
  int64_t size = chunkOf(count, ranks);
  uint32_t x = plan.input("x", {count}, type);
  uint32_t all = plan.buffer("all", {count}, type);
  uint32_t own = plan.buffer("own", {size}, type);
  uint32_t whole = plan.buffer("whole", {ranks * size}, type);
  plan.collective(fb::Op_AllReduce, x, all, count, count, true);
  plan.collective(fb::Op_ReduceScatter, x, own, count, size, true);
  plan.collective(fb::Op_AllGather, own, whole, count, size);
  for (uint32_t buffer : {all, own, whole})
    plan.output(buffer);
  Running running(plan);
  std::vector<std::vector<Narrow>> sources;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    sources.push_back(narrowValues<Narrow>(rank, count));
    running.set("x", rank, sources.back());
  }
  running.step();
  std::vector<Narrow> mean = narrowMean(sources);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(running.get<uint16_t>(0, rank), bitsOf(mean, 0, count));
    EXPECT_EQ(running.get<uint16_t>(1, rank), bitsOf(mean, rank * size, size));
    EXPECT_EQ(running.get<uint16_t>(2, rank), bitsOf(mean, 0, ranks * size));
  }
}
} // namespace

TEST(Collective, NarrowFloatsAddInF32AndRoundOnce) {
  for (uint32_t ranks : rankCounts)
    for (int64_t count : elementCounts) {
      checkNarrow<BFloat16>(fb::DType_BF16, ranks, count);
      checkNarrow<Half>(fb::DType_F16, ranks, count);
    }
}

TEST(Collective, NarrowOutputsReadAsNumbers) {
  for (fb::DType type : {fb::DType_BF16, fb::DType_F16}) {
    PlanBuilder plan(2);
    uint32_t x = plan.input("x", {2}, type);
    plan.output(x, fb::AcrossRanks_Mean);
    Running running(plan);
    using Bits = std::vector<uint16_t>; // 1.5 and -2, then 2.5 and -2
    bool half = type == fb::DType_F16;
    running.set("x", 0, half ? Bits{0x3E00, 0xC000} : Bits{0x3FC0, 0xC000});
    running.set("x", 1, half ? Bits{0x4100, 0xC000} : Bits{0x4020, 0xC000});
    running.step();
    double values[2] = {};
    Status failed = running.session.readOutput(0, values, 2);
    ASSERT_FALSE(failed) << failed.message();
    EXPECT_EQ(values[0], 2.0);
    EXPECT_EQ(values[1], -2.0);
  }
}
