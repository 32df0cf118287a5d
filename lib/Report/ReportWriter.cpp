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
#include <cmath>

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
/// A number of the head, once for each source that has it.
struct Card {
  std::string title;
  SmallVector<std::pair<std::string, std::string>, 2> values; ///< of what
  std::string note = "";
};
} // namespace

static void writeCards(ArrayRef<Card> cards, raw_ostream &os) {
  os << "<dl class=\"cards\">\n";
  for (const Card &card : cards) {
    os << "<div><dt>" << card.title << "</dt>";
    for (const auto &[value, of] : card.values)
      os << "<dd>" << value << " <small>" << escapeHtml(of) << "</small></dd>";
    if (!card.note.empty())
      os << "<dd class=\"note\">" << card.note << "</dd>";
    os << "</div>\n";
  }
  os << "</dl>\n";
}

static std::string share(double part, double whole, StringRef of) {
  return whole > 0 ? (showPercent(100 * part / whole) + " of " + of).str() : "";
}

static std::string sourceOf(ArrayRef<const Timeline *> all, const Timeline *t) {
  return all.size() > 1 || t->source == "measured" ? t->source : "";
}

static Card stepCard(const DrawnTimelines &drawn) {
  Card card{"Step time", {}};
  auto all = present(drawn);
  for (const Timeline *t : all)
    card.values.push_back({showSeconds(t->stepSeconds), sourceOf(all, t)});
  if (all.size() < 2 || drawn.measured->stepSeconds <= 0)
    return card;
  double error = 100 *
                 (drawn.predicted->stepSeconds - drawn.measured->stepSeconds) /
                 drawn.measured->stepSeconds;
  card.note = "predicted " + showPercent(std::abs(error)) +
              (error < 0 ? " too short" : " too long");
  return card;
}

static Card exposedCard(ArrayRef<const Timeline *> all) {
  Card card{"Exposed communication", {}};
  for (const Timeline *t : all) {
    std::string source = sourceOf(all, t);
    card.values.push_back({showSeconds(t->exposedSeconds), source});
    card.note += (card.note.empty() ? "" : "; ") +
                 share(t->exposedSeconds, t->stepSeconds,
                       source.empty() ? "the step" : "the " + source + " step");
  }
  return card;
}

static Card peakCard(ArrayRef<const Timeline *> all) {
  Card card{"Peak of the arena", {}};
  for (const Timeline *t : all)
    card.values.push_back(
        {showBytes(double(t->plannedPeak)), sourceOf(all, t)});
  const Timeline &t = *all.front();
  card.note = t.budgetBytes < 0
                  ? "no budget"
                  : share(double(t.plannedPeak), double(t.budgetBytes),
                          "the budget, " + showBytes(double(t.budgetBytes)));
  return card;
}

/// Host and disk, where the step uses them.
static void addSpaceCards(ArrayRef<const Timeline *> all,
                          SmallVectorImpl<Card> &cards) {
  auto add = [&](StringRef title, TimelineSpace Timeline::*member) {
    Card card{title.str(), {}};
    for (const Timeline *t : all) {
      const TimelineSpace &space = t->*member;
      if (space.plannedPeak <= 0)
        continue;
      double peak = double(space.plannedPeak), budget = space.budgetBytes;
      card.values.push_back({showBytes(peak), sourceOf(all, t)});
      if (card.note.empty() && budget > 0)
        card.note = share(peak, budget, "the budget, " + showBytes(budget));
    }
    if (!card.values.empty())
      cards.push_back(std::move(card));
  };
  add("Host memory", &Timeline::host);
  add("Disk", &Timeline::disk);
}

static Card boundCard(const Timeline &t) {
  Card card{"Lower bound", {{showBytes(double(t.lowerBound)), ""}}};
  double gap = double(t.plannedPeak - t.lowerBound);
  card.note = gap < 0 ? "most bytes alive at one time"
                      : "gap " + showBytes(gap) + ", " +
                            showPercent(100 * gap / double(t.lowerBound));
  return card;
}

//===----------------------------------------------------------------------===//
// Where the time goes
//===----------------------------------------------------------------------===//

namespace {
/// A stretch of the bar.
struct StepPart {
  std::string name, style;
  double seconds = 0;
};
} // namespace

