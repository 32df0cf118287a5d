//===- Plugin.cpp - Libraries that are loaded when used -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Plugin.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Plugin.h"

#include "runtime/core/Error.h"

#include <climits>
#include <dlfcn.h>
#include <unistd.h>

using namespace zrt;

/// The folder of the running program, with a slash; empty if unknown.
static std::string programFolder() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string text(path, length < 0 ? 0 : size_t(length));
  return text.substr(0, text.rfind('/') + 1);
}

/// It stays loaded: to load it again is to find it.
static void *load(const Plugin &plugin) {
  std::string folder = programFolder(), why;
  for (const std::string &place :
       {folder + plugin.file, folder + "../lib/" + plugin.file,
        std::string(plugin.file)}) {
    if (void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
    // A library that is there and cannot be loaded has the better reason.
    std::string reason = dlerror();
    if (why.empty() || access(place.c_str(), F_OK) == 0)
      why = reason;
  }
  fail(ZRT_ERROR_TARGET, plugin.what, " cannot be loaded: ", why);
}

void *zrt::findInPlugin(const Plugin &plugin, const char *function) {
  void *found = dlsym(load(plugin), function);
  if (!found)
    fail(ZRT_ERROR_TARGET, plugin.file, " is of another version: it has no ",
         function);
  return found;
}
