//===- Plugin.h - Libraries that are loaded when used ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parts of the runtime that need libraries not every machine has: each is a
// shared library beside the program, in ../lib, or where the system looks. It
// has PluginInterface.cpp among its sources: one of another version is refused.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_PLUGIN_H
#define ZERO_RT_CORE_PLUGIN_H

namespace zrt {

struct Plugin {
  const char *file;
  const char *what; ///< "the CUDA backend", for messages
};

/// A function that the library exports; loads it if needed, once. Throws Error.
void *findInPlugin(const Plugin &plugin, const char *function);

template <typename Function>
Function *findInPlugin(const Plugin &plugin, const char *function) {
  return reinterpret_cast<Function *>(findInPlugin(plugin, function));
}

} // namespace zrt

#endif // ZERO_RT_CORE_PLUGIN_H
