//===- ShardTest.cpp - Arithmetic of shards -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunks of ceil(d/N) rows: uneven, empty, of one rank.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::zero;

namespace {

TEST(Shard, TenRowsOverFourRanks) {
  EXPECT_EQ(getChunkRows(10, 4), 3);
  EXPECT_EQ(getPaddedRows(10, 4), 12);
  EXPECT_EQ(getRowsOfRank(10, 4, 0), 3);
  EXPECT_EQ(getRowsOfRank(10, 4, 2), 3);
  EXPECT_EQ(getRowsOfRank(10, 4, 3), 1);
}

TEST(Shard, EmptyShards) {
  EXPECT_EQ(getChunkRows(2, 4), 1);
  EXPECT_EQ(getRowsOfRank(2, 4, 1), 1);
  EXPECT_EQ(getRowsOfRank(2, 4, 2), 0);
  EXPECT_EQ(getRowsOfRank(2, 4, 3), 0);
  EXPECT_EQ(getRowsOfRank(9, 4, 3), 0);
}

TEST(Shard, RowsOfAllRanksAreAllRows) {
  for (int64_t ranks = 1; ranks <= 9; ++ranks)
    for (int64_t rows = 1; rows <= 30; ++rows) {
      int64_t sum = 0;
      for (int64_t rank = 0; rank < ranks; ++rank)
        sum += getRowsOfRank(rows, ranks, rank);
      EXPECT_EQ(sum, rows) << rows << " rows over " << ranks;
      EXPECT_LT(getPaddedRows(rows, ranks) - rows, ranks);
    }
}

TEST(Shard, LocalTypeCutsTheDimensionAsked) {
  MLIRContext context;
  context.loadDialect<ZeroDialect>();
  auto full = RankedTensorType::get({10, 7}, Float32Type::get(&context));
  EXPECT_EQ(getLocalType(full, 4).getShape(), (ArrayRef<int64_t>{3, 7}));
  EXPECT_EQ(getLocalType(full, 4, 1).getShape(), (ArrayRef<int64_t>{10, 2}));
  EXPECT_EQ(getLocalType(full, 1), full);
  auto sharded =
      ShardedType::get(full, FlatSymbolRefAttr::get(&context, "dp"), 1);
  EXPECT_EQ(sharded.getLocalType(4), getLocalType(full, 4, 1));
  EXPECT_EQ(getLogicalType(sharded), full);
  EXPECT_EQ(sharded.withMemory(Memory::Host).getMem(), Memory::Host);
}

TEST(Shard, RanksOfAxes) {
  MLIRContext context;
  context.loadDialect<shard::ShardDialect>();
  OpBuilder builder(&context);
  auto grid =
      shard::GridOp::create(builder, builder.getUnknownLoc(), "hsdp",
                            ArrayRef<int64_t>{4, 8, ShapedType::kDynamic});
  EXPECT_EQ(*getRanks(grid, {0}), 4);
  EXPECT_EQ(*getRanks(grid, {0, 1}), 32);
  EXPECT_TRUE(failed(getRanks(grid, {2})));
  EXPECT_TRUE(failed(getRanks(grid, {3})));
  EXPECT_TRUE(failed(getRanks(grid, {-1})));
  grid->erase();
}

TEST(Shard, BytesOfOperandsAndResults) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect>();
  OpBuilder builder(&context);
  auto type = RankedTensorType::get({3, 5}, Float32Type::get(&context));
  Value value = arith::ConstantOp::create(builder, builder.getUnknownLoc(),
                                          builder.getZeroAttr(type));
  auto add =
      arith::AddFOp::create(builder, builder.getUnknownLoc(), value, value);
  EXPECT_EQ(getOperandAndResultBytes(add), 3 * 60);
  add->erase();
  value.getDefiningOp()->erase();
}

} // namespace
