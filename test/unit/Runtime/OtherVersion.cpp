//===- OtherVersion.cpp - A plugin of another version ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

extern "C" const char *zrt_plugin_interface(void) { return "another"; }
extern "C" void zrt_some_function(void) {}
