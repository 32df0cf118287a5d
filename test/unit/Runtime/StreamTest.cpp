//===- StreamTest.cpp - Tests of streams and events -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// That streams run side by side is shown by commands that return only once a
// later one of another stream has run, never by time.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <dirent.h>
#include <sys/resource.h>
#include <thread>

using namespace zrt;
using namespace zrt::test;

namespace {
uint32_t flagOf(PlanBuilder &plan, const std::string &name) {
  return plan.input(name, {1}, fb::DType_I32);
}

void clear(Running &running, const std::string &flag) {
  running.set<int32_t>(flag, ZRT_ALL_RANKS, {0});
}

/// Threads of this process.
int threadCount() {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  while (const dirent *entry = readdir(tasks))
    count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}
} // namespace

/// Compute is inside a command until a collective that the program names later
/// is done.
TEST(Stream, CollectiveRunsBesideCompute) {
  for (uint32_t ranks : {1, 2, 4})
    for (fb::Op op :
         {fb::Op_AllGather, fb::Op_ReduceScatter, fb::Op_AllReduce}) {
      PlanBuilder plan(ranks);
      plan.streams(1, 1);
      uint32_t flag = flagOf(plan, "flag"), x = plan.input("x", {8});
      uint32_t y = plan.buffer("y", {8}), z = plan.buffer("z", {8});
      plan.launch("await_flag", {flag});
      int64_t chunk = op == fb::Op_AllReduce ? 8 : 8 / ranks;
      place(plan.collective(op, x, y, 8, chunk), 1, {});
      place(plan.launch("set_flag", {flag}), 1, {}, 0);
      fb::CommandT &copy = plan.command(fb::Op_Copy);
      plan.operand(copy, y);
      plan.operand(copy, z);
      place(copy, 0, {0});
      plan.output(z);
      Running running(plan);
      for (int step = 0; step < 3; ++step) { // events begin anew
        clear(running, "flag");
        running.set("x", ZRT_ALL_RANKS, std::vector<float>(8, 1.0f));
        running.step();
        float sum = op == fb::Op_AllGather ? 1.0f : float(ranks);
        EXPECT_EQ(running.get(0)[0], sum) << "operation " << op;
      }
    }
}

/// A collective of one stream is not in the way of another stream's: the first
/// in the program's order is reached last.
TEST(Stream, StreamsHaveTheirOwnCommunicators) {
  for (uint32_t ranks : {1, 2, 3}) {
    PlanBuilder plan(ranks);
    plan.streams(2, 2);
    uint32_t flag = flagOf(plan, "flag"), x = plan.input("x", {4});
    uint32_t y = plan.input("y", {4});
    place(plan.launch("await_flag", {flag}), 1, {});
    place(plan.collective(fb::Op_AllReduce, x, x, 4, 4), 1, {}, 0);
    place(plan.collective(fb::Op_AllReduce, y, y, 4, 4), 2, {});
    place(plan.launch("set_flag", {flag}), 2, {}, 1);
    place(plan.launch("add_one4", {x}), 0, {0, 1});
    plan.output(x);
    plan.output(y);
    Running running(plan);
    clear(running, "flag");
    running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
    running.set<float>("y", ZRT_ALL_RANKS, {2, 2, 2, 2});
    running.step();
    EXPECT_EQ(running.get(0)[0], float(ranks) + 1);
    EXPECT_EQ(running.get(1)[3], 2 * float(ranks));
  }
}

/// Nor does a rank that is early on one stream meet one that is early on the
/// other: each would read what the other has not yet written.
TEST(Stream, CollectivesOfTwoStreamsDoNotMeet) {
  PlanBuilder plan(2);
  plan.streams(2, 0);
  std::vector<uint32_t> flags, values;
  for (uint32_t stream : {1, 2}) {
    std::string name = std::to_string(stream);
    flags.push_back(flagOf(plan, "flag" + name));
    values.push_back(plan.input("x" + name, {4}));
    place(plan.launch("await_flag", {flags.back()}), stream, {});
    place(plan.launch("add_one4", {values.back()}), stream, {});
    place(plan.collective(fb::Op_AllReduce, values.back(), values.back(), 4, 4),
          stream, {});
    plan.output(values.back());
  }
  plan.launch("rest", {values[0]});
  for (uint32_t flag : flags)
    plan.launch("set_flag", {flag});
  Running running(plan);
  for (int stream : {1, 2}) {
    std::string name = std::to_string(stream);
    for (int rank : {0, 1}) // rank 0 is early on stream 1, rank 1 on 2
      running.set<int32_t>("flag" + name, rank, {stream - 1 == rank});
    running.set<float>("x" + name, ZRT_ALL_RANKS, {1, 1, 1, 1});
  }
  running.step();
  for (uint32_t output : {0, 1})
    for (uint32_t rank : {0, 1})
      EXPECT_EQ(running.get(output, rank), std::vector<float>(4, 4.0f));
}

