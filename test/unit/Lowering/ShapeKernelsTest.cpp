//===- ShapeKernelsTest.cpp - Reductions, pools and moved elements --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

using namespace zero_test;
using Floats = std::vector<float>;

static Floats iota(int64_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST(ShapeKernels, ReductionsAlongEveryAxis) {
  for (int64_t axis : {0, 1, 2})
    for (bool keep : {false, true}) {
      Shape shape = {3, 5, 33}, reduced = shape;
      reduced[axis] = 1;
      Shape result = reduced;
      if (!keep)
        result.erase(result.begin() + axis);
      std::string text;
      for (const char *op :
           {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"})
        text += substitute(R"(
          func.func @%OP%(%x: tensor<3x5x33xf32>) -> %R%
              attributes {plan.kernel} {
            %0 = train.%OP% %x axes [%A%] %K% : (tensor<3x5x33xf32>) -> %R%
            return %0 : %R%
          })",
                           {{"OP", op},
                            {"A", std::to_string(axis)},
                            {"K", keep ? "{keepdims}" : ""},
                            {"R", tensorType(result)}});
      Kernels kernels(text);
      int64_t n = countElements(result), size = shape[axis];
      Floats x = randomFloats(3 * 5 * 33), y(n);
      Floats sum(n), mean(n), max(n, -INFINITY), min(n, INFINITY);
      for (int64_t i = 0; i < 3 * 5 * 33; ++i) {
        int64_t at[3] = {i / 165, i / 33 % 5, i % 33};
        at[axis] = 0;
        int64_t o = (at[0] * reduced[1] + at[1]) * reduced[2] + at[2];
        sum[o] += x[i];
        max[o] = std::max(max[o], x[i]);
        min[o] = std::min(min[o], x[i]);
      }
      for (int64_t i = 0; i < n; ++i)
        mean[i] = sum[i] / size;
      auto check = [&](const char *op, const Floats &expected) {
        SCOPED_TRACE(op);
        kernels.run(op, {x.data(), y.data()});
        expectClose(y, expected, 1e-5);
      };
      check("reduce_sum", sum);
      check("reduce_mean", mean);
      check("reduce_max", max);
      check("reduce_min", min);
    }
}

TEST(ShapeKernels, ReductionToAScalarWithAFusedProducer) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<700x500xf32>, %y: tensor<700x500xf32>)
        -> tensor<f32> attributes {plan.kernel} {
      %0 = train.sub %x, %y : tensor<700x500xf32>
      %1 = train.mul %0, %0 : tensor<700x500xf32>
      %2 = train.reduce_mean %1 axes [0, 1]
          : (tensor<700x500xf32>) -> tensor<f32>
      return %2 : tensor<f32>
    })");
  Floats x = randomFloats(350000), y = randomFloats(350000, -2, 2, 2), r(1);
  double sum = 0;
  for (int i = 0; i < 350000; ++i)
    sum += (double(x[i]) - y[i]) * (double(x[i]) - y[i]);
  kernels.run("k", {x.data(), y.data(), r.data()});
  expectClose(r, {float(sum / 350000)}, 1e-6);
}

TEST(ShapeKernels, EmptyAndIntegerReductions) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<0x3xf32>, %i: tensor<4xi64>)
        -> (tensor<3xf32>, tensor<i64>, tensor<i64>)
        attributes {plan.kernel} {
      %0 = train.reduce_sum %x axes [0] : (tensor<0x3xf32>) -> tensor<3xf32>
      %1 = train.reduce_sum %i axes [0] : (tensor<4xi64>) -> tensor<i64>
      %2 = train.reduce_min %i axes [0] : (tensor<4xi64>) -> tensor<i64>
      return %0, %1, %2 : tensor<3xf32>, tensor<i64>, tensor<i64>
    })");
  Floats out(3, 7);
  std::vector<int64_t> x = {5, -9, 2, 1}, sum(1), min(1);
  kernels.run("k", {nullptr, x.data(), out.data(), sum.data(), min.data()});
  expectClose(out, {0, 0, 0}, 0);
  EXPECT_EQ(sum[0], -1);
  EXPECT_EQ(min[0], -9);
}

//===----------------------------------------------------------------------===//
// Moved elements
//===----------------------------------------------------------------------===//

