//===- HtmlTest.cpp - What a report is made of ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Report/Html.h"
#include "ReportTexts.h"
#include "TestTimelines.h"

#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SHA256.h"
#include "gmock/gmock.h"

using namespace mlir::zero;
using namespace llvm;
using testing::HasSubstr;
using testing::Not;

/// What stands between the first `begin` and the `end` after it.
static StringRef between(StringRef text, StringRef begin, StringRef end) {
  return text.split(begin).second.split(end).first;
}

TEST(Html, Escapes) {
  EXPECT_EQ(escapeHtml("<a b='c' d=\"e\">&"),
            "&lt;a b=&apos;c&apos; d=&quot;e&quot;&gt;&amp;");
  EXPECT_EQ(escapeHtml(StringRef("a\n\x01\0b", 5)), "a   b");
  EXPECT_EQ(escapeHtml("\xFF"), "\xEF\xBF\xBD");
}

TEST(Html, QuotesForScripts) {
  std::string quoted = quoteForScript(kHostile);
  for (StringRef bad : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9", "\t"})
    EXPECT_FALSE(StringRef(quoted).contains(bad)) << bad.str();
  auto value = json::parse(quoted);
  ASSERT_TRUE(bool(value)) << toString(value.takeError());
  EXPECT_EQ(*value->getAsString(), kHostile);
}

TEST(Html, ShowsNumbersWithUnits) {
  EXPECT_EQ(showSeconds(0), "0 s");
  EXPECT_EQ(showSeconds(1.5), "1.500 s");
  EXPECT_EQ(showSeconds(0.0123456), "12.35 ms");
  EXPECT_EQ(showSeconds(-2.5e-4), "-250.0 µs");
  EXPECT_EQ(showSeconds(3e-9), "3.000 ns");
  EXPECT_EQ(showBytes(1023), "1023 B");
  EXPECT_EQ(showBytes(1536), "1.50 KiB");
  EXPECT_EQ(showBytes(80.0 * (1 << 30)), "80.00 GiB");
  EXPECT_EQ(showBytes(3e16), "27284.8 TiB");
  EXPECT_EQ(showCount(1234567), "1,234,567");
  EXPECT_EQ(showCount(999), "999");
  EXPECT_EQ(showShape({4, 8}), "4×8");
  EXPECT_EQ(showShape({}), "scalar");
  EXPECT_EQ(cssPercent(100.0 / 3), "33.33%");
}

// The page has its own two scripts and no more, and the policy names the one
// that runs, whatever parameters are called.
TEST(Report, HostileNamesStayText) {
  Timeline timeline = makeTimeline("predicted");
  timeline.model = timeline.machine = timeline.source = kHostile;
  std::string page = report(timeline);
  size_t scripts = 0, at = 0;
  for (; (at = page.find("<script", at)) != std::string::npos; ++at)
    ++scripts;
  EXPECT_EQ(scripts, 2u);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  std::string script = between(page, "<script>", "</script>").str();
  auto hash = SHA256::hash(ArrayRef(
      reinterpret_cast<const uint8_t *>(script.data()), script.size()));
  EXPECT_THAT(page,
              HasSubstr("script-src 'sha256-" + encodeBase64(hash) + "'"));
}

TEST(Report, LoadsNothing) {
  std::string page =
      report({makeTimeline("predicted"), makeTimeline("measured")});
  for (const char *link : {"http://", "https://", "src=", "href=", "url(",
                           "@import", "eval(", "innerHTML"})
    EXPECT_THAT(page, Not(HasSubstr(link)));
}

TEST(Report, DataIsWhatTheTimelineSays) {
  std::string page =
      report({makeTimeline("predicted"), makeTimeline("measured")});
  auto value = json::parse(between(page, "id=\"data\">", "</script>"));
  ASSERT_TRUE(bool(value)) << toString(value.takeError());
  const json::Object &data = *value->getAsObject();
  ASSERT_EQ(data.getArray("timelines")->size(), 2u);
  const json::Object &first = *(*data.getArray("timelines"))[0].getAsObject();
  const json::Array &strings = *data.getArray("strings");
  auto name = (*first.getArray("name"))[1].getAsInteger();
  EXPECT_EQ(*strings[*name].getAsString(), kHostile);
  EXPECT_EQ((*first.getArray("start"))[1].getAsInteger(), 100000000);
  EXPECT_EQ((*first.getArray("dur"))[1].getAsInteger(), 200000000);
  EXPECT_EQ(*first.getInteger("budget"), 4096);
  EXPECT_EQ(first.getArray("memory")->size(), kNumMemoryKinds);
  std::vector<std::string> channels;
  for (const json::Value &row : *first.getArray("channels")) {
    auto number = (*row.getAsArray())[0].getAsInteger();
    channels.push_back(strings[*number].getAsString()->str());
  }
  EXPECT_THAT(channels,
              testing::ElementsAre("compute", "all_gather", "all_reduce.0"));
}

TEST(Report, TablesNeedNoScript) {
  std::string page =
      report({makeTimeline("predicted"), makeTimeline("measured")});
  StringRef table = between(page, "<section id=\"parameters\">", "</section>");
  EXPECT_EQ(table.count("<tr>"), 3u);
  EXPECT_THAT(table.str(), HasSubstr(">30×4</td>"));
  EXPECT_THAT(table.str(), HasSubstr("title=\"192 bytes\">192 B</td>"));
  table = between(page, "<section id=\"differences\">", "</section>");
  EXPECT_EQ(table.count("<tr>"), 3u);
  table = between(page, "<section id=\"exposed\">", "</section>");
  EXPECT_THAT(table.str(), HasSubstr(">the first layer</td>"));
  EXPECT_THAT(page, HasSubstr("gap 100 B, 10.0 %"));
  EXPECT_THAT(page, HasSubstr("26.9 % of the budget, 4.00 KiB"));
}

// Where nothing is overlapped, collectives run on the compute channel: they are
// still told from compute.
TEST(Report, CollectivesOnTheComputeChannel) {
  Timeline timeline = makeTimeline("predicted");
  timeline.stepSeconds = 0.3;
  timeline.spans = {makeSpan(0, "compute", "g", TaskKind::AllGather, 0, 0.1),
                    makeSpan(0, "compute", "c", TaskKind::Compute, 0.1, 0.3)};
  timeline.spans[0].exposed = 0.1;
  std::string page = report(timeline);
  EXPECT_THAT(page, HasSubstr("compute 66.7 % · waits for all_gather 33.3 %"));
  EXPECT_THAT(page, HasSubstr("\"channels\":[[2,0]]"));
  StringRef table = between(page, "<section id=\"traffic\">", "</section>");
  EXPECT_EQ(table.count("<tr>"), 2u);
}

// Thousands of rows would make the page slow: the table says what it leaves
// out.
TEST(Report, LongTablesAreCut) {
  Timeline timeline = makeTimeline("predicted");
  for (int i = 0; i < 2000; ++i) {
    timeline.spans.push_back(
        makeSpan(0, "all_gather", "g", TaskKind::AllGather, 1, 2, 100 + i));
    timeline.spans.back().exposed = 0.5;
  }
  std::string page = report(timeline);
  StringRef table = between(page, "<section id=\"exposed\">", "</section>");
  EXPECT_EQ(table.count("<tr>"), 501u);
  EXPECT_THAT(table.str(), HasSubstr("the first 500 of 2,001."));
}

TEST(Report, OfNothingIsAPage) {
  std::string page = report({});
  EXPECT_THAT(page, HasSubstr("<h1>Training step</h1>"));
  EXPECT_THAT(page, HasSubstr("</html>"));
}
