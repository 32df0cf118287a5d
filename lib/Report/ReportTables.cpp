//===- ReportTables.cpp - Tables of a report -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cell has its value in `data-v` where the text does not sort as it should.
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Report.h"
#include "Trace.h"

#include <cmath>

using namespace mlir::zero;
using namespace llvm;

SmallVector<const Timeline *, 2>
mlir::zero::present(const DrawnTimelines &drawn) {
  SmallVector<const Timeline *, 2> result;
  for (const Timeline *one : {drawn.predicted, drawn.measured})
    if (one)
      result.push_back(one);
  return result;
}

namespace {
/// A table that the script can sort; `filter` gives it a box to search in.
class Table {
public:
  Table(raw_ostream &os, StringRef id, StringRef title, StringRef intro,
        bool filter = false)
      : os(os) {
    os << "<section id=\"" << id << "\">\n<h2>" << title << "</h2>\n";
    if (!intro.empty())
      os << "<p>" << escapeHtml(intro) << "</p>\n";
    if (filter)
      os << "<div class=\"bar script\"><label>Filter <input type=\"search\" "
            "class=\"filter\" spellcheck=\"false\" autocomplete=\"off\" "
            "placeholder=\"part of a row\"></label> <output></output></div>\n";
    os << "<div class=\"scroll\"><table>\n<thead><tr>";
  }
  ~Table() { os << "</tbody></table></div>\n</section>\n"; }

  /// A column; numbers stand right.
  void head(StringRef title, bool isNumber = false) {
    os << "<th scope=\"col\"" << (isNumber ? " class=\"n\"" : "") << ">"
       << title << "</th>";
  }
  void body() { os << "</tr></thead>\n<tbody>\n"; }

  void rowBegin() { os << "<tr>"; }
  void rowEnd() { os << "</tr>\n"; }
  void text(StringRef value, StringRef tag = "td") {
    os << "<" << tag << (tag == "th" ? " scope=\"row\"" : "") << ">"
       << escapeHtml(value) << "</" << tag << ">";
  }
  void reason(StringRef value) {
    os << "<td class=\"why\">" << escapeHtml(value) << "</td>";
  }
  void number(double value, StringRef shown, StringRef title = "") {
    os << "<td class=\"n\" data-v=\"";
    writeNumber(os, value);
    os << "\"";
    if (!title.empty())
      os << " title=\"" << escapeHtml(title) << "\"";
    os << ">" << shown << "</td>";
  }
  void seconds(double value) { number(value, showSeconds(value)); }
  void bytes(double value) {
    number(value, showBytes(value), showCount(value) + " bytes");
  }
  /// A kind of task, or a channel, in the colour of the kind.
  void channel(StringRef name, TaskKind kind) {
    os << "<td class=\"name\"><i class=\"key k-" << taskKindName(kind)
       << "\"></i>" << escapeHtml(name) << "</td>";
  }
  /// A bar as long as its share of the longest.
  void bar(double value, double longest, TaskKind kind) {
    os << "<td class=\"graph\"><i class=\"k-" << taskKindName(kind)
       << "\" style=\"width:"
       << cssPercent(longest > 0 ? 100 * value / longest : 0) << "\"></i></td>";
  }

private:
  raw_ostream &os;
};
} // namespace

static std::string moreRows(size_t rows) {
  return rows <= kMaxRows ? ""
                          : " Shown are the first " + showCount(kMaxRows) +
                                " of " + showCount(rows) + ".";
}

/// Whether `kind` is shown among the links; collectives have their own table.
static bool isLink(TaskKind kind) {
  return isTransfer(kind) || kind == TaskKind::HostCompute;
}

using ChannelRow = std::pair<const Timeline *, ChannelSummary>;

