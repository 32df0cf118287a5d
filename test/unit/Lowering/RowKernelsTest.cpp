//===- RowKernelsTest.cpp - Softmax, norms and losses ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that loop over rows against references in f64, on odd shapes, on
// axes that are not the last, and with a fused producer.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace zero_test;
using Floats = std::vector<float>;

namespace {
/// A tensor [outer, row, inner] whose rows have stride `inner`.
struct RowShape {
  int64_t outer, row, inner;

  int64_t count() const { return outer * row * inner; }
  std::string type() const { return tensorType({outer, row, inner}); }
  /// The offset of element `i` of the row that contains no element before
  /// (o, n).
  int64_t at(int64_t o, int64_t i, int64_t n) const {
    return (o * row + i) * inner + n;
  }
  void forEachRow(const std::function<void(int64_t, int64_t)> &body) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t n = 0; n < inner; ++n)
        body(o, n);
  }
};
} // namespace

static const std::vector<RowShape> kRowShapes = {
    {3, 257, 1}, {5, 1, 1}, {1, 5, 3}, {4, 128, 1}, {2, 7, 19}, {0, 5, 1}};

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

TEST(RowKernels, SoftmaxAndLogSoftmax) {
  for (const RowShape &s : kRowShapes) {
    Kernels kernels(substitute(R"(
      func.func @softmax(%x: %T%) -> %T% attributes {plan.kernel} {
        %0 = train.softmax %x axis 1 : %T%
        return %0 : %T%
      }
      func.func @log_softmax(%x: %T%) -> %T% attributes {plan.kernel} {
        %0 = train.log_softmax %x axis 1 : %T%
        return %0 : %T%
      })",
                               {{"T", s.type()}}));
    Floats x = randomFloats(s.count(), -90, 90), y(s.count()), l(s.count());
    Floats ey(s.count()), el(s.count());
    s.forEachRow([&](int64_t o, int64_t n) {
      double max = -INFINITY, sum = 0;
      for (int64_t i = 0; i < s.row; ++i)
        max = std::max<double>(max, x[s.at(o, i, n)]);
      for (int64_t i = 0; i < s.row; ++i)
        sum += std::exp(x[s.at(o, i, n)] - max);
      for (int64_t i = 0; i < s.row; ++i) {
        el[s.at(o, i, n)] = x[s.at(o, i, n)] - max - std::log(sum);
        ey[s.at(o, i, n)] = std::exp(x[s.at(o, i, n)] - max) / sum;
      }
    });
    kernels.run("softmax", {x.data(), y.data()});
    kernels.run("log_softmax", {x.data(), l.data()});
    expectClose(y, ey, 1e-6);
    expectClose(l, el, 1e-6);
  }
}

TEST(RowKernels, SoftmaxGradients) {
  for (const RowShape &s : kRowShapes) {
    Kernels kernels(substitute(R"(
      func.func @softmax(%dy: %T%, %y: %T%) -> %T% attributes {plan.kernel} {
        %0 = train.softmax_grad %dy, %y axis 1 : %T%
        return %0 : %T%
      }
      func.func @log_softmax(%dy: %T%, %y: %T%) -> %T%
          attributes {plan.kernel} {
        %0 = train.log_softmax_grad %dy, %y axis 1 : %T%
        return %0 : %T%
      })",
                               {{"T", s.type()}}));
    Floats dy = randomFloats(s.count()), y = randomFloats(s.count(), -1, 1, 4);
    Floats a(s.count()), b(s.count()), ea(s.count()), eb(s.count());
    s.forEachRow([&](int64_t o, int64_t n) {
      double dot = 0, sum = 0;
      for (int64_t i = 0; i < s.row; ++i) {
        dot += double(dy[s.at(o, i, n)]) * y[s.at(o, i, n)];
        sum += dy[s.at(o, i, n)];
      }
      for (int64_t i = 0; i < s.row; ++i) {
        int64_t k = s.at(o, i, n);
        ea[k] = (dy[k] - dot) * y[k];
        eb[k] = dy[k] - std::exp(double(y[k])) * sum;
      }
    });
    kernels.run("softmax", {dy.data(), y.data(), a.data()});
    kernels.run("log_softmax", {dy.data(), y.data(), b.data()});
    expectClose(a, ea, 1e-5);
    expectClose(b, eb, 1e-5);
  }
}

