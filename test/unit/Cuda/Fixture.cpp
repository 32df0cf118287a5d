//===- Fixture.cpp - Programs on the fake GPUs ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Fixture.h.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include "runtime/core/NarrowFloat.h"

#include <cstdlib>

using namespace zrt;
using namespace zrt::test;

/// Before the fake driver looks.
static const int environment = setenv("FAKE_CUDA_DEVICES", "4", 0);

/// Each thread of four doubles an element, or adds one to it; the second kernel
/// does it by way of scratch memory.
static constexpr const char *deviceCode = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry double4(.param .u64 from, .param .u64 to)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<6>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.rn.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
  ret;
}
.visible .entry add_one4(.param .u64 from, .param .u64 to)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<6>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.rn.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd5], %f2;
  ret;
}
)";

static std::unique_ptr<fb::DeviceLaunchT>
launchOf(const std::string &entry, std::vector<int32_t> arguments) {
  auto launch = std::make_unique<fb::DeviceLaunchT>();
  launch->entry = entry;
  launch->grid = {1, 1, 1};
  launch->block = {4, 1, 1};
  launch->arguments = std::move(arguments);
  return launch;
}

void zrt::test::forCuda(PlanBuilder &plan) {
  fb::ProgramT &program = plan.program;
  program.target = "cuda:sm_90";
  std::string code = deviceCode;
  program.device_code.assign(code.begin(), code.end());
  program.device_kernels.clear();
  auto add = [&](const std::string &name) {
    auto kernel = std::make_unique<fb::DeviceKernelT>();
    kernel->name = name;
    program.device_kernels.push_back(std::move(kernel));
    return program.device_kernels.back().get();
  };
  add("double4")->launches.push_back(launchOf("double4", {0, 1}));
  fb::DeviceKernelT *twice = add("add_two4");
  twice->scratch_bytes = 16;
  twice->launches.push_back(launchOf("add_one4", {0, -1}));
  twice->launches.push_back(launchOf("add_one4", {-1, 1}));
}

static size_t sizeOf(zrt_dtype type) {
  return type == ZRT_F32 ? 4 : type == ZRT_F64 ? 8 : 2;
}

/// Numbers in [-1, 1) in a floating type.
static std::vector<uint8_t> inType(const std::vector<float> &values,
                                   zrt_dtype type) {
  std::vector<uint8_t> bytes(values.size() * sizeOf(type));
  for (size_t i = 0; i < values.size(); ++i) {
    auto put = [&](auto value) {
      std::memcpy(&bytes[i * sizeof(value)], &value, sizeof(value));
    };
    if (type == ZRT_F32)
      put(values[i]);
    else if (type == ZRT_F64)
      put(double(values[i]));
    else if (type == ZRT_BF16)
      put(BFloat16::round(values[i]));
    else
      put(Half::round(values[i]));
  }
  return bytes;
}

static std::vector<double> fromType(const std::vector<uint8_t> &bytes,
                                    zrt_dtype type) {
  std::vector<double> values;
  for (size_t at = 0; at < bytes.size(); at += sizeOf(type)) {
    auto take = [&](auto value) {
      std::memcpy(&value, &bytes[at], sizeof(value));
      return value;
    };
    values.push_back(type == ZRT_F32    ? double(take(float()))
                     : type == ZRT_F64  ? take(double())
                     : type == ZRT_BF16 ? double(take(BFloat16()).widen())
                                        : double(take(Half()).widen()));
  }
  return values;
}

void zrt::test::setInputs(Running &running, uint64_t seed) {
  zrt_program_info info = running.program.info();
  for (uint32_t index = 0; index < info.num_inputs; ++index)
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      zrt_input_info input = running.program.input(index);
      std::vector<uint8_t> bytes =
          inType(numbers(seed * 1000 + index * 10 + rank,
                         input.bytes / sizeOf(input.dtype)),
                 input.dtype);
      Status failed = running.session.setInput(index, int(rank), bytes.data(),
                                               bytes.size());
      ASSERT_FALSE(failed) << failed.message();
    }
}

/// Runs one part after the other up to the step.
static Status runStep(Running &running, uint64_t seed) {
  uint32_t parts = running.program.info().micro_batches;
  for (uint32_t part = 1; part < parts; ++part) {
    setInputs(running, seed + 100 * part);
    if (Status failed = running.session.accumulate())
      return failed;
  }
  setInputs(running, seed);
  return running.session.step();
}

static void compareOutputs(Running &host, Running &cuda, double tolerance) {
  zrt_program_info info = host.program.info();
  for (uint32_t index = 0; index < info.num_outputs; ++index)
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      zrt_output_info output = host.program.output(index);
      std::vector<double> wanted =
          fromType(host.get<uint8_t>(index, rank), output.dtype);
      std::vector<double> got =
          fromType(cuda.get<uint8_t>(index, rank), output.dtype);
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(got[i], wanted[i], tolerance)
            << output.name << " of rank " << rank << " at " << i;
    }
}

void zrt::test::expectSame(PlanBuilder &plan, double tolerance,
                           zrt_session_options options) {
  options.device = -1;
  plan.program.target = "host:test";
  zrt_session_options hostOptions = options;
  Running host(plan, hostOptions);
  forCuda(plan);
  Running cuda(plan, options);
  if (::testing::Test::HasFatalFailure())
    return;
  for (uint64_t step = 1; step <= 3; ++step) {
    Status failed = runStep(host, step);
    ASSERT_FALSE(failed) << failed.message();
    failed = runStep(cuda, step);
    ASSERT_FALSE(failed) << failed.message();
    compareOutputs(host, cuda, tolerance);
  }
  zrt_counters wanted = host.session.counters();
  zrt_counters got = cuda.session.counters();
  for (int space = 0; space < ZRT_NUM_SPACES; ++space)
    EXPECT_EQ(got.peak_bytes[space], wanted.peak_bytes[space]);
  for (int kind = 0; kind < ZRT_NUM_COLLECTIVES; ++kind)
    EXPECT_EQ(got.comm_bytes_times_ranks[kind],
              wanted.comm_bytes_times_ranks[kind]);
  for (int way = 0; way < ZRT_NUM_TRANSFERS; ++way)
    EXPECT_EQ(got.transfer_bytes_all_ranks[way],
              wanted.transfer_bytes_all_ranks[way]);
  EXPECT_EQ(got.steps, wanted.steps);
}

std::string zrt::test::stepError(PlanBuilder &plan,
                                 zrt_session_options options) {
  options.device = -1;
  forCuda(plan);
  Running running(plan, options);
  return runStep(running, 1).message();
}