TEST(ShapeKernels, TransposesOfAttentionHeads) {
  const int64_t B = 2, T = 3, H = 4, D = 5, n = B * T * H * D;
  Kernels kernels(R"(
    func.func @heads(%x: tensor<2x3x4x5xf32>) -> tensor<2x4x3x5xf32>
        attributes {plan.kernel} {
      %0 = train.transpose %x [0, 2, 1, 3]
          : (tensor<2x3x4x5xf32>) -> tensor<2x4x3x5xf32>
      return %0 : tensor<2x4x3x5xf32>
    }
    func.func @rotate(%x: tensor<2x3x20xf32>) -> tensor<3x20x2xf32>
        attributes {plan.kernel} {
      %0 = train.transpose %x [1, 2, 0]
          : (tensor<2x3x20xf32>) -> tensor<3x20x2xf32>
      return %0 : tensor<3x20x2xf32>
    })");
  Floats x = iota(n), y(n), z(n), ey(n), ez(n);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t i = 0; i < H * D; ++i) {
        float value = x[(b * T + t) * H * D + i];
        ey[((b * H + i / D) * T + t) * D + i % D] = value;
        ez[(t * H * D + i) * B + b] = value;
      }
  kernels.run("heads", {x.data(), y.data()});
  kernels.run("rotate", {x.data(), z.data()});
  expectClose(y, ey, 0);
  expectClose(z, ez, 0);
}

