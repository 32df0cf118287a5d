//===- RunTimeline.cpp - The last step as a timeline ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times come from the session's spans or from the plan; names, events, traffic
// and memory from the program.
//
//===----------------------------------------------------------------------===//

#include "RunTimeline.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

using namespace zero_tools;
using mlir::zero::TaskKind;
using mlir::zero::Timeline;
using mlir::zero::TimelineParameter;
using mlir::zero::TimelineSpan;

static_assert(int(mlir::zero::MemoryKind::Persistent) == ZRT_KIND_PERSISTENT &&
                  mlir::zero::kNumMemoryKinds == ZRT_NUM_KINDS,
              "kinds of memory are numbered alike");

/// Ranks that a timeline shows; all do the same.
static constexpr uint32_t shownRanks = 16;

static TaskKind kindOf(const zrt_command_info &command) {
  const std::string op = command.op;
  if (op == "all_gather")
    return TaskKind::AllGather;
  if (op == "reduce_scatter")
    return TaskKind::ReduceScatter;
  if (op == "all_reduce")
    return TaskKind::AllReduce;
  switch (command.transfer) {
  case ZRT_TO_HOST:
    return TaskKind::CopyOut;
  case ZRT_TO_DEVICE:
    return TaskKind::CopyIn;
  case ZRT_DISK_READ:
    return TaskKind::DiskRead;
  case ZRT_DISK_WRITE:
    return TaskKind::DiskWrite;
  default:
    return command.host ? TaskKind::HostCompute : TaskKind::Compute;
  }
}

static std::string nameOf(const zrt_command_info &command) {
  for (const char *name : {command.label, command.callee})
    if (*name)
      return name;
  return command.op;
}

namespace {
/// Spans of one rank, by command, in milliseconds.
class RankSpans {
public:
  RankSpans(const zrt::Program &program, const std::vector<zrt_span> &times,
            uint32_t rank)
      : program(program), times(times), rank(rank) {
    for (uint32_t index = 0; index < times.size(); ++index) {
      add(index);
      expose(index);
    }
  }
  std::vector<TimelineSpan> spans;

private:
  void add(uint32_t index) {
    zrt_command_info command = program.command(index);
    TimelineSpan span;
    span.rank = int32_t(rank);
    span.channel = program.streamName(command.stream);
    span.name = nameOf(command);
    span.kind = kindOf(command);
    span.start = times[index].start_ms / 1e3;
    span.end = times[index].end_ms / 1e3;
    span.sentBytes = int64_t(
        (command.comm_bytes_times_ranks + command.transfer_bytes_all_ranks) /
        program.info().ranks);
    span.command = int32_t(index);
    if (command.signal >= 0)
      signals[uint32_t(command.signal)] = index;
    spans.push_back(std::move(span));
  }

  /// What compute stood still for before and in a command of its stream: each
  /// awaited command from where the one that ended before it ended.
  void expose(uint32_t index) {
    zrt_command_info command = program.command(index);
    if (command.stream != 0)
      return;
    TimelineSpan &own = spans[index];
    if (own.kind != TaskKind::Compute) {
      own.exposed = own.end - own.start;
      own.reason = "runs on the compute channel";
    }
    std::vector<uint32_t> awaited;
    for (uint32_t i = 0; i < command.num_wait; ++i)
      awaited.push_back(signals.at(command.wait[i]));
    std::sort(awaited.begin(), awaited.end(), [&](uint32_t a, uint32_t b) {
      return spans[a].end < spans[b].end;
    });
    double stopped = own.start - times[index].waited_ms / 1e3;
    double from = stopped;
    for (uint32_t other : awaited) {
      TimelineSpan &span = spans[other];
      bool last = other == awaited.back();
      double until = last ? own.start : std::min(span.end, own.start);
      if (until <= from)
        continue;
      span.exposed += until - from;
      from = until;
      span.reason = llvm::formatv("needed {0:F3} ms after its start, took "
                                  "{1:F3} ms",
                                  std::max(0.0, stopped - span.start) * 1e3,
                                  (span.end - span.start) * 1e3);
    }
  }