TEST(RowKernels, ProducersAreFusedIntoTheRows) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<2x3x2048xf32>, %m: tensor<3x2048xi1>,
                 %s: tensor<2x3x1xf32>) -> tensor<2x3x2048xf32>
        attributes {plan.kernel} {
      %low = arith.constant dense<-1.0e+9> : tensor<f32>
      %0 = train.where %m, %x, %low
          : (tensor<3x2048xi1>, tensor<2x3x2048xf32>, tensor<f32>)
          -> tensor<2x3x2048xf32>
      %1 = train.mul %0, %s : (tensor<2x3x2048xf32>, tensor<2x3x1xf32>)
          -> tensor<2x3x2048xf32>
      %2 = train.softmax %1 axis 2 : tensor<2x3x2048xf32>
      return %2 : tensor<2x3x2048xf32>
    })");
  const int64_t n = 2 * 3 * 2048;
  Floats x = randomFloats(n), scale = {1, 2, 0.5, 1, 3, 1}, y(n), e(n);
  std::vector<uint8_t> mask(3 * 2048);
  for (size_t i = 0; i < mask.size(); ++i)
    mask[i] = i % 3 == 0;
  for (int64_t r = 0; r < 6; ++r) {
    double sum = 0;
    auto value = [&](int64_t i) {
      return mask[(r % 3) * 2048 + i]
                 ? std::exp(double(x[r * 2048 + i]) * scale[r])
                 : 0;
    };
    for (int64_t i = 0; i < 2048; ++i)
      sum += value(i);
    for (int64_t i = 0; i < 2048; ++i)
      e[r * 2048 + i] = value(i) / sum;
  }
  kernels.run("k", {x.data(), mask.data(), scale.data(), y.data()});
  expectClose(y, e, 1e-6);
}

//===----------------------------------------------------------------------===//
// Layer and root-mean-square normalization
//===----------------------------------------------------------------------===//

