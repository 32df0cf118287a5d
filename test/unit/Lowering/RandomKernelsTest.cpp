//===- RandomKernelsTest.cpp - Random numbers -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels draw what a plain Philox draws, which gives the known answers of
// Random123 (tests/kat_vectors); the same numbers however samples are spread
// over calls; and numbers with the right moments.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <array>
#include <cmath>
#include <gtest/gtest.h>

using namespace zero_test;
using Floats = std::vector<float>;
using Words = std::array<uint32_t, 4>;

static Words philox(Words counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t(0xD2511F53) * counter[0];
    uint64_t second = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
               uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

static std::array<uint32_t, 2> split(int64_t number) {
  return {uint32_t(number), uint32_t(uint64_t(number) >> 32)};
}

/// Word `word` that sample `sample` draws.
static uint32_t draw(int64_t key, int64_t sample, int64_t word) {
  auto block = split(word / 4), which = split(sample);
  return philox({block[0], block[1], which[0], which[1]},
                split(key))[word % 4];
}

static float uniform(int64_t key, int64_t sample, int64_t element) {
  return float(draw(key, sample, element) >> 8) * 0x1p-24f;
}

TEST(RandomKernels, KnownAnswersOfPhilox) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomKernels, Key) {
  Kernels kernels(R"(
    func.func @first(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<i64>
        attributes {plan.kernel} {
      %0 = train.random_key %seed, %step site 0
          : (tensor<i64>, tensor<i64>) -> tensor<i64>
      return %0 : tensor<i64>
    }
    func.func @far(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<i64>
        attributes {plan.kernel} {
      %0 = train.random_key %seed, %step site 4000000000
          : (tensor<i64>, tensor<i64>) -> tensor<i64>
      return %0 : tensor<i64>
    })");
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  int64_t seed = 0, step = 0, key = 0;
  kernels.run("first", {&seed, &step, &key});
  EXPECT_EQ(uint64_t(key), 0xe169c58d6627e8d5);
  seed = -7, step = int64_t(3) << 33 | 5;
  kernels.run("far", {&seed, &step, &key});
  Words expected = philox({5, 6, 4000000000, 0}, split(seed));
  EXPECT_EQ(uint64_t(key), uint64_t(expected[1]) << 32 | expected[0]);
}

/// A kernel that draws a tensor of `shape`; `rest` says where its samples are.
static std::string drawing(const std::string &op, const Shape &shape,
                           const std::string &rest, const char *name = "k",
                           const std::string &type = "f32") {
  std::string sizes;
  for (int64_t size : shape)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return substitute(R"(
    func.func @%N%(%key: tensor<i64>, %first: tensor<i64>) -> %R%
        attributes {plan.kernel} {
      %0 = train.random_%OP% %key, %first shape [%S%] type %E% %W%
          : (tensor<i64>, tensor<i64>) -> %R%
      return %0 : %R%
    })",
                    {{"N", name},
                     {"OP", op},
                     {"S", sizes},
                     {"E", type},
                     {"W", rest},
                     {"R", tensorType(shape, type)}});
}

static Floats run(const Kernels &kernels, const char *name, int64_t key,
                  int64_t first, int64_t count) {
  EXPECT_TRUE(kernels.isValid()) << kernels.error();
  Floats values(count);
  if (kernels.isValid())
    kernels.run(name, {&key, &first, values.data()});
  return values;
}

TEST(RandomKernels, ElementsOfSamples) {
  Kernels kernels(
      drawing("uniform", {4, 3, 7}, "samples 4 along 0", "outer") +
      drawing("uniform", {3, 4, 7}, "samples 4 along 1", "inner") +
      drawing("uniform", {12, 7}, "samples 4 along 0", "rows") +
      drawing("uniform", {3, 7}, "", "shared"));
  int64_t key = 0x123456789abcdef0, first = (int64_t(1) << 40) + 3;
  Floats outer = run(kernels, "outer", key, first, 84);
  Floats inner = run(kernels, "inner", key, first, 84);
  Floats shared = run(kernels, "shared", key, first, 21);
  for (int64_t sample = 0; sample < 4; ++sample)
    for (int64_t i = 0; i < 21; ++i) {
      float expected = uniform(key, first + sample, i);
      EXPECT_EQ(outer[sample * 21 + i], expected);
      EXPECT_EQ(inner[(i / 7 * 4 + sample) * 7 + i % 7], expected);
      EXPECT_EQ(shared[i], uniform(key, 0, i));
    }
  EXPECT_EQ(run(kernels, "rows", key, first, 84), outer);
}

/// Samples that are spread over several calls, as over ranks and micro-batches.
TEST(RandomKernels, SamplesMayBeSpread) {
  for (const char *op : {"uniform", "normal"}) {
    Kernels kernels(drawing(op, {8, 33}, "samples 8 along 0", "whole") +
                    drawing(op, {2, 33}, "samples 2 along 0", "part"));
    Floats whole = run(kernels, "whole", 11, 40, 8 * 33), parts;
    for (int64_t first = 40; first < 48; first += 2)
      for (float value : run(kernels, "part", 11, first, 2 * 33))
        parts.push_back(value);
    expectClose(parts, whole, 1e-6);
  }
}

TEST(RandomKernels, NarrowTypesKeepTheUpperBits) {
  Kernels kernels(
      drawing("uniform", {64}, "", "half", "f16") +
      drawing("uniform", {64}, "", "brain", "bf16"));
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  int64_t key = 5, first = 0;
  std::vector<uint16_t> values(64);
  kernels.run("brain", {&key, &first, values.data()});
  for (int64_t i = 0; i < 64; ++i) {
    float number = float(draw(key, 0, i) >> 24) * 0x1p-8f;
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    EXPECT_EQ(values[i], bits >> 16);
  }
  kernels.run("half", {&key, &first, values.data()});
  for (int64_t i = 0; i < 64; ++i)
    EXPECT_LT(values[i], 0x3C00) << "below 1";
}

static double meanOf(const Floats &values) {
  double sum = 0;
  for (float value : values)
    sum += value;
  return sum / double(values.size());
}

static double varianceOf(const Floats &values) {
  double mean = meanOf(values), sum = 0;
  for (float value : values)
    sum += (value - mean) * (value - mean);
  return sum / double(values.size());
}

/// Five standard deviations on each side.
TEST(RandomKernels, MomentsOfTheDistributions) {
  constexpr int64_t n = 1 << 18;
  Kernels kernels(drawing("uniform", {n}, "", "uniform") +
                  drawing("normal", {n}, "", "normal"));
  Floats flat = run(kernels, "uniform", 1, 0, n);
  EXPECT_NEAR(meanOf(flat), 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(varianceOf(flat), 1.0 / 12, 5 * std::sqrt(1.0 / 180 / n));
  std::array<int64_t, 64> counts = {};
  for (float value : flat) {
    ASSERT_TRUE(value >= 0 && value < 1);
    ++counts[size_t(value * 64)];
  }
  double chi = 0;
  for (int64_t count : counts)
    chi += (count - n / 64.0) * (count - n / 64.0) / (n / 64.0);
  EXPECT_NEAR(chi, 63, 5 * std::sqrt(2.0 * 63));

  Floats bell = run(kernels, "normal", 1, 0, n);
  EXPECT_NEAR(meanOf(bell), 0, 5 / std::sqrt(double(n)));
  EXPECT_NEAR(varianceOf(bell), 1, 5 * std::sqrt(2.0 / n));
  double inside = 0, fourth = 0;
  for (float value : bell) {
    inside += std::abs(value) < 1;
    fourth += std::pow(double(value), 4);
  }
  EXPECT_NEAR(inside / n, 0.682689, 5 * std::sqrt(0.2166 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96.0 / n));
}

/// Other keys, and other samples of one key, give numbers of their own.
TEST(RandomKernels, StreamsAreIndependent) {
  constexpr int64_t n = 1 << 16;
  Kernels kernels(drawing("uniform", {1, n}, "samples 1 along 0"));
  auto correlation = [&](const Floats &a, const Floats &b) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += (a[i] - 0.5) * (b[i] - 0.5) * 12;
    return sum / n;
  };
  Floats base = run(kernels, "k", 9, 0, n);
  for (auto [key, first] : {std::pair(10, 0), std::pair(9, 1)})
    EXPECT_NEAR(correlation(base, run(kernels, "k", key, first, n)), 0,
                5 / std::sqrt(double(n)));
  Floats shifted(base.begin() + 1, base.end());
  shifted.push_back(0.5f);
  EXPECT_NEAR(correlation(base, shifted), 0, 5 / std::sqrt(double(n)));
}

TEST(RandomKernels, DropoutDropsWhatUniformSays) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<6x100xf32>, %key: tensor<i64>, %first: tensor<i64>)
        -> tensor<6x100xf32> attributes {plan.kernel} {
      %0 = train.dropout %x, %key, %first ratio 2.5e-01 samples 3 along 0
          : (tensor<6x100xf32>, tensor<i64>, tensor<i64>) -> tensor<6x100xf32>
      return %0 : tensor<6x100xf32>
    })");
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  Floats x = randomFloats(600), y(600);
  int64_t key = 77, first = 5;
  kernels.run("k", {x.data(), &key, &first, y.data()});
  for (int64_t i = 0; i < 600; ++i) {
    bool stays = uniform(key, first + i / 200, i % 200) >= 0.25f;
    EXPECT_FLOAT_EQ(y[i], stays ? x[i] / 0.75f : 0.0f);
  }
}

