//===- ProcessesTest.cpp - Tests of ranks as processes --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host backend in a group with shared memory: the same bits as ranks that
// are threads of one session, and what becomes of failures. Threads play the
// processes (ThreadGroup.h).
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "ProcessPlans.h"
#include "ThreadGroup.h"

#include <filesystem>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;

namespace {
zrt_session_options in(zrt_group &group) {
  zrt_session_options options = {};
  options.group = &group;
  return options;
}

/// Runs a step; a failure is thrown as zero-run would tell it to the group.
void step(Running &running) {
  if (Status failed = running.session.step())
    throw Error(failed.code(), failed.message());
}
} // namespace

TEST(Processes, CollectivesHaveTheBitsOfThreads) {
  for (const GridCase &one : gridCases())
    for (int64_t count : {4, 1036}) {
      PlanBuilder plan = collectives(one, count);
      uint32_t ranks = plan.program.ranks;
      Running threads(plan);
      runSteps(threads, ranks, count);
      std::vector<std::vector<std::vector<uint8_t>>> got(ranks);
      std::vector<zrt_counters> counters(ranks);
      std::vector<std::string> texts =
          runProcesses(ranks, [&](zrt_group &group, uint32_t rank) {
            Running running(plan, in(group));
            runSteps(running, ranks, count);
            counters[rank] = running.session.counters();
            for (uint32_t from = 0; from < ranks; ++from) {
              auto outputs = outputsOf(running, from);
              if (rank == 0)
                got[from] = std::move(outputs);
            }
          });
      EXPECT_EQ(texts, std::vector<std::string>(ranks));
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(got[rank], outputsOf(threads, rank)) << "rank " << rank;
        zrt_counters expected = threads.session.counters();
        for (size_t kind = 0; kind < ZRT_NUM_COLLECTIVES; ++kind)
          EXPECT_EQ(counters[rank].comm_bytes_times_ranks[kind],
                    expected.comm_bytes_times_ranks[kind]);
        EXPECT_EQ(counters[rank].peak_bytes[ZRT_DEVICE],
                  expected.peak_bytes[ZRT_DEVICE]);
      }
    }
}

/// Sharded, replicated and averaged parameters, chunks, and outputs.
TEST(Processes, DataInAndOut) {
  const uint32_t ranks = 3;
  PlanBuilder plan(ranks);
  plan.parameter("w", {7, 200000}, true);
  plan.parameter("b", {5}, false);
  uint32_t x = plan.input("x", {4});
  fb::ParameterT &mean = plan.parameter("mean", {4}, false, fb::Init_Zeros);
  mean.role = fb::ParamRole_Buffer;
  plan.launch("double4", {x, mean.buffer});
  for (fb::AcrossRanks across :
       {fb::AcrossRanks_Same, fb::AcrossRanks_Mean, fb::AcrossRanks_Sum})
    plan.output(x, across);
  std::vector<float> w = numbers(1, 7 * 200000), b = numbers(2, 5);
  auto body = [&](zrt_group &group, uint32_t rank) {
    Running running(plan, in(group));
    Session &session = running.session;
    ASSERT_FALSE(session.setParameter(0, w.data(), w.size() * 4));
    ASSERT_FALSE(session.setParameter(1, b.data(), b.size() * 4));
    for (uint32_t to = 0; to < ranks; ++to)
      running.set("x", int(to), std::vector<float>(4, float(to + 1)));
    running.step();
    std::vector<float> gotW(w.size()), gotB(5), gotMean(4), chunk(10);
    ASSERT_FALSE(session.getParameter(0, gotW.data(), w.size() * 4));
    ASSERT_FALSE(session.getParameter(1, gotB.data(), 20));
    ASSERT_FALSE(session.getParameter(2, gotMean.data(), 16));
    ASSERT_FALSE(session.readChunk(0, 2, 40, chunk.data(), 40));
    std::vector<std::vector<double>> outputs(3, std::vector<double>(4));
    for (uint32_t output = 0; output < 3; ++output)
      ASSERT_FALSE(session.readOutput(output, outputs[output].data(), 4));
    // Numbers that steer a run are known everywhere.
    EXPECT_EQ(outputs[0], std::vector<double>(4, 1));
    EXPECT_EQ(outputs[1], std::vector<double>(4, 2));
    EXPECT_EQ(outputs[2], std::vector<double>(4, 6));
    if (rank != 0)
      return;
    EXPECT_EQ(gotW, w);
    EXPECT_EQ(gotB, b);
    EXPECT_EQ(gotMean, std::vector<float>(4, 4));
    EXPECT_EQ(chunk, std::vector<float>(w.begin() + 6 * 200000 + 10,
                                        w.begin() + 6 * 200000 + 20));
  };
  EXPECT_EQ(runProcesses(ranks, body), std::vector<std::string>(ranks));
}