TEST(RowKernels, LayerNormAndItsGradient) {
  for (int64_t rows : {1, 3, 8})
    for (int64_t size : {1, 5, 257, 384}) {
      Kernels kernels(substitute(
          R"(
        func.func @forward(%x: %X%, %s: %S%, %b: %S%) -> (%X%, %R%, %R%)
            attributes {plan.kernel} {
          %y, %m, %r = train.layer_norm %x, %s, %b
              {axis = 1 : i64, epsilon = 1.0e-5 : f64}
              : (%X%, %S%, %S%) -> (%X%, %R%, %R%)
          return %y, %m, %r : %X%, %R%, %R%
        }
        func.func @backward(%dy: %X%, %x: %X%, %s: %S%, %m: %R%, %r: %R%)
            -> (%X%, %S%, %S%) attributes {plan.kernel} {
          %dx, %ds, %db = train.layer_norm_grad %dy, %x, %s, %m, %r
              {axis = 1 : i64} : (%X%, %X%, %S%, %R%, %R%) -> (%X%, %S%, %S%)
          return %dx, %ds, %db : %X%, %S%, %S%
        })",
          {{"X", tensorType({rows, size})},
           {"S", tensorType({size})},
           {"R", tensorType({rows, 1})}}));
      int64_t n = rows * size;
      Floats x = randomFloats(n, -3, 5), scale = randomFloats(size, 0.5, 2, 2),
             bias = randomFloats(size, -1, 1, 3),
             dy = randomFloats(n, -1, 1, 4);
      Floats y(n), mean(rows), rstd(rows), dx(n), ds(size), db(size);
      Floats ey(n), edx(n), eds(size), edb(size);
      std::vector<double> sumScale(size), sumBias(size);
      for (int64_t r = 0; r < rows; ++r) {
        double m = 0, v = 0, g1 = 0, g2 = 0;
        for (int64_t i = 0; i < size; ++i)
          m += x[r * size + i] / double(size);
        for (int64_t i = 0; i < size; ++i)
          v += (x[r * size + i] - m) * (x[r * size + i] - m) / size;
        double inv = 1 / std::sqrt(v + 1e-5);
        for (int64_t i = 0; i < size; ++i) {
          double u = (x[r * size + i] - m) * inv, d = dy[r * size + i];
          ey[r * size + i] = u * scale[i] + bias[i];
          g1 += d * scale[i] / size;
          g2 += d * scale[i] * u / size;
          sumScale[i] += d * u;
          sumBias[i] += d;
        }
        for (int64_t i = 0; i < size; ++i) {
          double u = (x[r * size + i] - m) * inv;
          edx[r * size + i] = inv * (dy[r * size + i] * scale[i] - g1 - u * g2);
        }
      }
      eds.assign(sumScale.begin(), sumScale.end());
      edb.assign(sumBias.begin(), sumBias.end());
      kernels.run("forward", {x.data(), scale.data(), bias.data(), y.data(),
                              mean.data(), rstd.data()});
      kernels.run("backward", {dy.data(), x.data(), scale.data(), mean.data(),
                               rstd.data(), dx.data(), ds.data(), db.data()});
      expectClose(y, ey, 1e-5);
      // A row of one element has no spread: its gradient is rounding only.
      expectClose(dx, edx, size == 1 ? 1e-3 : 1e-5);
      expectClose(ds, eds, 1e-5);
      expectClose(db, edb, 1e-5);
    }
}

TEST(RowKernels, LayerNormWithoutBiasOverTwoDimensions) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<3x4x5xf32>, %s: tensor<4x5xf32>)
        -> (tensor<3x4x5xf32>, tensor<3x1x1xf32>, tensor<3x1x1xf32>)
        attributes {plan.kernel} {
      %y, %m, %r = train.layer_norm %x, %s
          {axis = 1 : i64, epsilon = 1.0e-5 : f64}
          : (tensor<3x4x5xf32>, tensor<4x5xf32>)
          -> (tensor<3x4x5xf32>, tensor<3x1x1xf32>, tensor<3x1x1xf32>)
      return %y, %m, %r
          : tensor<3x4x5xf32>, tensor<3x1x1xf32>, tensor<3x1x1xf32>
    })");
  Floats x = randomFloats(60), s = randomFloats(20, 1, 2, 3), y(60), m(3), r(3);
  Floats ey(60), em(3);
  for (int b = 0; b < 3; ++b) {
    double mean = 0, var = 0;
    for (int i = 0; i < 20; ++i)
      mean += x[b * 20 + i] / 20.0;
    for (int i = 0; i < 20; ++i)
      var += (x[b * 20 + i] - mean) * (x[b * 20 + i] - mean) / 20;
    for (int i = 0; i < 20; ++i)
      ey[b * 20 + i] = (x[b * 20 + i] - mean) / std::sqrt(var + 1e-5) * s[i];
    em[b] = mean;
  }
  kernels.run("k", {x.data(), s.data(), y.data(), m.data(), r.data()});
  expectClose(y, ey, 1e-6);
  expectClose(m, em, 1e-6);
}

