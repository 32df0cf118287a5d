//===- NarrowKernelsTest.cpp - Kernels on bf16 and f16 --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every op on narrow floats against PyTorch's results (Inputs/), conversions on
// all their values, and that processors agree.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sstream>

using namespace zero_test;

namespace {
const char *const kTypes[] = {"bf16", "f16"};

/// The elements of an operand or result.
struct Elements {
  std::string type;
  std::vector<uint8_t> bytes;

  size_t size() const {
    static const std::map<std::string, size_t> sizes = {
        {"i1", 1}, {"bf16", 2}, {"f16", 2}, {"f32", 4}, {"i64", 8}};
    return sizes.at(type);
  }
  size_t count() const { return bytes.size() / size(); }
  uint64_t bits(size_t index) const {
    uint64_t value = 0;
    std::memcpy(&value, &bytes[index * size()], size());
    return value;
  }
};

struct Case {
  std::string name, kernel;
  int64_t ulps;
  std::vector<Elements> inputs, outputs;
};

Elements parseElements(std::istringstream &line) {
  Elements elements;
  line >> elements.type;
  for (std::string word; line >> word;) {
    uint64_t value = std::stoull(word, nullptr, 16);
    const auto *bytes = reinterpret_cast<const uint8_t *>(&value);
    elements.bytes.insert(elements.bytes.end(), bytes, bytes + elements.size());
  }
  return elements;
}

std::vector<Case> readCases() {
  std::ifstream file(ZERO_LOWERING_INPUTS "/narrow-kernels.txt");
  std::vector<Case> cases;
  for (std::string text, word; std::getline(file, text);) {
    std::istringstream line(text);
    line >> word;
    if (word == "case") {
      cases.emplace_back();
      line >> cases.back().name >> cases.back().ulps;
    } else if (word == "kernel") {
      std::getline(line, cases.back().kernel);
    } else {
      Case &last = cases.back();
      (word == "in" ? last.inputs : last.outputs)
          .push_back(parseElements(line));
    }
  }
  return cases;
}

/// Results of a case, in the order of its outputs.
std::vector<Elements> run(const Kernels &kernels, const Case &c) {
  std::vector<Elements> inputs = c.inputs, outputs = c.outputs;
  std::vector<void *> buffers;
  for (Elements &input : inputs)
    buffers.push_back(input.bytes.data());
  for (Elements &output : outputs) {
    std::fill(output.bytes.begin(), output.bytes.end(), 0xA5);
    buffers.push_back(output.bytes.data());
  }
  kernels.run(c.name, buffers);
  return outputs;
}

std::string allKernels(const std::vector<Case> &cases) {
  std::string text;
  for (const Case &c : cases)
    text += c.kernel + "\n";
  return text;
}

bool isNan(const std::string &type, uint64_t bits) {
  if (type == "f32")
    return (bits & 0x7FFFFFFF) > 0x7F800000;
  return (bits & 0x7FFF) > (type == "bf16" ? 0x7F80u : 0x7C00u);
}

/// What the formula of IEEE 754 says.
float widen(const std::string &type, uint16_t bits) {
  int fraction = type == "bf16" ? 7 : 10, bias = type == "bf16" ? 127 : 15;
  int mantissa = bits & ((1 << fraction) - 1);
  int exponent = (bits & 0x7FFF) >> fraction;
  float sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 2 * bias + 1)
    return mantissa ? NAN : sign * INFINITY;
  int hidden = exponent ? 1 << fraction : 0;
  return sign * std::ldexp(float(hidden + mantissa),
                           std::max(exponent, 1) - bias - fraction);
}

