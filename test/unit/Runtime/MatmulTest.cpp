//===- MatmulTest.cpp - Tests of matrix products --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All orientations, stacks, broadcasts and biases against a plain triple loop.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "runtime/core/NarrowFloat.h"

#include <cmath>
#include <optional>

using namespace zrt;
using namespace zrt::test;

namespace {
using Sizes = std::vector<int64_t>;

/// A strided operand in storage of its own.
struct Tensor {
  Sizes sizes, strides;
  int64_t offset = 0;

  int64_t extent() const {
    int64_t last = offset;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      last += (sizes[dim] - 1) * strides[dim];
    return last + 1;
  }
  int64_t at(const Sizes &index) const {
    int64_t place = offset;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      place += (sizes[dim] == 1 ? 0 : index[dim]) * strides[dim];
    return place;
  }
};

Tensor plain(const Sizes &sizes) {
  Tensor tensor{sizes, sizes, 0};
  int64_t stride = 1;
  for (size_t dim = sizes.size(); dim-- > 0; stride *= sizes[dim])
    tensor.strides[dim] = stride;
  return tensor;
}

Tensor transposed(const Sizes &shape) {
  Sizes sizes = shape;
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  Tensor tensor = plain(sizes);
  std::swap(tensor.sizes.end()[-1], tensor.sizes.end()[-2]);
  std::swap(tensor.strides.end()[-1], tensor.strides.end()[-2]);
  return tensor;
}

/// Every second element: no dimension is consecutive.
Tensor spread(const Sizes &sizes) {
  Tensor tensor = plain(sizes);
  for (int64_t &stride : tensor.strides)
    stride *= 2;
  tensor.offset = 1;
  return tensor;
}

struct Product {
  Tensor a, b, out;
  std::optional<Tensor> bias;
};

std::vector<float> reference(const Product &product,
                             const std::vector<float> &a,
                             const std::vector<float> &b,
                             const std::vector<float> &bias,
                             std::vector<float> out) {
  size_t rank = product.out.sizes.size();
  Sizes index(rank, 0);
  while (true) {
    double sum = product.bias ? bias[product.bias->at(index)] : 0.0;
    Sizes left = index, right = index;
    for (int64_t k = 0; k < product.a.sizes[rank - 1]; ++k) {
      left[rank - 1] = right[rank - 2] = k;
      sum += double(a[product.a.at(left)]) * b[product.b.at(right)];
    }
    out[product.out.at(index)] = float(sum);
    size_t dim = rank;
    while (dim > 0 && ++index[dim - 1] == product.out.sizes[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return out;
  }
}

PlanBuilder planOf(const Product &product, fb::DType type = fb::DType_F32,
                   fb::DType outType = fb::DType_F32) {
  PlanBuilder plan(1);
  uint32_t a = plan.input("a", {product.a.extent()}, type);
  uint32_t b = plan.input("b", {product.b.extent()}, type);
  uint32_t bias =
      product.bias ? plan.input("bias", {product.bias->extent()}, type) : 0;
  uint32_t out = plan.input("out", {product.out.extent()}, outType);
  fb::CommandT &call = plan.command(fb::Op_Call, "matmul");
  auto add = [&](uint32_t buffer, const Tensor &tensor) {
    plan.operand(call, buffer, tensor.offset, tensor.sizes, tensor.strides);
  };
  add(a, product.a);
  add(b, product.b);
  if (product.bias)
    add(bias, *product.bias);
  add(out, product.out);
  plan.output(out);
  return plan;
}

template <typename Narrow>
std::vector<Narrow> rounded(const std::vector<float> &values) {
  std::vector<Narrow> result;
  for (float value : values)
    result.push_back(Narrow::round(value));
  return result;
}

template <typename Narrow>
std::vector<float> widened(const std::vector<Narrow> &values) {
  std::vector<float> result;
  for (Narrow value : values)
    result.push_back(value.widen());
  return result;
}

/// The same with all elements in a narrow type. The result is the exact one
/// rounded, or its neighbour where the sum in f32 decides.
template <typename Narrow>
void checkNarrow(const std::string &name, const Product &product,
                 fb::DType type) {
  Running running(planOf(product, type, type));
  auto input = [&](const char *which, int seed, const Tensor &tensor) {
    std::vector<Narrow> values =
        rounded<Narrow>(numbers(seed, tensor.extent()));
    running.set(which, 0, values);
    return widened(values);
  };
  std::vector<float> a = input("a", 1, product.a), b = input("b", 2, product.b);
  std::vector<float> out = input("out", 3, product.out), bias;
  if (product.bias)
    bias = input("bias", 4, *product.bias);
  running.step();
  std::vector<float> expected =
      widened(rounded<Narrow>(reference(product, a, b, bias, out)));
  std::vector<float> got = widened(running.get<Narrow>(0));
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i],
                1e-6 + std::abs(expected[i]) /
                           (1 << (type == fb::DType_F16 ? 10 : 7)))
        << name << " in " << dtypeName(type) << ", element " << i;
}

/// Elements outside the output's view must keep their value.
void check(const std::string &name, const Product &product) {
  checkNarrow<BFloat16>(name, product, fb::DType_BF16);
  checkNarrow<Half>(name, product, fb::DType_F16);
  Running running(planOf(product));
  std::vector<float> a = numbers(1, product.a.extent());
  std::vector<float> b = numbers(2, product.b.extent());
  std::vector<float> out = numbers(3, product.out.extent());
  std::vector<float> bias;
  running.set("a", 0, a);
  running.set("b", 0, b);
  running.set("out", 0, out);
  if (product.bias) {
    bias = numbers(4, product.bias->extent());
    running.set("bias", 0, bias);
  }
  running.step();
  std::vector<float> expected = reference(product, a, b, bias, out);
  std::vector<float> got = running.get(0);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-4) << name << ", element " << i;
}
} // namespace

