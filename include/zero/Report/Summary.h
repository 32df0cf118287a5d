//===- Summary.h - Numbers of a timeline ------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a report says in numbers: sums over the spans of a timeline, and the
// difference between a predicted and a measured one, command by command.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_REPORT_SUMMARY_H
#define ZERO_REPORT_SUMMARY_H

#include "zero/Report/Timeline.h"

namespace mlir::zero {

/// The timelines that a report shows, in the order it shows them: the first
/// predicted and the first measured one (any other source counts as
/// predicted). Null where there is none.
struct DrawnTimelines {
  const Timeline *predicted = nullptr, *measured = nullptr;
};
DrawnTimelines drawnTimelines(llvm::ArrayRef<Timeline> timelines);

/// What the spans of one kind on one channel come to, on one rank: the mean
/// over the ranks that have spans at all.
struct ChannelSummary {
  std::string channel;
  TaskKind kind = TaskKind::Compute;
  double spans = 0;          ///< number
  double busySeconds = 0;    ///< sum of durations
  double exposedSeconds = 0; ///< compute stood still for it
  double sentBytes = 0;
};
/// In the order of TaskKind, then by channel.
std::vector<ChannelSummary> summarizeChannels(const Timeline &timeline);

/// Most bytes alive at one time on the device. Zeros without memory points.
TimelineMemory memoryPeak(const Timeline &timeline);

/// Whether `kind` moves data between device, host and disk.
bool isTransfer(TaskKind kind);

/// A command as predicted and as measured: means over the ranks, in seconds.
struct CommandDifference {
  int32_t command = -1;
  std::string name, channel;
  double predicted = 0, measured = 0;

  double difference() const { return measured - predicted; }
};
/// The commands that are in both, by falling absolute difference, then by
/// number.
std::vector<CommandDifference> compareCommands(const Timeline &predicted,
                                               const Timeline &measured);

/// Median of |measured - predicted| / measured, in percent, over commands that
/// took time. 0 if there are none.
double medianErrorPercent(llvm::ArrayRef<CommandDifference> differences);

/// A collective, copy or compute of the host that compute stood still for: the
/// rank that waited longest.
struct ExposedCollective {
  const TimelineSpan *span = nullptr; ///< on that rank
  int32_t ranks = 0;                  ///< how many ranks waited for it
};
/// By falling exposed time, then by start. Spans with the same command, or
/// without one the same name, channel and position among those of their rank,
/// are one collective.
std::vector<ExposedCollective> exposedCollectives(const Timeline &timeline);

} // namespace mlir::zero

#endif // ZERO_REPORT_SUMMARY_H
