//===- StepKernelsTest.cpp - Accumulation, scaling and controls -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of the step's scalars, of sums over micro-batches, and of what every
// update may have besides; the loss scale against sequences that DeepSpeed's
// own class went through (test/unit/Autodiff/data/loss_scales.txt).
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <sstream>

using namespace zero_test;
using Floats = std::vector<float>;

static constexpr int64_t kSize = 37;
static constexpr float kInfinity = std::numeric_limits<float>::infinity();
static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

//===----------------------------------------------------------------------===//
// Scalars of the step
//===----------------------------------------------------------------------===//

TEST(StepKernels, AccumulateWidens) {
  Kernels kernels(R"(
    func.func @k(%s: tensor<4xf32>, %g: tensor<4xbf16>) -> tensor<4xf32>
        attributes {plan.kernel, plan.tied = array<i64: 0>} {
      %0 = train.accumulate %s, %g
          : (tensor<4xf32>, tensor<4xbf16>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    })");
  // A sum that bf16 could not hold.
  Floats sum = {1000, 1, -2, 0};
  std::vector<uint16_t> grad = {0x3f00, 0x3f80, 0x4000, 0xbf80};
  kernels.run("k", {sum.data(), grad.data()});
  EXPECT_EQ(sum, (Floats{1000.5, 2, 0, -1}));
}

TEST(StepKernels, LossSeedAndNextStep) {
  Kernels kernels(R"(
    func.func @seed(%s: tensor<f32>) -> tensor<f32> attributes {plan.kernel} {
      %0 = train.loss_seed scale %s {micro_batches = 4 : i64}
          : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func @third() -> tensor<f32> attributes {plan.kernel} {
      %0 = train.loss_seed {micro_batches = 3 : i64} : () -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func @next(%n: tensor<i64>, %skip: tensor<i1>) -> tensor<i64>
        attributes {plan.kernel} {
      %0 = train.next_step %n, %skip
          : (tensor<i64>, tensor<i1>) -> tensor<i64>
      return %0 : tensor<i64>
    })");
  float scale = 1024, seed = 0, third = 0;
  kernels.run("seed", {&scale, &seed});
  kernels.run("third", {&third});
  EXPECT_EQ(seed, 256.0f);
  EXPECT_EQ(third, float(1.0 / 3));
  int64_t step = 6, next = 0;
  uint8_t skip = 0;
  kernels.run("next", {&step, &skip, &next});
  EXPECT_EQ(next, 7);
  skip = 1;
  kernels.run("next", {&step, &skip, &next});
  EXPECT_EQ(next, 6);
}

namespace {
struct Factor {
  float factor;
  double norm;
  uint8_t overflow;
};
} // namespace

TEST(StepKernels, GradientFactor) {
  Kernels kernels(R"(
    func.func @scaled(%n: tensor<f64>, %s: tensor<f32>)
        -> (tensor<f32>, tensor<f64>, tensor<i1>) attributes {plan.kernel} {
      %0:3 = train.gradient_factor %n scale %s {max_norm = 1.5 : f64}
          : (tensor<f64>, tensor<f32>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
      return %0#0, %0#1, %0#2 : tensor<f32>, tensor<f64>, tensor<i1>
    }
    func.func @plain(%n: tensor<f64>)
        -> (tensor<f32>, tensor<f64>, tensor<i1>) attributes {plan.kernel} {
      %0:3 = train.gradient_factor %n
          : (tensor<f64>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
      return %0#0, %0#1, %0#2 : tensor<f32>, tensor<f64>, tensor<i1>
    })");
  auto scaled = [&](double sum, float scale) {
    Factor f;
    kernels.run("scaled", {&sum, &scale, &f.factor, &f.norm, &f.overflow});
    return f;
  };
  // Norm 3 over 1.5: halved, and the scale of 8 is taken back.
  Factor f = scaled(64.0 * 9, 8);
  EXPECT_EQ(f.norm, 3.0);
  EXPECT_EQ(f.factor, float(1.5 / (3.0 + 1e-6) / 8));
  EXPECT_EQ(f.overflow, 0);
  // Below the largest norm only the scale is taken back.
  EXPECT_EQ(scaled(64.0, 8).factor, 0.125f);
  EXPECT_EQ(scaled(0, 8).factor, 0.125f);
  for (double sum : {double(kInfinity), double(kNaN)}) {
    EXPECT_EQ(scaled(sum, 8).overflow, 1);
    float factor;
    double norm;
    uint8_t overflow;
    kernels.run("plain", {&sum, &factor, &norm, &overflow});
    EXPECT_EQ(overflow, 1);
    EXPECT_EQ(factor, 1.0f);
  }
}

//===----------------------------------------------------------------------===//
// The loss scale
//===----------------------------------------------------------------------===//

namespace {
/// A line of the table: settings, then a letter a step.
struct Sequence {
  float initial;
  int64_t window, hysteresis;
  int consecutive;
  double least;
  std::string letters;

  std::string settings() const;
};

/// What train.update_loss_scale keeps.
struct LossScale {
  float scale;
  int64_t left, iteration = 0, last = -1;
};
} // namespace

std::string Sequence::settings() const {
  std::ostringstream text;
  text << "window = " << window << " : i64, hysteresis = " << hysteresis
       << " : i64, min_scale = " << std::scientific << least << " : f64"
       << (consecutive ? ", consecutive_hysteresis" : "");
  return text.str();
}

/// "3.h" is "...h".
static std::string unpack(const std::string &packed) {
  std::string letters;
  size_t count = 0;
  for (char c : packed) {
    if (isdigit(c)) {
      count = count * 10 + (c - '0');
      continue;
    }
    letters.append(std::max<size_t>(count, 1), c);
    count = 0;
  }
  return letters;
}

static std::vector<Sequence> readSequences() {
  std::ifstream file(ZERO_AUTODIFF_DATA "/loss_scales.txt");
  std::vector<Sequence> sequences;
  Sequence s;
  std::string packed;
  while (file >> s.initial >> s.window >> s.hysteresis >> s.consecutive >>
         s.least >> packed) {
    s.letters = unpack(packed);
    sequences.push_back(s);
  }
  return sequences;
}

/// Runs one sequence; the number of steps whose result differs.
static int run(const Kernels &kernels, const std::string &name,
               const Sequence &sequence) {
  LossScale now{sequence.initial, sequence.hysteresis};
  int wrong = 0;
  for (char letter : sequence.letters) {
    LossScale next{};
    uint8_t overflow = strchr("h-!", letter) != nullptr, exhausted = 0;
    kernels.run(name, {&now.scale, &now.left, &now.iteration, &now.last,
                       &overflow, &next.scale, &next.left, &next.iteration,
                       &next.last, &exhausted});
    float expected = now.scale;
    if (letter == '+')
      expected *= 2;
    if (letter == '-')
      expected = std::max(expected / 2, float(sequence.least));
    wrong += next.scale != expected || exhausted != (letter == '!');
    now = next;
  }
  return wrong;
}

/// Runs all sequences, each of which says when the scale ends.
static void checkSequences(const std::vector<Sequence> &sequences) {
  std::map<std::string, std::string> names;
  std::string text;
  for (const Sequence &sequence : sequences) {
    auto [name, isNew] = names.try_emplace(sequence.settings(),
                                           "k" + std::to_string(names.size()));
    if (isNew)
      text += substitute(R"(
        func.func @%NAME%(%s: tensor<f32>, %h: tensor<i64>, %i: tensor<i64>,
                          %l: tensor<i64>, %o: tensor<i1>)
            -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
            attributes {plan.kernel} {
          %0:5 = train.update_loss_scale %s, %h, %i, %l, %o {%SETTINGS%}
              : (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
              -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
          return %0#0, %0#1, %0#2, %0#3, %0#4
              : tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>
        })",
                         {{"NAME", name->second}, {"SETTINGS", name->first}});
  }
  Kernels kernels(text);
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  for (size_t i = 0; i < sequences.size(); ++i)
    EXPECT_EQ(run(kernels, names[sequences[i].settings()], sequences[i]), 0)
        << "line " << i + 1;
}

TEST(StepKernels, LossScaleFollowsDeepSpeed) {
  std::vector<Sequence> sequences = readSequences();
  ASSERT_EQ(sequences.size(), 1000u);
  checkSequences(sequences);
}

/// The scale is f32: it gets as low as the least one as f32 has it.
TEST(StepKernels, LeastLossScaleIsRounded) {
  checkSequences({{0.3f, 5, 1, 0, 0.1, "--!!"},
                  {8, 5, 1, 0, 0.1, "-------!"},
                  {8, 5, 1, 0, 0.3, "-----!"},
                  {0.004f, 5, 2, 0, 1e-3, "h--!"},
                  {4e30f, 5, 1, 0, 1e30, "--!"}});
}

//===----------------------------------------------------------------------===//
// Controls of updates
//===----------------------------------------------------------------------===//

/// AdamW with all controls ("all") and without any ("none").
static std::string getAdamKernels() {
  return substitute(R"(
    func.func @all(%p: %T%, %g: %T%, %m: %T%, %v: %T%, %lr: tensor<f32>,
                   %s: tensor<i64>, %f: tensor<f32>, %skip: tensor<i1>,
                   %b: tensor<f64>) -> (%T%, %T%, %T%)
        attributes {plan.kernel, plan.tied = array<i64: 0, 2, 3>} {
      %0:3 = train.adamw %p, %g, %m, %v, %lr, %s scale %f skip %skip momentum %b
          {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
           weight_decay = 0.01 : f64, clip_value = 0.25 : f64}
          : (%T%, %T%, %T%, %T%, tensor<f32>, tensor<i64>, tensor<f32>,
             tensor<i1>, tensor<f64>) -> (%T%, %T%, %T%)
      return %0#0, %0#1, %0#2 : %T%, %T%, %T%
    }
    func.func @none(%p: %T%, %g: %T%, %m: %T%, %v: %T%, %lr: tensor<f32>,
                    %s: tensor<i64>) -> (%T%, %T%, %T%)
        attributes {plan.kernel, plan.tied = array<i64: 0, 2, 3>} {
      %0:3 = train.adamw %p, %g, %m, %v, %lr, %s
          {beta1 = 0.75 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
           weight_decay = 0.01 : f64}
          : (%T%, %T%, %T%, %T%, tensor<f32>, tensor<i64>) -> (%T%, %T%, %T%)
      return %0#0, %0#1, %0#2 : %T%, %T%, %T%
    })",
                    {{"T", tensorType({kSize})}});
}

namespace {
struct AdamState {
  Floats p = randomFloats(kSize), m = randomFloats(kSize, -1, 1, 2),
         v = randomFloats(kSize, 0, 1, 3);
  bool operator==(const AdamState &other) const {
    return p == other.p && m == other.m && v == other.v;
  }
};
} // namespace

// Scaled and clamped, with another beta1: as if the gradient and the attribute
// had been these from the start.
TEST(StepKernels, AdamControls) {
  Kernels kernels(getAdamKernels());
  Floats g = randomFloats(kSize, -4, 4, 5), clipped = g;
  float lr = 0.01f, factor = 0.125f;
  double beta1 = 0.75;
  int64_t step = 3;
  uint8_t skip = 0;
  for (float &x : clipped)
    x = std::min(std::max(x * factor, -0.25f), 0.25f);
  AdamState a, b;
  kernels.run("all", {a.p.data(), g.data(), a.m.data(), a.v.data(), &lr, &step,
                      &factor, &skip, &beta1});
  kernels.run("none",
              {b.p.data(), clipped.data(), b.m.data(), b.v.data(), &lr, &step});
  EXPECT_EQ(a, b);
}

TEST(StepKernels, ASkippedUpdateChangesNothing) {
  Kernels kernels(getAdamKernels());
  Floats g(kSize, kNaN);
  g[1] = kInfinity;
  float lr = 0.01f, factor = kNaN;
  double beta1 = 0.75;
  int64_t step = 1;
  uint8_t skip = 1;
  AdamState a;
  kernels.run("all", {a.p.data(), g.data(), a.m.data(), a.v.data(), &lr, &step,
                      &factor, &skip, &beta1});
  EXPECT_EQ(a, AdamState());
}

// The clamp keeps what is no number, so that it is not hidden.
TEST(StepKernels, ClampKeepsNaN) {
  Kernels kernels(getAdamKernels());
  Floats g(kSize, kNaN);
  float lr = 0.01f, factor = 1;
  double beta1 = 0.75;
  int64_t step = 1;
  uint8_t skip = 0;
  AdamState a;
  kernels.run("all", {a.p.data(), g.data(), a.m.data(), a.v.data(), &lr, &step,
                      &factor, &skip, &beta1});
  EXPECT_TRUE(std::isnan(a.p[0]));
}

TEST(StepKernels, AdamWithoutBiasCorrection) {
  Kernels kernels(R"(
    func.func @k(%p: tensor<2xf32>, %g: tensor<2xf32>, %m: tensor<2xf32>,
                 %v: tensor<2xf32>, %lr: tensor<f32>, %s: tensor<i64>)
        -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
        attributes {plan.kernel, plan.tied = array<i64: 0, 2, 3>} {
      %0:3 = train.adam %p, %g, %m, %v, %lr, %s
          {beta1 = 0.5 : f64, beta2 = 0.75 : f64, epsilon = 0.5 : f64,
           weight_decay = 0.0 : f64, no_bias_correction}
          : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>,
             tensor<f32>, tensor<i64>)
          -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
      return %0#0, %0#1, %0#2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    })");
  Floats p = {1, 2}, g = {2, -4}, m = {0, 0}, v = {0, 0};
  float lr = 0.5f;
  int64_t step = 1;
  kernels.run("k", {p.data(), g.data(), m.data(), v.data(), &lr, &step});
  // m = g / 2, v = g * g / 4: m / (sqrt(v) + 0.5).
  expectClose(p, {1 - 0.5f * 1 / 1.5f, 2 + 0.5f * 2 / 2.5f});
}

TEST(StepKernels, SgdControls) {
  Kernels kernels(R"(
    func.func @k(%p: tensor<3xf32>, %g: tensor<3xf32>, %m: tensor<3xf32>,
                 %lr: tensor<f32>, %f: tensor<f32>, %skip: tensor<i1>,
                 %b: tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
        attributes {plan.kernel, plan.tied = array<i64: 0, 2>} {
      %0:2 = train.sgd %p, %g, %m, %lr scale %f skip %skip momentum %b
          {momentum = 0.9 : f64, clip_value = 1.0 : f64}
          : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>,
             tensor<f32>, tensor<i1>, tensor<f32>)
          -> (tensor<3xf32>, tensor<3xf32>)
      return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>
    })");
  Floats p = {1, 1, 1}, g = {1, -8, kNaN}, m = {2, 2, 2};
  float lr = 0.5f, factor = 0.5f, momentum = 0.25f;
  uint8_t skip = 0;
  kernels.run("k",
              {p.data(), g.data(), m.data(), &lr, &factor, &skip, &momentum});
  expectClose(m, {1.0f, -0.5f, kNaN});
  expectClose(p, {0.5f, 1.25f, kNaN});
  Floats before = {3, 4, 5};
  p = m = before;
  skip = 1;
  kernels.run("k",
              {p.data(), g.data(), m.data(), &lr, &factor, &skip, &momentum});
  EXPECT_EQ(p, before);
  EXPECT_EQ(m, before);
}
