//===- OffloadReportTest.cpp - Host and disk in traces and reports --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReportTexts.h"
#include "TestTimelines.h"
#include "zero/Report/Summary.h"

#include "llvm/Support/JSON.h"
#include "gmock/gmock.h"

using namespace mlir::zero;
using namespace llvm;
using testing::HasSubstr;
using testing::Not;

/// An update on the host, with a state on disk.
static Timeline makeOffloaded() {
  Timeline t = makeTimeline("predicted");
  t.spans = {
      makeSpan(0, "compute", "matmul", TaskKind::Compute, 0, 0.1, 0),
      makeSpan(0, "disk_read", "read m", TaskKind::DiskRead, 0, 0.03, 1),
      makeSpan(0, "to_host", "gradient of w", TaskKind::CopyOut, 0.05, 0.09, 2),
      makeSpan(0, "host", "adamw w", TaskKind::HostCompute, 0.1, 0.2, 3),
      makeSpan(0, "to_device", "w", TaskKind::CopyIn, 0.2, 0.26, 4),
      makeSpan(0, "disk_write", "write m", TaskKind::DiskWrite, 0.2, 0.3, 5)};
  t.spans[2].sentBytes = 4000;
  t.spans[4].sentBytes = 3000;
  t.spans[4].exposed = 0.06;
  t.spans[4].reason = "the next step needs w";
  t.host.budgetBytes = 8192;
  t.host.plannedPeak = 6144;
  t.host.lowerBound = 6000;
  t.host.memory = {{0, {0, 4096, 0, 0, 0, 0, 0, 0}},
                   {0.05, {0, 4096, 2000, 0, 0, 0, 0, 0}}};
  t.disk.plannedPeak = 4096;
  t.disk.memory = {{0, {0, 4096, 0, 0, 0, 0, 0, 0}}};
  t.offload = "offloading m of layers 0-1 saves 4.00 KiB";
  t.offloadRules = {"optimizer@*=host", "optimizer@l.0.*=disk<"};
  return t;
}

static void expectEqual(const TimelineSpace &a, const TimelineSpace &b) {
  EXPECT_EQ(std::tie(a.budgetBytes, a.plannedPeak, a.lowerBound),
            std::tie(b.budgetBytes, b.plannedPeak, b.lowerBound));
  ASSERT_EQ(a.memory.size(), b.memory.size());
  for (size_t i = 0; i != a.memory.size(); ++i)
    EXPECT_EQ(std::tie(a.memory[i].time, a.memory[i].bytes),
              std::tie(b.memory[i].time, b.memory[i].bytes));
}

TEST(OffloadTrace, ComesBackAsItWas) {
  Timeline timeline = makeOffloaded();
  auto read = parseTrace(trace(timeline));
  ASSERT_TRUE(bool(read)) << toString(read.takeError());
  const Timeline &back = read->front();
  expectEqual(back.host, timeline.host);
  expectEqual(back.disk, timeline.disk);
  EXPECT_EQ(back.offload, timeline.offload);
  EXPECT_EQ(back.offloadRules, timeline.offloadRules);
  ASSERT_EQ(back.spans.size(), timeline.spans.size());
  for (size_t i = 0; i != back.spans.size(); ++i)
    EXPECT_EQ(back.spans[i].kind, timeline.spans[i].kind);
  EXPECT_EQ(trace(back), trace(timeline));
}

// Kinds have the names of the plan's streams.
TEST(OffloadTrace, NamesKindsAsStreams) {
  std::string text = trace(makeOffloaded());
  for (const char *kind :
       {"to_host", "to_device", "disk_read", "disk_write", "host"})
    EXPECT_THAT(text, HasSubstr("\"cat\":\"" + std::string(kind) + "\""));
}

// Steps without offload say nothing of it, so that older readers take them.
TEST(OffloadTrace, IsSilentWithoutOffload) {
  std::string text = trace(makeTimeline("predicted"));
  for (const char *member :
       {"\"host\":{", "\"disk\":{", "\"offload", "host_memory", "disk_memory"})
    EXPECT_THAT(text, Not(HasSubstr(member)));
}

