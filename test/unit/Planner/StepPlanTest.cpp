//===- StepPlanTest.cpp -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes and traffic by formula, and how time moves with what it depends on.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/StepPlan.h"
#include "zero/Planner/Search.h"

#include "gtest/gtest.h"

using namespace mlir::zero;

static Machine preset(llvm::StringRef name) {
  return llvm::cantFail(loadMachine(name));
}

static StepPlanner planner(llvm::StringRef model,
                           Machine machine = preset("h100"),
                           llvm::StringRef software = "zero") {
  return StepPlanner(llvm::cantFail(findModel(model)),
                     CostModel(std::move(machine)), *findSoftware(software));
}

// arXiv 1910.02054, table 1: 16 bytes a parameter, in GB.
TEST(StepPlan, StateBytesOfTheStages) {
  struct Row {
    double params;
    int64_t ranks;
    double stage[4];
  };
  constexpr Row rows[] = {
      {7.5e9, 1, {120, 120, 120, 120}},
      {7.5e9, 4, {120, 52.5, 41.25, 30}},
      {7.5e9, 64, {120, 31.40625, 16.640625, 1.875}},
      {128e9, 1024, {2048, 513.5, 257.75, 2}},
      {1e12, 256, {16000, 4046.875, 2054.6875, 62.5}},
  };
  for (const Row &row : rows)
    for (int64_t stage = 0; stage <= 3; ++stage)
      EXPECT_DOUBLE_EQ(
          stateBytes(row.params, row.ranks, stage, Precision::Mixed).total(),
          row.stage[stage] * 1e9);
  // In f32: 4 + 4 + 8.
  EXPECT_DOUBLE_EQ(stateBytes(1e9, 8, 2, Precision::F32).total(),
                   4e9 + 12e9 / 8);
}

TEST(StepPlan, AModelsStateIsTheFormulaWhereRanksDivideIt) {
  StepPlanner llama = planner("llama3-8b");
  for (int64_t stage = 0; stage <= 3; ++stage)
    for (int64_t ranks : {1, 8, 64}) {
      StepConfig config;
      config.stage = stage;
      config.ranks = ranks;
      config.seq = 8192;
      EXPECT_EQ(llama.memory(config).state(),
                stateBytes(8030261248, ranks, stage, Precision::Mixed).total());
    }
}

TEST(StepPlan, ChunksAreRoundedUp) {
  ModelShape shape = llvm::cantFail(findModel("gpt2"));
  StepPlanner gpt(shape, CostModel(preset("h100")), *findSoftware("zero"));
  StepConfig config;
  config.ranks = 7;
  config.seq = 1024;
  int64_t elements = 0;
  for (const ShapeParameter &p : shape.outerParameters(1024))
    elements += (p.dims[0] + 6) / 7 * (p.elements() / p.dims[0]);
  for (const ShapeParameter &p : shape.layerParameters())
    elements +=
        shape.layers * ((p.dims[0] + 6) / 7) * (p.elements() / p.dims[0]);
  EXPECT_EQ(gpt.memory(config).state(), 16 * elements);
}

// Elements sent by one rank: 2 P (N-1)/N, 3 P (N-1)/N, and with accumulation.
TEST(StepPlan, TrafficOfTheStages) {
  StepPlanner llama = planner("llama3-8b");
  const double params = 8030261248.0;
  for (int64_t ranks : {8, 64})
    for (int64_t micro : {1, 4}) {
      StepConfig config;
      config.ranks = ranks;
      config.seq = 8192;
      config.accumulate = micro;
      double part = 2.0 * (ranks - 1) / ranks; // bytes of an element
      auto sent = [&](int64_t stage, int64_t kept = 0) {
        config.stage = stage;
        config.keepLayers = kept;
        return double(llama.traffic(config).total());
      };
      EXPECT_DOUBLE_EQ(sent(0), 2 * params * part);
      EXPECT_DOUBLE_EQ(sent(1), 2 * params * part);
      EXPECT_DOUBLE_EQ(sent(2), (micro + 1) * params * part);
      EXPECT_DOUBLE_EQ(sent(3), micro * 3 * params * part);
      // What stays gathered is sent once less.
      EXPECT_DOUBLE_EQ(sent(3, 32), micro * 2 * params * part);
      sent(3, 5);
      EXPECT_DOUBLE_EQ(sent(3, 5),
                       micro * (3 * params - llama.keptParameters(config)) *
                           part);
    }
}

