//===- StreamTest.cpp - Streams, events and races -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/Fixture.h"

#include <atomic>
#include <thread>
#include <unistd.h>

using namespace testing;

using StreamTest = FakeCudaTest;

extern "C" void fake_cuda_host_access(const void *address, uint64_t bytes,
                                      int write);

/// Two streams that fill the same memory.
static void fillOnBoth(CUdeviceptr memory, CUstream first, CUstream second) {
  CUDA(cuMemsetD8Async(memory, 1, 16, first));
  CUDA(cuMemsetD8Async(memory + 8, 2, 16, second));
}

TEST_F(StreamTest, workInOrder) {
  useDevice(0);
  CUstream stream = makeStream();
  CUdeviceptr memory = allocate(16);
  for (unsigned i = 0; i < 100; ++i)
    CUDA(cuMemsetD32Async(memory, i, 4, stream));
  CUDA(cuStreamSynchronize(stream));
  unsigned last = 0;
  CUDA(cuMemcpyDtoH(&last, memory, 4));
  EXPECT_EQ(last, 99u);
}

TEST_F(StreamTest, workWhenTheHostRests) {
  useDevice(0);
  CUstream stream = makeStream();
  static std::atomic<bool> done;
  done = false;
  CUDA(cuLaunchHostFunc(
      stream, [](void *) { done = true; }, nullptr));
  while (!done)
    std::this_thread::yield();
}

TEST_F(StreamTest, withoutOrderRace) {
  EXPECT_FAULT("race: it writes 8 bytes at byte 8 of memory 0 of device 0 .* "
               "that cuMemsetD8Async on stream [12] writes, and nothing orders",
               [] {
                 useDevice(0);
                 CUstream first = makeStream(), second = makeStream();
                 fillOnBoth(allocate(24), first, second);
                 EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
               });
}

TEST_F(StreamTest, orderedByAnEventDoNotRace) {
  EXPECT_FINE("", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUdeviceptr memory = allocate(24);
    CUDA(cuMemsetD8Async(memory, 1, 16, first));
    order(first, second);
    CUDA(cuMemsetD8Async(memory + 8, 2, 16, second));
    CUDA(cuCtxSynchronize());
  });
}

TEST_F(StreamTest, orderedByTheHostDoNotRace) {
  EXPECT_FINE("", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUdeviceptr memory = allocate(24);
    CUDA(cuMemsetD8Async(memory, 1, 16, first));
    CUDA(cuStreamSynchronize(first));
    CUDA(cuMemsetD8Async(memory + 8, 2, 16, second));
    CUDA(cuCtxSynchronize());
  });
}

TEST_F(StreamTest, orderedByAThirdDoNotRace) {
  EXPECT_FINE("", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream(), third = makeStream();
    CUdeviceptr memory = allocate(24);
    CUDA(cuMemsetD8Async(memory, 1, 16, first));
    order(first, second);
    order(second, third);
    CUDA(cuMemsetD8Async(memory, 2, 16, third));
    CUDA(cuCtxSynchronize());
  });
}

TEST_F(StreamTest, thatOnlyReadDoNotRace) {
  EXPECT_FINE("", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUdeviceptr memory = allocate(48);
    CUDA(cuMemcpyDtoDAsync(memory + 16, memory, 16, first));
    CUDA(cuMemcpyDtoDAsync(memory + 32, memory, 16, second));
    CUDA(cuCtxSynchronize());
  });
}

TEST_F(StreamTest, raceForWhatAnotherReads) {
  EXPECT_FAULT("race: it (writes 16 bytes .* cuMemcpyDtoDAsync on stream 1 "
               "reads|reads 16 bytes .* cuMemsetD8Async on stream 2 writes)",
               [] {
                 useDevice(0);
                 CUstream first = makeStream(), second = makeStream();
                 CUdeviceptr memory = allocate(48);
                 CUDA(cuMemcpyDtoDAsync(memory + 16, memory, 16, first));
                 CUDA(cuMemsetD8Async(memory, 0, 16, second));
                 EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
               });
}

TEST_F(StreamTest, raceForPinnedMemory) {
  EXPECT_FAULT("race: it .* of pinned memory 0", [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    CUdeviceptr memory = allocate(48);
    float *host = allocatePinned(4);
    CUDA(cuMemcpyDtoHAsync(host, memory, 16, first));
    CUDA(cuMemcpyHtoDAsync(memory + 16, host, 16, second));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  });
}

TEST_F(StreamTest, raceWithHostFunctionsThatSayWhatTheyTouch) {
  EXPECT_FAULT(
      "race: it .* of pinned memory 0 .*(host function|cuMemcpyDtoH)", [] {
        useDevice(0);
        CUstream first = makeStream(), second = makeStream();
        float *host = allocatePinned(4);
        CUDA(cuMemcpyDtoHAsync(host, allocate(16), 16, first));
        CUDA(cuLaunchHostFunc(
            second, [](void *data) { fake_cuda_host_access(data, 16, 0); },
            host));
        EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
      });
}

TEST_F(StreamTest, raceForPlacesOnDisk) {
  // Which have addresses that no memory has.
  EXPECT_FAULT("race: it .* places on disk that host function on stream", [] {
    useDevice(0);
    auto use = [](void *data) { fake_cuda_host_access(data, 16, 1); };
    void *place = reinterpret_cast<void *>(uint64_t(1) << 63);
    CUDA(cuLaunchHostFunc(makeStream(), use, place));
    CUDA(cuLaunchHostFunc(makeStream(), use, place));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  });
}

