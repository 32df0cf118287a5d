//===- SplitKernelsTest.cpp - Kernels that run in parts -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An update of the host gives the bits of the same update of a device, as a
// whole and however its elements are cut into parts.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include "runtime/host/HostLaunch.h"
#include <cstring>
#include <gtest/gtest.h>
#include <iterator>

using namespace zero_test;

namespace {
/// An update as a kernel sees it. Buffers: parameter, gradient, two states,
/// rate, step, factor, skip and, if it is narrow, the new parameter cast.
struct Update {
  const char *name;
  const char *op;      ///< what it does to %p, %g, %m, %v
  const char *type;    ///< of parameter and state
  const char *narrow;  ///< of the gradient and the parameter's cast, or ""
  const char *control; ///< of the update: its scale and whether it is skipped
  int states;
};
} // namespace

static const char *const kSgd = "sgd %p, %g, %lr %CONTROL%";
static const char *const kMomentum =
    "sgd %p, %g, %m, %lr %CONTROL% {momentum = 0.9 : f64, weight_decay = "
    "0.01 "
    ": f64}";
static const char *const kNesterov =
    "sgd %p, %g, %m, %lr %CONTROL% {momentum = 0.9 : f64, nesterov}";
static const char *const kDampened = "sgd %p, %g, %m, %lr, %s %CONTROL% "
                                     "{momentum = 0.9 : f64, dampening = 0.5 "
                                     ": f64}";
static const char *const kAdam =
    "adam %p, %g, %m, %v, %lr, %s %CONTROL% {beta1 = 0.9 : f64, beta2 = "
    "0.999 "
    ": f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64}";
static const char *const kAdamW =
    "adamw %p, %g, %m, %v, %lr, %s %CONTROL% {beta1 = 0.9 : f64, beta2 = "
    "0.999 "
    ": f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64}";

static const Update kAdamWUpdate = {"AdamW", kAdamW, "f32", "", "", 2};
static const Update kUpdates[] = {
    kAdamWUpdate,
    {"Sgd", kSgd, "f32", "", "", 0},
    {"SgdMomentum", kMomentum, "f32", "", "", 1},
    {"SgdNesterov", kNesterov, "f32", "", "", 1},
    {"SgdDampened", kDampened, "f32", "", "", 1},
    {"Adam", kAdam, "f32", "", "", 2},
    {"SgdMixed", kSgd, "f32", "bf16", "", 0},
    {"SgdMomentumMixed", kMomentum, "f32", "bf16", "", 1},
    {"AdamMixed", kAdam, "f32", "bf16", "", 2},
    {"AdamWMixed", kAdamW, "f32", "bf16", "", 2},
    {"AdamWHalf", kAdamW, "f32", "f16", "", 2},
    {"AdamWBrain", kAdamW, "bf16", "", "", 2},
    {"AdamWDouble", kAdamW, "f64", "", "", 2},
    {"SgdMomentumScaled", kMomentum, "f32", "bf16", "scale %f skip %k", 1},
    {"AdamWScaled", kAdamW, "f32", "bf16", "scale %f skip %k", 2}};

static std::string repeat(const std::string &text, int times,
                          const std::string &separator = ", ") {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += (i ? separator : "") + text;
  return all;
}

/// The types of the update's operands.
static std::string operandTypes(const Update &u) {
  bool step = strstr(u.op, "%s"), control = *u.control;
  return "%T%, %G%" + repeat(", %T%", u.states, "") + ", tensor<f32>" +
         (step ? ", tensor<i64>" : "") +
         (control ? ", tensor<f32>, tensor<i1>" : "");
}

