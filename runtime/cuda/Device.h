//===- Device.h - A GPU -----------------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver, its devices and their primary contexts, which we share with the
// libraries.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_DEVICE_H
#define ZERO_RT_CUDA_DEVICE_H

#include "zero-rt/zero-rt.h"

#include <cuda.h>

#include <cstdint>
#include <string>

namespace zrt::cuda {

/// Least compute capability that programs are compiled for.
constexpr int kLeastCapability = 80;

/// Starts the driver; how many devices it has. Throws Error.
int countDevices();

/// A device while it is in use.
class Device {
public:
  /// Throws Error where there is no such device or no room on it.
  explicit Device(int number);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Makes the context current on this thread.
  void use() const;

  int number() const { return deviceNumber; }
  const std::string &name() const { return deviceName; }
  /// 90 for sm_90.
  int capability() const { return deviceCapability; }
  /// Memory in bytes, and how much of it is free. The context is current.
  zrt_device_info info() const;

private:
  int deviceNumber;
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::string deviceName;
  int deviceCapability = 0;
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_DEVICE_H
