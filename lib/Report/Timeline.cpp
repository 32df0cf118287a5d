//===- Timeline.cpp - What a step did, or will do ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names, checks, and the files that the tools write.
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir::zero;
using namespace llvm;

StringRef mlir::zero::memoryKindName(MemoryKind kind) {
  static constexpr StringLiteral names[kNumMemoryKinds] = {
      "parameter",  "state", "gradient", "gathered",
      "activation", "input", "constant", "persistent"};
  return names[static_cast<size_t>(kind)];
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Longer steps are mistakes, and nanoseconds of shorter ones fit an int64_t.
static constexpr double kMaxSeconds = 1e9;

static bool isTime(double seconds) {
  return seconds >= 0 && seconds <= kMaxSeconds; // false for NaN
}

static std::string checkSpan(const TimelineSpan &span, int64_t ranks) {
  if (span.rank < 0 || span.rank >= ranks)
    return formatv("is on rank {0} of {1}", span.rank, ranks);
  if (span.channel.empty())
    return "has no channel";
  if (!isTime(span.start) || !isTime(span.end) || !isTime(span.exposed))
    return "has a time that is not between 0 and 1e9 s";
  if (span.end < span.start)
    return "ends before it starts";
  return span.sentBytes < 0 ? "sends less than 0 bytes" : "";
}

static std::string checkMemory(ArrayRef<TimelineMemory> memory,
                               StringRef of = "") {
  double last = 0;
  for (auto [i, point] : enumerate(memory)) {
    if (!isTime(point.time) || point.time < last)
      return formatv("{0}memory point {1} is out of order", of, i);
    last = point.time;
    int64_t total = 0;
    for (int64_t bytes : point.bytes)
      if (bytes < 0 || AddOverflow(total, bytes, total))
        return formatv("{0}memory point {1} has impossible bytes", of, i);
  }
  return "";
}

static std::string checkParameter(const TimelineParameter &parameter) {
  for (const std::vector<int64_t> *sizes : {&parameter.shape, &parameter.shard})
    if (any_of(*sizes, [](int64_t size) { return size < 0; }))
      return "has a negative dimension";
  return parameter.bytes < 0 ? "has less than 0 bytes" : "";
}

std::string mlir::zero::oneLine(std::string message) {
  for (char &c : message)
    if (isASCII(c) && !isPrint(c))
      c = ' ';
  return message;
}

std::string mlir::zero::checkTimeline(const Timeline &timeline) {
  if (timeline.ranks < 1 ||
      any_of(timeline.grid, [](int64_t size) { return size < 1; }))
    return "has less than 1 rank";
  if (timeline.stage < 0 || timeline.stage > 3)
    return formatv("is of stage {0}; stages are 0 to 3", timeline.stage);
  if (timeline.budgetBytes < -1 || timeline.plannedPeak < 0 ||
      timeline.lowerBound < 0)
    return "has a budget or a peak of less than 0 bytes";
  for (const TimelineSpace *space : {&timeline.host, &timeline.disk})
    if (space->budgetBytes < -1 || space->plannedPeak < 0 ||
        space->lowerBound < 0)
      return "has a host or disk budget or peak of less than 0 bytes";
  if (!isTime(timeline.stepSeconds) || !isTime(timeline.exposedSeconds))
    return "has a step time that is not between 0 and 1e9 s";
  for (auto [i, span] : enumerate(timeline.spans))
    if (std::string wrong = checkSpan(span, timeline.ranks); !wrong.empty())
      return oneLine(formatv("span {0} ({1}) {2}", i, span.name, wrong));
  for (const TimelineParameter &parameter : timeline.parameters)
    if (std::string wrong = checkParameter(parameter); !wrong.empty())
      return oneLine(formatv("parameter {0} {1}", parameter.name, wrong));
  std::string wrong = checkMemory(timeline.memory);
  if (wrong.empty())
    wrong = checkMemory(timeline.host.memory, "host ");
  return wrong.empty() ? checkMemory(timeline.disk.memory, "disk ") : wrong;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

using Writer = function_ref<void(raw_ostream &)>;

/// What went wrong while writing, a full disk say, shows at the last flush.
static Error writeThrough(raw_fd_ostream &os, Writer write) {
  write(os);
  os.flush();
  std::error_code code = os.error();
  os.clear_error();
  return errorCodeToError(code);
}

static Error writeWhole(StringRef path, Writer write) {
  sys::fs::file_status status;
  if (!sys::fs::status(path, status) && !sys::fs::is_regular_file(status)) {
    std::error_code code;
    raw_fd_ostream os(path, code);
    return code ? errorCodeToError(code) : writeThrough(os, write);
  }
  Expected<sys::fs::TempFile> temporary =
      sys::fs::TempFile::create(path + ".tmp-%%%%%%");
  if (!temporary)
    return temporary.takeError();
  raw_fd_ostream os(temporary->FD, /*shouldClose=*/false);
  if (Error error = writeThrough(os, write))
    return joinErrors(std::move(error), temporary->discard());
  return temporary->keep(path);
}

static Error writeFile(StringRef path, Writer write) {
  if (path.empty())
    return Error::success();
  Error error = writeWhole(path, write);
  if (!error)
    return Error::success();
  std::string text = toString(std::move(error));
  return createStringError(
      path + ": cannot write: " + StringRef(text).split('\n').first);
}

Error mlir::zero::writeTimelineFiles(ArrayRef<Timeline> timelines,
                                     StringRef tracePath,
                                     StringRef reportPath) {
  for (const Timeline &timeline : timelines)
    if (std::string wrong = checkTimeline(timeline); !wrong.empty())
      return createStringError((tracePath.empty() ? reportPath : tracePath) +
                               ": the " + oneLine(timeline.source) +
                               " timeline " + wrong);
  if (Error error = writeFile(
          tracePath, [&](raw_ostream &os) { writeTrace(timelines, os); }))
    return error;
  return writeFile(reportPath,
                   [&](raw_ostream &os) { writeReport(timelines, os); });
}