TEST(RowKernels, RmsNormAndItsGradient) {
  const int64_t rows = 3, size = 65, n = rows * size;
  Kernels kernels(R"(
    func.func @forward(%x: tensor<3x65xf32>, %s: tensor<65xf32>)
        -> (tensor<3x65xf32>, tensor<3x1xf32>) attributes {plan.kernel} {
      %y, %r = train.rms_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-6 : f64}
          : (tensor<3x65xf32>, tensor<65xf32>)
          -> (tensor<3x65xf32>, tensor<3x1xf32>)
      return %y, %r : tensor<3x65xf32>, tensor<3x1xf32>
    }
    func.func @backward(%dy: tensor<3x65xf32>, %x: tensor<3x65xf32>,
                        %s: tensor<65xf32>, %r: tensor<3x1xf32>)
        -> (tensor<3x65xf32>, tensor<65xf32>) attributes {plan.kernel} {
      %dx, %ds = train.rms_norm_grad %dy, %x, %s, %r {axis = 1 : i64}
          : (tensor<3x65xf32>, tensor<3x65xf32>, tensor<65xf32>,
             tensor<3x1xf32>) -> (tensor<3x65xf32>, tensor<65xf32>)
      return %dx, %ds : tensor<3x65xf32>, tensor<65xf32>
    })");
  Floats x = randomFloats(n), scale = randomFloats(size, 0.5, 2, 2),
         dy = randomFloats(n, -1, 1, 3);
  Floats y(n), rstd(rows), dx(n), ds(size), ey(n), edx(n), eds(size);
  for (int64_t r = 0; r < rows; ++r) {
    double v = 0, g = 0;
    for (int64_t i = 0; i < size; ++i)
      v += double(x[r * size + i]) * x[r * size + i] / size;
    double inv = 1 / std::sqrt(v + 1e-6);
    for (int64_t i = 0; i < size; ++i) {
      double u = x[r * size + i] * inv;
      ey[r * size + i] = u * scale[i];
      g += dy[r * size + i] * scale[i] * u / size;
      eds[i] += dy[r * size + i] * u;
    }
    for (int64_t i = 0; i < size; ++i)
      edx[r * size + i] =
          inv * (dy[r * size + i] * scale[i] - x[r * size + i] * inv * g);
  }
  kernels.run("forward", {x.data(), scale.data(), y.data(), rstd.data()});
  kernels.run("backward", {dy.data(), x.data(), scale.data(), rstd.data(),
                           dx.data(), ds.data()});
  expectClose(y, ey, 1e-6);
  expectClose(dx, edx, 1e-5);
  expectClose(ds, eds, 1e-5);
}

//===----------------------------------------------------------------------===//
// Batch normalization
//===----------------------------------------------------------------------===//

