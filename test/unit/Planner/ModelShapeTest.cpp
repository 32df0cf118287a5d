//===- ModelShapeTest.cpp -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers of parameters and flops of known models, as published.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/ModelShape.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::zero;

static ModelShape model(llvm::StringRef name) {
  return llvm::cantFail(findModel(name));
}

TEST(ModelShape, ParametersAsPublished) {
  struct Published {
    llvm::StringLiteral name;
    int64_t seq, params;
  };
  constexpr Published rows[] = {
      {"gpt2", 1024, 124439808},
      {"gpt2-medium", 1024, 354823168},
      {"gpt2-large", 1024, 774030080},
      {"gpt2-xl", 1024, 1557611200},
      {"mpt-125m", 2048, 125311488},
      {"mpt-125m", 65536, 174070272},
      {"mpt-350m", 2048, 355985408},
      {"mpt-760m", 2048, 760470528},
      {"mpt-1b", 2048, 1315950592},
      {"mpt-3b", 2048, 2651837440},
      {"mpt-7b", 2048, 6658859008},
      {"mpt-13b", 2048, 12853954560},
      {"mpt-30b", 2048, 29975214080},
      {"mpt-70b", 2048, 64862437376},
      {"llama2-7b", 4096, 6738415616},
      {"llama2-13b", 4096, 13015864320},
      {"llama2-34b", 4096, 33743970304},
      {"llama2-70b", 4096, 68976648192},
      {"llama3-8b", 8192, 8030261248},
      {"llama3-70b", 8192, 70553706496},
      {"llama3-405b", 8192, 405853388800},
      {"mixtral-8x7b", 4096, 46702792704},
      {"mixtral-8x22b", 4096, 140620634112},
  };
  for (const Published &row : rows)
    EXPECT_EQ(model(row.name).size(row.seq), row.params) << row.name.str();
  EXPECT_EQ(modelNames().size(), 22u);
}

TEST(ModelShape, ExpertsThatAreNotUsedDoNotCount) {
  ModelShape mixtral = model("mixtral-8x7b");
  EXPECT_EQ(mixtral.activeSize(4096), 12879925248);
  EXPECT_EQ(model("llama3-8b").activeSize(8192), model("llama3-8b").size(8192));
}

// Three conventions, as the projects print them (GFLOP a token).
TEST(ModelShape, FlopsPerToken) {
  struct Row {
    llvm::StringLiteral name;
    double torchtitan, palm, megatron, digits;
  };
  constexpr Row rows[] = {{"llama3-8b", 57.91, 61.07, 51.47, 0.005},
                          {"llama3-70b", 481.4, 487.8, 449.2, 0.06},
                          {"llama3-405b", 2625, 2638, 2524, 0.5}};
  for (const Row &row : rows) {
    FlopsPerToken flops = flopsPerToken(model(row.name), 8192);
    EXPECT_NEAR(flops.torchtitan / 1e9, row.torchtitan, row.digits);
    EXPECT_NEAR(flops.palm / 1e9, row.palm, row.digits);
    EXPECT_NEAR(flops.megatron / 1e9, row.megatron, row.digits);
  }
}

TEST(ModelShape, ATiedTableIsAlsoTheHead) {
  ModelShape gpt = model("gpt2");
  FlopsPerToken flops = flopsPerToken(gpt, 1024);
  EXPECT_EQ(flops.palm, flops.torchtitan);
}

TEST(ModelShape, AnUnknownNameSuggestsTheClosest) {
  llvm::Expected<ModelShape> slip = findModel("llama3-80b");
  ASSERT_FALSE(bool(slip));
  EXPECT_THAT(llvm::toString(slip.takeError()),
              testing::HasSubstr("unknown model 'llama3-80b'; did you mean "
                                 "'llama3-8b'?"));
}

TEST(ModelShape, ShapesThatCannotBe) {
  ModelShape shape = model("llama3-8b");
  shape.heads = 3;
  EXPECT_EQ(checkShape(shape),
            "hidden is 4096, heads 3; expected a multiple of heads");
  shape.heads = 32;
  shape.kvHeads = 5;
  EXPECT_EQ(checkShape(shape),
            "heads is 32, kv_heads 5; expected a multiple of kv_heads");
  shape.kvHeads = 8;
  shape.vocab = 0;
  EXPECT_EQ(checkShape(shape), "vocab is 0; expected 1 or more");
}