TEST(Matmul, EveryOrientation) {
  using Make = Tensor (*)(const Sizes &);
  const Make forms[] = {plain, transposed, spread};
  const char *const names[] = {"plain", "transposed", "spread"};
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      for (int out = 0; out < 3; ++out) {
        std::string name =
            std::string(names[a]) + " x " + names[b] + " = " + names[out];
        check(name,
              {forms[a]({17, 23}), forms[b]({23, 9}), forms[out]({17, 9}), {}});
        check("stack " + name, {forms[a]({2, 3, 5, 7}),
                                forms[b]({2, 3, 7, 4}),
                                forms[out]({2, 3, 5, 4}),
                                {}});
      }
}

TEST(Matmul, ThinShapes) {
  for (Sizes shape : {Sizes{1, 1, 1},
                      {1, 8, 5},
                      {6, 1, 5},
                      {6, 8, 1},
                      {1, 1, 9},
                      {9, 1, 1},
                      {1, 9, 1}})
    for (auto make : {plain, transposed, spread}) {
      int64_t m = shape[0], k = shape[1], n = shape[2];
      check("thin", {make({m, k}), make({k, n}), make({m, n}), {}});
    }
}

/// A broadcast stack dimension is written as stride 0 or as size 1.
TEST(Matmul, BroadcastStacks) {
  Tensor zero = plain({3, 6, 5});
  zero.strides[0] = 0;
  check("b stride 0", {plain({3, 4, 6}), zero, plain({3, 4, 5}), {}});
  check("b size 1", {plain({3, 4, 6}), plain({1, 6, 5}), plain({3, 4, 5}), {}});
  check("a size 1", {plain({1, 4, 6}), plain({3, 6, 5}), plain({3, 4, 5}), {}});
  check("both",
        {plain({2, 1, 4, 6}), plain({1, 3, 6, 5}), plain({2, 3, 4, 5}), {}});
  check("outer only",
        {plain({2, 3, 4, 6}), plain({1, 3, 6, 5}), plain({2, 3, 4, 5}), {}});
  check("b shared by transposed a",
        {transposed({3, 4, 6}), plain({1, 6, 5}), plain({3, 4, 5}), {}});
}

/// The heads of attention: views into [batch, time, heads * size].
TEST(Matmul, AttentionHeads) {
  Tensor query{{2, 3, 8, 4}, {8 * 12, 4, 12, 1}, 0};
  Tensor key{{2, 3, 4, 8}, {8 * 12, 4, 1, 12}, 0};
  check("scores", {query, key, plain({2, 3, 8, 8}), {}});
  Tensor value{{2, 3, 8, 4}, {8 * 12, 4, 12, 1}, 0};
  check("values", {plain({2, 3, 8, 8}), value, query, {}});
}

TEST(Matmul, Bias) {
  for (auto make : {plain, transposed, spread}) {
    Tensor a = plain({4, 6}), b = plain({6, 5}), out = make({4, 5});
    Tensor broadcast{{4, 5}, {0, 1}, 0}, scalar{{4, 5}, {0, 0}, 0};
    check("row", {a, b, out, plain({1, 5})});
    check("row by stride", {a, b, out, broadcast});
    check("column", {a, b, out, plain({4, 1})});
    check("full", {a, b, out, plain({4, 5})});
    check("full transposed", {a, b, out, transposed({4, 5})});
    check("one", {a, b, out, plain({1, 1})});
    check("one by stride", {a, b, out, scalar});
  }
  check("stack", {plain({3, 4, 6}), plain({1, 6, 5}), plain({3, 4, 5}),
                  plain({1, 1, 5})});
  check("stack, bias of each", {plain({3, 4, 6}), plain({3, 6, 5}),
                                plain({3, 4, 5}), plain({3, 1, 5})});
}

