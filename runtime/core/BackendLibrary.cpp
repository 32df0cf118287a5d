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
#include "runtime/core/Error.h"

#include <climits>
#include <dlfcn.h>
#include <unistd.h>

using namespace zrt;

static constexpr const char *kLibrary = "libzero-rt-cuda.so";

/// The folder of the running program, with a slash; empty if unknown.
static std::string programFolder() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string text(path, length < 0 ? 0 : size_t(length));
  return text.substr(0, text.rfind('/') + 1);
}

/// Loads the library once; it stays.
static void *loadLibrary() {
  std::string folder = programFolder(), why;
  for (const std::string &place :
       {folder + kLibrary, folder + "../lib/" + kLibrary,
        std::string(kLibrary)}) {
    if (void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
    // A library that is there and cannot be loaded has the better reason.
    std::string reason = dlerror();
    if (why.empty() || access(place.c_str(), F_OK) == 0)
      why = reason;
  }
  fail(ZRT_ERROR_TARGET, "the CUDA backend cannot be loaded: ", why);
}

template <typename Function>
static Function *findFunction(const char *name) {
  static void *library = loadLibrary();
  void *found = dlsym(library, name);
  if (!found)
    fail(ZRT_ERROR_TARGET, kLibrary, " is of another version: it has no ",
         name);
  return reinterpret_cast<Function *>(found);
}

bool zrt::isForDevice(const Program &program) {
  return program.target.compare(0, 5, "cuda:") == 0;
}

std::unique_ptr<Backend>
zrt::makeDeviceBackend(const std::shared_ptr<const Program> &program,
                       const zrt_session_options &options) {
  return std::unique_ptr<Backend>(
      findFunction<MakeBackend>(kMakeBackend)(program, options));
}

uint32_t zrt::getDevices(zrt_device_info *devices, uint32_t room) {
  return findFunction<GetDevices>(kGetDevices)(devices, room);
}
