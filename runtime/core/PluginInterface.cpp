//===- PluginInterface.cpp - The version of a plugin ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A source of each plugin, see Plugin.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/PluginInterface.h"

extern "C" __attribute__((visibility("default"))) const char *
zrt_plugin_interface(void) {
  return ZRT_PLUGIN_INTERFACE;
}