/// Chunks of other ranks do nothing; a rank that holds no row needs no value.
TEST(Processes, OwnChunks) {
  PlanBuilder plan(3);
  plan.parameter("w", {2, 2}, true);
  plan.output(plan.program.parameters[0]->buffer);
  auto body = [&](zrt_group &group, uint32_t rank) {
    Running running(plan, in(group));
    for (uint32_t to = 0; to < 2; ++to) {
      std::vector<float> values(2, float(rank * 10 + to));
      ASSERT_FALSE(running.session.writeChunk(0, to, 0, values.data(), 8));
    }
    running.step();
    std::vector<float> got(4), own(2);
    ASSERT_FALSE(running.session.getParameter(0, got.data(), 16));
    if (rank == 0)
      EXPECT_EQ(got, (std::vector<float>{0, 0, 11, 11}));
    if (rank == 1) { // without the others
      ASSERT_FALSE(running.session.readLocalChunk(0, 1, 0, own.data(), 8));
      EXPECT_EQ(own, std::vector<float>(2, 11));
      EXPECT_EQ(
          running.session.readLocalChunk(0, 0, 0, own.data(), 8).message(),
          "rank 0 is in another process; this one has rank 1");
    }
  };
  EXPECT_EQ(runProcesses(3, body), std::vector<std::string>(3));
}

TEST(Processes, TimesAreOfTheirOwnProcess) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4});
  plan.launch("double4", {x, x});
  auto body = [&](zrt_group &group, uint32_t rank) {
    Running running(plan, in(group));
    running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 1));
    running.step();
    std::vector<zrt_span> spans;
    EXPECT_FALSE(running.session.spans(rank, spans));
    EXPECT_GT(spans[0].end_ms, 0.0);
    Status failed = running.session.spans(1 - rank, spans);
    EXPECT_EQ(failed.message(), "the times of rank " +
                                    std::to_string(1 - rank) +
                                    " are in its process; this one has rank " +
                                    std::to_string(rank));
  };
  EXPECT_EQ(runProcesses(2, body), std::vector<std::string>(2));
}

TEST(Processes, ARankThatFailsEndsAll) {
  PlanBuilder plan(3);
  plan.streams(1, 1);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("refuse_negative", {x});
  fb::CommandT &reduce = plan.collective(fb::Op_AllReduce, x, y, 4, 4);
  place(reduce, 1, {}, 0);
  place(plan.launch("double4", {y, y}), 0, {0});
  plan.collective(fb::Op_AllReduce, y, y, 4, 4);
  auto body = [&](zrt_group &group, uint32_t rank) {
    Running running(plan, in(group));
    running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 1));
    step(running);
    running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, rank == 1 ? -1 : 1));
    try {
      step(running);
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), rank == 1 ? ZRT_ERROR_EXECUTION : ZRT_ERROR_PEER);
      if (rank != 1) // and again
        EXPECT_EQ(running.session.step().code(), ZRT_ERROR_PEER);
      throw;
    }
  };
  std::string why = "rank 1, command 0 (launch refuse_negative): the element "
                    "is negative";
  EXPECT_EQ(runProcesses(3, body), std::vector<std::string>(3, why));
}

/// Who is late is named, and where it is.
TEST(Processes, LateRanks) {
  PlanBuilder plan(3);
  uint32_t x = plan.input("x", {4});
  plan.launch("rest_if", {x}).location = "fc1";
  fb::CommandT &reduce = plan.collective(fb::Op_AllReduce, x, x, 4, 4);
  reduce.location = "fc2";
  for (bool outside : {false, true}) {
    auto body = [&](zrt_group &group, uint32_t rank) {
      Running running(plan, in(group));
      running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, rank == 2));
      while (outside && rank == 2 && group.processes->failure().empty())
        usleep(1000);
      step(running);
    };
    std::vector<std::string> texts = runProcesses(3, body, 0.1);
    std::string why = "command 1 (all_reduce) from fc2: rank 2 ";
    why += outside ? "(not in the step)"
                   : "(at command 0 (launch rest_if) from fc1)";
    why += " has not come within 0.1 s";
    // Both may run out of patience before one hears of the other.
    for (const std::string &text : texts)
      EXPECT_TRUE(text == "rank 0, " + why || text == "rank 1, " + why) << text;
  }
}

/// Also where data is read between steps.
TEST(Processes, LateBetweenSteps) {
  PlanBuilder plan(2);
  plan.parameter("w", {2}, true, fb::Init_Ones);
  auto body = [&](zrt_group &group, uint32_t rank) {
    Running running(plan, in(group));
    while (rank == 1 && group.processes->failure().empty())
      usleep(1000);
    if (rank == 1)
      throw PeerFailed(group.processes->failure());
    std::vector<float> got(2);
    if (Status failed = running.session.getParameter(0, got.data(), 8))
      throw Error(failed.code(), failed.message());
  };
  std::string why = "rank 0, between steps: rank 1 (not in the step) has not "
                    "come within 0.1 s";
  EXPECT_EQ(runProcesses(2, body, 0.1), std::vector<std::string>(2, why));
}

