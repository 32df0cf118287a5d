//===- RunTimeline.h - The last step as a timeline --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What --trace and --report show: the last step as it was measured, and as the
// plan predicted it where the plan carries times.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_RUNTIMELINE_H
#define ZERO_TOOLS_ZERO_RUN_RUNTIMELINE_H

#include "zero-rt/Session.h"
#include "zero/Report/Timeline.h"

namespace zero_tools {

/// When the commands of the last step ran, by rank.
using SpansByRank = std::vector<std::vector<zrt_span>>;

/// Those of a rank of this process. Throws std::runtime_error with the
/// runtime's message.
std::vector<zrt_span> spansOf(const zrt::Session &session, uint32_t rank);

/// The last step of a session whose counters were reset before it. `model` and
/// `machine` are names for people. `spans` has the ranks that are shown; empty:
/// they are the session's. Throws std::runtime_error with the runtime's
/// message.
mlir::zero::Timeline measuredTimeline(const zrt::Program &program,
                                      const zrt::Session &session,
                                      const std::string &model,
                                      const std::string &machine,
                                      SpansByRank spans = {});

/// The step as the plan says; nothing if it carries no times.
std::optional<mlir::zero::Timeline>
predictedTimeline(const zrt::Program &program, const std::string &model,
                  const std::string &machine);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_RUNTIMELINE_H
