//===- TraceTest.cpp - Traces there and back ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReportTexts.h"
#include "TestTimelines.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "gmock/gmock.h"
#include <csignal>
#include <limits>
#include <sys/resource.h>

using namespace mlir::zero;
using namespace llvm;
using testing::HasSubstr;
using testing::StartsWith;

static bool isEqual(const TimelineSpan &a, const TimelineSpan &b) {
  return std::tie(a.rank, a.channel, a.name, a.kind, a.start, a.end, a.exposed,
                  a.sentBytes, a.reason, a.command) ==
         std::tie(b.rank, b.channel, b.name, b.kind, b.start, b.end, b.exposed,
                  b.sentBytes, b.reason, b.command);
}

static void expectEqual(const Timeline &a, const Timeline &b) {
  EXPECT_EQ(std::tie(a.source, a.model, a.machine, a.ranks, a.grid, a.stage,
                     a.budgetBytes, a.plannedPeak, a.lowerBound, a.stepSeconds,
                     a.exposedSeconds, a.notes),
            std::tie(b.source, b.model, b.machine, b.ranks, b.grid, b.stage,
                     b.budgetBytes, b.plannedPeak, b.lowerBound, b.stepSeconds,
                     b.exposedSeconds, b.notes));
  ASSERT_EQ(a.spans.size(), b.spans.size());
  for (size_t i = 0; i != a.spans.size(); ++i)
    EXPECT_TRUE(isEqual(a.spans[i], b.spans[i])) << "span " << i;
  ASSERT_EQ(a.memory.size(), b.memory.size());
  for (size_t i = 0; i != a.memory.size(); ++i)
    EXPECT_EQ(std::tie(a.memory[i].time, a.memory[i].bytes),
              std::tie(b.memory[i].time, b.memory[i].bytes));
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (size_t i = 0; i != a.parameters.size(); ++i) {
    const TimelineParameter &p = a.parameters[i], &q = b.parameters[i];
    EXPECT_EQ(std::tie(p.name, p.shape, p.shard, p.type, p.residence,
                       p.gathered, p.bytes),
              std::tie(q.name, q.shape, q.shard, q.type, q.residence,
                       q.gathered, q.bytes));
  }
}

TEST(Trace, ComesBackAsItWas) {
  std::vector<Timeline> timelines = {makeTimeline("predicted"),
                                     makeTimeline("measured")};
  timelines[1].spans.clear();
  timelines[1].memory.clear();
  timelines[1].budgetBytes = -1;
  auto read = parseTrace(trace(timelines));
  ASSERT_TRUE(bool(read)) << toString(read.takeError());
  ASSERT_EQ(read->size(), 2u);
  expectEqual(timelines[0], (*read)[0]);
  expectEqual(timelines[1], (*read)[1]);
}

TEST(Trace, IsTheSameAgain) {
  std::vector<Timeline> timelines = {makeTimeline("predicted"),
                                     makeTimeline("measured")};
  std::string text = trace(timelines);
  auto read = parseTrace(text);
  ASSERT_TRUE(bool(read)) << toString(read.takeError());
  EXPECT_EQ(trace(*read), text);
}

// Bytes that are no UTF-8 are replaced, not written.
TEST(Trace, ReplacesBytesThatAreNoText) {
  Timeline timeline = makeTimeline("predicted");
  timeline.spans[0].name = "a\xFF";
  auto read = parseTrace(trace(timeline));
  ASSERT_TRUE(bool(read)) << toString(read.takeError());
  EXPECT_EQ((*read)[0].spans[0].name, "a\xEF\xBF\xBD");
}

// What Perfetto needs: traceEvents is all there is, processes and threads have
// names and numbers above 0, spans have whole nanoseconds and do not overlap
// where the seconds do not.
TEST(Trace, IsWhatViewersRead) {
  Timeline timeline = makeTimeline("predicted");
  timeline.spans.clear();
  for (int i = 0; i < 100; ++i)
    timeline.spans.push_back(
        makeSpan(0, "compute", "x", TaskKind::Compute, i / 3e7, (i + 1) / 3e7));
  auto value = json::parse(trace(timeline));
  ASSERT_TRUE(bool(value)) << toString(value.takeError());
  const json::Object &top = *value->getAsObject();
  EXPECT_EQ(top.size(), 1u);
  int64_t last = 0;
  std::vector<std::string> names;
  for (const json::Value &item : *top.getArray("traceEvents")) {
    const json::Object &event = *item.getAsObject();
    EXPECT_GT(*event.getInteger("pid"), 0);
    std::string phase = event.getString("ph")->str();
    if (phase == "M" && event.getObject("args")->getString("name"))
      names.push_back(event.getObject("args")->getString("name")->str());
    if (phase != "X")
      continue;
    EXPECT_GT(*event.getInteger("tid"), 0);
    int64_t start = std::llround(*event.getNumber("ts") * 1000);
    EXPECT_EQ(start, last);
    last = start + std::llround(*event.getNumber("dur") * 1000);
  }
  EXPECT_EQ(last, std::llround(100 / 3e7 * 1e9));
  EXPECT_THAT(names, testing::IsSupersetOf({"predicted: rank 0", "compute"}));
}