/// In front of a softmax its rows are computed one by one.
TEST(RandomKernels, DropoutInARowsProducer) {
  auto module = [](const char *use) {
    return substitute(R"(
    func.func @%USE%(%x: tensor<4x5x64xf32>, %key: tensor<i64>,
                     %first: tensor<i64>)
        -> tensor<4x5x64xf32> attributes {plan.kernel} {
      %0 = train.dropout %x, %key, %first ratio 5.0e-01 samples 4 along 0
          : (tensor<4x5x64xf32>, tensor<i64>, tensor<i64>)
          -> tensor<4x5x64xf32>
      %1 = train.%USE% : tensor<4x5x64xf32>
      return %1 : tensor<4x5x64xf32>
    })",
                      {{"USE", use}});
  };
  std::string softmax = module("softmax"), negated = module("neg");
  auto replace = [](std::string &text, const char *from, const char *to) {
    text.replace(text.find(from), std::string(from).size(), to);
  };
  replace(softmax, "train.softmax :", "train.softmax %0 axis 2 :");
  replace(negated, "train.neg :", "train.neg %0 :");
  Kernels kernels(softmax + negated);
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  Floats x = randomFloats(1280), rows(1280), negative(1280);
  int64_t key = 3, first = 9;
  kernels.run("softmax", {x.data(), &key, &first, rows.data()});
  kernels.run("neg", {x.data(), &key, &first, negative.data()});
  for (int64_t row = 0; row < 20; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 64; ++i)
      sum += std::exp(-double(negative[row * 64 + i]));
    for (int64_t i = 0; i < 64; ++i)
      EXPECT_NEAR(rows[row * 64 + i],
                  std::exp(-double(negative[row * 64 + i])) / sum, 1e-5);
  }
}
