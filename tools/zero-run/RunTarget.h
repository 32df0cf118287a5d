//===- RunTarget.h - What --backend asks for --------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which processor a model is compiled for, and whether a plan is for it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_RUNTARGET_H
#define ZERO_TOOLS_ZERO_RUN_RUNTARGET_H

#include "zero-rt/Session.h"

#include <string>

namespace zero_tools {

struct RunOptions;

/// The target that a model is compiled for. For "cuda" it is one that all GPUs
/// of this machine have; throws where there is none.
std::string targetOf(const std::string &backend);

/// Throws where a program is for another processor than --backend says.
void checkTarget(const RunOptions &options, const zrt::Program &program);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_RUNTARGET_H
