//===- TraceWriter.cpp - Timelines to Chrome traces ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One event after the other goes to the stream. The outer object holds nothing
// but `traceEvents`: Perfetto stops reading at a member it does not know, so
// what only we read is in metadata events.
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include "llvm/ADT/STLExtras.h"
#include <charconv>
#include <map>

using namespace mlir::zero;
using namespace llvm;

StringRef mlir::zero::taskKindName(TaskKind kind) {
  static constexpr StringLiteral names[kNumTaskKinds] = {
      "compute", "all_gather", "reduce_scatter", "all_reduce", "to_device",
      "to_host", "disk_read",  "disk_write",     "host"};
  return names[static_cast<size_t>(kind)];
}

bool mlir::zero::isUsed(const TimelineSpace &space) {
  return space.budgetBytes >= 0 || space.plannedPeak > 0 ||
         space.lowerBound > 0 || !space.memory.empty();
}

void mlir::zero::writeNumber(raw_ostream &os, double value) {
  char digits[32];
  auto end = std::to_chars(digits, digits + sizeof(digits), value);
  os << StringRef(digits, end.ptr - digits);
}

std::vector<RankChannels> mlir::zero::channelsByRank(const Timeline &timeline) {
  std::map<int32_t, std::map<StringRef, TaskKind>> found;
  for (const TimelineSpan &span : timeline.spans) {
    auto at = found[span.rank].try_emplace(span.channel, span.kind).first;
    at->second = std::min(at->second, span.kind);
  }
  std::vector<RankChannels> result;
  for (auto &[rank, channels] : found) {
    RankChannels &row = result.emplace_back();
    row.rank = rank;
    for (auto [name, kind] : channels)
      row.channels.push_back({name.str(), kind});
    llvm::sort(row.channels);
  }
  if (result.empty())
    result.emplace_back();
  return result;
}

namespace {
/// Where the spans of one rank and timeline go.
struct Process {
  int64_t pid;
  RankChannels row;
  std::map<StringRef, int64_t> threads; // by channel
};

class TraceWriter {
public:
  TraceWriter(raw_ostream &os) : json(os), os(os) {}
  void write(ArrayRef<Timeline> timelines);

private:
  void numberProcesses(ArrayRef<Timeline> timelines);
  void metadata(const Timeline &timeline, ArrayRef<Process> rows);
  void processNames(StringRef source, size_t index);
  void parameter(const TimelineParameter &parameter, int64_t pid);
  void span(const TimelineSpan &span, ArrayRef<Process> rows);
  void space(StringRef name, const TimelineSpace &space);
  void memory(StringRef name, ArrayRef<TimelineMemory> points, int64_t pid);

  void event(StringRef phase, StringRef name, int64_t pid,
             function_ref<void()> rest);
  void named(StringRef name, int64_t pid, int64_t tid, const json::Value &value,
             StringRef key = "name");
  void text(StringRef key, StringRef value) {
    json.attribute(key, json::fixUTF8(value));
  }
  void number(StringRef key, double value) {
    json.attributeBegin(key);
    json.rawValue([&](raw_ostream &os) { writeNumber(os, value); });
    json.attributeEnd();
  }
  void microseconds(StringRef key, int64_t nanoseconds);
  void texts(StringRef key, ArrayRef<std::string> values) {
    json.attributeArray(key, [&] {
      for (const std::string &value : values)
        json.value(json::fixUTF8(value));
    });
  }
  void integers(StringRef key, ArrayRef<int64_t> values) {
    json.attributeArray(key, [&] {
      for (int64_t value : values)
        json.value(value);
    });
  }

  json::OStream json;
  raw_ostream &os;
  std::vector<std::vector<Process>> processes; // of each timeline
};
} // namespace

/// Processes and threads are numbered from 1: 0 is the idle task in Perfetto.
void TraceWriter::numberProcesses(ArrayRef<Timeline> timelines) {
  int64_t pid = 0, tid = 0;
  for (const Timeline &timeline : timelines) {
    std::vector<Process> &rows = processes.emplace_back();
    for (RankChannels &row : channelsByRank(timeline))
      rows.push_back({++pid, std::move(row), {}});
    for (Process &process : rows)
      for (const Channel &channel : process.row.channels)
        process.threads[channel.name] = ++tid;
  }
}

void TraceWriter::event(StringRef phase, StringRef name, int64_t pid,
                        function_ref<void()> rest) {
  os << '\n'; // an event a line
  json.object([&] {
    json.attribute("ph", phase);
    json.attribute("pid", pid);
    text("name", name);
    rest();
  });
}

/// Metadata that viewers know.
void TraceWriter::named(StringRef name, int64_t pid, int64_t tid,
                        const json::Value &value, StringRef key) {
  event("M", name, pid, [&] {
    if (tid)
      json.attribute("tid", tid);
    json.attributeObject("args", [&] { json.attribute(key, value); });
  });
}

void TraceWriter::microseconds(StringRef key, int64_t nanoseconds) {
  json.attributeBegin(key);
  json.rawValue([&](raw_ostream &os) {
    os << nanoseconds / 1000;
    if (int64_t rest = nanoseconds % 1000)
      os << '.' << char('0' + rest / 100) << char('0' + rest / 10 % 10)
         << char('0' + rest % 10);
  });
  json.attributeEnd();
}

/// Nothing where the step does not use it: most steps have a device alone.
void TraceWriter::space(StringRef name, const TimelineSpace &space) {
  if (!isUsed(space))
    return;
  json.attributeObject(name, [&] {
    json.attribute("budget_bytes", space.budgetBytes);
    json.attribute("planned_peak", space.plannedPeak);
    json.attribute("lower_bound", space.lowerBound);
    json.attribute("memory", int64_t(space.memory.size()));
  });
}

