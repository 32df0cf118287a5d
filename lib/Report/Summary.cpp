//===- Summary.cpp - Numbers of a timeline -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Summary.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Report/Summary.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace mlir::zero;
using namespace llvm;

DrawnTimelines mlir::zero::drawnTimelines(ArrayRef<Timeline> timelines) {
  DrawnTimelines drawn;
  for (const Timeline &timeline : timelines) {
    auto &place =
        timeline.source == "measured" ? drawn.measured : drawn.predicted;
    if (!place)
      place = &timeline;
  }
  return drawn;
}

std::vector<ChannelSummary>
mlir::zero::summarizeChannels(const Timeline &timeline) {
  std::map<std::pair<TaskKind, StringRef>, ChannelSummary> sums;
  std::set<int32_t> ranks;
  for (const TimelineSpan &span : timeline.spans) {
    ranks.insert(span.rank);
    ChannelSummary &sum = sums[{span.kind, span.channel}];
    sum.spans += 1;
    sum.busySeconds += span.end - span.start;
    sum.exposedSeconds += span.exposed;
    sum.sentBytes += double(span.sentBytes);
  }
  std::vector<ChannelSummary> result;
  for (auto &[key, sum] : sums) {
    sum.kind = key.first;
    sum.channel = key.second.str();
    for (double *value :
         {&sum.spans, &sum.busySeconds, &sum.exposedSeconds, &sum.sentBytes})
      *value /= double(ranks.size());
    result.push_back(std::move(sum));
  }
  return result;
}

bool mlir::zero::isTransfer(TaskKind kind) {
  return kind == TaskKind::CopyIn || kind == TaskKind::CopyOut ||
         kind == TaskKind::DiskRead || kind == TaskKind::DiskWrite;
}

static int64_t totalBytes(const TimelineMemory &point) {
  return std::accumulate(point.bytes.begin(), point.bytes.end(), int64_t(0));
}

TimelineMemory mlir::zero::memoryPeak(const Timeline &timeline) {
  TimelineMemory peak;
  for (const TimelineMemory &point : timeline.memory)
    if (totalBytes(point) > totalBytes(peak))
      peak = point;
  return peak;
}

namespace {
struct Mean {
  double sum = 0, count = 0;
  void add(double value) {
    sum += value;
    count += 1;
  }
  double get() const { return count ? sum / count : 0; }
};
} // namespace

std::vector<CommandDifference>
mlir::zero::compareCommands(const Timeline &predicted,
                            const Timeline &measured) {
  struct Row {
    Mean predicted, measured;
    const TimelineSpan *span = nullptr;
  };
  std::map<int32_t, Row> rows;
  for (const TimelineSpan &span : predicted.spans) {
    if (span.command < 0)
      continue;
    Row &row = rows[span.command];
    row.predicted.add(span.end - span.start);
    if (!row.span)
      row.span = &span;
  }
  for (const TimelineSpan &span : measured.spans)
    if (auto at = rows.find(span.command); at != rows.end())
      at->second.measured.add(span.end - span.start);
  std::vector<CommandDifference> result;
  for (auto &[command, row] : rows)
    if (row.measured.count)
      result.push_back({command, row.span->name, row.span->channel,
                        row.predicted.get(), row.measured.get()});
  llvm::stable_sort(
      result, [](const CommandDifference &a, const CommandDifference &b) {
        return std::abs(a.difference()) > std::abs(b.difference());
      });
  return result;
}

double mlir::zero::medianErrorPercent(ArrayRef<CommandDifference> differences) {
  std::vector<double> errors;
  for (const CommandDifference &row : differences)
    if (row.measured > 0)
      errors.push_back(100 * std::abs(row.difference()) / row.measured);
  if (errors.empty())
    return 0;
  llvm::sort(errors);
  size_t middle = errors.size() / 2;
  return errors.size() % 2 ? errors[middle]
                           : (errors[middle - 1] + errors[middle]) / 2;
}

std::vector<ExposedCollective>
mlir::zero::exposedCollectives(const Timeline &timeline) {
  // Command, or -1 with name, channel and the how-manieth of them on its rank.
  using Key = std::tuple<int32_t, StringRef, StringRef, int64_t>;
  std::map<Key, ExposedCollective> found;
  std::map<std::tuple<int32_t, StringRef, StringRef>, int64_t> seen;
  for (const TimelineSpan &span : timeline.spans) {
    if (span.kind == TaskKind::Compute)
      continue;
    Key key{span.command, "", "", 0};
    if (span.command < 0)
      key = {-1, span.name, span.channel,
             seen[{span.rank, span.name, span.channel}]++};
    if (span.exposed <= 0)
      continue;
    ExposedCollective &row = found[key];
    ++row.ranks;
    if (!row.span || span.exposed > row.span->exposed)
      row.span = &span;
  }
  std::vector<ExposedCollective> result;
  for (auto &[key, row] : found)
    result.push_back(row);
  llvm::stable_sort(result,
                    [](const ExposedCollective &a, const ExposedCollective &b) {
                      return std::tie(b.span->exposed, a.span->start) <
                             std::tie(a.span->exposed, b.span->start);
                    });
  return result;
}
