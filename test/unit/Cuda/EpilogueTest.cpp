//===- EpilogueTest.cpp - Tests of what is fused to matrix products -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each case by the library and by our kernels behind the product: a bias of a
// column is what the library does not take.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include "runtime/core/NarrowFloat.h"

#include <cmath>

using namespace zrt;
using namespace zrt::test;

namespace {
constexpr int64_t rows = 16, columns = 8, terms = 5;

struct Case {
  std::vector<std::string> attrs;
  enum { None, Row, Column } bias = None;
};

/// The operands in f64, and what comes of them.
struct Numbers {
  explicit Numbers(const Case &given);
  void compute();
  bool has(const char *attr) const {
    return std::count(given.attrs.begin(), given.attrs.end(), attr);
  }
  const Case &given;
  std::vector<float> a, b, bias, pre, dbias, out;
};

double gelu(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double geluGradient(double x) {
  return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
}
} // namespace

Numbers::Numbers(const Case &given)
    : given(given), a(numbers(1, rows * terms)), b(numbers(2, terms * columns)),
      bias(numbers(3, given.bias == Case::Row ? columns : rows)),
      pre(numbers(4, rows * columns)), dbias(columns), out(rows * columns) {
  if (has("bias_grad_a"))
    dbias.resize(rows);
  compute();
}

void Numbers::compute() {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = given.bias == Case::None  ? 0
                   : given.bias == Case::Row ? bias[j]
                                             : bias[i];
      for (int64_t k = 0; k < terms; ++k)
        sum += double(a[i * terms + k]) * b[k * columns + j];
      float &before = pre[i * columns + j];
      double value = has("gelu")        ? gelu(sum)
                     : has("relu")      ? std::max(sum, 0.0)
                     : has("gelu_grad") ? sum * geluGradient(before)
                                        : sum;
      if (has("aux"))
        before = float(sum);
      out[i * columns + j] = float(value);
      if (has("bias_grad"))
        dbias[j] += float(value);
    }
  for (int64_t k = 0; k < terms; ++k) {
    for (int64_t i = 0; has("bias_grad_a") && i < rows; ++i)
      dbias[i] += a[i * terms + k];
    for (int64_t j = 0; has("bias_grad_b") && j < columns; ++j)
      dbias[j] += b[k * columns + j];
  }
}

static void expectNear(const std::vector<float> &got,
                       const std::vector<float> &wanted, const char *what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], 1e-4) << what << " at " << i;
}

static void expectEpilogue(const Case &given) {
  Numbers wanted(given);
  PlanBuilder plan(1);
  uint32_t a = plan.input("a", {rows, terms});
  uint32_t b = plan.input("b", {terms, columns});
  uint32_t bias = plan.input("bias", {int64_t(wanted.bias.size())});
  uint32_t pre = plan.input("pre", {rows, columns});
  uint32_t dbias = plan.buffer("dbias", {int64_t(wanted.dbias.size())});
  uint32_t out = plan.buffer("out", {rows, columns});
  fb::CommandT &call = plan.command(fb::Op_Call, "matmul");
  plan.operand(call, a);
  plan.operand(call, b);
  if (given.bias == Case::Row)
    plan.operand(call, bias, 0, {rows, columns}, {0, 1});
  else if (given.bias == Case::Column)
    plan.operand(call, bias, 0, {rows, columns}, {1, 0});
  if (wanted.has("aux") || wanted.has("gelu_grad"))
    plan.operand(call, pre);
  bool sums = wanted.has("bias_grad") || wanted.has("bias_grad_a") ||
              wanted.has("bias_grad_b");
  if (sums)
    plan.operand(call, dbias);
  plan.operand(call, out);
  for (const std::string &attr : given.attrs)
    plan.attr(call, attr, {1});
  for (uint32_t buffer : {out, pre, dbias})
    plan.output(buffer);
  forCuda(plan);
  Running running(plan);
  running.set("a", 0, wanted.a);
  running.set("b", 0, wanted.b);
  running.set("bias", 0, wanted.bias);
  running.set("pre", 0, numbers(4, rows * columns));
  running.step();
  expectNear(running.get(0), wanted.out, "the result");
  expectNear(running.get(1), wanted.pre, "pre");
  if (sums)
    expectNear(running.get(2), wanted.dbias, "dbias");
}

TEST(CudaEpilogue, FunctionsOfTheProduct) {
  for (auto bias : {Case::None, Case::Row, Case::Column})
    for (const char *name : {"gelu", "relu"})
      expectEpilogue({{name}, bias});
}

TEST(CudaEpilogue, WhatTheFunctionIsOfIsWritten) {
  for (auto bias : {Case::None, Case::Row, Case::Column})
    expectEpilogue({{"gelu", "aux"}, bias});
}

TEST(CudaEpilogue, Gradients) {
  for (auto bias : {Case::None, Case::Column}) {
    expectEpilogue({{"gelu_grad"}, bias});
    expectEpilogue({{"gelu_grad", "bias_grad"}, bias});
    expectEpilogue({{"bias_grad_a"}, bias});
    expectEpilogue({{"bias_grad_b"}, bias});
  }
}

TEST(CudaEpilogue, WhatIsNoMatrixIsRefused) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {2, 2, 2}), out = plan.buffer("out", {2, 2, 2});
  fb::CommandT &call = plan.command(fb::Op_Call, "matmul");
  for (uint32_t buffer : {x, x, out})
    plan.operand(call, buffer);
  plan.attr(call, "gelu", {1});
  forCuda(plan);
  EXPECT_EQ(sessionError(plan),
            "rank 0, command 0 (call matmul): a matmul with an epilogue takes "
            "two matrices of one type to a contiguous one of f32, bf16 or f16");
}
