//===- AttentionTest.cpp - Tests of attention on a GPU --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host backend has no attention: here its definition in f64 says what the
// results are. Operands are in bf16, whose rounding is the tolerance.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"
#include "runtime/core/NarrowFloat.h"

#include <cmath>

using namespace zrt;
using namespace zrt::test;

namespace {
using Sizes = std::vector<int64_t>;

/// A tensor [batch, heads, length, size] in bf16.
struct Tensor {
  explicit Tensor(Sizes sizes, uint64_t seed = 0) : sizes(std::move(sizes)) {
    size_t count = size_t(*elementCount(this->sizes));
    values.resize(count);
    if (seed == 0)
      return;
    for (float number : numbers(seed, count))
      bits.push_back(BFloat16::round(number).bits);
    for (size_t i = 0; i < count; ++i)
      values[i] = BFloat16{bits[i]}.widen();
  }
  double &at(int64_t b, int64_t h, int64_t s, int64_t d) {
    return values[((b * sizes[1] + h) * sizes[2] + s) * sizes[3] + d];
  }

  Sizes sizes;
  std::vector<uint16_t> bits;
  std::vector<double> values;
};

struct Case {
  const char *name;
  int64_t batch, heads, groups, queries, keys, size, valueSize;
  bool causal, masked;

  Sizes query() const { return {batch, heads, queries, size}; }
  Sizes key() const { return {batch, groups, keys, size}; }
  Sizes value() const { return {batch, groups, keys, valueSize}; }
  Sizes result() const { return {batch, heads, queries, valueSize}; }
  Sizes mask() const { return {1, heads, queries, keys}; }
};

const Case cases[] = {
    {"plain", 2, 2, 2, 5, 7, 8, 8, false, false},
    {"causal", 2, 2, 2, 16, 16, 16, 16, true, false},
    {"masked", 1, 4, 4, 8, 12, 8, 16, false, true},
    {"groups", 2, 4, 2, 8, 8, 16, 16, true, false},
    {"all", 1, 4, 1, 8, 8, 32, 32, true, true},
};

constexpr double kScale = 0.3;

/// The definition, forward and backward.
struct Reference {
  Reference(const Case &c, Tensor &q, Tensor &k, Tensor &v, Tensor &mask,
            Tensor &dy)
      : y(c.result()), dq(c.query()), dk(c.key()), dv(c.value()) {
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t h = 0; h < c.heads; ++h)
        for (int64_t s = 0; s < c.queries; ++s)
          row(c, q, k, v, mask, dy, b, h, s);
  }

  void row(const Case &c, Tensor &q, Tensor &k, Tensor &v, Tensor &mask,
           Tensor &dy, int64_t b, int64_t h, int64_t s) {
    int64_t g = h / (c.heads / c.groups);
    std::vector<double> p(c.keys);
    double sum = 0, dot = 0;
    for (int64_t t = 0; t < c.keys; ++t) {
      double score = 0;
      for (int64_t d = 0; d < c.size; ++d)
        score += kScale * q.at(b, h, s, d) * k.at(b, g, t, d);
      score += c.masked ? mask.at(0, h, s, t) : 0.0;
      sum += p[t] = c.causal && t > s ? 0.0 : std::exp(score);
    }
    logsumexp.push_back(std::log(sum));
    for (int64_t e = 0; e < c.valueSize; ++e) {
      for (int64_t t = 0; t < c.keys; ++t)
        y.at(b, h, s, e) += p[t] / sum * v.at(b, g, t, e);
      dot += y.at(b, h, s, e) * dy.at(b, h, s, e);
    }
    for (int64_t t = 0; t < c.keys; ++t) {
      double slope = -dot;
      for (int64_t e = 0; e < c.valueSize; ++e) {
        slope += dy.at(b, h, s, e) * v.at(b, g, t, e);
        dv.at(b, g, t, e) += p[t] / sum * dy.at(b, h, s, e);
      }
      for (int64_t d = 0; d < c.size; ++d) {
        double factor = p[t] / sum * slope * kScale;
        dq.at(b, h, s, d) += factor * k.at(b, g, t, d);
        dk.at(b, g, t, d) += factor * q.at(b, h, s, d);
      }
    }
  }

