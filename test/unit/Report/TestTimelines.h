//===- TestTimelines.h - Small steps for tests ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Timelines in which every field has a value of its own.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_REPORT_TESTTIMELINES_H
#define ZERO_TEST_UNIT_REPORT_TESTTIMELINES_H

#include "zero/Report/Timeline.h"

/// A name that harms whoever does not escape it.
inline constexpr char kHostile[] =
    "</script><script>alert(1)</script>\"'&\xE2\x80\xA8\xE2\x80\xA9<!--\t\x01";

inline mlir::zero::TimelineSpan makeSpan(int32_t rank, const char *channel,
                                         const char *name,
                                         mlir::zero::TaskKind kind,
                                         double start, double end,
                                         int32_t command = -1) {
  mlir::zero::TimelineSpan span;
  span.rank = rank;
  span.channel = channel;
  span.name = name;
  span.kind = kind;
  span.start = start;
  span.end = end;
  span.command = command;
  return span;
}

/// Two ranks, three channels.
inline mlir::zero::Timeline makeTimeline(const char *source) {
  using namespace mlir::zero;
  Timeline t;
  t.source = source;
  t.model = "tiny";
  t.machine = "this-cpu";
  t.ranks = 8;
  t.grid = {2, 4};
  t.stage = 3;
  t.budgetBytes = 4096;
  t.plannedPeak = 1100;
  t.lowerBound = 1000;
  t.stepSeconds = 0.1 + 0.2; // not a short decimal number
  t.exposedSeconds = 1.0 / 3;
  t.spans = {
      makeSpan(0, "all_gather", "gather w", TaskKind::AllGather, 0, 0.1, 0),
      makeSpan(0, "compute", kHostile, TaskKind::Compute, 0.1, 0.1 + 0.2, 1),
      makeSpan(3, "all_gather", "gather w", TaskKind::AllGather, 1e-9 / 3, 0.07,
               0),
      makeSpan(3, "all_reduce.0", "reduce w", TaskKind::AllReduce, 0.2, 0.2)};
  t.spans[0].exposed = 0.1;
  t.spans[0].sentBytes = (int64_t(1) << 53) + 1; // more than a double holds
  t.spans[0].reason = "the first layer";
  t.spans[2].exposed = 0.05;
  t.memory = {{0, {100, 200, 0, 0, 0, 0, 0, 0}},
              {0.1, {100, 200, 0, 700, 0, 0, 0, 0}},
              {0.2, {100, 200, 300, 0, 0, 0, 0, 1}}};
  t.parameters = {{kHostile, {30, 4}, {4, 4}, "f32", "device", "twice", 192},
                  {"scalar", {}, {}, "bf16", "host", "never", 0}};
  t.notes = {"gathers are exposed", kHostile};
  return t;
}

#endif // ZERO_TEST_UNIT_REPORT_TESTTIMELINES_H
