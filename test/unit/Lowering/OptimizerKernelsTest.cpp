//===- OptimizerKernelsTest.cpp - Optimizer updates in place --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Several steps of the optimizers against PyTorch's formulas in f64, and
// the sum of squares.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace zero_test;
using Floats = std::vector<float>;

static constexpr int64_t kSize = 259;

namespace {
struct SgdCase {
  double momentum, dampening, decay;
  bool nesterov;
};
} // namespace

static void testSgd(const SgdCase &c) {
  bool buffer = c.momentum != 0, step = c.dampening != 0;
  std::string operands = "%p, %g", types = "%T%, %T%", results = "%T%";
  if (buffer) {
    operands += ", %m";
    types += ", %T%";
    results += ", %T%";
  }
  operands += ", %lr";
  types += ", tensor<f32>";
  if (step) {
    operands += ", %s";
    types += ", tensor<i64>";
  }
  Kernels kernels(substitute(
      R"(
    func.func @k(%p: %T%, %g: %T%, %m: %T%, %lr: tensor<f32>, %s: tensor<i64>)
        -> (%RESULTS%) attributes {plan.kernel, plan.tied = array<i64: %TIED%>} {
      %0%N% = train.sgd %OPERANDS%
          {momentum = %MOMENTUM% : f64, dampening = %DAMPENING% : f64,
           weight_decay = %DECAY% : f64 %NESTEROV%}
          : (%TYPES%) -> (%RESULTS%)
      return %VALUES% : %RESULTS%
    })",
      {{"OPERANDS", operands},
       {"TYPES", types},
       {"RESULTS", results},
       {"VALUES", buffer ? "%0#0, %0#1" : "%0"},
       {"N", buffer ? ":2" : ""},
       {"TIED", buffer ? "0, 2" : "0"},
       {"T", tensorType({kSize})},
       {"MOMENTUM", std::to_string(c.momentum)},
       {"DAMPENING", std::to_string(c.dampening)},
       {"DECAY", std::to_string(c.decay)},
       {"NESTEROV", c.nesterov ? ", nesterov" : ""}}));
  Floats p = randomFloats(kSize), m(kSize), lr = {0.1f};
  std::vector<double> ep(p.begin(), p.end()), em(kSize);
  for (int64_t s = 1; s <= 3; ++s) {
    Floats g = randomFloats(kSize, -1, 1, s);
    for (int64_t i = 0; i < kSize; ++i) {
      double grad = g[i] + c.decay * ep[i];
      em[i] = s == 1 ? grad : c.momentum * em[i] + (1 - c.dampening) * grad;
      if (buffer)
        grad = c.nesterov ? grad + c.momentum * em[i] : em[i];
      ep[i] -= double(lr[0]) * grad;
    }
    kernels.run("k", {p.data(), g.data(), m.data(), lr.data(), &s});
    expectClose(p, Floats(ep.begin(), ep.end()), 1e-6);
    if (buffer)
      expectClose(m, Floats(em.begin(), em.end()), 1e-6);
  }
}

TEST(OptimizerKernels, Sgd) { testSgd({0, 0, 0, false}); }
TEST(OptimizerKernels, SgdMomentum) { testSgd({0.9, 0, 0.01, false}); }
TEST(OptimizerKernels, SgdNesterov) { testSgd({0.9, 0, 0, true}); }
TEST(OptimizerKernels, SgdDampening) { testSgd({0.9, 0.5, 0, false}); }