  const zrt::Program &program;
  const std::vector<zrt_span> &times;
  uint32_t rank;
  std::map<uint32_t, uint32_t> signals; // event to command
};
} // namespace

/// Memory changes as compute goes on: what another stream uses is there from
/// the moment that compute has reached its command.
static std::vector<mlir::zero::TimelineMemory>
memoryOverTime(const zrt::Program &program, const std::vector<zrt_span> &times,
               zrt_space space) {
  std::vector<mlir::zero::TimelineMemory> points;
  std::vector<zrt_memory> memory;
  if (program.memoryOf(space, memory))
    return points;
  double now = 0;
  for (uint32_t index = 0; index < memory.size(); ++index) {
    bool compute = program.command(index).stream == 0;
    double start = times[index].start_ms / 1e3;
    mlir::zero::TimelineMemory point;
    now = compute ? std::max(now, start) : now;
    point.time = index ? now : 0; // state is there before the first command
    std::copy_n(memory[index].bytes, point.bytes.size(), point.bytes.begin());
    if (compute)
      now = std::max(now, times[index].end_ms / 1e3);
    if (points.empty() || points.back().bytes != point.bytes)
      points.push_back(point);
  }
  return points;
}

static void addMemory(const zrt::Program &program,
                      const std::vector<zrt_span> &times, Timeline &timeline) {
  timeline.memory = memoryOverTime(program, times, ZRT_DEVICE);
  if (timeline.host.plannedPeak)
    timeline.host.memory = memoryOverTime(program, times, ZRT_HOST);
  if (timeline.disk.plannedPeak)
    timeline.disk.memory = memoryOverTime(program, times, ZRT_DISK);
}

static const char *typeName(zrt_dtype type) {
  static const char *const names[] = {"f32", "f64", "f16", "bf16", "i64",
                                      "i32", "i16", "i8",  "u8",   "bool"};
  return names[type];
}

static const char *spaceName(zrt_space space) {
  return space == ZRT_DEVICE ? "device" : space == ZRT_HOST ? "host" : "disk";
}

/// Bytes of a parameter that one rank holds.
static int64_t heldBytes(const zrt_parameter_info &parameter) {
  if (!parameter.sharded || !parameter.shape[0])
    return int64_t(parameter.bytes);
  return int64_t(parameter.bytes) / parameter.shape[0] * parameter.chunk_rows;
}

static std::string timesGathered(uint32_t gathers) {
  static const char *const words[] = {"never", "once", "twice"};
  return gathers < 3 ? words[gathers] : std::to_string(gathers) + " times";
}

static void addParameters(const zrt::Program &program, Timeline &timeline) {
  std::map<std::string, int64_t> states;
  for (uint32_t i = 0; i < program.info().num_parameters; ++i) {
    zrt_parameter_info parameter = program.parameter(i);
    if (parameter.role == ZRT_STATE)
      states[parameter.of] += heldBytes(parameter);
  }
  for (uint32_t i = 0; i < program.info().num_parameters; ++i) {
    zrt_parameter_info parameter = program.parameter(i);
    if (parameter.role == ZRT_STATE)
      continue;
    TimelineParameter row;
    row.name = parameter.name;
    row.shape.assign(parameter.shape, parameter.shape + parameter.rank);
    row.shard = row.shape;
    if (parameter.sharded)
      row.shard[0] = parameter.chunk_rows;
    row.type = typeName(parameter.dtype);
    row.residence = spaceName(parameter.space);
    row.gathered = timesGathered(parameter.gathers);
    row.bytes = heldBytes(parameter) + states[row.name];
    timeline.parameters.push_back(std::move(row));
  }
}

