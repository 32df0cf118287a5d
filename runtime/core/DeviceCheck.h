//===- DeviceCheck.h - Consistency of device code ---------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of checkProgram that is about kernels of accelerators.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_DEVICECHECK_H
#define ZERO_RT_CORE_DEVICECHECK_H

#include "runtime/core/Program.h"

namespace zrt {

/// Checks that a program for the host has no device code, and that in one for
/// an accelerator every launch on the device has a kernel, whose functions are
/// in the code, whose sizes CUDA can launch and whose arguments exist. Throws
/// Error.
void checkDeviceCode(const Program &program);

} // namespace zrt

#endif // ZERO_RT_CORE_DEVICECHECK_H