TEST(Trace, NamesWhatIsWrongInAFile) {
  std::string good = trace(makeTimeline("predicted"));
  const std::tuple<const char *, const char *, const char *> cases[] = {
      {"\"version\":1", "\"version\":2",
       "'version' 2, expected an integer "
       "from 1 to 1"},
      {"\"ranks\":8", "\"ranks\":\"8\"", "'ranks' \"8\", expected an integer"},
      {"\"ranks\":8", "\"ranks\":3", "span 2 (gather w) is on rank 3 of 3"},
      {"\"stage\":3", "\"stage\":4", "'stage' 4, expected an integer from 0"},
      {"\"grid\":[2,4]", "\"grid\":[2,0.5]", "'grid' 0.5, expected an array"},
      {"\"grid\":[2,4]", "\"grid\":7", "'grid' 7, expected an array"},
      {"\"source\"", "\"sauce\"", "has an unknown member 'sauce'"},
      {"\"spans\":4", "\"spans\":5", "has 4 spans, expected 5"},
      {"\"memory\":3", "\"memory\":2", "has 3 memory points, expected 2"},
      {"\"parameters\":2", "\"parameters\":9", "2 parameters, expected 9"},
      {"\"pid\":1,\"rank\":0", "\"pid\":2,\"rank\":0", "as another process"},
      {"\"ph\":\"X\",\"pid\":1", "\"ph\":\"X\",\"pid\":77",
       "has pid 77, which"},
      {"\"ph\":\"X\"", "\"ph\":\"B\"", "has 'ph' B"},
      {"\"cat\":\"all_gather\"", "\"cat\":\"gather\"", "has 'cat' gather"},
      {"\"tid\":2,\"cat\"", "\"tid\":9,\"cat\"", "has tid 9, which"},
      {"\"ts\":0,", "\"ts\":5,", "'ts' and 'dur' that disagree"},
      {"\"exposed_seconds\":0.1", "\"exposed_seconds\":-1",
       "has a time that is not between"},
      {"\"sent_bytes\":9", "\"sent_bytes\":-9", "'sent_bytes' -9"},
      {"\"reason\":\"the", "\"raison\":\"the", "unknown member 'raison'"},
      {"\"name\":\"memory\"", "\"name\":\"mammoth\"", "'name' mammoth"},
      {"\"gathered\":700", "\"gathered\":1e300",
       "'gathered' 1.0000000000000001e+300, expected"},
      {"\"start\":0.1,\"args\"", "\"start\":0.7,\"args\"",
       "has a 'ts' that disagrees with 'start'"},
      {"\"shape\":[30,4]", "\"shape\":[-30,4]", "has a negative dimension"},
      {"zero_parameter", "zero_perimeter", "'name' zero_perimeter, which no"},
      {"zero_timeline", "thread_name", "which no zero_timeline event before"},
      {"\"args\":{\"version\"", "\"arg\":{\"version\"", "has no 'args'"}};
  for (auto [from, to, message] : cases)
    EXPECT_THAT(parseError(edited(good, from, to)), HasSubstr(message))
        << from << " -> " << to;
}

TEST(Trace, RefusesOtherFiles) {
  EXPECT_THAT(parseError(""), StartsWith("is not JSON: "));
  EXPECT_THAT(parseError("[1]"), HasSubstr("the file is not an object"));
  EXPECT_THAT(parseError("{}"), HasSubstr("has no 'traceEvents'"));
  EXPECT_THAT(parseError("{\"traceEvents\":[]}"),
              HasSubstr("has no zero_timeline event"));
  EXPECT_THAT(parseError("{\"traceEvents\":[7]}"),
              HasSubstr("traceEvents[0] is not an object"));
  // A parser that recurses would overflow its stack.
  EXPECT_EQ(parseError(std::string(1000000, '[')), "is nested deeper than 32");
  EXPECT_EQ(parseError("{\"a\":\"" + std::string(99, '[') + "\"}"),
            "the file has no 'traceEvents', expected an array");
}