double valueOf(const std::string &type, uint64_t bits) {
  if (type != "f32")
    return widen(type, uint16_t(bits));
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Place of a float among all floats of its type.
int64_t order(const std::string &type, uint64_t bits) {
  uint64_t sign = type == "f32" ? 0x80000000 : 0x8000;
  auto magnitude = int64_t(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

/// The polynomials of exp, log, tanh and erf have this error near zero, and
/// where gelu cancels digits.
constexpr double kMathError = 1e-6;

bool isClose(const std::string &type, uint64_t a, uint64_t b, int64_t ulps) {
  if (a == b || type[0] == 'i')
    return a == b;
  if (isNan(type, a) || isNan(type, b))
    return isNan(type, a) && isNan(type, b);
  return std::abs(order(type, a) - order(type, b)) <= ulps ||
         (ulps && std::abs(valueOf(type, a) - valueOf(type, b)) <= kMathError);
}

/// Sums keep as many partial sums as the processor's vectors are wide.
bool addsUp(const Case &c) {
  for (const char *word :
       {"reduce_sum", "reduce_mean", "norm", "softmax", "cross_entropy"})
    if (c.name.find(word) != std::string::npos)
      return true;
  return false;
}
} // namespace

TEST(NarrowKernels, EveryOpIsPyTorchs) {
  std::vector<Case> cases = readCases();
  ASSERT_GE(cases.size(), 118u);
  Kernels kernels(allKernels(cases));
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  for (const Case &c : cases) {
    std::vector<Elements> got = run(kernels, c);
    for (size_t output = 0; output < got.size(); ++output)
      for (size_t i = 0; i < got[output].count(); ++i)
        EXPECT_TRUE(isClose(got[output].type, got[output].bits(i),
                            c.outputs[output].bits(i), c.ulps))
            << c.name << ", result " << output << ", element " << i << ": "
            << std::hex << got[output].bits(i) << ", expected "
            << c.outputs[output].bits(i);
  }
}

/// Kernels for a processor without AVX-512, and for one without F16C, give the
/// bits that this one's give, except for the order of sums.
TEST(NarrowKernels, ProcessorsAgree) {
  std::vector<Case> cases = readCases();
  Kernels native(allKernels(cases));
  for (const char *cpu : {"x86-64", "x86-64-v3"}) {
    Kernels other(allKernels(cases), cpu);
    ASSERT_TRUE(other.isValid()) << other.error();
    for (const Case &c : cases) {
      std::vector<Elements> here = run(native, c), there = run(other, c);
      for (size_t output = 0; output < here.size(); ++output)
        EXPECT_TRUE(here[output].bytes == there[output].bytes || addsUp(c))
            << c.name << ", result " << output << ", " << cpu;
    }
  }
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

namespace {
/// Casts of `count` elements from %T% to f32, and of `rounded` to %T%.
const char *const kCasts = R"(
  func.func @widen_all(%x: tensor<65536x%T%>) -> tensor<65536xf32>
      attributes {plan.kernel} {
    %0 = train.cast %x : tensor<65536x%T%> to tensor<65536xf32>
    return %0 : tensor<65536xf32>
  }
  func.func @round_all(%x: tensor<65536xf32>) -> tensor<65536x%T%>
      attributes {plan.kernel} {
    %0 = train.cast %x : tensor<65536xf32> to tensor<65536x%T%>
    return %0 : tensor<65536x%T%>
  }
  func.func @round_double(%x: tensor<65536xf64>) -> tensor<65536x%T%>
      attributes {plan.kernel} {
    %0 = train.cast %x : tensor<65536xf64> to tensor<65536x%T%>
    return %0 : tensor<65536x%T%>
  })";

/// Floats that are hard to round to `type`: the middles between neighbours,
/// the floats beside them, and random bits.
std::vector<float> hardFloats(const std::string &type, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values;
  while (values.size() < 65536) {
    uint16_t bits = generator() & 0xFFFF;
    float low = widen(type, bits), high = widen(type, uint16_t(bits + 1));
    float middle = low / 2 + high / 2;
    float random;
    uint32_t any = generator();
    std::memcpy(&random, &any, 4);
    for (float value : {middle, std::nextafter(middle, -INFINITY),
                        std::nextafter(middle, INFINITY), random})
      values.push_back(value);
  }
  return values;
}

/// The nearest value by its distance, ties to an even last bit.
bool isNearest(const std::string &type, float from, uint16_t to) {
  if (std::isnan(from))
    return isNan(type, to);
  if (isNan(type, to) || bool(to & 0x8000) != std::signbit(from))
    return false;
  double step = type == "bf16" ? 0x1p120 : 0x1p5; // of the largest exponent
  uint16_t infinity = type == "bf16" ? 0x7F80 : 0x7C00;
  auto distance = [&](uint16_t bits) {
    double size = (bits & 0x7FFF) == infinity
                      ? std::abs(widen(type, uint16_t(infinity - 1))) + step
                      : std::abs(widen(type, bits));
    return std::abs(std::abs(double(from)) - size);
  };
  if (std::isinf(from))
    return (to & 0x7FFF) == infinity;
  uint16_t magnitude = to & 0x7FFF;
  bool odd = magnitude & 1, best = true;
  for (int step : {-1, 1}) {
    int other = magnitude + step;
    if (other < 0 || other > infinity)
      continue;
    double own = distance(to), theirs = distance(uint16_t(other));
    best = best && (own < theirs || (own == theirs && !odd));
  }
  return best;
}

const char *const kProcessors[] = {"native", "x86-64-v3", "x86-64"};
} // namespace

TEST(NarrowKernels, EveryValueWidens) {
  for (std::string type : kTypes)
    for (const char *cpu : kProcessors) {
      Kernels kernels(substitute(kCasts, {{"T", type}}), cpu);
      std::vector<uint16_t> x(65536), back(65536);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = uint16_t(i);
      std::vector<float> y(65536);
      kernels.run("widen_all", {x.data(), y.data()});
      kernels.run("round_all", {y.data(), back.data()});
      for (size_t i = 0; i < x.size(); ++i) {
        float expected = widen(type, x[i]);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(y[i]) && isNan(type, back[i])) << i;
          continue;
        }
        ASSERT_EQ(std::signbit(y[i]), std::signbit(expected)) << i;
        ASSERT_EQ(y[i], expected) << type << " " << i << " " << cpu;
        ASSERT_EQ(back[i], i) << type << " " << cpu;
      }
    }
}

