//===- Library.cpp - What the library exports -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that BackendLibrary.cpp looks for; their types are in
// Backend.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Session.h"

#include <algorithm>

using namespace zrt;

// The types are C++; the names are what they are found by.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif

extern "C" __attribute__((visibility("default"))) Backend *
zrt_make_backend(std::shared_ptr<const Program> program,
                 const zrt_session_options &options) {
  return new cuda::Session(std::move(program), options);
}

extern "C" __attribute__((visibility("default"))) uint32_t
zrt_get_backend_devices(zrt_device_info *devices, uint32_t room) {
  auto count = uint32_t(cuda::countDevices());
  for (uint32_t index = 0; index < std::min(count, room); ++index) {
    cuda::Device device{int(index)};
    device.use();
    devices[index] = device.info();
  }
  return count;
}