  Tensor y, dq, dk, dv;
  std::vector<double> logsumexp;
};

void setScale(fb::CommandT &call) {
  auto attr = std::make_unique<fb::AttrT>();
  attr->name = "scale";
  attr->floats = {kScale};
  call.attrs.push_back(std::move(attr));
}

/// Both calls in a row; outputs: result, logsumexp, three gradients.
PlanBuilder planOf(const Case &c, fb::DType type = fb::DType_BF16) {
  PlanBuilder plan(1);
  uint32_t q = plan.input("q", c.query(), type),
           k = plan.input("k", c.key(), type),
           v = plan.input("v", c.value(), type),
           dy = plan.input("dy", c.result(), type);
  uint32_t mask = c.masked ? plan.input("mask", c.mask(), type) : 0;
  uint32_t y = plan.buffer("y", c.result(), type),
           lse = plan.buffer("lse", {c.batch, c.heads, c.queries}),
           dq = plan.buffer("dq", c.query(), type),
           dk = plan.buffer("dk", c.key(), type),
           dv = plan.buffer("dv", c.value(), type);
  auto call = [&](const char *callee, std::vector<uint32_t> operands,
                  std::vector<uint32_t> results) {
    fb::CommandT &command = plan.command(fb::Op_Call, callee);
    if (c.masked)
      operands.push_back(mask);
    operands.insert(operands.end(), results.begin(), results.end());
    for (uint32_t operand : operands)
      plan.operand(command, operand);
    setScale(command);
    if (c.causal)
      plan.attr(command, "causal", {1});
  };
  call("attention", {q, k, v}, {y, lse});
  call("attention_grad", {dy, q, k, v, y, lse}, {dq, dk, dv});
  for (uint32_t output : {y, lse, dq, dk, dv})
    plan.output(output);
  forCuda(plan);
  return plan;
}

void expectNear(const std::vector<uint16_t> &got, const Tensor &expected,
                const char *what) {
  double largest = 0, error = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected.values[i]));
    error = std::max(error,
                     std::abs(BFloat16{got[i]}.widen() - expected.values[i]));
  }
  EXPECT_LT(error, 0.01 * largest) << what;
}
} // namespace

TEST(CudaAttention, ForwardAndBackward) {
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    Running running(planOf(c));
    Tensor q(c.query(), 1), k(c.key(), 2), v(c.value(), 3), dy(c.result(), 4),
        mask(c.mask(), 5);
    running.set("q", 0, q.bits);
    running.set("k", 0, k.bits);
    running.set("v", 0, v.bits);
    running.set("dy", 0, dy.bits);
    if (c.masked)
      running.set("mask", 0, mask.bits);
    running.step();
    Reference reference(c, q, k, v, mask, dy);
    expectNear(running.get<uint16_t>(0), reference.y, "result");
    std::vector<float> logsumexp = running.get(1);
    for (size_t i = 0; i < logsumexp.size(); ++i)
      EXPECT_NEAR(logsumexp[i], reference.logsumexp[i], 1e-5);
    expectNear(running.get<uint16_t>(2), reference.dq, "gradient by queries");
    expectNear(running.get<uint16_t>(3), reference.dk, "gradient by keys");
    expectNear(running.get<uint16_t>(4), reference.dv, "gradient by values");
  }
}

TEST(CudaAttention, WhatItIsNotIsRefused) {
  EXPECT_EQ(sessionError(planOf(cases[0], fb::DType_F32)),
            "rank 0, command 0 (call attention): operand 0 of attention is f32 "
            "with 4 dimensions; cuDNN takes bf16 and f16 with 4, and "
            "logarithms in f32 with 3");
  PlanBuilder plan = planOf(cases[0]);
  plan.program.commands[0]->operands.pop_back();
  EXPECT_EQ(sessionError(plan), "rank 0, command 0 (call attention): an "
                                "attention has 5 operands (6 with a mask), "
                                "not 4");
  plan = planOf(cases[0]);
  plan.program.commands[0]->attrs.clear();
  EXPECT_EQ(sessionError(plan), "rank 0, command 0 (call attention): an "
                                "attention has no attribute scale");
}
