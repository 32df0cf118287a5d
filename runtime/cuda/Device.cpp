//===- Device.cpp - A GPU -------------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Device.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Device.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/Status.h"

#include <cstring>

using namespace zrt;
using namespace zrt::cuda;

int cuda::countDevices() {
  CUresult status = cuInit(0);
  if (status != CUDA_SUCCESS)
    fail(ZRT_ERROR_TARGET,
         "the CUDA driver does not start: ", statusText(status));
  int count = 0;
  checkCuda(cuDeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

static int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  checkCuda(cuDeviceGetAttribute(&value, which, device),
            "cuDeviceGetAttribute");
  return value;
}

Device::Device(int number) : deviceNumber(number) {
  int count = countDevices();
  if (number < 0 || number >= count)
    fail(ZRT_ERROR_TARGET, "device ", number, " does not exist: this machine ",
         "has ", count, count == 1 ? " CUDA device" : " CUDA devices");
  checkCuda(cuDeviceGet(&device, number), "cuDeviceGet");
  char text[256] = {};
  checkCuda(cuDeviceGetName(text, sizeof(text) - 1, device), "cuDeviceGetName");
  deviceName = text;
  deviceCapability =
      10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
      attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  checkCuda(cuDevicePrimaryCtxRetain(&context, device),
            "cuDevicePrimaryCtxRetain of device " + std::to_string(number));
}

Device::~Device() {
  if (context)
    cuDevicePrimaryCtxRelease(device);
}

void Device::use() const {
  checkCuda(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

/// What programs for a device are compiled for: code for an older one runs.
static int targetOf(int capability) {
  int target = kLeastCapability;
  for (int known : {90, 100})
    if (capability >= known)
      target = known;
  return target;
}

zrt_device_info Device::info() const {
  zrt_device_info info = {};
  std::strncpy(info.name, deviceName.c_str(), sizeof(info.name) - 1);
  std::string target = "cuda:sm_" + std::to_string(targetOf(deviceCapability));
  std::strncpy(info.target, target.c_str(), sizeof(info.target) - 1);
  size_t free = 0, total = 0;
  checkCuda(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  info.memory_bytes = total;
  info.free_bytes = free;
  return info;
}
