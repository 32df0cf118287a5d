//===- UpstreamKernelsTest.cpp - Kernels in upstream dialects -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that a user writes in linalg, arith, math and tosa compile and
// compute what they say.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace zero_test;

TEST(UpstreamKernels, ArithAndMathOnTensorsFuseIntoOneLoop) {
  for (int64_t n : {1, 3, 5, 257}) {
    Kernels kernels(substitute(R"(
      func.func @k(%a: %T%, %b: %T%) -> %T% attributes {plan.kernel} {
        %0 = arith.addf %a, %b : %T%
        %1 = math.exp %0 : %T%
        %2 = arith.mulf %1, %a : %T%
        return %2 : %T%
      })",
                               {{"T", tensorType({n})}}));
    std::vector<float> a = randomFloats(n), b = randomFloats(n, -2, 2, 7);
    std::vector<float> out(n), expected(n);
    for (int64_t i = 0; i < n; ++i)
      expected[i] = std::exp(a[i] + b[i]) * a[i];
    kernels.run("k", {a.data(), b.data(), out.data()});
    expectClose(out, expected);
  }
}

TEST(UpstreamKernels, LinalgReductionOverRows) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<5x257xf32>) -> tensor<257xf32>
        attributes {plan.kernel} {
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<257xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<257xf32>)
          -> tensor<257xf32>
      %0 = linalg.reduce ins(%x : tensor<5x257xf32>)
          outs(%init : tensor<257xf32>) dimensions = [0]
          (%in: f32, %acc: f32) {
            %s = arith.addf %in, %acc : f32
            linalg.yield %s : f32
          }
      return %0 : tensor<257xf32>
    })");
  std::vector<float> x = randomFloats(5 * 257), out(257), expected(257);
  for (int64_t i = 0; i < 5 * 257; ++i)
    expected[i % 257] += x[i];
  kernels.run("k", {x.data(), out.data()});
  expectClose(out, expected);
}

TEST(UpstreamKernels, TiedResultIsComputedInPlace) {
  Kernels kernels(R"(
    func.func @k(%p: tensor<33xf32>, %g: tensor<33xf32>) -> tensor<33xf32>
        attributes {plan.kernel, plan.tied = array<i64: 0>} {
      %0 = arith.subf %p, %g : tensor<33xf32>
      return %0 : tensor<33xf32>
    })");
  std::vector<float> p = randomFloats(33), g = randomFloats(33, -1, 1, 5);
  std::vector<float> expected(33);
  for (int i = 0; i < 33; ++i)
    expected[i] = p[i] - g[i];
  kernels.run("k", {p.data(), g.data()});
  expectClose(p, expected, 0);
}

TEST(UpstreamKernels, BooleansAreBytes) {
  Kernels kernels(R"(
    func.func @less(%a: tensor<67xf32>, %b: tensor<67xf32>) -> tensor<67xi1>
        attributes {plan.kernel} {
      %0 = arith.cmpf olt, %a, %b : tensor<67xf32>
      return %0 : tensor<67xi1>
    }
    func.func @select(%c: tensor<67xi1>, %a: tensor<67xf32>,
                      %b: tensor<67xf32>) -> tensor<67xf32>
        attributes {plan.kernel} {
      %0 = arith.select %c, %a, %b : tensor<67xi1>, tensor<67xf32>
      return %0 : tensor<67xf32>
    })");
  std::vector<float> a = randomFloats(67), b = randomFloats(67, -2, 2, 3);
  std::vector<uint8_t> less(67, 0xff);
  std::vector<float> out(67), expected(67);
  kernels.run("less", {a.data(), b.data(), less.data()});
  kernels.run("select", {less.data(), a.data(), b.data(), out.data()});
  for (int i = 0; i < 67; ++i) {
    EXPECT_EQ(less[i], a[i] < b[i] ? 1 : 0);
    expected[i] = std::min(a[i], b[i]);
  }
  expectClose(out, expected, 0);
}

TEST(UpstreamKernels, TosaIsLowered) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<4x9xf32>) -> tensor<4x9xf32>
        attributes {plan.kernel} {
      %0 = tosa.tanh %x : (tensor<4x9xf32>) -> tensor<4x9xf32>
      %1 = tosa.add %0, %x : (tensor<4x9xf32>, tensor<4x9xf32>)
          -> tensor<4x9xf32>
      return %1 : tensor<4x9xf32>
    })");
  std::vector<float> x = randomFloats(36), out(36), expected(36);
  for (int i = 0; i < 36; ++i)
    expected[i] = std::tanh(x[i]) + x[i];
  kernels.run("k", {x.data(), out.data()});
  expectClose(out, expected);
}