// One line whatever stands in the file.
TEST(Trace, AnyDamageIsOneLine) {
  std::string good = trace(makeTimeline("predicted"));
  uint32_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) {
      state = state * 1664525u + 1013904223u;
      bad[(state >> 8) % bad.size()] = "0-9\"{}[],:e.\\a\xFF"[state % 16];
    }
    if (i % 4 == 0)
      bad.resize(state % bad.size());
    auto read = parseTrace(bad);
    if (read) {
      for (const Timeline &timeline : *read)
        EXPECT_EQ(checkTimeline(timeline), "");
      continue;
    }
    std::string message = toString(read.takeError());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 600u) << message;
  }
}

TEST(CheckTimeline, SaysWhatIsWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto wrong = [](function_ref<void(Timeline &)> change) {
    Timeline timeline = makeTimeline("predicted");
    EXPECT_EQ(checkTimeline(timeline), "");
    change(timeline);
    return checkTimeline(timeline);
  };
  EXPECT_EQ(wrong([](Timeline &t) { t.ranks = 0; }), "has less than 1 rank");
  EXPECT_THAT(wrong([](Timeline &t) { t.stage = 5; }), HasSubstr("of stage 5"));
  EXPECT_THAT(wrong([](Timeline &t) { t.plannedPeak = -1; }),
              HasSubstr("a budget or a peak of less than 0 bytes"));
  EXPECT_THAT(wrong([&](Timeline &t) { t.stepSeconds = nan; }),
              HasSubstr("has a step time that is not"));
  EXPECT_EQ(wrong([&](Timeline &t) { t.spans[0].end = 1e10; }),
            "span 0 (gather w) has a time that is not between 0 and 1e9 s");
  EXPECT_EQ(wrong([](Timeline &t) { t.spans[0].start = 0.2; }),
            "span 0 (gather w) ends before it starts");
  EXPECT_EQ(wrong([](Timeline &t) { t.spans[0].channel.clear(); }),
            "span 0 (gather w) has no channel");
  EXPECT_EQ(wrong([](Timeline &t) { t.spans[0].sentBytes = -1; }),
            "span 0 (gather w) sends less than 0 bytes");
  EXPECT_EQ(wrong([](Timeline &t) { t.memory[2].time = 0.05; }),
            "memory point 2 is out of order");
  EXPECT_EQ(wrong([](Timeline &t) {
              t.memory[1].bytes[5] = std::numeric_limits<int64_t>::max();
            }),
            "memory point 1 has impossible bytes");
  EXPECT_EQ(wrong([](Timeline &t) { t.parameters[1].bytes = -4; }),
            "parameter scalar has less than 0 bytes");
}

namespace {
/// A folder that goes away with the test.
struct TimelineFiles : testing::Test {
  TimelineFiles() {
    SmallString<128> path;
    EXPECT_FALSE(sys::fs::createUniqueDirectory("zero-report", path));
    folder = path.str().str();
  }
  ~TimelineFiles() override { (void)sys::fs::remove_directories(folder); }
  std::string folder;
};
} // namespace

TEST_F(TimelineFiles, AreWrittenAndRead) {
  Timeline timeline = makeTimeline("predicted");
  std::string path = folder + "/t.json", report = folder + "/r.html";
  Error error = writeTimelineFiles(timeline, path, report);
  ASSERT_FALSE(bool(error)) << toString(std::move(error));
  auto read = readTrace(path);
  ASSERT_TRUE(bool(read)) << toString(read.takeError());
  expectEqual(timeline, (*read)[0]);
  uint64_t size = 0;
  EXPECT_FALSE(sys::fs::file_size(report, size));
  EXPECT_GT(size, 10000u);
}

TEST_F(TimelineFiles, ErrorsNameTheFile) {
  Timeline timeline = makeTimeline("predicted");
  std::string path = folder + "/none/t.json";
  EXPECT_EQ(toString(writeTimelineFiles(timeline, path, "")),
            path + ": cannot write: No such file or directory");
  EXPECT_EQ(toString(readTrace(path).takeError()),
            path + ": cannot read: No such file or directory");
  EXPECT_EQ(toString(readTrace(folder).takeError()),
            folder + ": cannot read: Is a directory");
  timeline.spans[1].end = -1;
  path = folder + "/t.json";
  EXPECT_THAT(toString(writeTimelineFiles(timeline, path, "")),
              StartsWith(path + ": the predicted timeline span 1 ("));
  EXPECT_FALSE(sys::fs::exists(path));
}

// A file system that takes no more, here for a limit of the process: nothing is
// left behind.
TEST_F(TimelineFiles, FullDisk) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit tight = {1000, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  std::string path = folder + "/r.html";
  std::string message =
      toString(writeTimelineFiles(makeTimeline("predicted"), "", path));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(message, path + ": cannot write: File too large");
  std::error_code code;
  EXPECT_EQ(sys::fs::directory_iterator(folder, code),
            sys::fs::directory_iterator());
}