/// A wait that is needed, and one that the second makes superfluous.
static void waitTwice() {
  useDevice(0);
  CUstream first = makeStream(), second = makeStream();
  CUdeviceptr memory = allocate(16);
  CUDA(cuMemsetD8Async(memory, 1, 16, first));
  order(first, second);
  CUDA(cuMemsetD8Async(memory, 2, 16, second));
  order(first, second);
  order(second, first);
  CUDA(cuMemsetD8Async(memory, 3, 16, first));
  cuCtxSynchronize();
}

TEST_F(StreamTest, missWaitsThatAreDropped) {
  EXPECT_FAULT("needed for its order.*race", waitTwice,
               {"FAKE_CUDA_DROP_WAIT", "1"});
  EXPECT_FAULT("needed for its order.*race", waitTwice,
               {"FAKE_CUDA_DROP_WAIT", "3"});
  EXPECT_FINE("implied by others", waitTwice, {"FAKE_CUDA_DROP_WAIT", "2"});
  EXPECT_FINE("", waitTwice);
}

TEST_F(StreamTest, runInAnyOrder) {
  // Which of the two comes first depends on the seed.
  auto firstIsFirst = [] {
    useDevice(0);
    CUstream first = makeStream(), second = makeStream();
    static std::vector<int> came;
    CUDA(cuLaunchHostFunc(
        first, [](void *) { came.push_back(1); }, nullptr));
    CUDA(cuLaunchHostFunc(
        second, [](void *) { came.push_back(2); }, nullptr));
    CUDA(cuCtxSynchronize());
    fprintf(stderr, "first came %d", came[0]);
  };
  EXPECT_FINE("first came 1", firstIsFirst, {"FAKE_CUDA_SEED", "1"});
  EXPECT_FINE("first came 2", firstIsFirst, {"FAKE_CUDA_SEED", "2"});
}

TEST_F(StreamTest, waitForTheDefaultStreamIfTheyBlock) {
  EXPECT_FINE("", [] {
    useDevice(0);
    CUstream blocking = nullptr;
    CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CUdeviceptr memory = allocate(16);
    CUDA(cuMemsetD8Async(memory, 1, 16, blocking));
    CUDA(cuMemsetD8Async(memory, 2, 16, nullptr));
    CUDA(cuMemsetD8Async(memory, 3, 16, blocking));
    CUDA(cuCtxSynchronize());
  });
  EXPECT_FAULT("race", [] {
    useDevice(0);
    CUstream stream = makeStream();
    CUdeviceptr memory = allocate(16);
    CUDA(cuMemsetD8Async(memory, 1, 16, stream));
    CUDA(cuMemsetD8Async(memory, 2, 16, nullptr));
    cuCtxSynchronize();
  });
}

TEST_F(StreamTest, doNotCallTheDriverFromHostFunctions) {
  EXPECT_FINE("cuMemAlloc: called in a host function of a stream", [] {
    useDevice(0);
    CUstream stream = makeStream();
    CUDA(cuLaunchHostFunc(
        stream,
        [](void *) {
          CUdeviceptr memory = 0;
          EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_NOT_PERMITTED);
        },
        nullptr));
    CUDA(cuStreamSynchronize(stream));
  });
}

TEST_F(StreamTest, areRefusedOnceDestroyed) {
  EXPECT_FINE("cuMemsetD8Async: no such stream", [] {
    useDevice(0);
    CUstream stream = makeStream();
    CUDA(cuStreamDestroy(stream));
    EXPECT_EQ(cuMemsetD8Async(allocate(16), 0, 16, stream),
              CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST_F(StreamTest, doNotWaitForWhatWasNeverRecorded) {
  EXPECT_FINE("cuStreamWaitEvent: event 1 was never recorded", [] {
    useDevice(0);
    EXPECT_EQ(cuStreamWaitEvent(makeStream(), makeEvent(), 0),
              CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST_F(StreamTest, needAContext) {
  EXPECT_FINE("cuStreamCreate: no context is current", [] {
    CUDA(cuInit(0));
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST_F(StreamTest, needAnInitializedDriver) {
  EXPECT_FINE("cuDeviceGetCount: called before cuInit", [] {
    int count = 0;
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  });
}

TEST_F(StreamTest, leaveUnfinishedWork) {
  EXPECT_FAULT("1 stream, .*unfinished work: host function on stream 1",
               [] {
                 useDevice(0);
                 CUDA(cuLaunchHostFunc(
                     makeStream(), [](void *) { sleep(2); }, nullptr));
               },
               {"FAKE_CUDA_LEAKS", "1"});
}

TEST_F(StreamTest, takeTime) {
  useDevice(0);
  CUstream stream = makeStream();
  CUevent begin = nullptr, end = nullptr;
  CUDA(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  CUDA(cuEventCreate(&end, CU_EVENT_DEFAULT));
  CUDA(cuEventRecord(begin, stream));
  CUDA(cuLaunchHostFunc(
      stream, [](void *) { usleep(2000); }, nullptr));
  CUDA(cuEventRecord(end, stream));
  CUDA(cuEventSynchronize(end));
  float ms = 0;
  CUDA(cuEventElapsedTime(&ms, begin, end));
  EXPECT_GE(ms, 2);
}