/// The channels of all timelines whose kind `isShown`: predicted and measured
/// of one channel side by side.
static std::vector<ChannelRow>
channelRows(const DrawnTimelines &drawn,
            llvm::function_ref<bool(TaskKind)> isShown) {
  std::vector<ChannelRow> rows;
  for (const Timeline *timeline : present(drawn))
    for (ChannelSummary &sum : summarizeChannels(*timeline))
      if (isShown(sum.kind))
        rows.push_back({timeline, std::move(sum)});
  llvm::stable_sort(rows, [](const ChannelRow &a, const ChannelRow &b) {
    return std::tie(a.second.kind, a.second.channel) <
           std::tie(b.second.kind, b.second.channel);
  });
  return rows;
}

void mlir::zero::writeTraffic(const DrawnTimelines &drawn, raw_ostream &os) {
  std::vector<ChannelRow> rows = channelRows(drawn, [](TaskKind kind) {
    return kind != TaskKind::Compute && !isLink(kind);
  });
  if (rows.empty())
    return;
  double longest = 0;
  for (const auto &[timeline, sum] : rows)
    longest = std::max(longest, sum.sentBytes);
  Table table(os, "traffic", "Traffic of a rank",
              "What one rank sends in a step, by collective: the mean over the "
              "ranks that are shown.");
  for (StringRef title : {"collective", "channel", "source"})
    table.head(title);
  for (StringRef title :
       {"operations", "sent", "busy", "sent per busy second", "exposed"})
    table.head(title, /*isNumber=*/true);
  table.head("share of the most sent");
  table.body();
  for (const auto &[timeline, sum] : rows) {
    table.rowBegin();
    table.channel(taskKindName(sum.kind), sum.kind);
    table.text(sum.channel);
    table.text(timeline->source);
    table.number(sum.spans, showCount(sum.spans));
    table.bytes(sum.sentBytes);
    table.seconds(sum.busySeconds);
    double rate = sum.busySeconds > 0 ? sum.sentBytes / sum.busySeconds : 0;
    table.number(rate, showBytes(rate) + "/s");
    table.seconds(sum.exposedSeconds);
    table.bar(sum.sentBytes, longest, sum.kind);
    table.rowEnd();
  }
}

void mlir::zero::writeLinks(const DrawnTimelines &drawn, raw_ostream &os) {
  std::vector<ChannelRow> rows = channelRows(drawn, isLink);
  if (rows.empty())
    return;
  Table table(os, "links", "Links of a rank",
              "Copies between device, host and disk, each way, and what the "
              "host's processor computes: the mean over the ranks that are "
              "shown. Use is the share of the step that a link is busy; stalls "
              "are what compute stood still for it.");
  for (StringRef title : {"link", "channel", "source"})
    table.head(title);
  for (StringRef title :
       {"operations", "moved", "busy", "moved per busy second", "use", "stalls",
        "stalls of the step"})
    table.head(title, /*isNumber=*/true);
  table.head("busy");
  table.body();
  for (const auto &[timeline, sum] : rows) {
    double step = timeline->stepSeconds, busy = sum.busySeconds;
    auto share = [&](double seconds) {
      double percent = step > 0 ? 100 * seconds / step : 0;
      table.number(percent, showPercent(percent));
    };
    table.rowBegin();
    table.channel(taskKindName(sum.kind), sum.kind);
    table.text(sum.channel);
    table.text(timeline->source);
    table.number(sum.spans, showCount(sum.spans));
    table.bytes(sum.sentBytes);
    table.seconds(busy);
    double rate = busy > 0 ? sum.sentBytes / busy : 0;
    table.number(rate, rate > 0 ? showBytes(rate) + "/s" : "");
    share(busy);
    table.seconds(sum.exposedSeconds);
    share(sum.exposedSeconds);
    table.bar(busy, std::max(busy, step), sum.kind);
    table.rowEnd();
  }
}

