//===- ElementwiseKernelsTest.cpp - Elementwise ops and their accuracy ----===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every elementwise train op against libm, with broadcasting, and the error of
// the polynomials that replace libm's functions in f32.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace zero_test;

static const float kNan = std::nanf("");
static const float kInf = INFINITY;

static double normalCdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

static double geluTanh(double x) {
  return std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
}

//===----------------------------------------------------------------------===//
// Unary operations
//===----------------------------------------------------------------------===//

namespace {
struct Unary {
  std::string op;
  std::function<double(double)> reference;
  float low = -4, high = 4;
};
} // namespace

static const std::vector<Unary> kUnary = {
    {"abs", [](double x) { return std::abs(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"erf", [](double x) { return std::erf(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"floor", [](double x) { return std::floor(x); }},
    {"gelu", [](double x) { return x * normalCdf(x); }},
    {"log", [](double x) { return std::log(x); }, 1e-3, 50},
    {"neg", [](double x) { return -x; }},
    {"reciprocal", [](double x) { return 1 / x; }, 0.1, 4},
    {"relu", [](double x) { return x > 0 ? x : 0; }},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1, 9},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"sign", [](double x) { return double((x > 0) - (x < 0)); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"sqrt", [](double x) { return std::sqrt(x); }, 0, 9},
    {"tanh", [](double x) { return std::tanh(x); }},
};

TEST(ElementwiseKernels, UnaryAgreesWithLibm) {
  const int64_t n = 257;
  std::string text;
  for (const Unary &unary : kUnary)
    text += substitute(R"(
      func.func @k_%OP%(%x: tensor<257xf32>) -> tensor<257xf32>
          attributes {plan.kernel} {
        %0 = train.%OP% %x : tensor<257xf32>
        return %0 : tensor<257xf32>
      })",
                       {{"OP", unary.op}});
  Kernels kernels(text);
  for (const Unary &unary : kUnary) {
    SCOPED_TRACE(unary.op);
    std::vector<float> x = randomFloats(n, unary.low, unary.high), y(n), e(n);
    for (int64_t i = 0; i < n; ++i)
      e[i] = unary.reference(x[i]);
    kernels.run("k_" + unary.op, {x.data(), y.data()});
    expectClose(y, e, 5e-7);
  }
}

TEST(ElementwiseKernels, UnaryInF64UsesLibm) {
  const int64_t n = 19;
  std::string text;
  for (const Unary &unary : kUnary)
    text += substitute(R"(
      func.func @k_%OP%(%x: tensor<19xf64>) -> tensor<19xf64>
          attributes {plan.kernel} {
        %0 = train.%OP% %x : tensor<19xf64>
        return %0 : tensor<19xf64>
      })",
                       {{"OP", unary.op}});
  Kernels kernels(text);
  for (const Unary &unary : kUnary) {
    SCOPED_TRACE(unary.op);
    std::vector<float> start = randomFloats(n, unary.low, unary.high);
    std::vector<double> x(start.begin(), start.end()), y(n), e(n);
    for (int64_t i = 0; i < n; ++i)
      e[i] = unary.reference(x[i]);
    kernels.run("k_" + unary.op, {x.data(), y.data()});
    expectClose(y, e, 1e-14);
  }
}

TEST(ElementwiseKernels, SpecialValues) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<5xf32>)
        -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>,
            tensor<5xi1>)
        attributes {plan.kernel} {
      %0 = train.relu %x : tensor<5xf32>
      %1 = train.exp %x : tensor<5xf32>
      %2 = train.sign %x : tensor<5xf32>
      %3 = train.sigmoid %x : tensor<5xf32>
      %4 = train.is_nan %x : (tensor<5xf32>) -> tensor<5xi1>
      return %0, %1, %2, %3, %4 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>,
          tensor<5xf32>, tensor<5xi1>
    })");
  std::vector<float> x = {kNan, kInf, -kInf, 0, 100}, relu(5), exp(5), sign(5),
                     sigmoid(5);
  std::vector<uint8_t> isNan(5);
  kernels.run("k", {x.data(), relu.data(), exp.data(), sign.data(),
                    sigmoid.data(), isNan.data()});
  expectClose(relu, {kNan, kInf, 0, 0, 100}, 0);
  expectClose(exp, {kNan, kInf, 0, 1, kInf}, 0);
  expectClose(sign, {kNan, 1, -1, 0, 1}, 0);
  expectClose(sigmoid, {kNan, 1, 0, 0.5, 1}, 0);
  EXPECT_EQ(isNan, (std::vector<uint8_t>{1, 0, 0, 0, 0}));
}