TEST(RowKernels, BatchNormAndItsGradient) {
  const int64_t batch = 3, channels = 4, plane = 15;
  const int64_t n = batch * channels * plane, per = batch * plane;
  Kernels kernels(R"(
    func.func @forward(%x: tensor<3x4x3x5xf32>, %s: tensor<4xf32>,
                       %b: tensor<4xf32>, %rm: tensor<4xf32>,
                       %rv: tensor<4xf32>)
        -> (tensor<3x4x3x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
            tensor<4xf32>) attributes {plan.kernel} {
      %y, %m1, %v1, %m, %r = train.batch_norm %x, %s, %b, %rm, %rv
          {epsilon = 1.0e-5 : f64, momentum = 0.9 : f64, unbiased}
          : (tensor<3x4x3x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
             tensor<4xf32>)
          -> (tensor<3x4x3x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
              tensor<4xf32>)
      return %y, %m1, %v1, %m, %r : tensor<3x4x3x5xf32>, tensor<4xf32>,
          tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }
    func.func @backward(%dy: tensor<3x4x3x5xf32>, %x: tensor<3x4x3x5xf32>,
                        %s: tensor<4xf32>, %m: tensor<4xf32>,
                        %r: tensor<4xf32>)
        -> (tensor<3x4x3x5xf32>, tensor<4xf32>, tensor<4xf32>)
        attributes {plan.kernel} {
      %dx, %ds, %db = train.batch_norm_grad %dy, %x, %s, %m, %r
          : (tensor<3x4x3x5xf32>, tensor<3x4x3x5xf32>, tensor<4xf32>,
             tensor<4xf32>, tensor<4xf32>)
          -> (tensor<3x4x3x5xf32>, tensor<4xf32>, tensor<4xf32>)
      return %dx, %ds, %db
          : tensor<3x4x3x5xf32>, tensor<4xf32>, tensor<4xf32>
    }
    func.func @inference(%x: tensor<3x4x3x5xf32>, %s: tensor<4xf32>,
                         %b: tensor<4xf32>, %m: tensor<4xf32>,
                         %v: tensor<4xf32>) -> tensor<3x4x3x5xf32>
        attributes {plan.kernel} {
      %y = train.batch_norm_inference %x, %s, %b, %m, %v
          {epsilon = 1.0e-5 : f64}
          : (tensor<3x4x3x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
             tensor<4xf32>) -> tensor<3x4x3x5xf32>
      return %y : tensor<3x4x3x5xf32>
    })");
  Floats x = randomFloats(n, -1, 3), dy = randomFloats(n, -1, 1, 2);
  Floats s = randomFloats(4, 0.5, 2, 3), b = randomFloats(4, -1, 1, 4);
  Floats rm = randomFloats(4, -1, 1, 5), rv = randomFloats(4, 0.5, 2, 6);
  Floats y(n), m1(4), v1(4), mean(4), rstd(4), dx(n), ds(4), db(4), z(n);
  Floats ey(n), em1(4), ev1(4), edx(n), eds(4), edb(4), ez(n);
  for (int64_t c = 0; c < channels; ++c) {
    auto at = [&](int64_t i) {
      return (i / plane * channels + c) * plane + i % plane;
    };
    double m = 0, v = 0, g = 0, gu = 0;
    for (int64_t i = 0; i < per; ++i)
      m += x[at(i)] / double(per);
    for (int64_t i = 0; i < per; ++i)
      v += (x[at(i)] - m) * (x[at(i)] - m) / per;
    double inv = 1 / std::sqrt(v + 1e-5);
    for (int64_t i = 0; i < per; ++i) {
      double u = (x[at(i)] - m) * inv;
      ey[at(i)] = u * s[c] + b[c];
      ez[at(i)] = (x[at(i)] - rm[c]) / std::sqrt(rv[c] + 1e-5) * s[c] + b[c];
      g += dy[at(i)];
      gu += dy[at(i)] * u;
    }
    for (int64_t i = 0; i < per; ++i)
      edx[at(i)] =
          s[c] * inv * (dy[at(i)] - g / per - (x[at(i)] - m) * inv * gu / per);
    em1[c] = 0.9 * rm[c] + 0.1 * m;
    ev1[c] = 0.9 * rv[c] + 0.1 * v * per / (per - 1);
    eds[c] = gu;
    edb[c] = g;
  }
  kernels.run("forward",
              {x.data(), s.data(), b.data(), rm.data(), rv.data(), y.data(),
               m1.data(), v1.data(), mean.data(), rstd.data()});
  kernels.run("backward", {dy.data(), x.data(), s.data(), mean.data(),
                           rstd.data(), dx.data(), ds.data(), db.data()});
  kernels.run("inference",
              {x.data(), s.data(), b.data(), rm.data(), rv.data(), z.data()});
  expectClose(y, ey, 1e-6);
  expectClose(m1, em1, 1e-6);
  expectClose(v1, ev1, 1e-6);
  expectClose(dx, edx, 1e-5);
  expectClose(ds, eds, 1e-5);
  expectClose(db, edb, 1e-5);
  expectClose(z, ez, 1e-6);
}

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

namespace {
struct CrossEntropy {
  Kernels kernels;

