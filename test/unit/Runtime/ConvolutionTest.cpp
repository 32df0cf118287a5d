//===- ConvolutionTest.cpp - Tests of convolutions ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The convolution and both of its gradients against the sum that defines them.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "runtime/core/NarrowFloat.h"

using namespace zrt;
using namespace zrt::test;

namespace {
using Sizes = std::vector<int64_t>;

/// A convolution in two spatial dimensions.
struct Case {
  const char *name;
  int64_t batch, in, out, group;
  Sizes image, kernel, strides, pads, dilations;

  Sizes outputImage() const {
    Sizes result;
    for (int dim = 0; dim < 2; ++dim)
      result.push_back((image[dim] + pads[dim] + pads[dim + 2] -
                        dilations[dim] * (kernel[dim] - 1) - 1) /
                           strides[dim] +
                       1);
    return result;
  }
  Sizes x() const { return {batch, in, image[0], image[1]}; }
  Sizes w() const { return {out, in / group, kernel[0], kernel[1]}; }
  Sizes y() const { return {batch, out, outputImage()[0], outputImage()[1]}; }
};

const Case cases[] = {
    {"plain", 2, 3, 4, 1, {7, 6}, {3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {"same", 2, 16, 16, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"strided", 1, 3, 5, 1, {9, 8}, {3, 2}, {2, 3}, {1, 0, 2, 1}, {1, 1}},
    {"dilated", 1, 2, 3, 1, {9, 9}, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
    {"groups", 2, 6, 4, 2, {5, 5}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"depthwise", 2, 8, 8, 8, {5, 5}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"pointwise", 1, 8, 4, 1, {4, 4}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {"patches", 2, 3, 8, 1, {8, 8}, {4, 4}, {4, 4}, {0, 0, 0, 0}, {1, 1}},
};

int64_t count(const Sizes &shape) {
  int64_t result = 1;
  for (int64_t size : shape)
    result *= size;
  return result;
}

int64_t place(const Sizes &shape, int64_t a, int64_t b, int64_t c, int64_t d) {
  return ((a * shape[1] + b) * shape[2] + c) * shape[3] + d;
}

/// Calls `use(y, x, w)` with the places of every product of the sum.
template <typename Use>
void forEachProduct(const Case &c, Use use) {
  Sizes x = c.x(), w = c.w(), y = c.y();
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t i = 0; i < w[1]; ++i)
        for (int64_t h = 0; h < y[2]; ++h)
          for (int64_t v = 0; v < y[3]; ++v)
            for (int64_t p = 0; p < w[2]; ++p)
              for (int64_t q = 0; q < w[3]; ++q) {
                int64_t row = h * c.strides[0] - c.pads[0] + p * c.dilations[0];
                int64_t col = v * c.strides[1] - c.pads[1] + q * c.dilations[1];
                if (row < 0 || row >= x[2] || col < 0 || col >= x[3])
                  continue;
                int64_t channel = o / (c.out / c.group) * w[1] + i;
                use(place(y, n, o, h, v), place(x, n, channel, row, col),
                    place(w, o, i, p, q));
              }
}

/// A plan of one call on inputs "a", "b" (and a bias) to an output.
PlanBuilder planOf(const Case &c, const std::string &callee, const Sizes &a,
                   const Sizes &b, const Sizes &out, bool bias = false,
                   fb::DType type = fb::DType_F32) {
  PlanBuilder plan(1);
  uint32_t first = plan.input("a", a, type), second = plan.input("b", b, type);
  uint32_t third = bias ? plan.input("bias", {c.out}, type) : 0;
  uint32_t result = plan.buffer("out", out, type);
  fb::CommandT &call = plan.command(fb::Op_Call, callee);
  plan.operand(call, first);
  plan.operand(call, second);
  if (bias)
    plan.operand(call, third);
  plan.operand(call, result);
  plan.attr(call, "strides", c.strides);
  plan.attr(call, "pads", c.pads);
  plan.attr(call, "dilations", c.dilations);
  plan.attr(call, "group", {c.group});
  plan.output(result);
  return plan;
}

void expectNear(const std::string &name, const std::vector<float> &got,
                const std::vector<double> &expected) {
  ASSERT_EQ(got.size(), expected.size()) << name;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-4) << name << ", element " << i;
}
} // namespace

TEST(Convolution, Forward) {
  for (const Case &c : cases)
    for (bool bias : {false, true}) {
      Running running(planOf(c, "conv", c.x(), c.w(), c.y(), bias));
      std::vector<float> x = numbers(1, count(c.x()));
      std::vector<float> w = numbers(2, count(c.w()));
      std::vector<float> shift = numbers(3, c.out);
      running.set("a", 0, x);
      running.set("b", 0, w);
      if (bias)
        running.set("bias", 0, shift);
      running.step();
      std::vector<double> expected(count(c.y()), 0.0);
      int64_t image = c.y()[2] * c.y()[3];
      for (size_t i = 0; bias && i < expected.size(); ++i)
        expected[i] = shift[i / image % c.out];
      forEachProduct(c, [&](int64_t yAt, int64_t xAt, int64_t wAt) {
        expected[yAt] += double(x[xAt]) * w[wAt];
      });
      expectNear(c.name, running.get(0), expected);
    }
}

TEST(Convolution, GradInput) {
  for (const Case &c : cases) {
    Running running(planOf(c, "conv_grad_input", c.y(), c.w(), c.x()));
    std::vector<float> dy = numbers(1, count(c.y()));
    std::vector<float> w = numbers(2, count(c.w()));
    running.set("a", 0, dy);
    running.set("b", 0, w);
    running.step();
    std::vector<double> expected(count(c.x()), 0.0);
    forEachProduct(c, [&](int64_t yAt, int64_t xAt, int64_t wAt) {
      expected[xAt] += double(dy[yAt]) * w[wAt];
    });
    expectNear(c.name, running.get(0), expected);
  }
}

TEST(Convolution, GradWeight) {
  for (const Case &c : cases) {
    Running running(planOf(c, "conv_grad_weight", c.y(), c.x(), c.w()));
    std::vector<float> dy = numbers(1, count(c.y()));
    std::vector<float> x = numbers(2, count(c.x()));
    running.set("a", 0, dy);
    running.set("b", 0, x);
    running.step();
    std::vector<double> expected(count(c.w()), 0.0);
    forEachProduct(c, [&](int64_t yAt, int64_t xAt, int64_t wAt) {
      expected[wAt] += double(dy[yAt]) * x[xAt];
    });
    expectNear(c.name, running.get(0), expected);
  }
}

/// One and three spatial dimensions reach the library as they are.
TEST(Convolution, OtherDimensions) {
  for (size_t spatial : {1, 3}) {
    PlanBuilder plan(1);
    Sizes x = {1, 1}, w = {1, 1}, y = {1, 1};
    for (size_t dim = 0; dim < spatial; ++dim) {
      x.push_back(4);
      w.push_back(2);
      y.push_back(3);
    }
    uint32_t a = plan.input("a", x), b = plan.input("b", w);
    uint32_t out = plan.buffer("out", y);
    fb::CommandT &call = plan.command(fb::Op_Call, "conv");
    for (uint32_t buffer : {a, b, out})
      plan.operand(call, buffer);
    plan.attr(call, "strides", Sizes(spatial, 1));
    plan.attr(call, "pads", Sizes(2 * spatial, 0));
    plan.attr(call, "dilations", Sizes(spatial, 1));
    plan.attr(call, "group", {1});
    plan.output(out);
    Running running(plan);
    running.set("a", 0, std::vector<float>(count(x), 2.0f));
    running.set("b", 0, std::vector<float>(count(w), 3.0f));
    running.step();
    expectNear("ones", running.get(0),
               std::vector<double>(count(y), 6.0 * double(count(w))));
  }
}

TEST(Convolution, Errors) {
  auto errorOf = [](const Case &c, const std::string &callee = "conv") {
    return sessionError(planOf(c, callee, c.x(), c.w(), {2, 4, 5, 4}));
  };
  Case c = cases[0];
  EXPECT_EQ(errorOf(c), "");
  c.strides = {1};
  EXPECT_EQ(sessionError(planOf(c, "conv", cases[0].x(), c.w(), {2, 4, 5, 4})),
            "command 0 (call conv): attribute strides has 1 values instead of "
            "2");
  c = cases[0];
  c.dilations = {0, 1};
  EXPECT_EQ(errorOf(c),
            "command 0 (call conv): attribute dilations has the value 0");
  c = cases[0];
  EXPECT_EQ(sessionError(planOf(c, "conv", c.x(), c.w(), {2, 4, 5})),
            "command 0 (call conv): a convolution takes tensors of 3 to 5 "
            "equal numbers of dimensions, not 4 and 3");
  EXPECT_NE(sessionError(planOf(c, "conv", c.x(), c.w(), {2, 4, 5, 5}))
                .find("oneDNN does not take the operands"),
            std::string::npos);
  EXPECT_EQ(
      sessionError(planOf(c, "conv_grad_input", c.y(), c.w(), c.x(), true)),
      "command 0 (call conv_grad_input): a conv_grad_input has 3 "
      "operands, not 4");
  c.group = 3;
  EXPECT_EQ(sessionError(planOf(c, "conv", c.x(), {4, 1, 3, 3}, {2, 4, 5, 4})),
            "command 0 (call conv): 4 output channels do not divide into 3 "
            "groups");
}

//===----------------------------------------------------------------------===//
// bf16 and f16
//===----------------------------------------------------------------------===//

namespace {
/// The call on narrow inputs must be the f32 call on their values, rounded
/// once.
template <typename Narrow>
void expectRoundedOnce(const Case &c, const std::string &callee, const Sizes &a,
                       const Sizes &b, const Sizes &out, bool bias,
                       fb::DType type) {
  Running narrow(planOf(c, callee, a, b, out, bias, type));
  Running wide(planOf(c, callee, a, b, out, bias));
  auto set = [&](const char *name, int seed, int64_t size) {
    std::vector<Narrow> values;
    std::vector<float> same;
    for (float number : numbers(seed, size)) {
      values.push_back(Narrow::round(number));
      same.push_back(values.back().widen());
    }
    narrow.set(name, 0, values);
    wide.set(name, 0, same);
  };
  set("a", 1, count(a));
  set("b", 2, count(b));
  if (bias)
    set("bias", 3, c.out);
  narrow.step();
  wide.step();
  std::vector<Narrow> got = narrow.get<Narrow>(0);
  std::vector<float> expected = wide.get(0);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i].bits, Narrow::round(expected[i]).bits)
        << c.name << ", " << callee << ", element " << i;
}
} // namespace

TEST(Convolution, NarrowFloatsRoundOnce) {
  auto all = [](const Case &c, auto check, fb::DType type) {
    check(c, "conv", c.x(), c.w(), c.y(), false, type);
    check(c, "conv", c.x(), c.w(), c.y(), true, type);
    check(c, "conv_grad_input", c.y(), c.w(), c.x(), false, type);
    check(c, "conv_grad_weight", c.y(), c.x(), c.w(), false, type);
  };
  for (const Case &c : cases) {
    all(c, expectRoundedOnce<BFloat16>, fb::DType_BF16);
    all(c, expectRoundedOnce<Half>, fb::DType_F16);
  }
}