/// Commands of a stream run in the program's order without events, and events
/// order commands of different streams, whoever is slow.
TEST(Stream, OrderIsKept) {
  const uint32_t ranks = 3, rounds = 40;
  PlanBuilder plan(ranks);
  plan.streams(2, 3 * rounds);
  uint32_t x = plan.input("x", {4}), shared = plan.input("shared", {4});
  for (uint32_t round = 0; round < rounds; ++round) {
    uint32_t event = 3 * round;
    std::vector<uint32_t> before;
    if (round)
      before = {event - 1};
    place(plan.launch("add_one4", {x}), 0, before, int32_t(event));
    place(plan.collective(fb::Op_AllReduce, x, shared, 4, 4), 1, {event},
          int32_t(event) + 1);
    place(plan.launch("add_one4", {shared}), 2, {event + 1},
          int32_t(event) + 2);
  }
  plan.output(x);
  plan.output(shared);
  Running running(plan);
  for (int step = 0; step < 5; ++step) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      running.set("x", int(rank), std::vector<float>(4, float(rank)));
    running.set("shared", ZRT_ALL_RANKS, std::vector<float>(4, -1.0f));
    running.step();
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(running.get(0, rank)[2], float(rank + rounds));
      EXPECT_EQ(running.get(1, rank)[2], float(3 * rounds + 0 + 1 + 2 + 1));
    }
  }
}

/// Without the wait, a reader on another stream meets what is not yet written:
/// what the test above shows is not luck.
TEST(Stream, NothingElseOrdersStreams) {
  PlanBuilder plan(1);
  plan.streams(1, 0);
  uint32_t flag = flagOf(plan, "flag"), x = plan.input("x", {4});
  uint32_t y = plan.input("y", {4});
  plan.launch("await_flag", {flag});
  plan.launch("double4", {x, y});
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  uint32_t z = plan.buffer("z", {4});
  plan.operand(copy, y);
  plan.operand(copy, z);
  place(copy, 1, {});
  place(plan.launch("set_flag", {flag}), 1, {});
  plan.output(z);
  Running running(plan);
  clear(running, "flag");
  running.set<float>("x", 0, {1, 2, 3, 4});
  running.set<float>("y", 0, {9, 9, 9, 9});
  running.step();
  EXPECT_EQ(running.get(0), (std::vector<float>{9, 9, 9, 9}));
}

/// A failure on any thread ends all: those in barriers, those that wait for
/// events, those at work. The first error is reported.
TEST(Stream, ErrorOnAStreamEndsAll) {
  for (const char *kernel : {"refuse_negative", "throw_number"})
    for (uint32_t ranks : {1, 2, 5}) {
      PlanBuilder plan(ranks);
      plan.streams(2, 3);
      uint32_t x = plan.input("x", {4}), y = plan.input("y", {4});
      fb::CommandT &fails = plan.launch(kernel, {x});
      fails.location = "layer7";
      place(fails, 1, {}, 0);
      place(plan.collective(fb::Op_AllReduce, x, x, 4, 4), 1, {}, 1);
      place(plan.collective(fb::Op_AllReduce, y, y, 4, 4), 2, {0}, 2);
      place(plan.launch("add_one4", {x}), 0, {1, 2});
      place(plan.collective(fb::Op_AllReduce, x, x, 4, 4), 0, {});
      Running running(plan);
      for (int step = 0; step < 3; ++step) {
        running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
        running.set<float>("y", ZRT_ALL_RANKS, {1, 2, 3, 4});
        if (step < 2)
          running.step();
      }
      running.set<float>("x", int(ranks) - 1, {-1, 2, 3, 4});
      Status failed = running.session.step();
      EXPECT_EQ(failed.code(), ZRT_ERROR_EXECUTION);
      std::string cause = kernel == std::string("throw_number")
                              ? "unknown exception"
                              : "the element is negative";
      EXPECT_EQ(failed.message(), "rank " + std::to_string(ranks - 1) +
                                      ", command 0 (launch " + kernel +
                                      ") from layer7: " + cause);
      EXPECT_TRUE(running.session.step());
    }
}