static void testAdam(bool decoupled, double beta1, double decay) {
  Kernels kernels(substitute(
      R"(
    func.func @k(%p: %T%, %g: %T%, %m: %T%, %v: %T%, %lr: tensor<f32>,
                 %s: tensor<i64>) -> (%T%, %T%, %T%)
        attributes {plan.kernel, plan.tied = array<i64: 0, 2, 3>} {
      %0:3 = train.%OP% %p, %g, %m, %v, %lr, %s
          {beta1 = %BETA1% : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
           weight_decay = %DECAY% : f64}
          : (%T%, %T%, %T%, %T%, tensor<f32>, tensor<i64>) -> (%T%, %T%, %T%)
      return %0#0, %0#1, %0#2 : %T%, %T%, %T%
    })",
      {{"OP", decoupled ? "adamw" : "adam"},
       {"T", tensorType({kSize})},
       {"BETA1", std::to_string(beta1)},
       {"DECAY", std::to_string(decay)}}));
  Floats p = randomFloats(kSize), m(kSize), v(kSize), lr = {1e-2f};
  std::vector<double> ep(p.begin(), p.end()), em(kSize), ev(kSize);
  for (int64_t s = 1; s <= 4; ++s) {
    Floats g = randomFloats(kSize, -1, 1, s);
    double root = std::sqrt(1 - std::pow(0.999, s));
    double size = double(lr[0]) / (1 - std::pow(beta1, s));
    for (int64_t i = 0; i < kSize; ++i) {
      double grad = g[i];
      if (decoupled)
        ep[i] *= 1 - double(lr[0]) * decay;
      else
        grad += decay * ep[i];
      em[i] += (grad - em[i]) * (1 - beta1);
      ev[i] = 0.999 * ev[i] + 0.001 * grad * grad;
      ep[i] -= size * em[i] / (std::sqrt(ev[i]) / root + 1e-8);
    }
    kernels.run("k", {p.data(), g.data(), m.data(), v.data(), lr.data(), &s});
    expectClose(p, Floats(ep.begin(), ep.end()), 2e-6);
    expectClose(m, Floats(em.begin(), em.end()), 1e-6);
    expectClose(v, Floats(ev.begin(), ev.end()), 1e-6);
  }
}

TEST(OptimizerKernels, Adam) { testAdam(false, 0.9, 0.01); }
TEST(OptimizerKernels, AdamW) { testAdam(true, 0.9, 0.01); }
TEST(OptimizerKernels, AdamWWithSmallBeta) { testAdam(true, 0.25, 0); }

// From step 0 on, which is not corrected.
TEST(OptimizerKernels, AdamHat) {
  Kernels kernels(substitute(
      R"(
    func.func @k(%p: %T%, %g: %T%, %m: %T%, %v: %T%, %lr: tensor<f32>,
                 %s: tensor<i64>) -> (%T%, %T%, %T%)
        attributes {plan.kernel, plan.tied = array<i64: 0, 2, 3>} {
      %0:3 = train.adam_hat %p, %g, %m, %v, %lr, %s
          {beta1 = 0.75 : f64, beta2 = 0.875 : f64, epsilon = 0.0625 : f64,
           weight_decay = 0.125 : f64, decoupled_decay = 0.25 : f64,
           final_decay = 0.03125 : f64}
          : (%T%, %T%, %T%, %T%, tensor<f32>, tensor<i64>) -> (%T%, %T%, %T%)
      return %0#0, %0#1, %0#2 : %T%, %T%, %T%
    })",
      {{"T", tensorType({kSize})}}));
  Floats p = randomFloats(kSize), m(kSize), v(kSize), lr = {1e-2f};
  std::vector<double> ep(p.begin(), p.end()), em(kSize), ev(kSize);
  for (int64_t s = 0; s < 4; ++s) {
    Floats g = randomFloats(kSize, -1, 1, s + 1);
    double rate = lr[0];
    if (s > 0)
      rate *= std::sqrt(1 - std::pow(0.875, s)) / (1 - std::pow(0.75, s));
    for (int64_t i = 0; i < kSize; ++i) {
      double grad = g[i] + 0.125 * ep[i];
      em[i] = 0.75 * em[i] + 0.25 * grad;
      ev[i] = 0.875 * ev[i] + 0.125 * grad * grad;
      ep[i] -= rate * em[i] / (std::sqrt(ev[i]) + 0.0625);
      ep[i] *= 1 - double(lr[0]) * 0.25 - 0.03125;
    }
    kernels.run("k", {p.data(), g.data(), m.data(), v.data(), lr.data(), &s});
    expectClose(p, Floats(ep.begin(), ep.end()), 2e-6);
    expectClose(m, Floats(em.begin(), em.end()), 1e-6);
    expectClose(v, Floats(ev.begin(), ev.end()), 1e-6);
  }
}

