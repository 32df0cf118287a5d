//===- ReportCharts.cpp - The drawn part of a report ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spans go to the script as columns of integers, strings as numbers of a table:
// a hundred thousand spans are some megabytes and parse at once.
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Report.h"
#include "Trace.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace mlir::zero;
using namespace llvm;

namespace {
/// Strings by number, in order of first use; 0 is the empty string.
class StringTable {
public:
  StringTable() { number(""); }
  size_t number(StringRef text) {
    auto [at, isNew] = numbers.try_emplace(text, strings.size());
    if (isNew)
      strings.push_back(at->first()); // the map's own copy
    return at->second;
  }
  void write(raw_ostream &os) const {
    ListSeparator comma(",");
    os << '[';
    for (StringRef text : strings)
      os << comma << quoteForScript(text);
    os << ']';
  }

private:
  StringMap<size_t> numbers;
  std::vector<StringRef> strings;
};

class DataWriter {
public:
  DataWriter(raw_ostream &os) : os(os) {}
  void write(const DrawnTimelines &drawn);

private:
  void timeline(const Timeline &timeline);
  void channels(const Timeline &timeline);
  void points(ArrayRef<TimelineMemory> memory);
  void space(const TimelineSpace &space);
  template <typename Range, typename Get>
  void column(StringRef key, const Range &rows, Get get) {
    ListSeparator comma(",");
    os << ",\"" << key << "\":[";
    for (const auto &row : rows)
      os << comma << get(row);
    os << ']';
  }

  raw_ostream &os;
  StringTable strings;
};
} // namespace

/// Channels of all ranks with their kinds, in the order of the lanes.
void DataWriter::channels(const Timeline &timeline) {
  std::map<Channel, size_t> all;
  for (const RankChannels &row : channelsByRank(timeline))
    for (const Channel &channel : row.channels)
      all[channel] = strings.number(channel.name);
  ListSeparator comma(",");
  os << ",\"channels\":[";
  for (const auto &[channel, number] : all)
    os << comma << '[' << number << ',' << int(channel.kind) << ']';
  os << ']';
}

void DataWriter::points(ArrayRef<TimelineMemory> memory) {
  using Point = TimelineMemory;
  column("time", memory, [](const Point &p) { return toNanoseconds(p.time); });
  os << ",\"memory\":[";
  ListSeparator comma(",");
  for (size_t kind = 0; kind != kNumMemoryKinds; ++kind) {
    os << comma << '[';
    ListSeparator inner(",");
    for (const Point &point : memory)
      os << inner << point.bytes[kind];
    os << ']';
  }
  os << ']';
}

void DataWriter::space(const TimelineSpace &space) {
  os << "{\"budget\":" << space.budgetBytes
     << ",\"planned\":" << space.plannedPeak
     << ",\"bound\":" << space.lowerBound;
  points(space.memory);
  os << '}';
}

void DataWriter::timeline(const Timeline &t) {
  os << "{\"source\":" << strings.number(t.source)
     << ",\"step\":" << toNanoseconds(t.stepSeconds)
     << ",\"budget\":" << t.budgetBytes << ",\"planned\":" << t.plannedPeak
     << ",\"bound\":" << t.lowerBound;
  channels(t);
  using Span = TimelineSpan;
  column("rank", t.spans, [](const Span &s) { return s.rank; });
  column("channel", t.spans,
         [&](const Span &s) { return strings.number(s.channel); });
  column("name", t.spans,
         [&](const Span &s) { return strings.number(s.name); });
  column("kind", t.spans, [](const Span &s) { return int(s.kind); });
  column("start", t.spans,
         [](const Span &s) { return toNanoseconds(s.start); });
  column("dur", t.spans, [](const Span &s) {
    return toNanoseconds(s.end) - toNanoseconds(s.start);
  });
  column("exposed", t.spans,
         [](const Span &s) { return toNanoseconds(s.exposed); });
  column("bytes", t.spans, [](const Span &s) { return s.sentBytes; });
  column("reason", t.spans,
         [&](const Span &s) { return strings.number(s.reason); });
  column("command", t.spans, [](const Span &s) { return s.command; });
  points(t.memory);
  os << ",\"spaces\":[";
  space(t.host);
  os << ',';
  space(t.disk);
  os << "]}";
}

