//===- ProcessMain.cpp - A process of a group, for tests ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Usage: mpirun -np N zero-rt-process PORT bits|late [TRANSPORT]
//
// bits: runs the programs of ProcessPlans.h that are for N ranks in a group,
// and in process 0 also with threads; fails if a bit differs. late: rank 1 does
// not come; prints what the others say.
//
//===----------------------------------------------------------------------===//

#include "ProcessPlans.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;

static uint32_t numberIn(const char *variable) {
  const char *text = std::getenv(variable);
  return text ? uint32_t(std::atoi(text)) : 0;
}

static void require(Status failed) {
  if (!failed)
    return;
  std::fprintf(stderr, "%s\n", failed.message().c_str());
  _exit(1);
}

/// Compares the outputs of all ranks with those of threads, in process 0.
static bool hasBitsOfThreads(const GridCase &one, int64_t count,
                             zrt_group *group, uint32_t rank) {
  PlanBuilder plan = collectives(one, count);
  zrt_session_options options = {};
  options.group = group;
  Running running(plan, options);
  uint32_t ranks = plan.program.ranks;
  runSteps(running, ranks, count);
  if (rank != 0) {
    for (uint32_t of = 0; of < ranks; ++of)
      outputsOf(running, of);
    return true;
  }
  Running threads(plan);
  runSteps(threads, ranks, count);
  bool same = true;
  for (uint32_t of = 0; of < ranks; ++of)
    same &= outputsOf(running, of) == outputsOf(threads, of);
  return same;
}

static int compareBits(zrt_group *group, uint32_t rank, uint32_t size) {
  int compared = 0;
  for (const GridCase &one : gridCases())
    // One message, and many with ends inside tensors.
    for (int64_t count : {4, 1036, 300000}) {
      if (collectives(one, 4).program.ranks != size ||
          (count > 2000 && one.grid.size() > 1))
        continue;
      if (!hasBitsOfThreads(one, count, group, rank)) {
        std::fprintf(stderr, "bits differ with %lld elements\n",
                     static_cast<long long>(count));
        _exit(1); // the others are not at their end
      }
      ++compared;
    }
  if (rank == 0)
    std::printf("%d programs have the bits of threads\n", compared);
  return compared ? 0 : 1;
}

static int beLate(zrt_group *group, uint32_t rank) {
  PlanBuilder plan(numberIn("OMPI_COMM_WORLD_SIZE"));
  uint32_t x = plan.input("x", {4});
  plan.collective(fb::Op_AllReduce, x, x, 4, 4).location = "fc1";
  zrt_session_options options = {};
  options.group = group;
  Running running(plan, options);
  running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 1));
  while (rank == 1 && !*zrt_group_failure(group))
    usleep(1000);
  Status failed = running.session.step();
  zrt_group_report_failure(group, failed.message().c_str());
  if (rank == 0)
    std::printf("%s\n", failed.message().c_str());
  std::fflush(stdout);
  _exit(0);
}

int main(int count, char **arguments) {
  if (count < 3)
    return 2;
  zrt_group_options options = {};
  options.rank = numberIn("OMPI_COMM_WORLD_RANK");
  options.size = numberIn("OMPI_COMM_WORLD_SIZE");
  options.address = "127.0.0.1";
  options.port = uint16_t(std::atoi(arguments[1]));
  options.transport = count > 3 ? arguments[3] : "mpi";
  bool late = std::string(arguments[2]) == "late";
  options.timeout_min_s = late ? 0.2 : 60;
  zrt_group *group = nullptr;
  require(zrt_group_create(&options, &group));
  if (late)
    return beLate(group, options.rank);
  int result = compareBits(group, options.rank, options.size);
  zrt_group_destroy(group);
  return result;
}
