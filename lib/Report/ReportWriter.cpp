//===- ReportWriter.cpp - Timelines to one HTML file ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page as a whole, and its head: what the step is, costs and is limited by.
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Report.h"
#include "Trace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"

using namespace mlir::zero;
using namespace llvm;

static constexpr char reportStyle[] =
#include "report.css.inc"
    ;
static constexpr char reportScript[] =
#include "report.js.inc"
    ;

//===----------------------------------------------------------------------===//
// Key numbers
//===----------------------------------------------------------------------===//

namespace {
/// One number of the head: a title, the number, and what to compare it with.
struct Card {
  std::string title, value, note;
};
} // namespace

static void writeCards(ArrayRef<Card> cards, raw_ostream &os) {
  os << "<dl class=\"cards\">\n";
  for (const Card &card : cards)
    os << "<div><dt>" << card.title << "</dt><dd>" << card.value
       << "<small>" << card.note << "</small></dd></div>\n";
  os << "</dl>\n";
}

static std::string share(double part, double whole, StringRef of) {
  return whole > 0 ? (showPercent(100 * part / whole) + " of " + of).str() : "";
}

/// Time cards of one source.
static void timeCards(const Timeline &t, SmallVectorImpl<Card> &cards) {
  std::string source = escapeHtml(t.source);
  cards.push_back({"Step time, " + source, showSeconds(t.stepSeconds), ""});
  cards.push_back({"Exposed communication, " + source,
                   showSeconds(t.exposedSeconds),
                   share(t.exposedSeconds, t.stepSeconds, "the step")});
}

/// A peak that was measured is compared with the plan, which it must equal.
static void memoryCards(const Timeline &t, SmallVectorImpl<Card> &cards) {
  if (t.plannedPeak > 0) {
    std::string note = "no budget";
    if (t.budgetBytes >= 0)
      note = share(double(t.plannedPeak), double(t.budgetBytes),
                   showBytes(double(t.budgetBytes)) + " budget");
    cards.push_back(
        {"Peak of the arena", showBytes(double(t.plannedPeak)), note});
  }
  if (t.lowerBound > 0) {
    double gap = double(t.plannedPeak - t.lowerBound);
    std::string note = "most bytes alive at one time";
    if (t.plannedPeak > 0)
      note = "gap " +
             showPercent(100 * gap / double(t.lowerBound)) + ", " +
             (gap < 0 ? "-" + showBytes(-gap) : showBytes(gap));
    cards.push_back({"Lower bound", showBytes(double(t.lowerBound)), note});
  }
}

static void agreementCard(const Timeline &predicted, const Timeline &measured,
                          SmallVectorImpl<Card> &cards) {
  if (measured.stepSeconds <= 0)
    return;
  double difference = predicted.stepSeconds - measured.stepSeconds;
  cards.push_back({"Error of the prediction",
                   showPercent(100 * difference / measured.stepSeconds),
                   showSeconds(difference) + " of the measured step"});
}

//===----------------------------------------------------------------------===//
// Where the time goes
//===----------------------------------------------------------------------===//

static void writePart(double seconds, double whole, StringRef kind,
                      StringRef name, raw_ostream &os) {
  if (seconds <= 0)
    return;
  os << "<i class=\"" << kind << "\" style=\"width:"
     << cssPercent(100 * seconds / whole) << "\" title=\""
     << escapeHtml(name) << ": " << showSeconds(seconds) << ", "
     << showPercent(100 * seconds / whole) << "\"></i>";
}

