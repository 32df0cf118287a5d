//===- MemoryTest.cpp - Memory of the fake devices ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/Fixture.h"

#include <sys/wait.h>

using namespace testing;

using MemoryTest = FakeCudaTest;

TEST_F(MemoryTest, holdsWhatIsCopiedThere) {
  useDevice(0);
  CUdeviceptr memory = allocate(16);
  write(memory, {1, 2, 3, 4});
  CUDA(cuMemcpyDtoD(memory + 8, memory, 8));
  CUDA(cuMemsetD32(memory, 0x40a00000, 1)); // 5
  EXPECT_EQ(read(memory, 4), (std::vector<float>{5, 2, 1, 2}));
  CUDA(cuMemFree(memory));
}

TEST_F(MemoryTest, beginsAsNotANumber) {
  useDevice(0);
  CUdeviceptr memory = allocate(4);
  float value = read(memory, 1)[0];
  EXPECT_NE(value, value);
  CUDA(cuMemFree(memory));
}

TEST_F(MemoryTest, copiesRows) {
  useDevice(0);
  CUdeviceptr memory = allocate(24);
  float *host = allocatePinned(4);
  for (int i = 0; i < 4; ++i)
    host[i] = static_cast<float>(i);
  CUDA(cuMemsetD8(memory, 0, 24));
  CUDA_MEMCPY2D rows = {};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = host;
  rows.srcPitch = 8;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = memory;
  rows.dstPitch = 12;
  rows.WidthInBytes = 8;
  rows.Height = 2;
  CUstream stream = makeStream();
  CUDA(cuMemcpy2DAsync(&rows, stream));
  CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(read(memory, 6), (std::vector<float>{0, 1, 0, 2, 3, 0}));
}

TEST_F(MemoryTest, isMappedAtReservedAddresses) {
  useDevice(0);
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t bytes = 0;
  CUDA(cuMemGetAllocationGranularity(&bytes, &properties,
                                     CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  CUmemGenericAllocationHandle handle;
  CUdeviceptr memory = 0;
  CUDA(cuMemCreate(&handle, bytes, &properties, 0));
  CUDA(cuMemAddressReserve(&memory, bytes, 0, 0, 0));
  CUDA(cuMemMap(memory, bytes, 0, handle, 0));
  CUDA(cuMemRelease(handle));
  CUmemAccessDesc access = {properties.location,
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUDA(cuMemSetAccess(memory, bytes, &access, 1));
  write(memory, {1, 2});
  EXPECT_EQ(read(memory, 2), (std::vector<float>{1, 2}));
  CUDA(cuMemUnmap(memory, bytes));
  CUDA(cuMemAddressFree(memory, bytes));
}

TEST_F(MemoryTest, isLimited) {
  EXPECT_FINE("",
              [] {
                useDevice(0);
                CUdeviceptr first = 0, second = 0;
                size_t available = 0, total = 0;
                CUDA(cuMemAlloc(&first, 600));
                EXPECT_EQ(cuMemAlloc(&second, 600), CUDA_ERROR_OUT_OF_MEMORY);
                CUDA(cuMemGetInfo(&available, &total));
                EXPECT_EQ(available, 400u);
                EXPECT_EQ(total, 1000u);
                CUDA(cuMemFree(first));
                CUDA(cuMemAlloc(&second, 1000));
              },
              {"FAKE_CUDA_MEMORY", "1000"});
}

TEST_F(MemoryTest, endsWhereItEnds) {
  EXPECT_FAULT("reads memory that it may not: 16 bytes at 0x[0-9a-f]* begin at "
               "byte 8 of memory 0 of device 0 .16 bytes, cuMemAlloc. and end "
               "8 bytes beyond it",
               [] {
                 useDevice(0);
                 CUdeviceptr from = allocate(16), to = allocate(16);
                 EXPECT_EQ(cuMemcpyDtoD(to, from + 8, 16),
                           CUDA_ERROR_LAUNCH_FAILED);
               });
}

TEST_F(MemoryTest, cannotBeUsedOnceFreed) {
  // The copy is under way when the memory goes: unmapping does not wait.
  EXPECT_FAULT("lie in memory 0 of device 0 .*, which was freed", [] {
    useDevice(0);
    CUmemAllocationProp properties = {};
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t bytes = 2 << 20;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr memory = 0;
    CUDA(cuMemCreate(&handle, bytes, &properties, 0));
    CUDA(cuMemAddressReserve(&memory, bytes, 0, 0, 0));
    CUDA(cuMemMap(memory, bytes, 0, handle, 0));
    CUmemAccessDesc access = {properties.location,
                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUDA(cuMemSetAccess(memory, bytes, &access, 1));
    CUstream stream = makeStream();
    CUDA(cuMemsetD8Async(memory, 0, 8, stream));
    CUDA(cuMemUnmap(memory, bytes));
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  });
}

TEST_F(MemoryTest, isFreedOnce) {
  EXPECT_FINE("cuMemFree: cuMemAlloc has not returned this address", [] {
    useDevice(0);
    CUdeviceptr memory = allocate(16);
    CUDA(cuMemFree(memory));
    EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_F(MemoryTest, belongsToItsDevice) {
  EXPECT_FAULT("lie in memory 0 of device 0 .*, not of device 1",
               [] {
                 useDevice(0);
                 CUdeviceptr foreign = allocate(16);
                 useDevice(1);
                 EXPECT_EQ(cuMemsetD8(foreign, 0, 16),
                           CUDA_ERROR_LAUNCH_FAILED);
               },
               {"FAKE_CUDA_DEVICES", "2"});
}

/// By a signal, or by a sanitizer that has caught it.
static bool hasCrashed(int status) {
  return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

TEST_F(MemoryTest, isNotTheHosts) {
  EXPECT_EXIT(runAlone([] {
                useDevice(0);
                CUdeviceptr memory = allocate(16);
                *reinterpret_cast<volatile char *>(memory) = 1;
              }),
              hasCrashed, "");
}

TEST_F(MemoryTest, ofTheHostMustBePinnedForAsynchronousCopies) {
  EXPECT_FINE("cuMemcpyDtoHAsync: target is host memory that is not pinned",
              [] {
                useDevice(0);
                CUdeviceptr memory = allocate(16);
                CUstream stream = makeStream();
                float pageable[4];
                EXPECT_EQ(cuMemcpyDtoHAsync(pageable, memory, 16, stream),
                          CUDA_ERROR_INVALID_VALUE);
                CUDA(cuMemHostRegister(pageable, sizeof pageable, 0));
                CUDA(cuMemcpyDtoHAsync(pageable, memory, 16, stream));
                CUDA(cuStreamSynchronize(stream));
                CUDA(cuMemHostUnregister(pageable));
              });
}

TEST_F(MemoryTest, leaks) {
  auto leak = [] {
    useDevice(0);
    allocate(16);
  };
  EXPECT_FAULT("still 1 retained context, memory 0 of device 0 .16 bytes", leak,
               {"FAKE_CUDA_LEAKS", "1"});
  EXPECT_FINE("", leak);
}

TEST_F(MemoryTest, failsWhereItIsTold) {
  EXPECT_FINE("",
              [] {
                useDevice(0);
                allocate(16);
                CUdeviceptr memory = 0;
                EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_OUT_OF_MEMORY);
                CUDA(cuMemAlloc(&memory, 16));
              },
              {"FAKE_CUDA_FAULT", "cuMemAlloc:2:memory"});
}