// torchtitan's benchmark of 12-2024: Llama 3 8B, compiled, GiB reserved.
TEST(StepPlan, MemoryBesideMeasuredRuns) {
  StepPlanner llama = planner("llama3-8b", preset("h100-96"), "fsdp2-compile");
  StepConfig config;
  config.seq = 8192;
  config.batch = 2;
  config.recompute = Recompute::Selective;
  for (auto [ranks, measured] : {std::pair(8, 77.0), std::pair(128, 62.0)}) {
    config.ranks = ranks;
    double gib = llama.memory(config).total() / 1073741824.0;
    EXPECT_NEAR(gib / measured, 1, 0.03) << ranks;
  }
}

TEST(StepPlan, ReplicasReduceShardsAmongThemselves) {
  StepPlanner llama = planner("llama3-8b");
  StepConfig config;
  config.ranks = 64;
  config.replicas = 8;
  config.seq = 8192;
  TrafficParts parts = llama.traffic(config);
  EXPECT_EQ(parts.allReduce, 2 * (8030261248 / 8 / 8 * 7) * 2);
  EXPECT_EQ(llama.memory(config).state(), 16 * (8030261248 / 8));
}

TEST(StepPlan, EveryInputHasAnEffect) {
  Machine machine = preset("h100");
  StepConfig base;
  base.ranks = 64;
  base.seq = 4096;
  double time = planner("llama3-8b").time(base).step;
  auto differs = [&](auto change) {
    Machine other = machine;
    change(other);
    return planner("llama3-8b", other).time(base).step != time;
  };
  EXPECT_TRUE(differs([](Machine &m) { m.peakFlops["bf16"] *= 2; }));
  EXPECT_TRUE(differs([](Machine &m) { m.matmulEfficiency *= 0.9; }));
  EXPECT_TRUE(differs([](Machine &m) { m.memoryBandwidth *= 2; }));
  EXPECT_TRUE(differs([](Machine &m) { m.kernelLatency *= 2; }));
  EXPECT_TRUE(differs([](Machine &m) { m.interNode.bandwidth *= 2; }));
  EXPECT_TRUE(differs([](Machine &m) { m.interNode.latency *= 2; }));
  EXPECT_TRUE(differs([](Machine &m) { m.intraNode.latency *= 2; }));
  EXPECT_TRUE(differs([](Machine &m) { m.ranksPerNode = 4; }));
  for (const char *name :
       {"matmul_half_rows", "matmul_half_dim", "attention_efficiency",
        "overlap_slowdown", "kernel_bandwidth_efficiency"})
    EXPECT_TRUE(differs([&](Machine &m) {
      m.constants[name] = 1.5 * m.constant(name);
    })) << name;
  StepConfig other = base;
  for (auto [field, value] :
       {std::pair(&StepConfig::ranks, 32), std::pair(&StepConfig::replicas, 8),
        std::pair(&StepConfig::stage, 1), std::pair(&StepConfig::seq, 2048),
        std::pair(&StepConfig::batch, 2), std::pair(&StepConfig::accumulate, 2),
        std::pair(&StepConfig::prefetch, 0),
        std::pair(&StepConfig::bucketLayers, 4),
        std::pair(&StepConfig::keepLayers, 32)}) {
    other = base;
    other.*field = value;
    EXPECT_NE(planner("llama3-8b").time(other).step, time) << value;
  }
  for (Recompute recompute : {Recompute::Selective, Recompute::Full}) {
    other = base;
    other.recompute = recompute;
    EXPECT_GT(planner("llama3-8b").time(other).step, time);
    EXPECT_LT(planner("llama3-8b").memory(other).total(),
              planner("llama3-8b").memory(base).total());
  }
}

TEST(StepPlan, BetterMachinesAreNeverSlower) {
  for (llvm::StringRef name : {"a100-80", "h100", "rtx4090-pcie"})
    for (int64_t stage = 0; stage <= 3; ++stage)
      for (int64_t ranks : {8, 64, 512})
        for (llvm::StringRef software : {"zero", "fsdp1", "yafsdp"}) {
          StepConfig config;
          config.ranks = ranks;
          config.stage = stage;
          config.accumulate = 2;
          Machine slow = preset(name), fast = slow;
          double before = planner("mpt-3b", slow, software).time(config).step;
          fast.interNode.bandwidth *= 1.7;
          double network = planner("mpt-3b", fast, software).time(config).step;
          EXPECT_LE(network, before * (1 + 1e-9));
          fast.intraNode.bandwidth *= 1.7;
          fast.memoryBandwidth *= 1.7;
          EXPECT_LE(planner("mpt-3b", fast, software).time(config).step,
                    network * (1 + 1e-9));
        }
}