/// What the plan says of memory outside the device.
static void addSpaces(const zrt::Program &program, Timeline &timeline) {
  for (uint32_t i = 0; i < program.info().num_arenas; ++i) {
    zrt_arena_info arena = {};
    zrt_program_get_arena(program.get(), i, &arena);
    if (arena.space == ZRT_DEVICE)
      continue;
    auto &space = arena.space == ZRT_HOST ? timeline.host : timeline.disk;
    space.plannedPeak = int64_t(arena.bytes);
    space.lowerBound = int64_t(arena.lower_bound_bytes);
    space.budgetBytes = arena.budget_bytes;
  }
}

/// All but the times.
static Timeline emptyTimeline(const zrt::Program &program,
                              const std::string &source,
                              const std::string &model,
                              const std::string &machine) {
  zrt_program_info info = program.info();
  Timeline timeline;
  timeline.source = source;
  timeline.model = model;
  timeline.machine = machine;
  timeline.ranks = info.ranks;
  timeline.grid.assign(info.grid, info.grid + info.num_axes);
  timeline.stage = info.stage;
  timeline.budgetBytes = info.budget_bytes;
  timeline.plannedPeak =
      int64_t(zrt_program_planned_bytes(program.get(), ZRT_DEVICE));
  timeline.lowerBound = int64_t(info.lower_bound_bytes);
  addSpaces(program, timeline);
  addParameters(program, timeline);
  return timeline;
}

std::vector<zrt_span> zero_tools::spansOf(const zrt::Session &session,
                                          uint32_t rank) {
  std::vector<zrt_span> times;
  if (zrt::Status failed = session.spans(rank, times))
    throw std::runtime_error(failed.message());
  return times;
}

Timeline zero_tools::measuredTimeline(const zrt::Program &program,
                                      const zrt::Session &session,
                                      const std::string &model,
                                      const std::string &machine,
                                      SpansByRank spans) {
  Timeline timeline = emptyTimeline(program, "measured", model, machine);
  zrt_counters counters = session.counters();
  timeline.stepSeconds = counters.step_ms / 1e3;
  timeline.exposedSeconds = counters.exposed_comm_ms / 1e3;
  uint32_t ranks = std::min(program.info().ranks, shownRanks);
  for (uint32_t rank = uint32_t(spans.size()); rank < ranks; ++rank)
    spans.push_back(spansOf(session, rank));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const std::vector<zrt_span> &times = spans[rank];
    RankSpans added(program, times, rank);
    timeline.spans.insert(timeline.spans.end(), added.spans.begin(),
                          added.spans.end());
    if (rank == 0)
      addMemory(program, times, timeline);
  }
  return timeline;
}

std::optional<Timeline>
zero_tools::predictedTimeline(const zrt::Program &program,
                              const std::string &model,
                              const std::string &machine) {
  zrt_program_info info = program.info();
  if (info.planned_step_ms < 0 || !info.num_commands)
    return std::nullopt;
  std::vector<zrt_span> times;
  double computed = 0; // up to where
  for (uint32_t index = 0; index < info.num_commands; ++index) {
    zrt_command_info command = program.command(index);
    if (command.planned_start_ms < 0 || command.planned_ms < 0)
      return std::nullopt;
    double start = command.planned_start_ms, end = start + command.planned_ms;
    bool compute = command.stream == 0;
    double waited = compute ? std::max(0.0, start - computed) : 0;
    times.push_back({start, end, waited});
    if (compute)
      computed = std::max(computed, end);
  }
  Timeline timeline = emptyTimeline(program, "predicted", model, machine);
  timeline.stepSeconds = info.planned_step_ms / 1e3;
  RankSpans added(program, times, 0);
  timeline.spans = std::move(added.spans);
  for (const TimelineSpan &span : timeline.spans)
    timeline.exposedSeconds += span.exposed;
  addMemory(program, times, timeline);
  return timeline;
}
