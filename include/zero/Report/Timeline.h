//===- Timeline.h - What a step did, or will do -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One schema for predicted and measured steps, so that one picture and one
// diff show plan against run. Needs no MLIR and no runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_REPORT_TIMELINE_H
#define ZERO_REPORT_TIMELINE_H

#include "zero/Cost/StepGraph.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <array>

namespace mlir::zero {

constexpr size_t kNumMemoryKinds = 8;
/// "parameter", "state", ... by MemoryKind.
llvm::StringRef memoryKindName(MemoryKind kind);

/// One task on one channel of one rank. Seconds from the start of the step.
struct TimelineSpan {
  int32_t rank = 0;
  std::string channel; ///< "compute", "all_gather", ...
  std::string name;    ///< op, with the parameter or layer
  TaskKind kind = TaskKind::Compute;
  double start = 0, end = 0;
  double exposed = 0;    ///< compute stood still for it
  int64_t sentBytes = 0; ///< of a collective; what a copy moves
  std::string reason;    ///< why it is exposed; empty if it is not
  int32_t command = -1;  ///< of the plan: matches predicted and measured
};

/// Bytes of one rank from `time` on, by MemoryKind.
struct TimelineMemory {
  double time = 0;
  std::array<int64_t, kNumMemoryKinds> bytes = {};
};

/// Memory of one rank outside the device: host or disk.
struct TimelineSpace {
  int64_t budgetBytes = -1;           ///< -1: none
  int64_t plannedPeak = 0;            ///< bytes of the arena
  int64_t lowerBound = 0;             ///< most bytes alive at one time
  std::vector<TimelineMemory> memory; ///< by time
};

/// A row of the parameter table.
struct TimelineParameter {
  std::string name;
  std::vector<int64_t> shape, shard; ///< whole; of one rank
  std::string type;                  ///< "f32"
  std::string residence = "device";  ///< device, host or disk
  std::string gathered; ///< "twice", "kept for backward", "never", ...
  int64_t bytes = 0;    ///< of one rank, states included
};

/// A step of all ranks that are shown.
struct Timeline {
  std::string source; ///< "predicted" or "measured"
  std::string model, machine;
  int64_t ranks = 1;
  std::vector<int64_t> grid;
  int64_t stage = 0;
  int64_t budgetBytes = -1; ///< -1: none
  int64_t plannedPeak = 0;  ///< bytes of the device arena
  int64_t lowerBound = 0;   ///< most bytes alive at one time
  double stepSeconds = 0;
  double exposedSeconds = 0;
  std::vector<TimelineSpan> spans;
  std::vector<TimelineMemory> memory; ///< of one rank's device, by time
  TimelineSpace host, disk;
  std::vector<TimelineParameter> parameters;
  std::vector<std::string> notes; ///< what limits the step, in sentences
  /// What was chosen to live outside device memory, in a sentence, and the
  /// rules that say it; empty where nothing was chosen.
  std::string offload;
  std::vector<std::string> offloadRules;
};

/// Empty if `timeline` can be drawn; otherwise one line that says what is
/// wrong: a rank out of range, a time that is negative, not finite or beyond
/// 1e9 s, a span that ends before it starts, memory points out of order,
/// negative bytes.
std::string checkTimeline(const Timeline &timeline);

/// Chrome trace-event JSON, as Perfetto opens it: a process per rank, a thread
/// per channel, a counter per kind of memory; further processes for a second
/// timeline. Carries all of the timeline, so that `readTrace` gives it back.
/// Bytes that are not UTF-8 become U+FFFD. docs/reports.md has the fields.
/// Precondition: `checkTimeline` finds nothing.
void writeTrace(llvm::ArrayRef<Timeline> timelines, llvm::raw_ostream &os);

/// Reads what `writeTrace` wrote. Errors name the file and what is wrong in it.
llvm::Expected<std::vector<Timeline>> readTrace(llvm::StringRef path);

/// The same from the text of a file; errors do not name it.
llvm::Expected<std::vector<Timeline>> parseTrace(llvm::StringRef text);

/// One self-contained HTML file: channels over time, memory over time by kind
/// of each space with the budget line, traffic by collective, links to host and
/// disk, a row per parameter, reasons of what is exposed. A predicted and a
/// measured timeline are overlaid: the first of either source is drawn, as
/// `drawnTimelines` chooses. Precondition: `checkTimeline` finds nothing.
void writeReport(llvm::ArrayRef<Timeline> timelines, llvm::raw_ostream &os);

/// What --trace and --report of the tools do: writes the files whose path is
/// not empty. A file appears complete or not at all; a device or a pipe is
/// written to directly. Errors are one line that starts with the path.
llvm::Error writeTimelineFiles(llvm::ArrayRef<Timeline> timelines,
                               llvm::StringRef tracePath,
                               llvm::StringRef reportPath);

} // namespace mlir::zero

#endif // ZERO_REPORT_TIMELINE_H