void TraceWriter::metadata(const Timeline &timeline, ArrayRef<Process> rows) {
  event("M", kTimelineEvent, rows.front().pid, [&] {
    json.attributeObject("args", [&] {
      json.attribute("version", kTraceVersion);
      text("source", timeline.source);
      text("model", timeline.model);
      text("machine", timeline.machine);
      json.attribute("ranks", timeline.ranks);
      integers("grid", timeline.grid);
      json.attribute("stage", timeline.stage);
      json.attribute("budget_bytes", timeline.budgetBytes);
      json.attribute("planned_peak", timeline.plannedPeak);
      json.attribute("lower_bound", timeline.lowerBound);
      number("step_seconds", timeline.stepSeconds);
      number("exposed_seconds", timeline.exposedSeconds);
      space("host", timeline.host);
      space("disk", timeline.disk);
      if (!timeline.offload.empty())
        text("offload", timeline.offload);
      if (!timeline.offloadRules.empty())
        texts("offload_rules", timeline.offloadRules);
      texts("notes", timeline.notes);
      json.attribute("spans", int64_t(timeline.spans.size()));
      json.attribute("memory", int64_t(timeline.memory.size()));
      json.attribute("parameters", int64_t(timeline.parameters.size()));
      json.attributeArray("processes", [&] {
        for (const Process &process : rows)
          json.object([&] {
            json.attribute("pid", process.pid);
            json.attribute("rank", process.row.rank);
            json.attributeObject("threads", [&] {
              for (const Channel &channel : process.row.channels)
                json.attribute(json::fixUTF8(channel.name),
                               process.threads.at(channel.name));
            });
          });
      });
    });
  });
}

/// The timelines of one rank stand below each other.
void TraceWriter::processNames(StringRef source, size_t index) {
  for (const Process &process : processes[index]) {
    int64_t rank = process.row.rank;
    named("process_name", process.pid, 0,
          json::fixUTF8((source + ": rank " + Twine(rank)).str()));
    named("process_sort_index", process.pid, 0,
          rank * int64_t(processes.size()) + int64_t(index), "sort_index");
    for (const Channel &channel : process.row.channels) {
      int64_t tid = process.threads.at(channel.name);
      named("thread_name", process.pid, tid, json::fixUTF8(channel.name));
      named("thread_sort_index", process.pid, tid, tid, "sort_index");
    }
  }
}

void TraceWriter::parameter(const TimelineParameter &parameter, int64_t pid) {
  event("M", kParameterEvent, pid, [&] {
    json.attributeObject("args", [&] {
      text("name", parameter.name);
      integers("shape", parameter.shape);
      integers("shard", parameter.shard);
      text("type", parameter.type);
      text("residence", parameter.residence);
      text("gathered", parameter.gathered);
      json.attribute("bytes", parameter.bytes);
    });
  });
}

void TraceWriter::span(const TimelineSpan &span, ArrayRef<Process> rows) {
  const Process &process = *llvm::partition_point(
      rows, [&](const Process &p) { return p.row.rank < span.rank; });
  event("X", span.name, process.pid, [&] {
    int64_t start = toNanoseconds(span.start), end = toNanoseconds(span.end);
    json.attribute("tid", process.threads.at(span.channel));
    json.attribute("cat", taskKindName(span.kind));
    microseconds("ts", start);
    microseconds("dur", end - start);
    number("start", span.start);
    number("end", span.end);
    json.attributeObject("args", [&] {
      if (span.command >= 0)
        json.attribute("command", span.command);
      if (span.exposed > 0)
        number("exposed_seconds", span.exposed);
      if (span.sentBytes > 0)
        json.attribute("sent_bytes", span.sentBytes);
      if (!span.reason.empty())
        text("reason", span.reason);
    });
  });
}

void TraceWriter::memory(StringRef name, ArrayRef<TimelineMemory> points,
                         int64_t pid) {
  std::array<bool, kNumMemoryKinds> used = {};
  for (const TimelineMemory &point : points)
    for (size_t kind = 0; kind != kNumMemoryKinds; ++kind)
      used[kind] |= point.bytes[kind] != 0;
  for (const TimelineMemory &point : points)
    event("C", name, pid, [&] {
      microseconds("ts", toNanoseconds(point.time));
      number("start", point.time);
      json.attributeObject("args", [&] {
        for (size_t kind = 0; kind != kNumMemoryKinds; ++kind)
          if (used[kind])
            json.attribute(memoryKindName(MemoryKind(kind)), point.bytes[kind]);
      });
    });
}

void TraceWriter::write(ArrayRef<Timeline> timelines) {
  numberProcesses(timelines);
  json.object([&] {
    json.attributeArray("traceEvents", [&] {
      for (auto [index, timeline] : enumerate(timelines)) {
        ArrayRef<Process> rows = processes[index];
        metadata(timeline, rows);
        processNames(timeline.source, index);
        for (const TimelineParameter &row : timeline.parameters)
          parameter(row, rows.front().pid);
        for (const TimelineSpan &row : timeline.spans)
          span(row, rows);
        int64_t pid = rows.front().pid;
        memory(kMemoryEvent, timeline.memory, pid);
        memory(kHostMemoryEvent, timeline.host.memory, pid);
        memory(kDiskMemoryEvent, timeline.disk.memory, pid);
      }
    });
  });
  os << '\n';
}

void mlir::zero::writeTrace(ArrayRef<Timeline> timelines, raw_ostream &os) {
  TraceWriter(os).write(timelines);
}