/// Two kernels of one update: @host, and @device for comparison.
static std::string makeKernels(const Update &u, const Shape &shape) {
  bool narrow = *u.narrow;
  std::string tied = u.states == 0 ? "0" : u.states == 1 ? "0, 2" : "0, 2, 3";
  std::string values = u.states == 0   ? "%n"
                       : u.states == 1 ? "%n#0, %n#1"
                                       : "%n#0, %n#1, %n#2";
  std::string first = u.states ? "%n#0" : "%n";
  std::string text;
  for (std::string name : {"host", "device"})
    text += substitute(
        R"(
    func.func @%NAME%(%p: %T%, %g: %G%, %m: %T%, %v: %T%, %lr: tensor<f32>,
                      %s: tensor<i64>, %f: tensor<f32>, %k: tensor<i1>)
        -> (%RESULTS%%CASTTYPE%)
        attributes {plan.kernel%HOST%, plan.tied = array<i64: %TIED%>} {
      %n%COUNT% = train.%OP% : (%TYPES%) -> (%RESULTS%)
      %CAST%
      return %VALUES% : %RESULTS%%CASTTYPE%
    })",
        {{"NAME", name},
         {"HOST", name == "host" ? ", plan.host" : ""},
         {"OP", u.op},
         {"CONTROL", u.control},
         {"COUNT", u.states ? ":" + std::to_string(u.states + 1) : ""},
         {"TYPES", operandTypes(u)},
         {"RESULTS", repeat("%T%", u.states + 1)},
         {"TIED", tied + (narrow ? ", -1" : "")},
         {"VALUES", values + (narrow ? ", %c" : "")},
         {"CASTTYPE", narrow ? ", %G%" : ""},
         {"CAST", narrow ? "%c = train.cast " + first + " : %T% to %G%"
                         : std::string()},
         {"G", tensorType(shape, narrow ? u.narrow : u.type)},
         {"T", tensorType(shape, u.type)}});
  return text;
}

namespace {
/// The memory of one update: bytes that are small positive numbers.
struct Memory {
  Memory(const Update &u, int64_t elements) {
    for (int i = 0; i < 5; ++i)
      tensors.push_back(randomElements(
          i == 1 || i == 4 ? *u.narrow ? u.narrow : u.type : u.type, elements,
          i + 1));
  }

  static std::string randomElements(const std::string &type, int64_t elements,
                                    uint32_t seed) {
    std::string bytes;
    for (float value : randomFloats(elements, 0.01, 2, seed)) {
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      double wide = value;
      uint16_t half = 0x2000 + (bits >> 13) % 0x1000; // an f16 below 1
      uint16_t brain = bits >> 16;
      if (type == "f64")
        bytes.append(reinterpret_cast<char *>(&wide), 8);
      else if (type == "f32")
        bytes.append(reinterpret_cast<char *>(&bits), 4);
      else
        bytes.append(reinterpret_cast<char *>(type == "f16" ? &half : &brain),
                     2);
    }
    return bytes;
  }

  std::vector<void *> buffers(bool narrow) {
    std::vector<void *> all;
    for (int i = 0; i < 4; ++i)
      all.push_back(tensors[i].data());
    all.insert(all.end(), {&rate, &step, &factor, &skip});
    if (narrow)
      all.push_back(tensors[4].data());
    return all;
  }

  std::vector<std::string> tensors;
  float rate = 1e-2f, factor = 0.25f;
  int64_t step = 3;
  bool skip = false;
};
} // namespace

/// Runs the update of `elements` in parts that end at each of `ends`.
static std::vector<std::string> runInParts(const Kernels &kernels,
                                           const Update &u, Memory memory,
                                           std::vector<int64_t> ends) {
  int64_t begin = 0;
  for (int64_t end : ends) {
    kernels.run("host", memory.buffers(*u.narrow), begin, end);
    begin = end;
  }
  return memory.tensors;
}

static void testUpdate(const Update &u, const Shape &shape) {
  SCOPED_TRACE(std::string(u.name) + " " + tensorType(shape));
  int64_t elements = countElements(shape);
  Kernels kernels(makeKernels(u, shape));
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  ASSERT_EQ(kernels.split("host"), elements);
  ASSERT_EQ(kernels.split("device"), 0);
  for (bool skip : {false, true}) {
    Memory memory(u, elements), device = memory;
    memory.skip = device.skip = skip;
    kernels.run("device", device.buffers(*u.narrow));
    EXPECT_NE(device.tensors, memory.tensors) << "nothing was updated";
    EXPECT_EQ(runInParts(kernels, u, memory, {elements}), device.tensors);
    for (int parts = 2; parts <= 5; ++parts) {
      std::vector<int64_t> ends;
      for (int part = 1; part <= parts; ++part)
        ends.push_back(elements * part / parts);
      EXPECT_EQ(runInParts(kernels, u, memory, ends), device.tensors) << parts;
    }
    if (!*u.control)
      return;
  }
}

