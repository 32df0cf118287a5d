//===- Summary.h - Memory and traffic beside the formulas -------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of --summary: what one rank holds and sends, beside what the ZeRO
// paper's formulas say.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_SUMMARY_H
#define ZERO_TOOLS_ZERO_RUN_SUMMARY_H

#include "runtime/io/Metrics.h"
#include "zero-rt/Session.h"

namespace zero_tools {

/// Prints the table for `program` and one step's metrics on the standard
/// output.
void printSummary(const zrt::Program &program, const zrt::StepMetrics &metrics);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_SUMMARY_H
