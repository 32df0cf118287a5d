//===- HostKernelGroups.h - Kernels of a zero.on_host -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the host an update is bound by memory: what is done to each element of a
// parameter, casts before and after included, is one pass.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_HOSTKERNELGROUPS_H
#define ZERO_LIB_LOWERING_HOSTKERNELGROUPS_H

#include "KernelGroups.h"

namespace mlir::zero {

/// Groups of ops of `block`, the body of a zero.on_host, that do something to
/// each element of tensors of one shape: one group where they are connected.
/// Ops of no group are left to `findKernelGroups`.
SmallVector<KernelGroup> findHostKernelGroups(Block &block);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_HOSTKERNELGROUPS_H