class SplitKernels : public testing::TestWithParam<Update> {};

TEST_P(SplitKernels, PartsGiveTheBitsOfTheDevice) {
  for (const Shape &shape : {Shape{1}, {3}, {257}, {33, 5}})
    testUpdate(GetParam(), shape);
}

INSTANTIATE_TEST_SUITE_P(Updates, SplitKernels, testing::ValuesIn(kUpdates),
                         [](const testing::TestParamInfo<Update> &i) {
                           return i.param.name;
                         });

// The runtime's threads, however many, make large updates in many parts.
TEST(SplitKernels, ThreadsGiveTheBitsOfTheDevice) {
  for (const Update &u : {kUpdates[0], kUpdates[std::size(kUpdates) - 1]}) {
    int64_t elements = 100003;
    Kernels kernels(makeKernels(u, {elements}));
    ASSERT_TRUE(kernels.isValid()) << kernels.error();
    Memory start(u, elements), device = start;
    kernels.run("device", device.buffers(*u.narrow));
    auto kernel = reinterpret_cast<zrt::Kernel>(kernels.find("host"));
    for (uint32_t count = 1; count <= 5; ++count) {
      zrt::host::HostThreads threads(count);
      Memory host = start;
      zrt::host::launchKernel(kernel, host.buffers(*u.narrow).data(),
                              kernels.split("host"), &threads);
      EXPECT_EQ(host.tensors, device.tensors) << u.name << " " << count;
    }
  }
}

// What has no elements has no parts.
TEST(SplitKernels, EmptyShardsRunAsAWhole) {
  Kernels kernels(makeKernels(kAdamWUpdate, {0, 7}));
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  EXPECT_EQ(kernels.split("host"), 0);
  Memory memory(kAdamWUpdate, 0);
  kernels.run("host", memory.buffers(false));
}

// A processor with vectors of another width gives the same bits.
TEST(SplitKernels, NarrowerVectorsGiveTheSameBits) {
  for (const Update &u : kUpdates) {
    Kernels native(makeKernels(u, {257})),
        avx(makeKernels(u, {257}), "haswell");
    ASSERT_TRUE(native.isValid() && avx.isValid()) << avx.error();
    Memory memory(u, 257);
    EXPECT_EQ(runInParts(native, u, memory, {100, 257}),
              runInParts(avx, u, memory, {257}))
        << u.name;
  }
}

// Gradients that are accumulated on the host, and the zeros they start from.
TEST(SplitKernels, SumsRunInParts) {
  Kernels kernels(R"(
    func.func @add(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> tensor<5x7xf32>
        attributes {plan.kernel, plan.host, plan.tied = array<i64: 0>} {
      %0 = train.accumulate %a, %b
          : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
      return %0 : tensor<5x7xf32>
    }
    func.func @reset() -> tensor<5x7xf32> attributes {plan.kernel, plan.host} {
      %0 = arith.constant dense<0.0> : tensor<5x7xf32>
      return %0 : tensor<5x7xf32>
    })");
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  ASSERT_EQ(kernels.split("add"), 35);
  std::vector<float> a(35, 1), b(35, 2);
  kernels.run("add", {a.data(), b.data()}, 0, 16);
  kernels.run("add", {a.data(), b.data()}, 16, 35);
  EXPECT_EQ(a, std::vector<float>(35, 3));
  ASSERT_EQ(kernels.split("reset"), 35);
  kernels.run("reset", {a.data()}, 20, 35);
  kernels.run("reset", {a.data()}, 0, 20);
  EXPECT_EQ(a, std::vector<float>(35, 0));
}

// Every element of a row depends on the others; so does a sum.
TEST(SplitKernels, RowsAndSumsRunAsAWhole) {
  Kernels kernels(R"(
    func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32>
        attributes {plan.kernel, plan.host} {
      %0 = train.softmax %x axis 1 : tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    func.func @norm(%x: tensor<32xf32>) -> tensor<f64>
        attributes {plan.kernel, plan.host} {
      %0 = train.sum_squares %x : (tensor<32xf32>) -> tensor<f64>
      return %0 : tensor<f64>
    })");
  ASSERT_TRUE(kernels.isValid()) << kernels.error();
  EXPECT_EQ(kernels.split("softmax"), 0);
  EXPECT_EQ(kernels.split("norm"), 0);
}