TEST(Processes, OfOneProgram) {
  PlanBuilder plans[] = {PlanBuilder(2), PlanBuilder(2), PlanBuilder(3)};
  plans[1].program.name = "other";
  auto body = [&](zrt_group &group, uint32_t rank) {
    if (std::string text = sessionError(plans[rank], in(group)); !text.empty())
      throw Error(ZRT_ERROR_ARGUMENT, text);
  };
  std::vector<std::string> texts = runProcesses(2, body);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0].rfind("the processes have different programs: rank 0 "
                           "xxh3:",
                           0),
            0u)
      << texts[0];
  EXPECT_NE(texts[0].find(", rank 1 xxh3:"), texts[0].npos);
  EXPECT_NE(texts[0].find("; give all of them the same file"), texts[0].npos);

  auto two = [&](zrt_group &group, uint32_t) {
    if (std::string text = sessionError(plans[2], in(group)); !text.empty())
      throw Error(ZRT_ERROR_ARGUMENT, text);
  };
  EXPECT_EQ(runProcesses(2, two),
            std::vector<std::string>(
                2, "the program is for 3 ranks, but 2 processes run it: start "
                   "one for each rank"));
}

/// ZRT_CHECK looks at the replicas of all processes.
TEST(Processes, CheckFindsReplicasThatDiffer) {
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4});
  plan.parameter("b", {4}, false, fb::Init_Zeros);
  plan.launch("double4", {x, plan.program.parameters[0]->buffer});
  auto body = [&](zrt_group &group, uint32_t rank) {
    zrt_session_options options = in(group);
    options.check = 1;
    Running running(plan, options);
    running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 1));
    step(running);
    running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, float(rank)));
    step(running);
  };
  EXPECT_EQ(runProcesses(2, body),
            std::vector<std::string>(
                2, "check: parameter b differs between rank 0 and 1"));
}

/// The lowest rank of the first command is named by all.
TEST(Processes, NotFinite) {
  PlanBuilder plan(3);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  plan.operand(copy, x);
  plan.operand(copy, y);
  plan.output(y);
  auto body = [&](zrt_group &group, uint32_t rank) {
    zrt_session_options options = in(group);
    options.check_finite = 1;
    Running running(plan, options);
    std::vector<float> values(4, 1);
    running.set("x", ZRT_ALL_RANKS, values);
    step(running);
    if (rank)
      values[rank] = std::numeric_limits<float>::quiet_NaN();
    running.set("x", ZRT_ALL_RANKS, values);
    step(running);
  };
  EXPECT_EQ(runProcesses(3, body),
            std::vector<std::string>(
                3, "rank 1, before the first command: \"x\" (f32[4]) has nan "
                   "at [1]; 1 of its 4 elements are not finite"));
}

/// State on disk is in a file of each process, and leaves through the group.
TEST(Processes, StateOnDisk) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "zero-rt-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  PlanBuilder plan(2);
  plan.in(fb::Space_Disk);
  plan.parameter("m", {8}, true, fb::Init_Ones).role = fb::ParamRole_State;
  auto body = [&](zrt_group &group, uint32_t rank) {
    zrt_session_options options = in(group);
    options.offload_path = folder.c_str();
    Running running(plan, options);
    std::vector<float> values(4, float(rank) + 5), got(8);
    ASSERT_FALSE(running.session.writeChunk(0, rank, 0, values.data(), 16));
    ASSERT_FALSE(running.session.getParameter(0, got.data(), 32));
    if (rank == 0)
      EXPECT_EQ(got, (std::vector<float>{5, 5, 5, 5, 6, 6, 6, 6}));
  };
  EXPECT_EQ(runProcesses(2, body), std::vector<std::string>(2));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

TEST(Processes, SharedMemoryNeedsOneMachine) {
  PlanBuilder plan(1);
  ThreadHub hub(1);
  hub.oneMachine = false;
  zrt_group group = makeGroup(hub, 0);
  group.transport = "shm";
  EXPECT_EQ(sessionError(plan, in(group)),
            "the transport shm is for processes of one machine; these run on "
            "several: use mpi");
  group.transport = "pigeons";
  EXPECT_EQ(sessionError(plan, in(group)),
            "unknown transport \"pigeons\"; use shm or mpi");
}

/// The library of the transport is not beside the tests.
TEST(Processes, MpiIsLoadedWhenItIsUsed) {
  PlanBuilder plan(1);
  ThreadHub hub(1);
  zrt_group group = makeGroup(hub, 0);
  group.transport = "mpi";
  std::string text = sessionError(plan, in(group));
  EXPECT_EQ(text.rfind("the transport mpi cannot be loaded: ", 0), 0u) << text;
}

/// The kernel ends a process that makes a longer file than it may.
TEST(Processes, MemoryThatMayNotBeShared) {
  PlanBuilder plan(1);
  plan.input("x", {1 << 20});
  ThreadHub hub(1);
  zrt_group group = makeGroup(hub, 0);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = {1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string text = sessionError(plan, in(group));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(text.find(" bytes of memory, but this process may not make files "
                      "of more than 1048576 bytes; raise the limit (ulimit "
                      "-f)"),
            text.npos)
      << text;
}
