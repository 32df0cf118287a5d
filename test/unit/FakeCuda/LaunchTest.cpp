//===- LaunchTest.cpp - Kernels on streams --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What instructions do is tested elsewhere: here is what a launch may be, and
// that the accesses of a kernel are checked.
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/Fixture.h"

using namespace testing;

using LaunchTest = FakeCudaTest;

/// Each thread adds one to its element.
static const char increment[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry increment(.param .u64 increment_param_0)
.maxntid 64, 1, 1
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [increment_param_0];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.s32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  add.rn.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd3], %f2;
  ret;
}
)";

static CUfunction loadIncrement() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleLoadDataEx(&module, increment, 0, nullptr, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "increment"), CUDA_SUCCESS);
  return function;
}

static CUresult launch(CUfunction function, CUdeviceptr memory, unsigned blocks,
                       unsigned threads, CUstream stream, unsigned shared = 0) {
  void *arguments[] = {&memory};
  return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream,
                        arguments, nullptr);
}

TEST_F(LaunchTest, runs) {
  useDevice(0);
  CUstream stream = makeStream();
  CUfunction function = loadIncrement();
  CUdeviceptr memory = allocate(256);
  std::vector<float> values(64, 2);
  write(memory, values);
  CUDA(launch(function, memory, 2, 32, stream));
  CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(read(memory, 64), std::vector<float>(64, 3));
}

TEST_F(LaunchTest, mayNotLeaveItsMemory) {
  EXPECT_FAULT("kernel increment on stream 1 of device 0: .*beyond", [] {
    useDevice(0);
    CUstream stream = makeStream();
    CUfunction function = loadIncrement();
    CUDA(launch(function, allocate(128), 1, 33, stream));
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  });
}

TEST_F(LaunchTest, races) {
  EXPECT_FAULT("race: it .* that kernel increment on stream [12]", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUfunction function = loadIncrement();
    CUdeviceptr memory = allocate(256);
    CUDA(launch(function, memory, 1, 33, first));
    CUDA(launch(function, memory + 128, 1, 32, second));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  });
}

TEST_F(LaunchTest, doesNotRaceForItsNeighbours) {
  EXPECT_FINE("", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUfunction function = loadIncrement();
    CUdeviceptr memory = allocate(256);
    CUDA(launch(function, memory, 1, 32, first));
    CUDA(launch(function, memory + 128, 1, 32, second));
    CUDA(cuCtxSynchronize());
  });
}

TEST_F(LaunchTest, hasLimits) {
  EXPECT_FINE(
      "65 threads a block, it may have 64(.|\n)*"
      "50000 bytes of dynamic shared memory, allowed are 49152(.|\n)*"
      "the grid or the block is empty",
      [] {
        useDevice(0);
        CUstream stream = makeStream();
        CUfunction function = loadIncrement();
        CUdeviceptr memory = allocate(256);
        EXPECT_EQ(launch(function, memory, 1, 65, stream),
                  CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(launch(function, memory, 1, 64, stream, 50000),
                  CUDA_ERROR_INVALID_VALUE);
        CUDA(cuFuncSetAttribute(
            function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
        CUDA(launch(function, memory, 1, 64, stream, 50000));
        EXPECT_EQ(launch(function, memory, 0, 64, stream),
                  CUDA_ERROR_INVALID_VALUE);
        CUDA(cuStreamSynchronize(stream));
      });
}

TEST_F(LaunchTest, needsAKernelOfTheModule) {
  EXPECT_FINE("the module has no kernel decrement", [] {
    useDevice(0);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUDA(cuModuleLoadData(&module, increment));
    EXPECT_EQ(cuModuleGetFunction(&function, module, "decrement"),
              CUDA_ERROR_NOT_FOUND);
  });
}
