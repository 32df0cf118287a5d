//===- DriverEntry.cpp - Entry points by name -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Driver.h"

#include <dlfcn.h>

using namespace fake_cuda;

/// Newest first: the names that a function has had.
static void *findEntry(const std::string &name) {
  static const char *const suffixes[] = {"_v3", "_v2", ""};
  for (const char *suffix : suffixes)
    if (void *entry = dlsym(RTLD_DEFAULT, (name + suffix).c_str()))
      return entry;
  return nullptr;
}

FAKE_EXPORT CUresult
cuGetProcAddress_v2(const char *name, void **entry, int, cuuint64_t,
                    CUdriverProcAddressQueryResult *found) {
  *entry = findEntry(name);
  if (found)
    *found = *entry ? CU_GET_PROC_ADDRESS_SUCCESS
                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (*entry)
    return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_NOT_FOUND, "cuGetProcAddress",
                std::string("this fake has no ") + name);
}