TEST(ShapeKernels, SlicePadConcatBroadcastReshape) {
  Kernels kernels(R"(
    func.func @slice(%x: tensor<4x6xf32>) -> tensor<2x3xf32>
        attributes {plan.kernel} {
      %0 = train.slice %x starts [1, 0] limits [3, 6] strides [1, 2]
          : (tensor<4x6xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }
    func.func @pad(%x: tensor<2x3xf32>) -> tensor<4x6xf32>
        attributes {plan.kernel} {
      %0 = train.pad %x low [1, 0] high [1, 1] interior [0, 1]
          : (tensor<2x3xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }
    func.func @concat(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>)
        -> tensor<2x4xf32> attributes {plan.kernel} {
      %0 = train.concat %x, %y axis 1
          : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }
    func.func @broadcast(%x: tensor<1x3xf32>) -> tensor<2x2x3xf32>
        attributes {plan.kernel} {
      %0 = train.broadcast %x : tensor<1x3xf32> to tensor<2x2x3xf32>
      return %0 : tensor<2x2x3xf32>
    }
    func.func @reshape(%x: tensor<2x3xf32>) -> tensor<3x2xf32>
        attributes {plan.kernel} {
      %0 = train.reshape %x : tensor<2x3xf32> to tensor<3x2xf32>
      %1 = train.neg %0 : tensor<3x2xf32>
      return %1 : tensor<3x2xf32>
    }
    func.func @scalars(%x: tensor<f32>) -> tensor<1x1xf32>
        attributes {plan.kernel} {
      %0 = train.reshape %x : tensor<f32> to tensor<1x1xf32>
      return %0 : tensor<1x1xf32>
    })");
  Floats big = iota(24), small = iota(6), column = {8, 9};
  Floats slice(6), pad(24, 5), concat(8), broadcast(12), reshape(6), scalar(1);
  kernels.run("slice", {big.data(), slice.data()});
  expectClose(slice, {7, 9, 11, 13, 15, 17}, 0);
  kernels.run("pad", {small.data(), pad.data()});
  expectClose(pad, {0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0,
                    4, 0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0},
              0);
  kernels.run("concat", {small.data(), column.data(), concat.data()});
  expectClose(concat, {1, 2, 3, 8, 4, 5, 6, 9}, 0);
  kernels.run("broadcast", {small.data(), broadcast.data()});
  expectClose(broadcast, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}, 0);
  kernels.run("reshape", {small.data(), reshape.data()});
  expectClose(reshape, {-1, -2, -3, -4, -5, -6}, 0);
  kernels.run("scalars", {small.data(), scalar.data()});
  expectClose(scalar, {1}, 0);
}

TEST(ShapeKernels, GatherAndItsGradient) {
  Kernels kernels(R"(
    func.func @rows(%d: tensor<5x3xf32>, %i: tensor<2x2xi64>,
                    %p: tensor<2x3xf32>) -> tensor<2x2x3xf32>
        attributes {plan.kernel} {
      %0 = train.gather %d, %i axis 0
          : (tensor<5x3xf32>, tensor<2x2xi64>) -> tensor<2x2x3xf32>
      %1 = train.add %0, %p
          : (tensor<2x2x3xf32>, tensor<2x3xf32>) -> tensor<2x2x3xf32>
      return %1 : tensor<2x2x3xf32>
    }
    func.func @columns(%d: tensor<5x3xf32>, %i: tensor<2xi64>)
        -> tensor<5x2xf32> attributes {plan.kernel} {
      %0 = train.gather %d, %i axis 1
          : (tensor<5x3xf32>, tensor<2xi64>) -> tensor<5x2xf32>
      return %0 : tensor<5x2xf32>
    }
    func.func @rows_grad(%g: tensor<2x2x3xf32>, %i: tensor<2x2xi64>)
        -> tensor<5x3xf32> attributes {plan.kernel} {
      %0 = train.gather_grad %g, %i axis 0 data_shape [5, 3]
          : (tensor<2x2x3xf32>, tensor<2x2xi64>) -> tensor<5x3xf32>
      return %0 : tensor<5x3xf32>
    }
    func.func @columns_grad(%g: tensor<5x2xf32>, %i: tensor<2xi64>)
        -> tensor<5x3xf32> attributes {plan.kernel} {
      %0 = train.gather_grad %g, %i axis 1 data_shape [5, 3]
          : (tensor<5x2xf32>, tensor<2xi64>) -> tensor<5x3xf32>
      return %0 : tensor<5x3xf32>
    })");
  Floats data = iota(15), position = {0, 0, 0, 100, 100, 100};
  std::vector<int64_t> index = {0, 4, -1, 0}, pair = {2, -2},
                       wild = {0, 9, -9, 4};
  Floats rows(12), columns(10), rowsGrad(15, 3), columnsGrad(15, 3);
  kernels.run("rows",
              {data.data(), index.data(), position.data(), rows.data()});
  expectClose(rows, {1, 2, 3, 113, 114, 115, 13, 14, 15, 101, 102, 103}, 0);
  kernels.run("columns", {data.data(), pair.data(), columns.data()});
  expectClose(columns, {3, 2, 6, 5, 9, 8, 12, 11, 15, 14}, 0);
  Floats grad = iota(12);
  kernels.run("rows_grad", {grad.data(), index.data(), rowsGrad.data()});
  expectClose(rowsGrad, {11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 13, 15}, 0);
  kernels.run("columns_grad", {grad.data(), pair.data(), columnsGrad.data()});
  expectClose(columnsGrad, {0, 2, 1, 0, 4, 3, 0, 6, 5, 0, 8, 7, 0, 10, 9}, 0);
  // Bad indices read and write inside of the table all the same.
  kernels.run("rows", {data.data(), wild.data(), position.data(), rows.data()});
  kernels.run("rows_grad", {grad.data(), wild.data(), rowsGrad.data()});
}

//===----------------------------------------------------------------------===//
// Poolings
//===----------------------------------------------------------------------===//

namespace {
/// A pooling of [2, 3, 7, 6] with a 3x2 kernel, strides 2, pads 1 0 1 1.
struct Pool {
  static constexpr int64_t H = 7, W = 6, OH = 4, OW = 3, planes = 6;

  static bool locate(int64_t oh, int64_t ow, int64_t kh, int64_t kw, int64_t &h,
                     int64_t &w) {
    h = oh * 2 - 1 + kh;
    w = ow * 2 + kw;
    return h >= 0 && h < H && w >= 0 && w < W;
  }

  static void forEach(const std::function<void(int64_t, int64_t, int64_t)> &f) {
    for (int64_t p = 0; p < planes; ++p)
      for (int64_t oh = 0; oh < OH; ++oh)
        for (int64_t ow = 0; ow < OW; ++ow)
          f(p, oh, ow);
  }
};
} // namespace

static const char *const kPoolAttrs =
    "kernel [3, 2] strides [2, 2] pads [1, 0, 1, 1] dilations [1, 1]";

TEST(ShapeKernels, MaxPoolAndItsGradient) {
  Kernels kernels(substitute(R"(
    func.func @forward(%x: tensor<2x3x7x6xf32>) -> tensor<2x3x4x3xf32>
        attributes {plan.kernel} {
      %0 = train.max_pool %x %A%
          : (tensor<2x3x7x6xf32>) -> tensor<2x3x4x3xf32>
      return %0 : tensor<2x3x4x3xf32>
    }
    func.func @backward(%dy: tensor<2x3x4x3xf32>, %x: tensor<2x3x7x6xf32>)
        -> tensor<2x3x7x6xf32> attributes {plan.kernel} {
      %0 = train.max_pool_grad %dy, %x %A%
          : (tensor<2x3x4x3xf32>, tensor<2x3x7x6xf32>) -> tensor<2x3x7x6xf32>
      return %0 : tensor<2x3x7x6xf32>
    })",
                             {{"A", kPoolAttrs}}));
  Floats x = randomFloats(252), dy = randomFloats(72, 1, 2, 2);
  // Equal elements: the first one gets the gradient.
  for (int i = 0; i < 252; i += 3)
    x[i] = 1.5;
  for (int i = 42; i < 84; ++i)
    x[i] = -INFINITY;
  Floats y(72), dx(252, 9), ey(72), edx(252);
  Pool::forEach([&](int64_t p, int64_t oh, int64_t ow) {
    int64_t best = -1, o = (p * Pool::OH + oh) * Pool::OW + ow;
    for (int64_t kh = 0; kh < 3; ++kh)
      for (int64_t kw = 0; kw < 2; ++kw) {
        int64_t h, w;
        if (!Pool::locate(oh, ow, kh, kw, h, w))
          continue;
        int64_t at = (p * Pool::H + h) * Pool::W + w;
        if (best < 0 || x[at] > x[best])
          best = at;
      }
    ey[o] = x[best];
    edx[best] += dy[o];
  });
  kernels.run("forward", {x.data(), y.data()});
  kernels.run("backward", {dy.data(), x.data(), dx.data()});
  expectClose(y, ey, 0);
  expectClose(dx, edx, 1e-6);
}