//===----------------------------------------------------------------------===//
// Accuracy of the polynomials
//===----------------------------------------------------------------------===//

/// The largest error of `op` against libm in f64, in units of the last place
/// of the f32 result but no less than of `floor`.
static double measureUlps(const Unary &function, float floor) {
  const int64_t n = 1 << 16;
  Kernels kernels(substitute(R"(
    func.func @k(%x: %T%) -> %T% attributes {plan.kernel} {
      %0 = train.%OP% %x : %T%
      return %0 : %T%
    })",
                             {{"T", tensorType({n})}, {"OP", function.op}}));
  std::vector<float> x = randomFloats(n, function.low, function.high), y(n);
  kernels.run("k", {x.data(), y.data()});
  double worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    double exact = function.reference(x[i]);
    float magnitude = std::max<float>(std::abs(exact), floor);
    double ulp = std::nextafter(magnitude, kInf) - magnitude;
    worst = std::max(worst, std::abs(y[i] - exact) / ulp);
  }
  return worst;
}

TEST(ElementwiseKernels, PolynomialsAreAccurate) {
  struct Case {
    Unary function;
    float floor;
    double ulps;
  };
  const float tiny = 1e-30f;
  for (const Case &c : std::vector<Case>{
           {{"exp", [](double x) { return std::exp(x); }, -80, 80}, tiny, 2},
           {{"log", [](double x) { return std::log(x); }, 1e-6, 1e4}, 0.1, 2},
           {{"tanh", [](double x) { return std::tanh(x); }, -10, 10}, tiny, 6},
           {{"erf", [](double x) { return std::erf(x); }, -5, 5}, tiny, 4},
       }) {
    double ulps = measureUlps(c.function, c.floor);
    EXPECT_LE(ulps, c.ulps) << c.function.op;
    RecordProperty(c.function.op + "_ulps", std::to_string(ulps));
  }
}

//===----------------------------------------------------------------------===//
// Binary operations
//===----------------------------------------------------------------------===//

namespace {
struct Binary {
  std::string op;
  std::function<double(double, double)> reference;
  bool compares = false;
};
} // namespace

static const std::vector<Binary> kBinary = {
    {"add", [](double x, double y) { return x + y; }},
    {"sub", [](double x, double y) { return x - y; }},
    {"mul", [](double x, double y) { return x * y; }},
    {"div", [](double x, double y) { return x / y; }},
    {"pow", [](double x, double y) { return std::pow(x, y); }},
    {"max", [](double x, double y) { return std::fmax(x, y); }},
    {"min", [](double x, double y) { return std::fmin(x, y); }},
    {"mod", [](double x, double y) { return std::fmod(x, y); }},
    {"equal", [](double x, double y) { return double(x == y); }, true},
    {"less", [](double x, double y) { return double(x < y); }, true},
    {"less_equal", [](double x, double y) { return double(x <= y); }, true},
    {"greater", [](double x, double y) { return double(x > y); }, true},
    {"greater_equal", [](double x, double y) { return double(x >= y); }, true},
};

/// The offset into a tensor of `shape` that broadcasts to `full`, of element
/// `index` of `full`.
static int64_t broadcastOffset(const Shape &shape, const Shape &full,
                               int64_t index) {
  int64_t offset = 0, stride = 1;
  for (size_t i = 0; i < full.size(); ++i) {
    int64_t extent = full[full.size() - 1 - i];
    int64_t position = index % extent;
    index /= extent;
    if (i >= shape.size())
      continue;
    int64_t own = shape[shape.size() - 1 - i];
    offset += (own == 1 ? 0 : position) * stride;
    stride *= own;
  }
  return offset;
}

