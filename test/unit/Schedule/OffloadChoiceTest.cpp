//===- OffloadChoiceTest.cpp --------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order in which things are offloaded, the choices made of it, and their
// words.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/OffloadChoice.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mlir::zero;

namespace {
constexpr int64_t kMiB = 1 << 20;

/// A group of one kind whose copies take `seconds` each way.
OffloadGroup group(OffloadKind kind, std::string unit, int64_t bytes,
                   double seconds) {
  OffloadGroup group;
  group.kind = kind;
  group.unit = unit;
  group.names = {unit + ".w", unit + ".b"};
  group.bytes = bytes;
  group.host.toHost = group.host.toDevice = seconds;
  group.disk = group.host;
  group.disk.diskRead = group.disk.diskWrite = 10 * seconds;
  return group;
}

std::vector<std::string> rulesOf(const OffloadLevel &level) {
  std::vector<std::string> texts;
  for (const OffloadRule &rule : level.rules)
    texts.push_back(printOffloadRule(rule));
  return texts;
}

/// Four layers: states, and parameters that cost four times as much.
OffloadChoices fourLayers() {
  std::vector<OffloadGroup> groups;
  for (int layer = 0; layer != 4; ++layer)
    groups.push_back(group(OffloadKind::Optimizer, "h." + std::to_string(layer),
                           6 * kMiB, 0.1));
  for (int layer = 0; layer != 4; ++layer)
    groups.push_back(group(OffloadKind::Parameters,
                           "h." + std::to_string(layer), 2 * kMiB, 0.15));
  return OffloadChoices(std::move(groups), /*compute=*/1.0, "m, v");
}
} // namespace

TEST(OffloadChoice, FromNothingToEverything) {
  OffloadChoices choices = fourLayers();
  std::optional<OffloadLevel> nothing = choices.level(0, -1, false);
  EXPECT_TRUE(nothing->rules.empty());
  EXPECT_EQ(nothing->deviceBytes, 0);
  int64_t before = -1;
  bool everything = false;
  for (size_t number = 0; number != choices.size() && !everything; ++number) {
    std::optional<OffloadLevel> level = choices.level(number, -1, false);
    EXPECT_GT(level->deviceBytes, before);
    before = level->deviceBytes;
    everything = before == 32 * kMiB;
    if (everything)
      EXPECT_EQ(rulesOf(*level), (std::vector<std::string>{"optimizer=host",
                                                           "parameters=host"}));
  }
  EXPECT_TRUE(everything);
}

// The cheapest per byte first; of equals the last layer, whose gradient is
// complete first.
TEST(OffloadChoice, TheCheapestAndLastGoesFirst) {
  OffloadChoices choices = fourLayers();
  EXPECT_EQ(rulesOf(*choices.level(1, -1, false)),
            std::vector<std::string>{"optimizer@h.3.*=host"});
  bool parameters = false;
  for (size_t number = 0; number != choices.size(); ++number) {
    std::optional<OffloadLevel> level = choices.level(number, -1, false);
    int64_t states = 0, params = 0;
    for (auto [of, memory] :
         llvm::zip_equal(choices.getGroups(), level->memory))
      (of.kind == OffloadKind::Optimizer ? states : params) +=
          memory != Memory::Device;
    if (params > 0 && states > 0)
      EXPECT_EQ(states, 4);
    parameters |= params == 4 && states == 0; // a whole kind, alone
  }
  EXPECT_TRUE(parameters);
}

TEST(OffloadChoice, WholeKindsAreAmongTheChoices) {
  OffloadChoices choices = fourLayers();
  std::vector<std::vector<std::string>> all;
  for (size_t number = 0; number != choices.size(); ++number)
    all.push_back(rulesOf(*choices.level(number, -1, false)));
  for (std::vector<std::string> rules :
       {std::vector<std::string>{"optimizer=host"},
        {"parameters=host"},
        {"optimizer=host", "parameters=host"},
        {}})
    EXPECT_TRUE(llvm::is_contained(all, rules));
}

TEST(OffloadChoice, WhatHostMemoryCannotHoldGoesToDisk) {
  OffloadChoices choices = fourLayers();
  for (size_t number = 0; number != choices.size(); ++number) {
    std::optional<OffloadLevel> level = choices.level(number, 7 * kMiB, true);
    ASSERT_TRUE(level);
    EXPECT_LE(level->hostBytes, 7 * kMiB);
    EXPECT_EQ(level->hostBytes + level->diskBytes, level->deviceBytes);
    std::optional<OffloadLevel> without =
        choices.level(number, 7 * kMiB, false);
    EXPECT_EQ(bool(without), level->deviceBytes <= 7 * kMiB);
  }
}

TEST(OffloadChoice, WordsNameLayers) {
  OffloadChoices choices = fourLayers();
  OffloadLevel level = *choices.level(0, -1, false);
  level.memory[0] = level.memory[1] = level.memory[3] = Memory::Host;
  level.memory[6] = Memory::Disk;
  EXPECT_EQ(choices.describe(level),
            "m, v of layers 0-1, 3; parameters of layer 2 to disk");
  level.deviceBytes = 9 * kMiB;
  level.rules.push_back({});
  EXPECT_EQ(explainOffload(choices, level, 1.03, 1),
            "offloading m, v of layers 0-1, 3; parameters of layer 2 to disk "
            "saves 9.0 MiB, costs 3.0 % of the step");
}

// A rule for a layer must not match another one: "h.1.*" is not in "h.11.w",
// but a unit whose names do not begin with it has rules by name.
TEST(OffloadChoice, PatternsMatchTheirLayerAlone) {
  std::vector<OffloadGroup> groups = {
      group(OffloadKind::Optimizer, "h.1", kMiB, 0.1),
      group(OffloadKind::Optimizer, "h.1.mlp", kMiB, 0.2)};
  groups.push_back(group(OffloadKind::Optimizer, "a*b", kMiB, 0.3));
  groups.back().names = {"a*b.w"};
  OffloadChoices choices(groups, 0);
  std::vector<std::string> seen;
  for (size_t number = 0; number != choices.size(); ++number)
    for (const std::string &rule : rulesOf(*choices.level(number, -1, false)))
      seen.push_back(rule);
  EXPECT_TRUE(llvm::is_contained(seen, "optimizer@h.1.w=host"));
  EXPECT_TRUE(llvm::is_contained(seen, "optimizer@h.1.mlp.*=host"));
  EXPECT_FALSE(llvm::is_contained(seen, "optimizer@h.1.*=host"));
}

TEST(OffloadChoice, EqualInputGivesEqualOutput) {
  std::mt19937 random(7);
  for (int trial = 0; trial != 50; ++trial) {
    std::vector<OffloadGroup> groups;
    for (int i = 0; i != 30; ++i)
      groups.push_back(group(static_cast<OffloadKind>(random() % 4),
                             "u." + std::to_string(i), 1 + random() % 1000,
                             1e-3 * (random() % 100)));
    OffloadChoices a(groups, 1), b(groups, 1);
    ASSERT_EQ(a.size(), b.size());
    for (size_t number = 0; number != a.size(); ++number)
      EXPECT_EQ(a.level(number, 9000, true)->memory,
                b.level(number, 9000, true)->memory);
  }
}
