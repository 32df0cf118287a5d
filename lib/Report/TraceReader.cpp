//===- TraceReader.cpp - Chrome traces to timelines ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads what TraceWriter.cpp writes and trusts nothing in it.
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include "zero/Cost/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>

using namespace mlir::zero;
using namespace llvm;

/// A value as an error shows it: short, on one line.
static std::string show(const json::Value *value) {
  if (!value)
    return "nothing";
  std::string text = formatv("{0}", *value);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

namespace {
/// Takes the members of one object; the first mistake stays as the error.
class Fields {
public:
  Fields(const json::Object *object, const Twine &where, std::string &error)
      : object(object), where(where.str()), error(error) {
    if (!object)
      fail("is not an object");
  }

  void text(StringRef key, std::string &out, bool optional = false) {
    if (const json::Value *value = find(key, optional, "a string")) {
      if (auto string = value->getAsString())
        out = string->str();
      else
        wrong(key, value, "a string");
    }
  }
  void integer(StringRef key, int64_t &out, int64_t minimum, int64_t maximum,
               bool optional = false) {
    std::string expected =
        formatv("an integer from {0} to {1}", minimum, maximum);
    if (const json::Value *value = find(key, optional, expected)) {
      auto number = value->getAsInteger();
      if (number && *number >= minimum && *number <= maximum)
        out = *number;
      else
        wrong(key, value, expected);
    }
  }
  void number(StringRef key, double &out, bool optional = false) {
    if (const json::Value *value = find(key, optional, "a number")) {
      if (auto number = value->getAsNumber())
        out = *number;
      else
        wrong(key, value, "a number");
    }
  }
  void integers(StringRef key, std::vector<int64_t> &out) {
    forEach(key, "an array of integers", [&](const json::Value &value) {
      auto number = value.getAsInteger();
      if (number)
        out.push_back(*number);
      return number.has_value();
    });
  }
  void texts(StringRef key, std::vector<std::string> &out,
             bool optional = false) {
    if (optional && object && !object->get(key))
      return;
    forEach(key, "an array of strings", [&](const json::Value &value) {
      auto string = value.getAsString();
      if (string)
        out.push_back(string->str());
      return string.has_value();
    });
  }
  void forEach(StringRef key, StringRef expected,
               function_ref<bool(const json::Value &)> take) {
    const json::Value *value = find(key, /*optional=*/false, expected);
    if (!value)
      return;
    const json::Array *array = value->getAsArray();
    if (!array)
      return wrong(key, value, expected);
    for (const json::Value &item : *array)
      if (!take(item))
        return wrong(key, &item, expected);
  }
  Fields nested(StringRef key) {
    const json::Value *value = find(key, /*optional=*/false, "an object");
    const json::Object *inner = value ? value->getAsObject() : nullptr;
    return Fields(inner, where + "." + key, error);
  }
  /// A misspelt member would else be lost without a word.
  void only(ArrayRef<StringRef> keys) {
    if (object)
      for (const auto &[key, value] : *object)
        if (!is_contained(keys, StringRef(key)))
          fail("has an unknown member '" + StringRef(key).str() + "'");
  }

  void fail(const Twine &what) {
    if (error.empty())
      error = (where + " " + what).str();
  }
  void wrong(StringRef key, const json::Value *value, const Twine &expected) {
    fail("has '" + key + "' " + show(value) + ", expected " + expected);
  }
  const json::Object *get() const { return object; }

private:
  const json::Value *find(StringRef key, bool optional, const Twine &expected) {
    const json::Value *value = object ? object->get(key) : nullptr;
    if (!value && !optional)
      fail("has no '" + key + "', expected " + expected);
    return value;
  }

  const json::Object *object;
  std::string where;
  std::string &error;
};

class TraceReader {
public:
  Expected<std::vector<Timeline>> read(StringRef text);

private:
  /// A timeline, and how many rows its metadata promises.
  struct Open {
    Timeline timeline;
    int64_t spans = 0, memory = 0, parameters = 0;
    int64_t hostMemory = 0, diskMemory = 0;
  };
  struct Process {
    size_t timeline = 0;
    int64_t rank = 0;
    std::map<int64_t, std::string> threads;
  };

  void event(Fields &fields);
  void metadata(Fields &fields, StringRef name);
  void timeline(Fields &args);
  void space(Fields &args, StringRef name, TimelineSpace &space,
             int64_t &points);
  void process(Fields row);
  void parameter(Fields &args, int64_t pid);
  void span(Fields &fields);
  void memory(Fields &fields, StringRef name);
  /// The process that `pid` names, or null with an error.
  Process *processOf(Fields &fields);
  void checkCounts();

  std::string error;
  std::vector<Open> found;
  std::map<int64_t, Process> processes;
};
} // namespace

constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();

TraceReader::Process *TraceReader::processOf(Fields &fields) {
  int64_t pid = 0;
  fields.integer("pid", pid, 0, kMaxInteger);
  auto at = processes.find(pid);
  if (at != processes.end())
    return &at->second;
  fields.fail("has pid " + Twine(pid) + ", which no " + kTimelineEvent +
              " event before it lists");
  return nullptr;
}

void TraceReader::process(Fields row) {
  Process process;
  int64_t pid = 0;
  process.timeline = found.size() - 1;
  row.only({"pid", "rank", "threads"});
  row.integer("pid", pid, 0, kMaxInteger);
  row.integer("rank", process.rank, 0, std::numeric_limits<int32_t>::max());
  Fields threads = row.nested("threads");
  if (!error.empty())
    return;
  for (const auto &[channel, value] : *threads.get()) {
    int64_t tid = 0;
    threads.integer(channel, tid, 0, kMaxInteger);
    if (!process.threads.try_emplace(tid, StringRef(channel).str()).second)
      threads.fail("has two threads " + Twine(tid));
  }
  if (!processes.try_emplace(pid, std::move(process)).second)
    row.fail("has pid " + Twine(pid) + ", as another process has");
}

void TraceReader::space(Fields &args, StringRef name, TimelineSpace &space,
                        int64_t &points) {
  if (!args.get() || !args.get()->get(name))
    return;
  Fields fields = args.nested(name);
  fields.only({"budget_bytes", "planned_peak", "lower_bound", "memory"});
  fields.integer("budget_bytes", space.budgetBytes, -1, kMaxInteger);
  fields.integer("planned_peak", space.plannedPeak, 0, kMaxInteger);
  fields.integer("lower_bound", space.lowerBound, 0, kMaxInteger);
  fields.integer("memory", points, 0, kMaxInteger);
}

void TraceReader::timeline(Fields &args) {
  int64_t version = 0;
  args.integer("version", version, kTraceVersion, kTraceVersion);
  args.only({"version",      "source",      "model",        "machine",
             "ranks",        "grid",        "stage",        "budget_bytes",
             "planned_peak", "lower_bound", "step_seconds", "exposed_seconds",
             "notes",        "spans",       "memory",       "parameters",
             "processes",    "host",        "disk",         "offload",
             "offload_rules"});
  Open &open = found.emplace_back();
  Timeline &t = open.timeline;
  args.text("source", t.source);
  args.text("model", t.model);
  args.text("machine", t.machine);
  args.integer("ranks", t.ranks, 1, kMaxInteger);
  args.integers("grid", t.grid);
  args.integer("stage", t.stage, 0, 3);
  args.integer("budget_bytes", t.budgetBytes, -1, kMaxInteger);
  args.integer("planned_peak", t.plannedPeak, 0, kMaxInteger);
  args.integer("lower_bound", t.lowerBound, 0, kMaxInteger);
  args.number("step_seconds", t.stepSeconds);
  args.number("exposed_seconds", t.exposedSeconds);
  space(args, "host", t.host, open.hostMemory);
  space(args, "disk", t.disk, open.diskMemory);
  args.text("offload", t.offload, /*optional=*/true);
  args.texts("offload_rules", t.offloadRules, /*optional=*/true);
  args.texts("notes", t.notes);
  args.integer("spans", open.spans, 0, kMaxInteger);
  args.integer("memory", open.memory, 0, kMaxInteger);
  args.integer("parameters", open.parameters, 0, kMaxInteger);
  args.forEach("processes", "an array of objects", [&](const json::Value &row) {
    if (row.getAsObject())
      process(Fields(row.getAsObject(), "a process", error));
    return row.getAsObject() != nullptr;
  });
}

void TraceReader::parameter(Fields &args, int64_t pid) {
  auto at = processes.find(pid);
  if (at == processes.end())
    return args.fail("is of pid " + Twine(pid) + ", which no " +
                     kTimelineEvent + " event before it lists");
  TimelineParameter row;
  args.only(
      {"name", "shape", "shard", "type", "residence", "gathered", "bytes"});
  args.text("name", row.name);
  args.integers("shape", row.shape);
  args.integers("shard", row.shard);
  args.text("type", row.type);
  args.text("residence", row.residence);
  args.text("gathered", row.gathered);
  args.integer("bytes", row.bytes, 0, kMaxInteger);
  found[at->second.timeline].timeline.parameters.push_back(std::move(row));
}

void TraceReader::metadata(Fields &fields, StringRef name) {
  bool forViewers = StringSwitch<bool>(name)
                        .Cases({"process_name", "process_sort_index",
                                "thread_name", "thread_sort_index"},
                               true)
                        .Default(false);
  if (forViewers)
    return;
  int64_t pid = 0;
  fields.integer("pid", pid, 0, kMaxInteger);
  Fields args = fields.nested("args");
  if (name == kTimelineEvent)
    return timeline(args);
  if (name == kParameterEvent)
    return parameter(args, pid);
  fields.fail("has 'name' " + name + ", which no metadata event has");
}

static std::optional<TaskKind> parseKind(StringRef name) {
  for (size_t kind = 0; kind != kNumTaskKinds; ++kind)
    if (taskKindName(TaskKind(kind)) == name)
      return TaskKind(kind);
  return std::nullopt;
}

/// `start` and `end` say in seconds and exactly what `ts` and `dur` tell
/// viewers in microseconds: an edit of one alone is a mistake.
static bool agrees(double seconds, double microseconds) {
  return std::abs(seconds * 1e6 - microseconds) <= 1e-3 + 1e-9 * microseconds;
}

void TraceReader::span(Fields &fields) {
  TimelineSpan span;
  std::string category;
  double ts = 0, dur = 0;
  int64_t tid = 0, command = -1;
  Process *process = processOf(fields);
  fields.only(
      {"ph", "pid", "tid", "name", "cat", "ts", "dur", "start", "end", "args"});
  fields.integer("tid", tid, 0, kMaxInteger);
  fields.text("name", span.name);
  fields.text("cat", category);
  fields.number("ts", ts);
  fields.number("dur", dur);
  fields.number("start", span.start);
  fields.number("end", span.end);
  Fields args = fields.nested("args");
  args.only({"command", "exposed_seconds", "sent_bytes", "reason"});
  args.integer("command", command, 0, std::numeric_limits<int32_t>::max(),
               /*optional=*/true);
  args.number("exposed_seconds", span.exposed, /*optional=*/true);
  args.integer("sent_bytes", span.sentBytes, 0, kMaxInteger, /*optional=*/true);
  args.text("reason", span.reason, /*optional=*/true);
  std::optional<TaskKind> kind = parseKind(category);
  if (!kind)
    fields.fail("has 'cat' " + category +
                ", expected compute, all_gather, "
                "reduce_scatter, all_reduce, to_device, to_host, disk_read, "
                "disk_write or host");
  if (!agrees(span.start, ts) || !agrees(span.end, ts + dur))
    fields.fail("has 'ts' and 'dur' that disagree with 'start' and 'end'");
  if (!error.empty())
    return;
  auto thread = process->threads.find(tid);
  if (thread == process->threads.end())
    return fields.fail("has tid " + Twine(tid) +
                       ", which its process does not list");
  span.rank = process->rank;
  span.channel = thread->second;
  span.kind = *kind;
  span.command = command;
  found[process->timeline].timeline.spans.push_back(std::move(span));
}

void TraceReader::memory(Fields &fields, StringRef name) {
  TimelineMemory point;
  double ts = 0;
  Process *process = processOf(fields);
  fields.only({"ph", "pid", "name", "ts", "start", "args"});
  fields.number("ts", ts);
  fields.number("start", point.time);
  Fields args = fields.nested("args");
  std::vector<StringRef> kinds;
  for (size_t kind = 0; kind != kNumMemoryKinds; ++kind) {
    kinds.push_back(memoryKindName(MemoryKind(kind)));
    args.integer(kinds.back(), point.bytes[kind], 0, kMaxInteger,
                 /*optional=*/true);
  }
  args.only(kinds);
  if (!agrees(point.time, ts))
    fields.fail("has a 'ts' that disagrees with 'start'");
  if (!error.empty())
    return;
  Timeline &timeline = found[process->timeline].timeline;
  auto &points = name == kMemoryEvent       ? timeline.memory
                 : name == kHostMemoryEvent ? timeline.host.memory
                                            : timeline.disk.memory;
  points.push_back(point);
}

void TraceReader::event(Fields &fields) {
  std::string phase, name;
  fields.text("ph", phase);
  fields.text("name", name);
  if (!error.empty())
    return;
  if (phase == "M")
    metadata(fields, name);
  else if (phase == "X")
    span(fields);
  else if (phase == "C" && (name == kMemoryEvent || name == kHostMemoryEvent ||
                            name == kDiskMemoryEvent))
    memory(fields, name);
  else
    fields.fail("has 'ph' " + phase + " and 'name' " + name +
                ", expected a metadata event (M), a span (X) or memory (C)");
}

void TraceReader::checkCounts() {
  if (found.empty())
    error = "has no zero_timeline event: not a trace that zero-plan or "
            "zero-run wrote";
  for (const Open &open : found) {
    const Timeline &timeline = open.timeline;
    auto check = [&](StringRef what, size_t has, int64_t promised) {
      if (error.empty() && int64_t(has) != promised)
        error = formatv("the {0} timeline has {1} {2}, expected {3}",
                        timeline.source, has, what, promised);
    };
    check("spans", timeline.spans.size(), open.spans);
    check("memory points", timeline.memory.size(), open.memory);
    check("host memory points", timeline.host.memory.size(), open.hostMemory);
    check("disk memory points", timeline.disk.memory.size(), open.diskMemory);
    check("parameters", timeline.parameters.size(), open.parameters);
    if (std::string wrong = checkTimeline(timeline);
        error.empty() && !wrong.empty())
      error = "the " + timeline.source + " timeline " + wrong;
  }
}

Expected<std::vector<Timeline>> TraceReader::read(StringRef text) {
  Expected<json::Value> value = parseJson(text);
  if (!value)
    return value.takeError();
  Fields top(value->getAsObject(), "the file", error);
  size_t number = 0;
  top.forEach("traceEvents", "an array", [&](const json::Value &item) {
    Fields fields(item.getAsObject(), "traceEvents[" + Twine(number++) + "]",
                  error);
    if (error.empty())
      event(fields);
    return error.empty();
  });
  if (error.empty())
    checkCounts();
  if (!error.empty())
    return createStringError(oneLine(error));
  std::vector<Timeline> timelines;
  for (Open &open : found)
    timelines.push_back(std::move(open.timeline));
  return timelines;
}

Expected<std::vector<Timeline>> mlir::zero::parseTrace(StringRef text) {
  return TraceReader().read(text);
}

Expected<std::vector<Timeline>> mlir::zero::readTrace(StringRef path) {
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file)
    return createStringError(path +
                             ": cannot read: " + file.getError().message());
  auto timelines = parseTrace((*file)->getBuffer());
  if (!timelines)
    return createStringError(path + ": " + toString(timelines.takeError()));
  return timelines;
}