TEST(StepPlan, MicroBatchesInTheMiddleAreAlike) {
  StepPlanner llama = planner("llama3-8b");
  StepConfig config;
  config.ranks = 64;
  config.accumulate = 7;
  // With events each micro-batch is executed, without only three are.
  std::vector<StepEvent> events;
  TimeParts all = llama.time(config, &events), few = llama.time(config);
  EXPECT_NEAR(all.step, few.step, 1e-9 * all.step);
  EXPECT_NEAR(all.exposed(), few.exposed(), 1e-9 * all.step);
  EXPECT_NEAR(all.compute(), few.compute(), 1e-9 * all.step);
  EXPECT_NEAR(all.gather, few.gather, 1e-9 * all.step);
}

TEST(StepPlan, AStepIsItsParts) {
  for (int64_t stage = 0; stage <= 3; ++stage) {
    StepConfig config;
    config.ranks = 64;
    config.stage = stage;
    TimeParts time = planner("llama3-8b").time(config);
    EXPECT_NEAR(time.step, time.compute() + time.slowdown + time.exposed(),
                1e-9 * time.step);
  }
}

TEST(StepPlan, TimelinesCanBeDrawnAndEndWithTheStep) {
  for (int64_t stage = 0; stage <= 3; ++stage) {
    StepPlanner llama = planner("llama3-8b");
    StepConfig config;
    config.ranks = 64;
    config.stage = stage;
    config.replicas = stage == 3 ? 8 : 1;
    config.bucketLayers = 3; // does not divide 32
    Timeline timeline = predictedTimeline(llama, config, llama.capacity());
    EXPECT_EQ(checkTimeline(timeline), "");
    double end = 0, exposed = 0;
    for (const TimelineSpan &span : timeline.spans) {
      end = std::max(end, span.end);
      exposed += span.exposed;
    }
    EXPECT_NEAR(end, timeline.stepSeconds, 1e-9 * end);
    EXPECT_NEAR(exposed, timeline.exposedSeconds, 1e-6 * end);
    // Everything that is gathered or saved goes away again.
    const TimelineMemory &first = timeline.memory.front(),
                         &last = timeline.memory.back();
    EXPECT_EQ(first.bytes, last.bytes);
    EXPECT_LE(timeline.lowerBound, timeline.plannedPeak);
  }
}

TEST(StepPlan, ConfigurationsThatCannotBe) {
  ModelShape shape = llvm::cantFail(findModel("gpt2"));
  auto with = [&](int64_t StepConfig::*field, int64_t value) {
    StepConfig config;
    config.*field = value;
    return checkConfig(shape, config);
  };
  EXPECT_EQ(with(&StepConfig::stage, 4), "stage is 4; expected 0 to 3");
  EXPECT_EQ(with(&StepConfig::ranks, 0), "ranks is 0; expected 1 to 16777216");
  EXPECT_EQ(with(&StepConfig::keepLayers, 13),
            "keep-layers is 13; expected 0 to 12");
  EXPECT_EQ(with(&StepConfig::replicas, 3),
            "grid has 3 replicas on 8 ranks; expected a divisor of the ranks");
  EXPECT_EQ(checkConfig(shape, StepConfig()), "");
}

// An update by the processor that computes is no gain: where its cores are
// busy, a step takes what all of its channels do.
TEST(StepPlan, WhatOneProcessorDoesTakesItsTime) {
  Machine machine = preset("this-cpu");
  StepConfig config;
  config.ranks = 2;
  config.stage = 2;
  double without = planner("gpt2", machine).time(config).step;
  config.offload.optimizer = {-1, false};
  TimeParts time = planner("gpt2", machine).time(config);
  EXPECT_NEAR(time.step,
              time.compute() + time.gather + time.reduce + time.toHost +
                  time.toDevice + time.host,
              1e-9 * time.step);
  EXPECT_GE(time.step, without);
  machine.constants["processor_cores"] = 0;
  EXPECT_LT(planner("gpt2", machine).time(config).step, 0.999 * time.step);
}
