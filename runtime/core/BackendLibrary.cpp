//===- BackendLibrary.cpp - Backends that are loaded when used ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See BackendLibrary.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/BackendLibrary.h"
#include "runtime/core/Plugin.h"

using namespace zrt;

static constexpr Plugin cudaPlugin = {"libzero-rt-cuda.so", "the CUDA backend"};

bool zrt::isForDevice(const Program &program) {
  return program.target.compare(0, 5, "cuda:") == 0;
}

std::unique_ptr<Backend>
zrt::makeDeviceBackend(const std::shared_ptr<const Program> &program,
                       const zrt_session_options &options) {
  return std::unique_ptr<Backend>(
      findInPlugin<MakeBackend>(cudaPlugin, kMakeBackend)(program, options));
}

uint32_t zrt::getDevices(zrt_device_info *devices, uint32_t room) {
  return findInPlugin<GetDevices>(cudaPlugin, kGetDevices)(devices, room);
}
