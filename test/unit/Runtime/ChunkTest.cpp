//===- ChunkTest.cpp - Tests of reading and writing state by pieces -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that checkpoints stream through.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

using namespace zrt;
using namespace zrt::test;

/// What ranks read piece by piece, one after the other, is the whole tensor;
/// what they write that way comes back, with zeros as padding.
TEST(Chunks, PiecesAreTheTensor) {
  for (uint32_t ranks : {1, 2, 3, 8})
    for (int64_t rows : {1, 3, 5, 8}) {
      PlanBuilder plan(ranks);
      plan.parameter("w", {rows, 3}, true);
      plan.output(plan.program.parameters[0]->buffer);
      Running running(plan);
      zrt_parameter_info info = running.program.parameter(0);
      EXPECT_EQ(info.shards, ranks);
      std::vector<float> data = numbers(5, rows * 3), back;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        int64_t begin = std::min<int64_t>(rank * info.chunk_rows, rows) * 3;
        int64_t end = std::min<int64_t>((rank + 1) * info.chunk_rows, rows) * 3;
        for (int64_t at = begin; at < end; ++at) {
          Status failed = running.session.writeChunk(0, rank, (at - begin) * 4,
                                                     &data[at], 4);
          ASSERT_FALSE(failed) << failed.message();
        }
        std::vector<float> own(end - begin + 1);
        Status failed = running.session.readChunk(0, rank, 0, own.data(),
                                                  (end - begin) * 4);
        ASSERT_FALSE(failed) << failed.message();
        back.insert(back.end(), own.begin(), own.end() - 1);
        std::vector<float> padded = running.get(0, rank);
        for (size_t i = end - begin; i < padded.size(); ++i)
          EXPECT_EQ(padded[i], 0.0f);
      }
      EXPECT_EQ(back, data);
      Status step = running.session.step(); // the pieces count as the value
      EXPECT_FALSE(step) << step.message();
    }
}

TEST(Chunks, ReplicasAreOneByOne) {
  PlanBuilder plan(2);
  plan.parameter("w", {2}, false, fb::Init_Ones);
  plan.output(plan.program.parameters[0]->buffer);
  Running running(plan);
  EXPECT_EQ(running.program.parameter(0).shards, 1u);
  float value = 7, other = 0;
  EXPECT_FALSE(running.session.writeChunk(0, 1, 4, &value, 4));
  EXPECT_FALSE(running.session.readChunk(0, 0, 4, &other, 4));
  EXPECT_EQ(other, 1.0f);
  EXPECT_FALSE(running.session.readChunk(0, 1, 4, &other, 4));
  EXPECT_EQ(other, 7.0f);
}

TEST(Chunks, ArgumentErrors) {
  PlanBuilder plan(2);
  plan.parameter("w", {3, 2}, true); // 2 rows and 1 row
  plan.output(plan.program.parameters[0]->buffer);
  Running running(plan);
  float data[8] = {};
  auto error = [&](uint32_t index, uint32_t rank, uint64_t offset,
                   size_t bytes) {
    Status read = running.session.readChunk(index, rank, offset, data, bytes);
    Status wrote = running.session.writeChunk(index, rank, offset, data, bytes);
    EXPECT_EQ(read.code(), ZRT_ERROR_ARGUMENT);
    EXPECT_EQ(read.message(), wrote.message());
    return read.message();
  };
  EXPECT_EQ(error(1, 0, 0, 4), "parameter 1 does not exist: the program has 1");
  EXPECT_EQ(error(0, 2, 0, 4), "parameter w: rank 2 of 2");
  EXPECT_EQ(error(0, 1, 4, 8),
            "parameter w: rank 1 holds 8 bytes, not 8 from byte 4");
  EXPECT_EQ(error(0, 0, ~0ull, 4), "parameter w: rank 0 holds 16 bytes, not 4 "
                                   "from byte 18446744073709551615");
}