TEST(ShapeKernels, AvgPoolAndItsGradient) {
  for (bool includePad : {false, true}) {
    Kernels kernels(substitute(
        R"(
      func.func @forward(%x: tensor<2x3x7x6xf32>) -> tensor<2x3x4x3xf32>
          attributes {plan.kernel} {
        %0 = train.avg_pool %x %A% %P%
            : (tensor<2x3x7x6xf32>) -> tensor<2x3x4x3xf32>
        return %0 : tensor<2x3x4x3xf32>
      }
      func.func @backward(%dy: tensor<2x3x4x3xf32>) -> tensor<2x3x7x6xf32>
          attributes {plan.kernel} {
        %0 = train.avg_pool_grad %dy input_shape [2, 3, 7, 6] %A% %P%
            : (tensor<2x3x4x3xf32>) -> tensor<2x3x7x6xf32>
        return %0 : tensor<2x3x7x6xf32>
      })",
        {{"A", kPoolAttrs}, {"P", includePad ? "{count_include_pad}" : ""}}));
    Floats x = randomFloats(252), dy = randomFloats(72, 1, 2, 2);
    Floats y(72), dx(252, 9), ey(72), edx(252);
    Pool::forEach([&](int64_t p, int64_t oh, int64_t ow) {
      std::vector<int64_t> inside;
      int64_t o = (p * Pool::OH + oh) * Pool::OW + ow;
      for (int64_t kh = 0; kh < 3; ++kh)
        for (int64_t kw = 0; kw < 2; ++kw) {
          int64_t h, w;
          if (Pool::locate(oh, ow, kh, kw, h, w))
            inside.push_back((p * Pool::H + h) * Pool::W + w);
        }
      double count = includePad ? 6 : inside.size();
      for (int64_t at : inside) {
        ey[o] += x[at] / count;
        edx[at] += dy[o] / count;
      }
    });
    kernels.run("forward", {x.data(), y.data()});
    kernels.run("backward", {dy.data(), dx.data()});
    expectClose(y, ey, 1e-6);
    expectClose(dx, edx, 1e-6);
  }
}
