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
#include "runtime/core/PluginInterface.h"

#include <climits>
#include <cstring>
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

static void checkVersion(const Plugin &plugin, void *library) {
  using Version = const char *();
  auto *version =
      reinterpret_cast<Version *>(dlsym(library, "zrt_plugin_interface"));
  if (!version || std::strcmp(version(), ZRT_PLUGIN_INTERFACE) != 0)
    fail(ZRT_ERROR_TARGET, plugin.what, " is of another version than this ",
         "program (", plugin.file, "): install both anew");
}

void *zrt::findInPlugin(const Plugin &plugin, const char *function) {
  void *library = load(plugin);
  checkVersion(plugin, library);
  void *found = dlsym(library, function);
  if (!found)
    fail(ZRT_ERROR_TARGET, plugin.file, " has no ", function);
  return found;
}