/// Compute, then what it stood still for, then the rest.
static std::vector<StepPart> partsOf(const Timeline &timeline) {
  std::vector<StepPart> parts;
  double used = 0;
  for (const ChannelSummary &sum : summarizeChannels(timeline)) {
    bool computes = sum.kind == TaskKind::Compute;
    StringRef kind = taskKindName(sum.kind), channel = sum.channel;
    // "all_reduce.0" says more than its kind, "compute" as a channel does not.
    StringRef of = channel.starts_with(kind) ? channel : kind;
    std::string name = computes ? of.str() : ("waits for " + of).str();
    double seconds = computes ? sum.busySeconds : sum.exposedSeconds;
    used += seconds;
    auto at = find_if(parts, [&](auto &part) { return part.name == name; });
    if (at == parts.end())
      parts.push_back({name, ("k-" + kind).str(), seconds});
    else
      at->seconds += seconds;
  }
  if (!parts.empty())
    parts.push_back({"idle", "k-idle", timeline.stepSeconds - used});
  return parts;
}

/// The step as one bar, and the same in words.
static void writeStepBar(const Timeline &timeline, raw_ostream &os) {
  std::vector<StepPart> parts = partsOf(timeline);
  double whole = 0;
  for (const StepPart &part : parts)
    whole += std::max(part.seconds, 0.0);
  if (whole <= 0)
    return;
  os << "<figure class=\"step\"><figcaption>" << escapeHtml(timeline.source)
     << "</figcaption><div>";
  std::string words;
  for (const StepPart &part : parts) {
    if (part.seconds <= 5e-4 * whole) // 0.0 %
      continue;
    std::string share = showPercent(100 * part.seconds / whole);
    os << "<i class=\"" << part.style
       << "\" style=\"width:" << cssPercent(100 * part.seconds / whole)
       << "\" title=\"" << escapeHtml(part.name) << ": "
       << showSeconds(part.seconds) << ", " << share << "\"></i>";
    words += (words.empty() ? "" : " · ") + escapeHtml(part.name) + " " + share;
  }
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

void mlir::zero::writeOffload(const DrawnTimelines &drawn, raw_ostream &os) {
  for (const Timeline *timeline : present(drawn)) {
    if (timeline->offload.empty() && timeline->offloadRules.empty())
      continue;
    os << "<section id=\"offload\"><h2>What lives elsewhere</h2>\n";
    if (!timeline->offload.empty())
      os << "<p>" << escapeHtml(timeline->offload) << "</p>\n";
    if (!timeline->offloadRules.empty()) {
      os << "<ul>\n";
      for (const std::string &rule : timeline->offloadRules)
        os << "<li><code>" << escapeHtml(rule) << "</code></li>\n";
      os << "</ul>\n";
    }
    os << "</section>\n";
    return; // measured and predicted steps are of one plan
  }
}

//===----------------------------------------------------------------------===//
// The page
//===----------------------------------------------------------------------===//

static std::string titleOf(const Timeline &timeline) {
  return timeline.model.empty() ? "Training step" : timeline.model;
}

static std::string describe(const Timeline &t) {
  std::string text =
      showCount(double(t.ranks)) + (t.ranks == 1 ? " rank" : " ranks");
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
  SmallVector<Card> cards = {stepCard(drawn), exposedCard(timelines)};
  SmallVector<const Timeline *> planned;
  for (const Timeline *timeline : timelines)
    if (timeline->plannedPeak > 0)
      planned.push_back(timeline);
  if (!planned.empty())
    cards.push_back(peakCard(planned));
  if (!planned.empty() && planned.front()->lowerBound > 0)
    cards.push_back(boundCard(*planned.front()));
  addSpaceCards(timelines, cards);
  writeCards(cards, os);
  for (const Timeline *timeline : timelines)
    writeStepBar(*timeline, os);
  os << "</header>\n";
  writeNotes(drawn, os);
  writeOffload(drawn, os);
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
  os << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
        "charset=\"utf-8\">\n"
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
  writeLinks(drawn, os);
  writeExposed(drawn, os);
  writeDifferences(drawn, os);
  writeParameters(drawn, os);
  os << "</main>\n";
  writeChartData(drawn, os);
  os << "<script>" << reportScript << "</script>\n</body>\n</html>\n";
}
