//===- GraphTest.cpp - Captures and graphs --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/Fixture.h"

using namespace testing;

using GraphTest = FakeCudaTest;

static CUgraphExec endCapture(CUstream stream) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  return exec;
}

TEST_F(GraphTest, runsWhatWasCaptured) {
  useDevice(0);
  CUstream first = makeStream(), second = makeStream();
  CUdeviceptr memory = allocate(12);
  write(memory, {1, 2, 3});
  CUDA(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUDA(cuMemcpyDtoDAsync(memory + 4, memory, 4, first));
  order(first, second);
  CUDA(cuMemcpyDtoDAsync(memory + 8, memory + 4, 4, second));
  order(second, first);
  CUgraphExec exec = endCapture(first);
  EXPECT_EQ(read(memory, 3), (std::vector<float>{1, 2, 3}));
  CUDA(cuGraphLaunch(exec, first));
  CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(memory, 3), (std::vector<float>{1, 1, 1}));
  write(memory, {7});
  CUDA(cuGraphLaunch(exec, first));
  CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(read(memory, 3), (std::vector<float>{7, 7, 7}));
  CUDA(cuGraphExecDestroy(exec));
}

TEST_F(GraphTest, racesBetweenItsBranches) {
  EXPECT_FAULT("on stream [12] in a graph of device 0: race", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUdeviceptr memory = allocate(16);
    CUDA(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    order(first, second);
    CUDA(cuMemsetD8Async(memory, 1, 16, first));
    CUDA(cuMemsetD8Async(memory, 2, 16, second));
    order(second, first);
    CUgraphExec exec = endCapture(first);
    CUDA(cuGraphLaunch(exec, first));
    EXPECT_EQ(cuStreamSynchronize(first), CUDA_ERROR_LAUNCH_FAILED);
  });
}

TEST_F(GraphTest, isOrderedWithTheStreamItRunsOn) {
  EXPECT_FINE("", [] {
    useDevice(0);
    CUstream stream = makeStream();
    CUdeviceptr memory = allocate(16);
    CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUDA(cuMemsetD8Async(memory, 1, 16, stream));
    CUgraphExec exec = endCapture(stream);
    CUDA(cuMemsetD8Async(memory, 2, 16, stream));
    CUDA(cuGraphLaunch(exec, stream));
    CUDA(cuGraphLaunch(exec, stream));
    CUDA(cuMemsetD8Async(memory, 3, 16, stream));
    CUDA(cuStreamSynchronize(stream));
  });
}

TEST_F(GraphTest, missesAWaitThatIsDropped) {
  auto graph = [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUdeviceptr memory = allocate(16);
    CUDA(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    order(first, second); // joins
    CUDA(cuMemsetD8Async(memory, 1, 16, first));
    order(first, second);
    CUDA(cuMemsetD8Async(memory, 2, 16, second));
    order(second, first);
    CUgraphExec exec = endCapture(first);
    CUDA(cuGraphLaunch(exec, first));
    cuStreamSynchronize(first);
  };
  EXPECT_FAULT("race", graph, {"FAKE_CUDA_DROP_WAIT", "2"});
  EXPECT_FINE("", graph);
}

TEST_F(GraphTest, needsItsBranchesJoined) {
  EXPECT_FINE("cuMemsetD8Async on stream 2 is not joined to the stream", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUgraph graph = nullptr;
    CUdeviceptr memory = allocate(16);
    CUDA(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUDA(cuMemsetD8Async(memory, 1, 16, first));
    order(first, second);
    CUDA(cuMemsetD8Async(memory, 2, 16, second));
    EXPECT_EQ(cuStreamEndCapture(first, &graph),
              CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  });
}

TEST_F(GraphTest, doesNotWaitForWhatIsOutside) {
  EXPECT_FINE("event 1 was recorded outside of the capture", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUevent event = makeEvent();
    CUDA(cuEventRecord(event, second));
    CUDA(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_EQ(cuStreamWaitEvent(first, event, 0),
              CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  });
}

TEST_F(GraphTest, forbidsOtherCallsWhileItIsCaptured) {
  EXPECT_FINE("cuMemAlloc: not allowed while stream 1 captures", [] {
    useDevice(0);
    CUstream stream = makeStream();
    CUdeviceptr memory = 0;
    CUgraph graph = nullptr;
    CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUDA(cuMemAlloc(&memory, 16));
    CUDA(cuStreamEndCapture(stream, &graph));
    CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(cuStreamEndCapture(stream, &graph),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  });
}
