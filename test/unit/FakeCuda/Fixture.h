//===- Fixture.h - Helpers of the fake CUDA's tests -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_FAKECUDA_FIXTURE_H
#define ZERO_TEST_UNIT_FAKECUDA_FIXTURE_H

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#define CUDA(CALL) ASSERT_EQ(CALL, CUDA_SUCCESS)

/// Makes a device current in this thread.
inline void useDevice(int device) {
  CUcontext context = nullptr;
  CUDA(cuInit(0));
  CUDA(cuDevicePrimaryCtxRetain(&context, device));
  CUDA(cuCtxSetCurrent(context));
}

inline CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuMemAlloc(&pointer, bytes), CUDA_SUCCESS);
  return pointer;
}

inline float *allocatePinned(size_t count) {
  void *pointer = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&pointer, count * sizeof(float), 0), CUDA_SUCCESS);
  return static_cast<float *>(pointer);
}

inline CUstream makeStream() {
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  return stream;
}

inline CUevent makeEvent() {
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  return event;
}

/// `later` waits for all that is on `earlier`.
inline void order(CUstream earlier, CUstream later) {
  CUevent event = makeEvent();
  EXPECT_EQ(cuEventRecord(event, earlier), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(later, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
}

inline std::vector<float> read(CUdeviceptr from, size_t count) {
  std::vector<float> values(count);
  EXPECT_EQ(cuMemcpyDtoH(values.data(), from, count * sizeof(float)),
            CUDA_SUCCESS);
  return values;
}

inline void write(CUdeviceptr to, const std::vector<float> &values) {
  EXPECT_EQ(cuMemcpyHtoD(to, values.data(), values.size() * sizeof(float)),
            CUDA_SUCCESS);
}

/// Of the environment.
struct Variable {
  const char *name = nullptr;
  const char *value = nullptr;
};

/// Runs a scenario and the end of the process, in a process of its own.
template <typename Scenario>
[[noreturn]] void runAlone(const Scenario &scenario, Variable variable = {}) {
  if (variable.name)
    setenv(variable.name, variable.value, 1);
  scenario();
  std::exit(testing::Test::HasFailure() ? 2 : 0);
}

/// A scenario that the fake must report with the words, and fail for. Then, if
/// need be, a variable.
#define EXPECT_FAULT(WORDS, ...)                                               \
  EXPECT_EXIT(runAlone(__VA_ARGS__), testing::ExitedWithCode(1), WORDS)
/// A scenario without fault that says the words.
#define EXPECT_FINE(WORDS, ...)                                                \
  EXPECT_EXIT(runAlone(__VA_ARGS__), testing::ExitedWithCode(0), WORDS)

/// Scenarios start threads, so each begins with a fresh process.
class FakeCudaTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    setenv("FAKE_CUDA_DEVICES", "4", 1);
  }
  void TearDown() override { cuCtxSetCurrent(nullptr); }
};

#endif // ZERO_TEST_UNIT_FAKECUDA_FIXTURE_H
