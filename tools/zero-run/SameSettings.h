//===- SameSettings.h - All processes have the same flags -------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processes that are started one by one have a command line each. Where those
// differ in what is trained, replicas would drift apart in silence, or one
// process would wait for what another does not do.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_SAMESETTINGS_H
#define ZERO_TOOLS_ZERO_RUN_SAMESETTINGS_H

#include <string>
#include <vector>

namespace zero_tools {

struct RunOptions;
class RunGroup;

/// The settings that all processes must share, after a config: names and values
/// in one order. Of paths only whether there is one, as machines may differ in
/// where files are; nothing of what process 0 alone writes.
std::string sharedSettings(const RunOptions &options);

/// The first difference of texts by rank, in words; empty: there is none.
std::string findDifference(const std::vector<std::string> &settings);

/// Collective: throws CommonError, the same in all processes, where settings
/// differ.
void checkSameSettings(const RunOptions &options, RunGroup &group);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_SAMESETTINGS_H