void DataWriter::write(const DrawnTimelines &drawn) {
  os << "{\"timelines\":[";
  ListSeparator comma(",");
  for (const Timeline *one : present(drawn)) {
    os << comma;
    timeline(*one);
  }
  os << "],\"kinds\":[";
  ListSeparator kinds(",");
  for (size_t kind = 0; kind != kNumMemoryKinds; ++kind)
    os << kinds << quoteForScript(memoryKindName(MemoryKind(kind)));
  os << "],\"tasks\":[";
  ListSeparator tasks(",");
  for (size_t kind = 0; kind != kNumTaskKinds; ++kind)
    os << tasks << quoteForScript(taskKindName(TaskKind(kind)));
  os << "],\"strings\":";
  strings.write(os);
  os << "}";
}

void mlir::zero::writeChartData(const DrawnTimelines &drawn, raw_ostream &os) {
  os << "<script type=\"application/json\" id=\"data\">";
  DataWriter(os).write(drawn);
  os << "</script>\n";
}

/// The script fills legends, buttons' meaning and canvases.
static constexpr StringLiteral timelineSection = R"html(
<section id="timeline">
<h2>Timeline</h2>
<noscript><p class="empty">The charts are drawn by a script in this file, which is switched off here. The tables below need none.</p></noscript>
<div class="bar script" role="toolbar" aria-label="Timeline">
<button type="button" id="zoom-in" title="Zoom in (+)">+</button>
<button type="button" id="zoom-out" title="Zoom out (-)">−</button>
<button type="button" id="zoom-fit" title="Whole step (0)">Fit</button>
<label id="ranks-label">Ranks <input id="ranks" size="8" spellcheck="false" autocomplete="off" title="Which ranks to show: 0-3, 8"></label>
<button type="button" id="expand">Expand all</button>
<button type="button" id="collapse">Collapse all</button>
<label>Find <input id="find" type="search" size="14" spellcheck="false" autocomplete="off" placeholder="name of a span"></label>
<output id="found"></output>
</div>
<div class="legend script" id="legend"></div>
<div class="chart script" id="lanes" tabindex="0" aria-label="Spans of each channel over time; arrow keys move, + and - zoom"><canvas></canvas><div class="spacer"></div></div>
<p class="hint script">Drag to move, Ctrl+wheel or +/− to zoom, double click to zoom to a span, click a rank to fold it.</p>
<div class="detail script" id="detail" aria-live="polite"></div>
</section>
)html";

/// A chart of one memory space; `id` is of its elements.
static void writeMemorySection(StringRef id, StringRef title, raw_ostream &os) {
  os << "\n<section id=\"" << id << "\" class=\"script\">\n<h2>" << title
     << "</h2>\n<div class=\"bar\"><span id=\"" << id
     << "-source\"></span></div>\n<div class=\"legend\" id=\"" << id
     << "-legend\"></div>\n<div class=\"chart\" id=\"" << id
     << "-chart\"><canvas></canvas></div>\n</section>\n";
}

void mlir::zero::writeCharts(const DrawnTimelines &drawn, raw_ostream &os) {
  auto timelines = present(drawn);
  if (any_of(timelines, [](const Timeline *t) { return !t->spans.empty(); }))
    os << timelineSection;
  if (any_of(timelines, [](auto *t) { return !t->memory.empty(); }))
    writeMemorySection("memory", "Memory of a rank", os);
  if (any_of(timelines, [](auto *t) { return !t->host.memory.empty(); }))
    writeMemorySection("memory-host", "Host memory of a rank", os);
  if (any_of(timelines, [](auto *t) { return !t->disk.memory.empty(); }))
    writeMemorySection("memory-disk", "Disk of a rank", os);
  os << "<div id=\"tip\" role=\"tooltip\" hidden></div>\n";
}