TEST(NarrowKernels, FloatsRoundToTheNearest) {
  for (std::string type : kTypes)
    for (const char *cpu : kProcessors) {
      Kernels kernels(substitute(kCasts, {{"T", type}}), cpu);
      for (uint32_t seed : {1, 2, 3}) {
        std::vector<float> x = hardFloats(type, seed);
        std::vector<double> wide(x.begin(), x.end());
        std::vector<uint16_t> y(65536), z(65536);
        kernels.run("round_all", {x.data(), y.data()});
        kernels.run("round_double", {wide.data(), z.data()});
        for (size_t i = 0; i < x.size(); ++i) {
          ASSERT_TRUE(isNearest(type, x[i], y[i]))
              << type << " of " << x[i] << " is " << std::hex << y[i];
          if (!std::isnan(x[i])) {
            ASSERT_EQ(y[i], z[i]) << x[i];
          }
        }
      }
    }
}

/// A shared object that called the compiler's library for conversions would
/// not load everywhere.
TEST(NarrowKernels, NoConversionIsACall) {
  for (const char *cpu : kProcessors)
    for (std::string type : kTypes) {
      Kernels kernels(substitute(kCasts, {{"T", type}}), cpu);
      for (const char *name :
           {"truncsf", "extend", "truncdf", "gnu_f2h", "gnu_h2f"})
        EXPECT_EQ(kernels.bytes().find(name), std::string::npos)
            << name << " for " << cpu;
    }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// The sums do not fit into a kernel's stack frame in f32.
TEST(NarrowKernels, LargeResultsAddUpInF32) {
  Kernels kernels(R"(
    func.func @k(%x: tensor<3x70x1200xbf16>) -> tensor<70x1200xbf16>
        attributes {plan.kernel} {
      %0 = train.reduce_sum %x axes [0]
          : (tensor<3x70x1200xbf16>) -> tensor<70x1200xbf16>
      return %0 : tensor<70x1200xbf16>
    })");
  const size_t count = 70 * 1200;
  std::vector<uint16_t> x(3 * count), y(count);
  for (size_t i = 0; i < count; ++i) {
    x[i] = 0x4380;             // 256, where the next value is 258
    x[i + count] = 0x3F80;     // 1
    x[i + 2 * count] = 0x3F80; // 1: only their sum counts
  }
  kernels.run("k", {x.data(), y.data()});
  EXPECT_EQ(y, std::vector<uint16_t>(count, 0x4381)); // 258
}

/// Each row of the table is named several times, in blocks of rows and of
/// columns.
TEST(NarrowKernels, GradientOfALargeTableAddsUpInF32) {
  Kernels kernels(R"(
    func.func @k(%g: tensor<9x3xbf16>, %i: tensor<9xi64>)
        -> tensor<140000x3xbf16> attributes {plan.kernel} {
      %0 = train.gather_grad %g, %i axis 0 data_shape [140000, 3]
          : (tensor<9x3xbf16>, tensor<9xi64>) -> tensor<140000x3xbf16>
      return %0 : tensor<140000x3xbf16>
    })");
  std::vector<int64_t> rows = {0, 131071, 131072};
  std::vector<int64_t> indices;
  std::vector<uint16_t> grad;
  for (uint16_t value : {0x4380, 0x3F80, 0x3F80}) // 256, 1, 1
    for (int64_t row : rows) {
      indices.push_back(row);
      grad.insert(grad.end(), 3, value);
    }
  std::vector<uint16_t> table(140000 * 3, 0xFFFF);
  kernels.run("k", {grad.data(), indices.data(), table.data()});
  for (size_t i = 0; i < table.size(); ++i) {
    bool named =
        std::find(rows.begin(), rows.end(), int64_t(i / 3)) != rows.end();
    ASSERT_EQ(table[i], named ? 0x4381 : 0) << i;
  }
}
