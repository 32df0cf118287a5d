//===- DriverMemory.cpp - Memory calls of the driver ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/DriverGraph.h"
#include "test/fake-cuda/Environment.h"

#include <cstring>

using namespace fake_cuda;

static std::string bytesText(size_t bytes) { return std::to_string(bytes); }

//===----------------------------------------------------------------------===//
// Device memory
//===----------------------------------------------------------------------===//

FAKE_EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
  if (CUresult error = enter("cuMemGetInfo", Needs::Context, ""))
    return error;
  *total = environment().memory;
  *available = *total - Registry::get().used(currentContext()->device);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  if (CUresult error = enter("cuMemAlloc", Needs::Context, bytesText(bytes)))
    return error;
  if (CUresult error = refuseInCapture("cuMemAlloc"))
    return error;
  if (bytes == 0)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc", "0 bytes");
  AllocationPtr made =
      Registry::get().addDevice(currentContext()->device, bytes, "cuMemAlloc");
  if (!made)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = made->window.begin;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (CUresult error = enter("cuMemFree", Needs::Context, addressName(pointer)))
    return error;
  if (pointer == 0)
    return CUDA_SUCCESS;
  if (CUresult error = refuseInCapture("cuMemFree"))
    return error;
  // As the driver does, so that nothing is in use.
  Engine::get().waitAll(currentContext()->device);
  if (!Registry::get().remove(pointer, "cuMemAlloc"))
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemFree",
                  "cuMemAlloc has not returned this address, or it was freed");
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes,
                                             CUdeviceptr pointer) {
  AllocationPtr allocation = Registry::get().around(pointer);
  if (!allocation)
    return CUDA_ERROR_NOT_FOUND;
  if (base)
    *base = allocation->window.begin;
  if (bytes)
    *bytes = allocation->window.bytes;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuPointerGetAttribute(void *data,
                                           CUpointer_attribute attribute,
                                           CUdeviceptr pointer) {
  if (CUresult error = enter("cuPointerGetAttribute", Needs::Driver,
                             std::to_string(attribute)))
    return error;
  AllocationPtr allocation = Registry::get().around(pointer);
  if (!allocation)
    return CUDA_ERROR_INVALID_VALUE;
  bool host = allocation->device == kHost;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *static_cast<unsigned *>(data) =
        host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *static_cast<int *>(data) = host ? 0 : allocation->device;
    return CUDA_SUCCESS;
  default:
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "cuPointerGetAttribute",
                  "attribute " + std::to_string(attribute) + " is not known");
  }
}

//===----------------------------------------------------------------------===//
// Pinned memory of the host
//===----------------------------------------------------------------------===//

static CUresult allocateHost(const char *function, void **pointer,
                             size_t bytes) {
  if (CUresult error = enter(function, Needs::Context, bytesText(bytes)))
    return error;
  if (CUresult error = refuseInCapture(function))
    return error;
  if (bytes == 0)
    return refuse(CUDA_ERROR_INVALID_VALUE, function, "0 bytes");
  AllocationPtr made = Registry::get().addHost(bytes, "cuMemHostAlloc");
  if (!made)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = made->window.data;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  return allocateHost("cuMemHostAlloc", pointer, bytes);
}

FAKE_EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return allocateHost("cuMemAllocHost", pointer, bytes);
}

FAKE_EXPORT CUresult cuMemFreeHost(void *pointer) {
  Address address = reinterpret_cast<Address>(pointer);
  if (CUresult error =
          enter("cuMemFreeHost", Needs::Context, addressName(address)))
    return error;
  if (CUresult error = refuseInCapture("cuMemFreeHost"))
    return error;
  Engine::get().waitAll(currentContext()->device);
  if (!Registry::get().remove(address, "cuMemHostAlloc"))
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost",
                  "cuMemHostAlloc has not returned this address, or it was "
                  "freed");
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes,
                                          unsigned) {
  Address address = reinterpret_cast<Address>(pointer);
  if (CUresult error =
          enter("cuMemHostRegister", Needs::Context, bytesText(bytes)))
    return error;
  if (bytes == 0 || !pointer)
    return CUDA_ERROR_INVALID_VALUE;
  if (Registry::get().around(address) ||
      Registry::get().around(address + bytes - 1))
    return refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                  "cuMemHostRegister", "the memory is pinned already");
  Registry::get().addForeign(kHost,
                             {address, bytes, static_cast<char *>(pointer)},
                             "cuMemHostRegister");
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemHostUnregister(void *pointer) {
  Address address = reinterpret_cast<Address>(pointer);
  if (CUresult error =
          enter("cuMemHostUnregister", Needs::Context, addressName(address)))
    return error;
  if (!Registry::get().remove(address, "cuMemHostRegister"))
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemHostUnregister",
                  "the memory is not registered");
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device,
                                                  void *pointer, unsigned) {
  Address address = reinterpret_cast<Address>(pointer);
  AllocationPtr allocation = Registry::get().around(address);
  if (!allocation || allocation->device != kHost)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemHostGetDevicePointer",
                  "the memory is not pinned");
  *device = address;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Virtual memory: memory of a device, mapped at reserved addresses
//===----------------------------------------------------------------------===//