/// The same when compute fails while other streams wait for it.
TEST(Stream, ErrorOnComputeEndsAll) {
  PlanBuilder plan(3);
  plan.streams(1, 1);
  uint32_t x = plan.input("x", {4});
  place(plan.launch("refuse_negative", {x}), 0, {}, 0);
  place(plan.collective(fb::Op_AllReduce, x, x, 4, 4), 1, {0});
  Running running(plan);
  running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
  running.step();
  running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
  running.set<float>("x", 1, {-1, 2, 3, 4});
  EXPECT_EQ(running.session.step().message(),
            "rank 1, command 0 (launch refuse_negative): the element is "
            "negative");
}

/// A thread for each rank, and one more for each further stream with commands.
TEST(Stream, ThreadsAreThoseThatWork) {
  std::thread([] {}).join(); // a sanitizer starts its own beside the first
  for (uint32_t used : {0u, 1u, 3u}) {
    PlanBuilder plan(4);
    plan.streams(3, 0);
    uint32_t x = plan.input("x", {4});
    for (uint32_t stream = 0; stream <= used; ++stream)
      place(plan.launch("add_one4", {x}), stream, {});
    int before = threadCount();
    Running running(plan);
    EXPECT_EQ(threadCount() - before, int(4 * (used + 1)));
  }
}

/// Who waits for an event, a barrier or the next step does not use the
/// processor.
TEST(Stream, WaitingIsCheap) {
  PlanBuilder plan(4);
  plan.streams(2, 2);
  uint32_t x = plan.input("x", {4});
  place(plan.launch("rest", {x}), 0, {}, 0);
  place(plan.collective(fb::Op_AllReduce, x, x, 4, 4), 1, {0}, 1);
  place(plan.launch("add_one4", {x}), 2, {1});
  Running running(plan);
  auto processorMs = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1e3 * double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-3 * double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  double before = processorMs();
  for (int step = 0; step < 5; ++step) { // half a second
    running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
    running.step();
  }
  EXPECT_LT(processorMs() - before, 100.0);
}

/// Library calls of two streams have scratch memory of their own.
TEST(Stream, LibraryCallsOnTwoStreams) {
  PlanBuilder plan(2);
  plan.streams(1, 1);
  uint32_t a = plan.input("a", {40, 40});
  std::vector<uint32_t> results;
  for (uint32_t stream : {0, 1, 0, 1, 0, 1}) {
    uint32_t result = plan.buffer("r", {40, 40});
    fb::CommandT &call = plan.command(fb::Op_Call, "matmul");
    // Every second column, which is packed into scratch memory.
    plan.operand(call, a, 0, {40, 20}, {40, 2});
    plan.operand(call, a, 0, {20, 40}, {40, 1});
    plan.operand(call, result);
    place(call, stream, {});
    plan.output(result);
  }
  Running running(plan);
  running.set("a", ZRT_ALL_RANKS, numbers(3, 40 * 40));
  running.step();
  for (uint32_t output = 1; output < 6; ++output)
    EXPECT_EQ(running.get(output, output % 2), running.get(0));
}

