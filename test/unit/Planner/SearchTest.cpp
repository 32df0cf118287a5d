//===- SearchTest.cpp -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The best plan is the best of all, and none that does not fit is ranked.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/Search.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::zero;

static StepPlanner planner(llvm::StringRef model, llvm::StringRef machine) {
  return StepPlanner(llvm::cantFail(findModel(model)),
                     CostModel(llvm::cantFail(loadMachine(machine))),
                     *findSoftware("zero"));
}

static SearchSpace space(const StepPlanner &planner, int64_t ranks) {
  SearchSpace space;
  space.base.ranks = ranks;
  space.memoryBytes = planner.capacity();
  return space;
}

TEST(Search, PlansFitAndAreInOrder) {
  StepPlanner llama = planner("llama3-8b", "h100");
  SearchResult result = searchPlans(llama, space(llama, 64));
  ASSERT_FALSE(result.plans.empty());
  EXPECT_LE(result.timed, result.tried);
  for (size_t i = 0; i != result.plans.size(); ++i) {
    const RankedPlan &plan = result.plans[i];
    EXPECT_LE(plan.estimate.memory.total(), llama.capacity());
    EXPECT_EQ(plan.estimate.memory.total(), llama.memory(plan.config).total());
    EXPECT_EQ(plan.estimate.time.step, llama.time(plan.config).step);
    if (i > 0) {
      EXPECT_GE(result.plans[i - 1].tokensPerSecond, plan.tokensPerSecond);
    }
  }
}

TEST(Search, WhatIsFixedStays) {
  StepPlanner llama = planner("llama3-8b", "h100");
  SearchSpace fixed = space(llama, 64);
  fixed.stage = 3;
  fixed.batch = 2;
  fixed.replicas = 8;
  fixed.recompute = Recompute::Full;
  SearchResult result = searchPlans(llama, fixed);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_LE(result.plans[0].tokensPerSecond,
            searchPlans(llama, space(llama, 64)).plans[0].tokensPerSecond);
  for (const RankedPlan &plan : result.plans) {
    EXPECT_EQ(plan.config.stage, 3);
    EXPECT_EQ(plan.config.batch, 2);
    EXPECT_EQ(plan.config.replicas, 8);
    EXPECT_EQ(plan.config.recompute, Recompute::Full);
  }
}

TEST(Search, AGlobalBatchIsKept) {
  StepPlanner llama = planner("llama3-8b", "h100");
  SearchSpace fixed = space(llama, 64);
  fixed.globalBatch = 64 * 12;
  SearchResult result = searchPlans(llama, fixed);
  ASSERT_FALSE(result.plans.empty());
  for (const RankedPlan &plan : result.plans)
    EXPECT_EQ(plan.config.batch * plan.config.accumulate, 12);
  fixed.globalBatch = 65;
  EXPECT_EQ(searchPlans(llama, fixed).tried, 0);
}

TEST(Search, MoreMemoryIsNeverSlower) {
  StepPlanner llama = planner("llama3-8b", "h100");
  double before = 0;
  for (int64_t gib : {20, 30, 40, 60, 80, 120}) {
    SearchSpace limited = space(llama, 64);
    limited.memoryBytes = gib << 30;
    SearchResult result = searchPlans(llama, limited);
    double now = result.plans.empty() ? 0 : result.plans[0].tokensPerSecond;
    EXPECT_GE(now, before) << gib;
    before = now;
  }
  EXPECT_GT(before, 0);
}

TEST(Search, NothingFits) {
  StepPlanner llama = planner("llama3-405b", "rtx4090-pcie");
  SearchResult result = searchPlans(llama, space(llama, 8));
  EXPECT_TRUE(result.plans.empty());
  EXPECT_EQ(result.timed, 0);
  EXPECT_GT(result.smallestMemory.total(), llama.capacity());
  std::vector<std::string> ways =
      waysToFit(llama, result.smallest, llama.capacity());
  for (const std::string &way : ways)
    EXPECT_THAT(way, testing::HasSubstr("ranks needs"));
}

TEST(Search, WaysToFitDoFit) {
  StepPlanner llama = planner("llama3-8b", "h100");
  StepConfig config;
  config.stage = 0;
  config.batch = 1;
  config.ranks = 64;
  std::vector<std::string> ways = waysToFit(llama, config, llama.capacity());
  ASSERT_FALSE(ways.empty());
  EXPECT_THAT(ways[0], testing::StartsWith("stage 1 needs "));
}

TEST(Search, LimitsAreSaidInNumbers) {
  StepPlanner slow = planner("llama2-7b", "rtx4090-pcie");
  StepConfig config;
  config.ranks = 64;
  config.recompute = Recompute::Full;
  StepEstimate estimate = slow.estimate(config);
  std::vector<std::string> notes =
      explainStep(slow, config, estimate, slow.capacity());
  EXPECT_THAT(notes[0], testing::StartsWith("Communication limits the step"));
  EXPECT_THAT(notes[1], testing::HasSubstr("samples would hide it"));
  EXPECT_THAT(notes.back(), testing::StartsWith("Memory: "));
}