  explicit CrossEntropy(const RowShape &s)
      : kernels(substitute(R"(
    func.func @forward(%x: %X%, %l: %L%) -> (tensor<f32>, %R%)
        attributes {plan.kernel} {
      %loss, %lse = train.cross_entropy %x, %l
          {axis = 1 : i64, ignore_index = -100 : i64}
          : (%X%, %L%) -> (tensor<f32>, %R%)
      return %loss, %lse : tensor<f32>, %R%
    }
    func.func @backward(%g: tensor<f32>, %x: %X%, %l: %L%, %lse: %R%) -> %X%
        attributes {plan.kernel} {
      %dx = train.cross_entropy_grad %g, %x, %l, %lse
          {axis = 1 : i64, ignore_index = -100 : i64}
          : (tensor<f32>, %X%, %L%, %R%) -> %X%
      return %dx : %X%
    })",
                           {{"X", s.type()},
                            {"L", tensorType({s.outer, s.inner}, "i64")},
                            {"R", tensorType({s.outer, s.inner})}})) {}
};
} // namespace

TEST(RowKernels, CrossEntropyAndItsGradient) {
  for (const RowShape &s :
       std::vector<RowShape>{{7, 10, 1}, {3, 5, 4}, {4, 4096, 1}}) {
    CrossEntropy ce(s);
    int64_t rows = s.outer * s.inner;
    Floats x = randomFloats(s.count(), -5, 5), loss(1), lse(rows),
           dx(s.count());
    Floats edx(s.count()), elsf(rows);
    std::vector<int64_t> labels(rows);
    for (int64_t r = 0; r < rows; ++r)
      labels[r] = r == 1 ? -100 : (r * 7) % s.row;
    double total = 0, count = rows - 1, grad = 0.75;
    s.forEachRow([&](int64_t o, int64_t n) {
      int64_t r = o * s.inner + n;
      double sum = 0;
      for (int64_t i = 0; i < s.row; ++i)
        sum += std::exp(double(x[s.at(o, i, n)]));
      elsf[r] = std::log(sum);
      if (labels[r] == -100)
        return;
      total += std::log(sum) - x[s.at(o, labels[r], n)];
      for (int64_t i = 0; i < s.row; ++i)
        edx[s.at(o, i, n)] =
            (std::exp(double(x[s.at(o, i, n)])) / sum - (i == labels[r])) *
            grad / count;
    });
    Floats g = {0.75};
    ce.kernels.run("forward",
                   {x.data(), labels.data(), loss.data(), lse.data()});
    ce.kernels.run("backward",
                   {g.data(), x.data(), labels.data(), lse.data(), dx.data()});
    expectClose(loss, {float(total / count)}, 1e-6);
    expectClose(lse, elsf, 1e-6);
    expectClose(dx, edx, 1e-6);
  }
}

TEST(RowKernels, CrossEntropyOfBadLabels) {
  CrossEntropy ce({2, 3, 1});
  Floats x = {1, 2, 3, 4, 5, 6}, loss(1), lse(2), dx(6), g = {1};
  std::vector<int64_t> outOfRange = {0, 3}, ignored = {-100, -100};
  ce.kernels.run("forward",
                 {x.data(), outOfRange.data(), loss.data(), lse.data()});
  EXPECT_TRUE(std::isnan(loss[0]));
  ce.kernels.run("forward",
                 {x.data(), ignored.data(), loss.data(), lse.data()});
  EXPECT_TRUE(std::isnan(loss[0]));
  ce.kernels.run("backward",
                 {g.data(), x.data(), ignored.data(), lse.data(), dx.data()});
  expectClose(dx, {0, 0, 0, 0, 0, 0}, 0);
}

TEST(RowKernels, NanReachesTheLoss) {
  CrossEntropy ce({2, 3, 1});
  Floats x = {1, std::nanf(""), 3, 4, 5, 6}, loss(1), lse(2);
  std::vector<int64_t> labels = {0, 1};
  ce.kernels.run("forward", {x.data(), labels.data(), loss.data(), lse.data()});
  EXPECT_TRUE(std::isnan(loss[0]));
}