static void testBinary(const Shape &lhs, const Shape &rhs, const Shape &full) {
  std::string text;
  for (const Binary &binary : kBinary) {
    std::string element = binary.compares ? "i1" : "f32";
    text += substitute(R"(
      func.func @k_%OP%(%a: %A%, %b: %B%) -> %F% attributes {plan.kernel} {
        %0 = train.%OP% %a, %b : (%A%, %B%) -> %F%
        return %0 : %F%
      })",
                       {{"OP", binary.op},
                        {"A", tensorType(lhs)},
                        {"B", tensorType(rhs)},
                        {"F", tensorType(full, element)}});
  }
  Kernels kernels(text);
  std::vector<float> a = randomFloats(countElements(lhs), 0.5, 3);
  std::vector<float> b = randomFloats(countElements(rhs), 0.5, 3, 9);
  if (!a.empty() && !b.empty())
    a[0] = b[0];
  int64_t n = countElements(full);
  for (const Binary &binary : kBinary) {
    SCOPED_TRACE(binary.op);
    std::vector<float> result(n), expected(n);
    std::vector<uint8_t> flags(n);
    for (int64_t i = 0; i < n; ++i)
      expected[i] = binary.reference(a[broadcastOffset(lhs, full, i)],
                                     b[broadcastOffset(rhs, full, i)]);
    void *out = binary.compares ? static_cast<void *>(flags.data())
                                : static_cast<void *>(result.data());
    kernels.run("k_" + binary.op, {a.data(), b.data(), out});
    if (binary.compares)
      result.assign(flags.begin(), flags.end());
    expectClose(result, expected, 2e-7);
  }
}

TEST(ElementwiseKernels, BinarySameShape) {
  testBinary({5, 257}, {5, 257}, {5, 257});
}
TEST(ElementwiseKernels, BinaryRow) { testBinary({3, 5}, {5}, {3, 5}); }
TEST(ElementwiseKernels, BinaryColumn) { testBinary({3, 1}, {3, 17}, {3, 17}); }
TEST(ElementwiseKernels, BinaryBothBroadcast) {
  testBinary({2, 1, 5}, {3, 1}, {2, 3, 5});
}
TEST(ElementwiseKernels, BinaryScalar) { testBinary({}, {1, 7}, {1, 7}); }
TEST(ElementwiseKernels, BinaryEmpty) { testBinary({0, 3}, {3}, {0, 3}); }

TEST(ElementwiseKernels, Integers) {
  Kernels kernels(R"(
    func.func @k(%a: tensor<6xi64>, %b: tensor<6xi64>)
        -> (tensor<6xi64>, tensor<6xi64>, tensor<6xi64>, tensor<6xf32>)
        attributes {plan.kernel} {
      %0 = train.mod %a, %b : tensor<6xi64>
      %1 = train.div %a, %b : tensor<6xi64>
      %2 = train.max %a, %b : tensor<6xi64>
      %3 = train.cast %a : tensor<6xi64> to tensor<6xf32>
      return %0, %1, %2, %3 : tensor<6xi64>, tensor<6xi64>, tensor<6xi64>,
          tensor<6xf32>
    })");
  std::vector<int64_t> a = {7, -7, 7, -7, 6, 0}, b = {3, 3, -3, -3, 3, 5};
  std::vector<int64_t> mod(6), div(6), max(6);
  std::vector<float> cast(6);
  kernels.run("k", {a.data(), b.data(), mod.data(), div.data(), max.data(),
                    cast.data()});
  EXPECT_EQ(mod, (std::vector<int64_t>{1, 2, -2, -1, 0, 0}));
  EXPECT_EQ(div, (std::vector<int64_t>{2, -2, -2, 2, 2, 0}));
  EXPECT_EQ(max, (std::vector<int64_t>{7, 3, 7, -3, 6, 5}));
  expectClose(cast, {7, -7, 7, -7, 6, 0}, 0);
}