/// The step as one bar: compute, then what it stood still for, then the rest.
static void writeStepBar(const Timeline &timeline, raw_ostream &os) {
  auto channels = summarizeChannels(timeline);
  double whole = timeline.stepSeconds, used = 0;
  for (const ChannelSummary &channel : channels)
    used += channel.kind == TaskKind::Compute ? channel.busySeconds
                                              : channel.exposedSeconds;
  if (channels.empty() || used <= 0)
    return;
  whole = std::max(whole, used);
  os << "<figure class=\"step\"><figcaption>" << escapeHtml(timeline.source)
     << "</figcaption><div>";
  std::string words;
  auto part = [&](double seconds, StringRef kind, const std::string &name) {
    writePart(seconds, whole, kind, name, os);
    if (seconds > 0)
      words += (words.empty() ? "" : " · ") + escapeHtml(name) + " " +
               showPercent(100 * seconds / whole);
  };
  for (const ChannelSummary &channel : channels) {
    bool computes = channel.kind == TaskKind::Compute;
    part(computes ? channel.busySeconds : channel.exposedSeconds,
         ("k-" + taskKindName(channel.kind)).str(),
         computes ? channel.channel : "waits for " + channel.channel);
  }
  part(whole - used > 1e-3 * whole ? whole - used : 0, "k-idle", "idle");
  os << "</div><p>" << words << "</p></figure>\n";
}

static void writeNotes(const DrawnTimelines &drawn, raw_ostream &os) {
  SmallVector<StringRef> notes;
  for (const Timeline *timeline : present(drawn))
    for (const std::string &note : timeline->notes)
      if (!is_contained(notes, StringRef(note)))
        notes.push_back(note);
  if (notes.empty())
    return;
  os << "<section id=\"notes\"><h2>What limits it</h2>\n<ul>\n";
  for (StringRef note : notes)
    os << "<li>" << escapeHtml(note) << "</li>\n";
  os << "</ul></section>\n";
}

//===----------------------------------------------------------------------===//
// The page
//===----------------------------------------------------------------------===//

static std::string titleOf(const Timeline &timeline) {
  return timeline.model.empty() ? "Training step" : timeline.model;
}

static std::string describe(const Timeline &t) {
  std::string text = showCount(double(t.ranks)) + (t.ranks == 1 ? " rank" : " ranks");
  if (t.grid.size() > 1)
    text += " (" + showShape(t.grid) + ")";
  text += ", ZeRO stage " + std::to_string(t.stage);
  return t.machine.empty() ? text : text + ", " + t.machine;
}

void mlir::zero::writeHeader(const DrawnTimelines &drawn, raw_ostream &os) {
  auto timelines = present(drawn);
  const Timeline &first = *timelines.front();
  os << "<header><h1>" << escapeHtml(titleOf(first)) << "</h1>\n";
  SmallVector<std::string> lines;
  for (const Timeline *timeline : timelines)
    if (std::string line = describe(*timeline); !is_contained(lines, line))
      lines.push_back(line);
  for (const std::string &line : lines)
    os << "<p class=\"sub\">" << escapeHtml(line) << "</p>\n";
  SmallVector<Card> cards;
  for (const Timeline *timeline : timelines)
    timeCards(*timeline, cards);
  if (timelines.size() == 2)
    agreementCard(*drawn.predicted, *drawn.measured, cards);
  memoryCards(first, cards);
  writeCards(cards, os);
  for (const Timeline *timeline : timelines)
    writeStepBar(*timeline, os);
  os << "</header>\n";
  writeNotes(drawn, os);
}

/// Nothing but our own script runs, and nothing is loaded: even a name that
/// escaped from its quotes could do no harm.
static std::string makePolicy() {
  auto hash = SHA256::hash(arrayRefFromStringRef(reportScript));
  return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" +
         encodeBase64(hash) + "'";
}

void mlir::zero::writeReport(ArrayRef<Timeline> timelines, raw_ostream &os) {
  DrawnTimelines drawn = drawnTimelines(timelines);
  Timeline none;
  if (present(drawn).empty())
    drawn.predicted = &none;
  os << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\""
     << makePolicy() << "\">\n<title>"
     << escapeHtml(titleOf(*present(drawn).front())) << "</title>\n<style>\n"
     << reportStyle << "</style>\n</head>\n<body>\n<main>\n";
  writeHeader(drawn, os);
  writeCharts(drawn, os);
  writeTraffic(drawn, os);
  writeExposed(drawn, os);
  writeDifferences(drawn, os);
  writeParameters(drawn, os);
  os << "</main>\n";
  writeChartData(drawn, os);
  os << "<script>" << reportScript << "</script>\n</body>\n</html>\n";
}
