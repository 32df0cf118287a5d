//===- Trace.h - Words of the trace format ----------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the writer and the reader of traces share. docs/reports.md has the
// format.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_REPORT_TRACE_H
#define ZERO_LIB_REPORT_TRACE_H

#include "zero/Report/Timeline.h"

#include "llvm/Support/JSON.h"
#include <cmath>
#include <tuple>

namespace mlir::zero {

constexpr int64_t kTraceVersion = 1;
/// Metadata events that viewers ignore and `readTrace` reads.
constexpr llvm::StringLiteral kTimelineEvent = "zero_timeline";
constexpr llvm::StringLiteral kParameterEvent = "zero_parameter";
constexpr llvm::StringLiteral kMemoryEvent = "memory";
/// The same of the memory outside the device.
constexpr llvm::StringLiteral kHostMemoryEvent = "host_memory";
constexpr llvm::StringLiteral kDiskMemoryEvent = "disk_memory";

/// "compute", "all_gather", ...: the category of an event.
constexpr size_t kNumTaskKinds = 9;
llvm::StringRef taskKindName(TaskKind kind);

/// Whether `space` has something to show.
bool isUsed(const TimelineSpace &space);

/// Viewers count in whole nanoseconds. Rounding each end by itself keeps spans
/// that do not overlap from overlapping.
inline int64_t toNanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

/// Messages quote names that may hold anything: control characters become
/// spaces.
std::string oneLine(std::string message);

/// The shortest decimal number that reads back as `value`.
void writeNumber(llvm::raw_ostream &os, double value);

/// Channels in the order in which they are shown: by kind, then by name.
struct Channel {
  std::string name;
  TaskKind kind;
  bool operator<(const Channel &o) const {
    return std::tie(kind, name) < std::tie(o.kind, o.name);
  }
};
/// A rank that is shown, and the channels of its spans. A channel may hold
/// spans of several kinds, as the compute channel does where nothing is
/// overlapped; it counts as the first of them in the order of TaskKind.
struct RankChannels {
  int32_t rank = 0;
  std::vector<Channel> channels;
};
/// By rank; rank 0 alone if there are no spans.
std::vector<RankChannels> channelsByRank(const Timeline &timeline);

} // namespace mlir::zero

#endif // ZERO_LIB_REPORT_TRACE_H