TEST(Matmul, Errors) {
  auto errorOf = [](const Product &product) {
    return sessionError(planOf(product));
  };
  EXPECT_EQ(errorOf({plain({4, 6}), plain({5, 3}), plain({4, 3}), {}}),
            "command 0 (call matmul): shapes do not fit: 4x6 times 5x3 is not "
            "4x3");
  EXPECT_EQ(
      errorOf({plain({4, 6}), plain({6, 3}), plain({4, 3}), plain({2, 3})}),
      "command 0 (call matmul): shapes do not fit: 4x6 times 6x3 plus "
      "2x3 is not 4x3");
  Tensor folded = plain({4, 3});
  folded.strides[0] = 1;
  EXPECT_EQ(errorOf({plain({4, 6}), plain({6, 3}), folded, {}}),
            "command 0 (call matmul): the output has two indices for one "
            "element");
  PlanBuilder doubles(1);
  uint32_t x = doubles.buffer("x", {2, 2}, fb::DType_F64);
  fb::CommandT &call = doubles.command(fb::Op_Call, "matmul");
  for (int i = 0; i < 3; ++i)
    doubles.operand(call, x);
  EXPECT_EQ(sessionError(doubles), "command 0 (call matmul): elements of type "
                                   "f64; library calls take f32, bf16 "
                                   "and f16");
  call.operands.pop_back();
  doubles.program.buffers[x]->dtype = fb::DType_F32;
  EXPECT_EQ(sessionError(doubles),
            "command 0 (call matmul): a matmul has 3 or 4 operands, not 2");
  call.callee = "fft";
  EXPECT_EQ(sessionError(doubles),
            "command 0 (call fft): unknown library function 'fft'");
}

/// Two calls of one shape use the same scratch, which is counted apart.
TEST(Matmul, WorkspaceIsCounted) {
  Running running(
      planOf({spread({16, 16}), plain({16, 16}), plain({16, 16}), {}}));
  EXPECT_GE(running.session.counters().library_workspace_bytes, 16u * 16 * 4);
}

//===----------------------------------------------------------------------===//
// bf16 and f16
//===----------------------------------------------------------------------===//

/// The sum is kept in f32: 256 + 1 + 1 is 258, though 257 is no bf16.
TEST(Matmul, NarrowSumsAreInF32) {
  Product product{plain({1, 3}), plain({3, 1}), plain({1, 1}), {}};
  Running running(planOf(product, fb::DType_BF16, fb::DType_BF16));
  running.set("a", 0, rounded<BFloat16>({256, 1, 1}));
  running.set("b", 0, rounded<BFloat16>({1, 1, 1}));
  running.set("out", 0, rounded<BFloat16>({0}));
  running.step();
  EXPECT_EQ(running.get<BFloat16>(0)[0].widen(), 258);
}

TEST(Matmul, NarrowOperandsToAnF32Result) {
  Product product{plain({4, 6}), transposed({6, 5}), plain({4, 5}),
                  plain({1, 5})};
  Running running(planOf(product, fb::DType_F16, fb::DType_F32));
  std::vector<float> a = widened(rounded<Half>(numbers(1, 24)));
  std::vector<float> b = widened(rounded<Half>(numbers(2, 30)));
  std::vector<float> bias = widened(rounded<Half>(numbers(3, 5)));
  running.set("a", 0, rounded<Half>(a));
  running.set("b", 0, rounded<Half>(b));
  running.set("bias", 0, rounded<Half>(bias));
  running.set("out", 0, std::vector<float>(20));
  running.step();
  std::vector<float> expected =
      reference(product, a, b, bias, std::vector<float>(20));
  std::vector<float> got = running.get(0);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-6);
}

/// Blocks of rows and of columns and what is left of both. The elements are
/// small integers: every sum is exact. What is in f32 at a time is far less
/// than the operands.
TEST(Matmul, NarrowProductsInBlocks) {
  const int64_t m = 2100, k = 3, n = 2500;
  for (bool columns : {false, true}) {
    Product product{columns ? transposed({m, k}) : plain({m, k}),
                    plain({k, n}),
                    columns ? transposed({m, n}) : plain({m, n}),
                    {}};
    Running running(planOf(product, fb::DType_BF16, fb::DType_BF16));
    auto value = [](int64_t i, int64_t j) {
      return float((i * 7 + j) % 13 - 6);
    };
    std::vector<float> a(m * k), b(k * n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < k; ++j)
        a[product.a.at({i, j})] = value(i, j);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j)
        b[product.b.at({i, j})] = value(j, i);
    running.set("a", 0, rounded<BFloat16>(a));
    running.set("b", 0, rounded<BFloat16>(b));
    running.set("out", 0, std::vector<BFloat16>(m * n));
    running.step();
    std::vector<BFloat16> got = running.get<BFloat16>(0);
    for (int64_t i = 0; i < m; i += i % 64 == 63 ? 1 : 21)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += value(i, l) * value(j, l);
        ASSERT_EQ(got[product.out.at({i, j})].widen(),
                  BFloat16::round(sum).widen())
            << i << " " << j;
      }
    EXPECT_LT(running.session.counters().library_workspace_bytes,
              uint64_t(m * n * 4));
  }
}