TEST(OffloadTrace, RefusesDamage) {
  std::string text = trace(makeOffloaded());
  EXPECT_THAT(parseError(edited(text, "\"cat\":\"to_host\"", "\"cat\":\"up\"")),
              HasSubstr("has 'cat' up, expected compute, all_gather, "
                        "reduce_scatter, all_reduce, to_device, to_host, "
                        "disk_read, disk_write or host"));
  EXPECT_THAT(parseError(edited(text, "\"host_memory\"", "\"disk_memory\"")),
              HasSubstr("has 1 host memory points, expected 2"));
  EXPECT_THAT(parseError(edited(text, "\"budget_bytes\":8192", "\"size\":1")),
              HasSubstr("args.host has an unknown member 'size'"));
  EXPECT_THAT(parseError(edited(text, "\"planned_peak\":6144",
                                "\"planned_peak\":\"much\"")),
              HasSubstr("planned_peak"));
}

TEST(OffloadTrace, ChecksSpaces) {
  Timeline timeline = makeOffloaded();
  EXPECT_EQ(checkTimeline(timeline), "");
  timeline.disk.plannedPeak = -1;
  EXPECT_EQ(checkTimeline(timeline),
            "has a host or disk budget or peak of less than 0 bytes");
  timeline = makeOffloaded();
  std::swap(timeline.host.memory[0], timeline.host.memory[1]);
  EXPECT_EQ(checkTimeline(timeline), "host memory point 1 is out of order");
  timeline = makeOffloaded();
  timeline.disk.memory[0].bytes[0] = -1;
  EXPECT_EQ(checkTimeline(timeline),
            "disk memory point 0 has impossible bytes");
}

TEST(OffloadReport, ShowsLinksAndStalls) {
  std::string page = report(makeOffloaded());
  StringRef links = StringRef(page).split("id=\"links\"").second;
  links = links.split("</section>").first;
  EXPECT_EQ(links.count("<tr>"), 6u); // the head and five links
  StringRef up = links.split("k-to_device").second.split("</tr>").first;
  EXPECT_THAT(up.str(), HasSubstr("2.93 KiB"));
  EXPECT_THAT(up.str(), HasSubstr("60.00 ms"));
  EXPECT_THAT(up.str(), HasSubstr("20.0 %")); // busy, and a stall of the step
  EXPECT_THAT(page, HasSubstr("the next step needs w"));
  // Collectives are elsewhere, and without copies there is no table.
  StringRef traffic = StringRef(page).split("id=\"traffic\"").second;
  EXPECT_FALSE(traffic.split("</section>").first.contains("to_host"));
  EXPECT_THAT(report(makeTimeline("predicted")),
              Not(HasSubstr("id=\"links\"")));
}

TEST(OffloadReport, ShowsMemoryOfEachSpace) {
  std::string page = report(makeOffloaded());
  for (const char *part : {"id=\"memory-chart\"", "id=\"memory-host-chart\"",
                           "id=\"memory-disk-chart\"", "<dt>Host memory</dt>",
                           "<dt>Disk</dt>", "75.0 % of the budget, 8.00 KiB"})
    EXPECT_THAT(page, HasSubstr(part));
  StringRef data = StringRef(page).split("id=\"data\">").second;
  auto value = json::parse(data.split("</script>").first);
  ASSERT_TRUE(bool(value)) << toString(value.takeError());
  const json::Value &first = (*value->getAsObject()->getArray("timelines"))[0];
  const json::Array &spaces = *first.getAsObject()->getArray("spaces");
  ASSERT_EQ(spaces.size(), 2u);
  EXPECT_EQ(*spaces[0].getAsObject()->getInteger("budget"), 8192);
  EXPECT_EQ(spaces[0].getAsObject()->getArray("time")->size(), 2u);
  EXPECT_EQ(spaces[1].getAsObject()->getArray("time")->size(), 1u);
  EXPECT_THAT(report(makeTimeline("predicted")),
              Not(HasSubstr("memory-host-chart\"")));
}

TEST(OffloadReport, SaysWhatWasChosen) {
  std::string page = report(makeOffloaded());
  EXPECT_THAT(page, HasSubstr("offloading m of layers 0-1 saves 4.00 KiB"));
  EXPECT_THAT(page, HasSubstr("<code>optimizer@l.0.*=disk&lt;</code>"));
}

// What waits for the host is an exposed operation like a collective.
TEST(OffloadReport, StallsHaveReasons) {
  Timeline timeline = makeOffloaded();
  auto rows = exposedCollectives(timeline);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].span->kind, TaskKind::CopyIn);
  EXPECT_TRUE(isTransfer(TaskKind::DiskRead));
  EXPECT_FALSE(isTransfer(TaskKind::HostCompute));
}
