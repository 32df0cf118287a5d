//===- ConvolutionTest.cpp - Tests of convolutions on a GPU ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

using namespace zrt;
using namespace zrt::test;

namespace {
using Sizes = std::vector<int64_t>;

/// A convolution in one to three spatial dimensions.
struct Case {
  const char *name;
  int64_t batch, in, out, group;
  Sizes image, kernel, strides, pads, dilations;

  Sizes with(int64_t first, int64_t second, const Sizes &spatial) const {
    Sizes sizes = {first, second};
    sizes.insert(sizes.end(), spatial.begin(), spatial.end());
    return sizes;
  }
  Sizes x() const { return with(batch, in, image); }
  Sizes w() const { return with(out, in / group, kernel); }
  Sizes y() const {
    Sizes spatial;
    for (size_t dim = 0; dim < image.size(); ++dim)
      spatial.push_back((image[dim] + pads[dim] + pads[dim + image.size()] -
                         dilations[dim] * (kernel[dim] - 1) - 1) /
                            strides[dim] +
                        1);
    return with(batch, out, spatial);
  }
};

const Case cases[] = {
    {"plain", 2, 3, 4, 1, {7, 6}, {3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {"uneven", 1, 3, 5, 1, {9, 8}, {3, 2}, {2, 3}, {1, 0, 2, 1}, {1, 1}},
    {"dilated", 1, 2, 3, 1, {9, 9}, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
    {"groups", 2, 6, 4, 2, {5, 5}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"depthwise", 2, 8, 8, 8, {5, 5}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"line", 2, 3, 4, 1, {7}, {3}, {2}, {1, 0}, {1}},
    {"volume",
     2,
     3,
     4,
     1,
     {4, 5, 3},
     {3, 2, 1},
     {2, 1, 1},
     {1, 0, 0, 1, 0, 0},
     {1, 1, 1}},
};

/// A plan of one call on two inputs (and a bias) to an output.
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

void expectConvolution(PlanBuilder plan, const char *name,
                       double tolerance = 1e-5) {
  SCOPED_TRACE(name);
  expectSame(plan, tolerance);
}
} // namespace

/// A volume and its bias are two steps: the fake, as cuDNN, has no kernel for
/// both.
TEST(CudaConvolution, Forward) {
  for (const Case &c : cases)
    for (bool bias : {false, true})
      expectConvolution(planOf(c, "conv", c.x(), c.w(), c.y(), bias), c.name);
}

TEST(CudaConvolution, GradInput) {
  for (const Case &c : cases)
    expectConvolution(planOf(c, "conv_grad_input", c.y(), c.w(), c.x()),
                      c.name);
}

TEST(CudaConvolution, GradWeight) {
  for (const Case &c : cases)
    expectConvolution(planOf(c, "conv_grad_weight", c.y(), c.x(), c.w()),
                      c.name);
}

TEST(CudaConvolution, NarrowTypes) {
  const Case &c = cases[0];
  for (fb::DType type : {fb::DType_BF16, fb::DType_F16}) {
    double tolerance = type == fb::DType_F16 ? 4e-3 : 4e-2;
    expectConvolution(planOf(c, "conv", c.x(), c.w(), c.y(), true, type),
                      c.name, tolerance);
    expectConvolution(
        planOf(c, "conv_grad_input", c.y(), c.w(), c.x(), false, type), c.name,
        tolerance);
    expectConvolution(
        planOf(c, "conv_grad_weight", c.y(), c.x(), c.w(), false, type), c.name,
        tolerance);
  }
}

TEST(CudaConvolution, WhatIsNoConvolutionIsRefused) {
  auto errorOf = [](PlanBuilder plan) {
    forCuda(plan);
    return sessionError(plan);
  };
  Case c = cases[0];
  EXPECT_EQ(errorOf(planOf(c, "conv_grad_input", c.y(), c.w(), c.x(), true)),
            "rank 0, command 0 (call conv_grad_input): a conv_grad_input has 3 "
            "operands, not 4");
  EXPECT_EQ(errorOf(planOf(c, "conv", {2, 3, 7}, c.w(), c.y())),
            "rank 0, command 0 (call conv): a convolution takes tensors of 3 "
            "to 5 equal numbers of dimensions, and a bias of one, not 3 and 4");
  c.strides = {1};
  EXPECT_EQ(errorOf(planOf(c, "conv", c.x(), c.w(), {2, 4, 5, 4})),
            "rank 0, command 0 (call conv): attribute strides has 1 values "
            "instead of 2");
  c.strides = {0, 1};
  EXPECT_EQ(errorOf(planOf(c, "conv", c.x(), c.w(), {2, 4, 5, 4})),
            "rank 0, command 0 (call conv): attribute strides has the value 0");
  // Sizes that do not fit: what cuDNN says.
  c = cases[0];
  EXPECT_THAT(errorOf(planOf(c, "conv", c.x(), c.w(), {2, 4, 4, 4})),
              testing::HasSubstr("cuDNN does not take this conv ("));
}

TEST(CudaConvolution, OperandsHaveOneType) {
  const Case &c = cases[0];
  PlanBuilder plan = planOf(c, "conv", c.x(), c.w(), c.y());
  plan.program.buffers[1]->dtype = fb::DType_BF16;
  plan.program.inputs[1]->dtype = fb::DType_BF16;
  forCuda(plan);
  EXPECT_THAT(
      sessionError(plan),
      testing::HasSubstr(
          "a convolution takes operands of one type, not f32 and bf16"));
}
