//===- BackendLibrary.h - Backends that are loaded when used --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The CUDA backend is a library of its own, libzero-rt-cuda.so, so that this
// one starts without NVIDIA's libraries. It is looked for beside the program
// (its folder, ../lib) and then where the system looks for libraries.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_BACKENDLIBRARY_H
#define ZERO_RT_CORE_BACKENDLIBRARY_H

#include "runtime/core/Backend.h"

namespace zrt {

/// Whether a program runs on an accelerator: its target is "cuda:...".
bool isForDevice(const Program &program);

/// A session on accelerators. Throws Error where the library or a device is
/// missing, with what the system says about it.
std::unique_ptr<Backend>
makeDeviceBackend(const std::shared_ptr<const Program> &program,
                  const zrt_session_options &options);

/// Fills `devices` with the first `room` accelerators of this machine; returns
/// how many there are. Throws Error.
uint32_t getDevices(zrt_device_info *devices, uint32_t room);

} // namespace zrt

#endif // ZERO_RT_CORE_BACKENDLIBRARY_H