TEST(OptimizerKernels, Adagrad) {
  Kernels kernels(substitute(
      R"(
    func.func @k(%p: %T%, %g: %T%, %h: %T%, %lr: tensor<f32>, %s: tensor<i64>)
        -> (%T%, %T%)
        attributes {plan.kernel, plan.tied = array<i64: 0, 2>} {
      %0:2 = train.adagrad %p, %g, %h, %lr, %s
          {epsilon = 0.0625 : f64, lr_decay = 0.5 : f64,
           weight_decay = 0.125 : f64}
          : (%T%, %T%, %T%, tensor<f32>, tensor<i64>) -> (%T%, %T%)
      return %0#0, %0#1 : %T%, %T%
    })",
      {{"T", tensorType({kSize})}}));
  Floats p = randomFloats(kSize), h(kSize), lr = {1e-1f};
  std::vector<double> ep(p.begin(), p.end()), eh(kSize);
  for (int64_t s = 1; s <= 4; ++s) {
    Floats g = randomFloats(kSize, -1, 1, s);
    double rate = double(lr[0]) / (1 + 0.5 * double(s - 1));
    for (int64_t i = 0; i < kSize; ++i) {
      double grad = g[i] + 0.125 * ep[i];
      eh[i] += grad * grad;
      ep[i] -= rate * grad / (std::sqrt(eh[i]) + 0.0625);
    }
    kernels.run("k", {p.data(), g.data(), h.data(), lr.data(), &s});
    expectClose(p, Floats(ep.begin(), ep.end()), 2e-6);
    expectClose(h, Floats(eh.begin(), eh.end()), 1e-6);
  }
}

// A shard's update gives the bits of the whole tensor's, wherever it starts.
TEST(OptimizerKernels, ShardsAgreeWithTheWholeBitForBit) {
  const std::string text = R"(
    func.func @k(%p: %T%, %g: %T%, %m: %T%, %v: %T%, %lr: tensor<f32>,
                 %s: tensor<i64>) -> (%T%, %T%, %T%)
        attributes {plan.kernel, plan.tied = array<i64: 0, 2, 3>} {
      %0:3 = train.adamw %p, %g, %m, %v, %lr, %s
          {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
           weight_decay = 0.01 : f64}
          : (%T%, %T%, %T%, %T%, tensor<f32>, tensor<i64>) -> (%T%, %T%, %T%)
      return %0#0, %0#1, %0#2 : %T%, %T%, %T%
    })";
  Kernels whole(substitute(text, {{"T", tensorType({100})}}));
  Kernels shard(substitute(text, {{"T", tensorType({25})}}));
  Floats p = randomFloats(100), g = randomFloats(100, -1, 1, 2),
         m = randomFloats(100, -1, 1, 3), v = randomFloats(100, 0, 1, 4),
         lr = {3e-3f};
  Floats p2 = p, m2 = m, v2 = v;
  int64_t step = 7;
  whole.run("k", {p.data(), g.data(), m.data(), v.data(), lr.data(), &step});
  for (int i = 0; i < 100; i += 25)
    shard.run("k", {p2.data() + i, g.data() + i, m2.data() + i, v2.data() + i,
                    lr.data(), &step});
  EXPECT_EQ(p, p2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
}

TEST(OptimizerKernels, SumOfSquares) {
  Kernels kernels(R"(
    func.func @k(%a: tensor<300x333xf32>, %b: tensor<7xf32>, %c: tensor<0xf32>)
        -> tensor<f64> attributes {plan.kernel} {
      %0 = train.sum_squares %a, %b, %c
          : (tensor<300x333xf32>, tensor<7xf32>, tensor<0xf32>) -> tensor<f64>
      return %0 : tensor<f64>
    })");
  Floats a = randomFloats(99900), b = randomFloats(7, -9, 9, 2);
  std::vector<double> out(1), expected(1);
  for (const Floats &part : {a, b})
    for (float x : part)
      expected[0] += double(x) * x;
  kernels.run("k", {a.data(), b.data(), nullptr, out.data()});
  expectClose(out, expected, 1e-13);
}