TEST(ElementwiseKernels, LogicAndWhere) {
  Kernels kernels(R"(
    func.func @k(%a: tensor<4xi1>, %b: tensor<4xi1>, %x: tensor<4xf32>,
                 %y: tensor<f32>)
        -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>)
        attributes {plan.kernel} {
      %0 = train.and %a, %b : tensor<4xi1>
      %1 = train.or %a, %b : tensor<4xi1>
      %2 = train.xor %a, %b : tensor<4xi1>
      %3 = train.not %a : tensor<4xi1>
      %4 = train.where %3, %x, %y
          : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      return %0, %1, %2, %4 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>,
          tensor<4xf32>
    })");
  std::vector<uint8_t> a = {0, 0, 1, 1}, b = {0, 1, 0, 1}, all(4), any(4),
                       one(4);
  std::vector<float> x = {1, 2, 3, 4}, y = {9}, where(4);
  kernels.run("k", {a.data(), b.data(), x.data(), y.data(), all.data(),
                    any.data(), one.data(), where.data()});
  EXPECT_EQ(all, (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(any, (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(one, (std::vector<uint8_t>{0, 1, 1, 0}));
  expectClose(where, {1, 2, 9, 9}, 0);
}

TEST(ElementwiseKernels, GradientsOfActivations) {
  Kernels kernels(R"(
    func.func @k(%dy: tensor<67xf32>, %x: tensor<67xf32>)
        -> (tensor<67xf32>, tensor<67xf32>, tensor<67xf32>, tensor<67xf32>)
        attributes {plan.kernel} {
      %0 = train.relu_grad %dy, %x : tensor<67xf32>
      %1 = train.gelu_grad %dy, %x : tensor<67xf32>
      %2 = train.gelu_grad %dy, %x {approximate = "tanh"} : tensor<67xf32>
      %3 = train.gelu %x {approximate = "tanh"} : tensor<67xf32>
      return %0, %1, %2, %3 : tensor<67xf32>, tensor<67xf32>, tensor<67xf32>,
          tensor<67xf32>
    })");
  std::vector<float> dy = randomFloats(67), x = randomFloats(67, -3, 3, 5);
  std::vector<float> relu(67), gelu(67), tanh(67), forward(67);
  std::vector<float> eRelu(67), eGelu(67), eTanh(67), eForward(67);
  auto derive = [](auto f, double x) {
    return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
  };
  for (int i = 0; i < 67; ++i) {
    auto erfForm = [](double v) { return v * normalCdf(v); };
    auto tanhForm = [](double v) { return 0.5 * v * (1 + geluTanh(v)); };
    eRelu[i] = x[i] > 0 ? dy[i] : 0;
    eGelu[i] = dy[i] * derive(erfForm, x[i]);
    eTanh[i] = dy[i] * derive(tanhForm, x[i]);
    eForward[i] = tanhForm(x[i]);
  }
  kernels.run("k", {dy.data(), x.data(), relu.data(), gelu.data(), tanh.data(),
                    forward.data()});
  expectClose(relu, eRelu, 0);
  expectClose(gelu, eGelu, 1e-6);
  expectClose(tanh, eTanh, 1e-6);
  expectClose(forward, eForward, 1e-6);
}

// The bits of an element must not depend on where it lies: a shard's vector
// body and tail are elsewhere than the whole tensor's.
TEST(ElementwiseKernels, BitsDoNotDependOnPosition) {
  const std::string text = R"(
    func.func @k(%x: %T%) -> %T% attributes {plan.kernel} {
      %0 = train.gelu %x : %T%
      %1 = train.exp %0 : %T%
      %2 = train.mul %1, %x : %T%
      %3 = train.add %2, %0 : %T%
      return %3 : %T%
    })";
  Kernels whole(substitute(text, {{"T", tensorType({101})}}));
  Kernels part(substitute(text, {{"T", tensorType({7})}}));
  std::vector<float> x = randomFloats(101), y(101), piece(7);
  whole.run("k", {x.data(), y.data()});
  for (int start : {0, 13, 94}) {
    part.run("k", {x.data() + start, piece.data()});
    for (int i = 0; i < 7; ++i)
      EXPECT_EQ(piece[i], y[start + i]);
  }
}

TEST(ElementwiseKernels, HalfPrecisionIsComputedInF32) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<9xf32>) -> tensor<9xf32> attributes {plan.kernel} {
      %0 = train.cast %x : tensor<9xf32> to tensor<9xbf16>
      %1 = train.exp %0 : tensor<9xbf16>
      %2 = train.cast %1 : tensor<9xbf16> to tensor<9xf32>
      return %2 : tensor<9xf32>
    })");
  std::vector<float> x = {0, 1, 2, -1, -2, 0.5, -0.5, 3, 4}, y(9), e(9);
  for (int i = 0; i < 9; ++i)
    e[i] = std::exp(x[i]);
  kernels.run("k", {x.data(), y.data()});
  expectClose(y, e, 1.0 / 256);
}