/// Spans agree with the program's order, the events and the counters.
TEST(Stream, SpansAndExposedTime) {
  const uint32_t ranks = 2;
  PlanBuilder plan(ranks);
  plan.streams(1, 2);
  plan.program.stream_names = {"compute", "all_reduce"};
  uint32_t flag = flagOf(plan, "flag"), x = plan.input("x", {4});
  uint32_t y = plan.input("y", {4});
  place(plan.launch("add_one4", {x}), 0, {}, 0);
  place(plan.collective(fb::Op_AllReduce, x, x, 4, 4), 1, {0}, 1);
  plan.launch("set_flag", {flag});
  place(plan.launch("add_one4", {x}), 0, {1});
  plan.collective(fb::Op_AllReduce, y, y, 4, 4);
  place(plan.launch("rest", {x}), 1, {}); // compute ends before
  Running running(plan);
  EXPECT_EQ(running.program.streamName(1), "all_reduce");
  EXPECT_EQ(running.program.streamName(2), "");
  std::vector<zrt_span> spans;
  for (int step = 0; step < 2; ++step) {
    running.session.resetCounters();
    clear(running, "flag");
    running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
    running.set<float>("y", ZRT_ALL_RANKS, {1, 2, 3, 4});
    running.step();
    double exposed = 0, comm = 0, stepMs = running.session.counters().step_ms;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      ASSERT_FALSE(running.session.spans(rank, spans));
      ASSERT_EQ(spans.size(), 6u);
      for (const zrt_span &span : spans) {
        EXPECT_LE(0, span.start_ms - span.waited_ms);
        EXPECT_LE(span.start_ms, span.end_ms);
        EXPECT_LE(span.end_ms, stepMs);
      }
      EXPECT_LE(spans[0].end_ms, spans[1].start_ms); // event 0
      EXPECT_LE(spans[1].end_ms, spans[3].start_ms); // event 1
      EXPECT_LE(spans[2].end_ms, spans[3].start_ms); // same stream
      EXPECT_EQ(spans[0].waited_ms, 0.0);
      EXPECT_GT(spans[3].waited_ms, 0.0);
      EXPECT_GE(spans[5].end_ms - spans[5].start_ms, 100.0);
      double tail = std::max(0.0, spans[5].end_ms - spans[4].end_ms);
      double inside = spans[4].end_ms - spans[4].start_ms;
      exposed += (spans[3].waited_ms + inside + tail) / ranks;
      comm += (spans[1].end_ms - spans[1].start_ms + inside) / ranks;
    }
    EXPECT_NEAR(running.session.counters().exposed_comm_ms, exposed, 1e-6);
    EXPECT_NEAR(running.session.counters().comm_ms, comm, 1e-6);
  }
  EXPECT_EQ(running.session.spans(ranks, spans).message(), "rank 2 of 2");
  EXPECT_EQ(zrt_session_spans(running.session.get(), 0, spans.data(), 5),
            ZRT_ERROR_ARGUMENT);
}

/// The check mode finds compute that writes what a collective is reading. (To
/// ThreadSanitizer that is the race that it is.)
#if !ZERO_TEST_UNDER_TSAN
TEST(Stream, CheckFindsSourcesThatAreWritten) {
  for (bool check : {false, true}) {
    PlanBuilder plan(2);
    plan.streams(1, 0);
    uint32_t flag = flagOf(plan, "flag"), x = plan.input("x", {4});
    uint32_t y = plan.buffer("y", {4});
    place(plan.launch("await_flag", {flag}), 1, {});
    place(plan.collective(fb::Op_AllReduce, x, y, 4, 4), 1, {});
    plan.launch("rest", {x});
    plan.launch("add_one4", {x});
    plan.launch("rest", {x}); // until the other rank has written too
    plan.launch("set_flag", {flag});
    zrt_session_options options = {};
    options.check = check;
    Running running(plan, options);
    running.set<float>("x", ZRT_ALL_RANKS, {1, 2, 3, 4});
    running.set<int32_t>("flag", 0, {1}); // is in the collective early
    running.set<int32_t>("flag", 1, {0});
    EXPECT_EQ(running.session.step().message(),
              check ? "rank 0, command 1 (all_reduce): what it reads was "
                      "written while it ran"
                    : "");
  }
}
#endif

/// Poison comes before any stream's first command and with each release; what
/// other streams write is not lost.
TEST(Stream, PoisonWithStreams) {
  for (int round = 0; round < 20; ++round) {
    PlanBuilder plan(2);
    plan.streams(1, 2);
    fb::ParameterT &w = plan.parameter("w", {4}, true, fb::Init_Ones);
    uint32_t g = plan.buffer("g", {4}, fb::DType_F32, fb::Kind_Gathered);
    uint32_t y = plan.buffer("y", {4});
    place(plan.collective(fb::Op_AllGather, w.buffer, g, 4, 2), 1, {}, 0);
    fb::CommandT &use = plan.launch("double4", {g, y});
    place(use, 0, {0}, 1);
    use.release = {g};
    plan.output(y);
    plan.output(g);
    zrt_session_options options = {};
    options.poison = 1;
    Running running(plan, options);
    running.step();
    EXPECT_EQ(running.get(0), (std::vector<float>{2, 2, 2, 2}));
    float released = running.get(1, 1)[3];
    EXPECT_NE(released, released);
  }
}