namespace {
struct Physical {
  int device;
  size_t bytes;
  char *data;
  unsigned users; // the handle itself and its mappings
};

struct Mapping {
  Window window;
  CUmemGenericAllocationHandle handle;
  bool accessible = false;
};

/// What the virtual memory calls have made.
struct VirtualMemory {
  std::mutex mutex;
  std::map<CUmemGenericAllocationHandle, Physical> physical;
  std::map<CUdeviceptr, size_t> reserved;
  std::map<CUdeviceptr, Mapping> mappings;
  CUmemGenericAllocationHandle next = 1;
};
} // namespace

constexpr size_t kGranularity = 2 << 20;

static VirtualMemory &virtualMemory() {
  static VirtualMemory *memory = new VirtualMemory;
  return *memory;
}

static void dropUser(VirtualMemory &memory,
                     CUmemGenericAllocationHandle handle) {
  Physical &physical = memory.physical[handle];
  if (--physical.users > 0)
    return;
  unmapData(physical.data, physical.bytes);
  Registry::get().unreserve(physical.device, physical.bytes);
  memory.physical.erase(handle);
}

FAKE_EXPORT CUresult
cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *,
                              CUmemAllocationGranularity_flags) {
  *granularity = kGranularity;
  return enter("cuMemGetAllocationGranularity", Needs::Driver, "");
}

FAKE_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle,
                                 size_t bytes,
                                 const CUmemAllocationProp *properties,
                                 unsigned long long) {
  if (CUresult error = enter("cuMemCreate", Needs::Driver, bytesText(bytes)))
    return error;
  int device = properties->location.id;
  if (bytes == 0 || bytes % kGranularity != 0 ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || device < 0 ||
      device >= environment().devices)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemCreate",
                  bytesText(bytes) + " bytes of device " +
                      std::to_string(device) +
                      " are no multiple of the granularity, or there is no "
                      "such device");
  if (!Registry::get().reserve(device, bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  char *data = mapData(bytes);
  if (!data)
    return CUDA_ERROR_OUT_OF_MEMORY;
  VirtualMemory &memory = virtualMemory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  *handle = memory.next++;
  memory.physical[*handle] = {device, bytes, data, 1};
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (CUresult error = enter("cuMemRelease", Needs::Driver, ""))
    return error;
  VirtualMemory &memory = virtualMemory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  if (!memory.physical.count(handle))
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemRelease", "no such handle");
  dropUser(memory, handle);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes,
                                         size_t alignment, CUdeviceptr,
                                         unsigned long long) {
  if (CUresult error =
          enter("cuMemAddressReserve", Needs::Driver, bytesText(bytes)))
    return error;
  if (bytes == 0 || bytes % kGranularity != 0)
    return CUDA_ERROR_INVALID_VALUE;
  alignment = std::max(alignment, kGranularity);
  Address at = reserveAddresses(bytes + alignment);
  if (!at)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = (at + alignment - 1) / alignment * alignment;
  VirtualMemory &memory = virtualMemory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  memory.reserved[*pointer] = bytes;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
  if (CUresult error =
          enter("cuMemAddressFree", Needs::Driver, bytesText(bytes)))
    return error;
  VirtualMemory &memory = virtualMemory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  auto found = memory.reserved.find(pointer);
  if (found == memory.reserved.end() || found->second != bytes)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemAddressFree",
                  "these addresses are not reserved");
  memory.reserved.erase(found);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                              CUmemGenericAllocationHandle handle,
                              unsigned long long) {
  if (CUresult error = enter("cuMemMap", Needs::Driver, bytesText(bytes)))
    return error;
  VirtualMemory &memory = virtualMemory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  auto physical = memory.physical.find(handle);
  auto place = memory.reserved.upper_bound(pointer);
  if (physical == memory.physical.end() || offset != 0 ||
      bytes != physical->second.bytes || place == memory.reserved.begin() ||
      pointer + bytes > std::prev(place)->first + std::prev(place)->second)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemMap",
                  "no such handle, a part of it, or addresses that are not "
                  "reserved");
  ++physical->second.users;
  memory.mappings[pointer] = {{pointer, bytes, physical->second.data}, handle};
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes,
                                    const CUmemAccessDesc *access,
                                    size_t count) {
  if (CUresult error = enter("cuMemSetAccess", Needs::Driver, bytesText(bytes)))
    return error;
  VirtualMemory &memory = virtualMemory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  auto mapping = memory.mappings.find(pointer);
  if (mapping == memory.mappings.end() || mapping->second.window.bytes != bytes)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemSetAccess",
                  "nothing is mapped there");
  int device = memory.physical[mapping->second.handle].device;
  for (size_t i = 0; i < count; ++i)
    if (access[i].location.id == device && !mapping->second.accessible &&
        access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      Registry::get().addForeign(device, mapping->second.window, "cuMemMap");
      mapping->second.accessible = true;
    }
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  if (CUresult error = enter("cuMemUnmap", Needs::Driver, bytesText(bytes)))
    return error;
  VirtualMemory &memory = virtualMemory();
  std::lock_guard<std::mutex> lock(memory.mutex);
  auto mapping = memory.mappings.find(pointer);
  if (mapping == memory.mappings.end() || mapping->second.window.bytes != bytes)
    return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemUnmap",
                  "nothing is mapped there");
  if (mapping->second.accessible)
    Registry::get().remove(pointer, "cuMemMap");
  dropUser(memory, mapping->second.handle);
  memory.mappings.erase(mapping);
  return CUDA_SUCCESS;
}