void mlir::zero::writeExposed(const DrawnTimelines &drawn, raw_ostream &os) {
  using Row = std::pair<const Timeline *, ExposedCollective>;
  std::vector<Row> rows;
  for (const Timeline *timeline : present(drawn))
    for (const ExposedCollective &row : exposedCollectives(*timeline))
      rows.push_back({timeline, row});
  if (rows.empty())
    return;
  llvm::stable_sort(rows, [](const Row &a, const Row &b) {
    return a.second.span->exposed > b.second.span->exposed;
  });
  Table table(os, "exposed", "Exposed collectives and copies",
              "Compute stood still for these. The times are of the rank that "
              "waited longest." +
                  moreRows(rows.size()),
              /*filter=*/true);
  for (StringRef title : {"operation", "channel", "source"})
    table.head(title);
  for (StringRef title : {"exposed", "takes", "sent", "starts at", "ranks"})
    table.head(title, /*isNumber=*/true);
  table.head("reason");
  table.body();
  for (const auto &[timeline, row] : ArrayRef(rows).take_front(kMaxRows)) {
    const TimelineSpan &span = *row.span;
    table.rowBegin();
    table.text(span.name, "th");
    table.channel(span.channel, span.kind);
    table.text(timeline->source);
    table.seconds(span.exposed);
    table.seconds(span.end - span.start);
    table.bytes(double(span.sentBytes));
    table.seconds(span.start);
    table.number(row.ranks, std::to_string(row.ranks));
    table.reason(span.reason);
    table.rowEnd();
  }
}

void mlir::zero::writeDifferences(const DrawnTimelines &drawn,
                                  raw_ostream &os) {
  if (!drawn.predicted || !drawn.measured)
    return;
  auto rows = compareCommands(*drawn.predicted, *drawn.measured);
  if (rows.empty())
    return;
  Table table(os, "differences", "Predicted and measured",
              "Each command's time: the mean over the ranks, largest "
              "difference first. The median error of a command is " +
                  showPercent(medianErrorPercent(rows)) + "." +
                  moreRows(rows.size()),
              /*filter=*/true);
  table.head("command", /*isNumber=*/true);
  for (StringRef title : {"name", "channel"})
    table.head(title);
  for (StringRef title : {"predicted", "measured", "difference", "error"})
    table.head(title, /*isNumber=*/true);
  table.body();
  for (const CommandDifference &row : ArrayRef(rows).take_front(kMaxRows)) {
    table.rowBegin();
    table.number(row.command, std::to_string(row.command));
    table.text(row.name, "th");
    table.text(row.channel);
    table.seconds(row.predicted);
    table.seconds(row.measured);
    table.seconds(row.difference());
    double error =
        row.measured > 0 ? -100 * row.difference() / row.measured : 0;
    table.number(error, row.measured > 0 ? showPercent(error) : "");
    table.rowEnd();
  }
}

void mlir::zero::writeParameters(const DrawnTimelines &drawn, raw_ostream &os) {
  const Timeline *from = drawn.predicted;
  if (!from || from->parameters.empty())
    from = drawn.measured;
  if (!from || from->parameters.empty())
    return;
  Table table(os, "parameters", "Parameters",
              "Bytes are those one rank holds, with the optimizer's state.",
              /*filter=*/true);
  for (StringRef title : {"parameter", "shape", "shard of a rank", "type",
                          "residence", "gathered"})
    table.head(title);
  for (StringRef title : {"stage", "bytes"})
    table.head(title, /*isNumber=*/true);
  table.body();
  auto shape = [&](ArrayRef<int64_t> sizes) {
    double elements = 1;
    for (int64_t size : sizes)
      elements *= double(size);
    table.number(elements, showShape(sizes));
  };
  for (const TimelineParameter &row : from->parameters) {
    table.rowBegin();
    table.text(row.name, "th");
    shape(row.shape);
    shape(row.shard);
    table.text(row.type);
    table.text(row.residence);
    table.text(row.gathered);
    table.number(double(from->stage), std::to_string(from->stage));
    table.bytes(double(row.bytes));
    table.rowEnd();
  }
}