TEST(UpstreamKernels, ResultsOfOneShapeShareALoop) {
  Kernels kernels(R"(
    func.func @k(%a: tensor<6x5xf32>) -> (tensor<6x5xf32>, tensor<6x5xf32>)
        attributes {plan.kernel} {
      %0 = math.tanh %a : tensor<6x5xf32>
      %1 = arith.mulf %0, %a : tensor<6x5xf32>
      return %0, %1 : tensor<6x5xf32>, tensor<6x5xf32>
    })");
  std::vector<float> a = randomFloats(30), t(30), m(30), et(30), em(30);
  for (int i = 0; i < 30; ++i) {
    et[i] = std::tanh(a[i]);
    em[i] = et[i] * a[i];
  }
  kernels.run("k", {a.data(), t.data(), m.data()});
  expectClose(t, et);
  expectClose(m, em);
}

TEST(UpstreamKernels, EmptyTensorsAreNoWork) {
  Kernels kernels(R"(
    func.func @k(%a: tensor<0x5xf32>) -> tensor<0x5xf32>
        attributes {plan.kernel} {
      %0 = math.exp %a : tensor<0x5xf32>
      return %0 : tensor<0x5xf32>
    })");
  kernels.run("k", {nullptr, nullptr});
}

TEST(UpstreamKernels, EmptyDimensionsMayBeInTheMiddle) {
  Kernels kernels(R"(
    func.func @k(%a: tensor<2x0x3xf32>) -> (tensor<2x0x3xf32>, tensor<2x3xf32>)
        attributes {plan.kernel, plan.tied = array<i64: 0, -1>} {
      %0 = train.softmax %a axis 1 : tensor<2x0x3xf32>
      %1 = train.reduce_sum %0 axes [1]
          : (tensor<2x0x3xf32>) -> tensor<2x3xf32>
      return %0, %1 : tensor<2x0x3xf32>, tensor<2x3xf32>
    })");
  std::vector<float> sum(6, 7);
  kernels.run("k", {nullptr, sum.data()});
  expectClose(sum, std::vector<float>(6, 0), 0);
}

TEST(UpstreamKernels, LargeTemporaryIsAnError) {
  Kernels kernels(R"(
    func.func @k(%a: tensor<1024x1024xf32>) -> tensor<f32>
        attributes {plan.kernel} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<1024x1024xf32>
      %t = linalg.transpose ins(%a : tensor<1024x1024xf32>)
          outs(%e : tensor<1024x1024xf32>) permutation = [1, 0]
      %s = arith.constant dense<0.0> : tensor<f32>
      %m = linalg.matmul ins(%t, %a : tensor<1024x1024xf32>,
          tensor<1024x1024xf32>) outs(%a : tensor<1024x1024xf32>)
          -> tensor<1024x1024xf32>
      %r = linalg.reduce { arith.addf } ins(%m : tensor<1024x1024xf32>)
          outs(%s : tensor<f32>) dimensions = [0, 1]
      return %r : tensor<f32>
    })");
  EXPECT_FALSE(kernels.isValid());
  EXPECT_NE(kernels.error().find("does not fit into the 1048576 bytes of a "
                                 "kernel's stack frame"),
            std::string::npos)
      << kernels.error();
}

TEST(UpstreamKernels, BadTiesAreErrors) {
  Kernels kernels(R"(
    func.func @k(%p: tensor<3xf32>, %g: tensor<4xf32>) -> tensor<3xf32>
        attributes {plan.kernel, plan.tied = array<i64: 1>} {
      return %p : tensor<3xf32>
    })");
  EXPECT_EQ(kernels.error(), "'func.func' op ties result 0 to operand 1, which "
                             "does not exist or has another type");
  Kernels missing(R"(
    func.func @k(%p: tensor<3xf32>) -> tensor<3xf32>
        attributes {plan.kernel, plan.tied = array<i64>} {
      return %p : tensor<3xf32>
    })");
  EXPECT_EQ(missing.error(), "'func.func' op ties 0 results but has 1");
}

TEST(UpstreamKernels, NameOfALibraryFunctionIsAnError) {
  Kernels kernels(R"(
    func.func @exp(%x: tensor<3xf64>) -> tensor<3xf64>
        attributes {plan.kernel} {
      %0 = math.exp %x : tensor<3xf64>
      return %0 : tensor<3xf64>
    })");
  EXPECT_EQ(kernels.error(), "kernel 'exp' has the name of a function of libc "
                             "or libm");
}
