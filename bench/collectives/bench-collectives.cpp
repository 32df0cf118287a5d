//===- bench-collectives.cpp - Collectives beside MPI's and gloo's --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mpirun -np N bench-collectives PORT [ROUNDS] [MAX_BYTES]
//
// all_gather, reduce_scatter and all_reduce of one tensor of f32, 1 KiB to 64
// MiB, by threads, by processes that share memory, and by messages of MPI, in
// turn with Open MPI's own functions and gloo's in the same processes. Who is
// first changes from round to round. Prints the best time of each in bytes of
// the whole tensor a second, and how ours compare with the faster of the other
// two.
//
//===----------------------------------------------------------------------===//

#include "Contender.h"

#include "zero-rt/zero-rt.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace zrt;
using namespace zrt::bench;

static const char *nameOf(fb::Op op) {
  return op == fb::Op_AllGather       ? "all_gather"
         : op == fb::Op_ReduceScatter ? "reduce_scatter"
                                      : "all_reduce";
}

/// Fewer than that take less time than a clock can tell.
static uint32_t timesFor(uint64_t bytes) {
  return uint32_t(std::clamp<uint64_t>((8 << 20) / bytes, 1, 200));
}

/// Seconds of one run in this process.
static double secondsOf(zrt_group &group, Contender &contender,
                        uint32_t times) {
  group.processes->barrier();
  auto begin = std::chrono::steady_clock::now();
  contender.run(times);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return time.count() / times;
}

/// Every rank gives its number + 1 everywhere.
static void checkResult(Contender &contender, const Problem &problem,
                        uint32_t rank) {
  const float *got = contender.target();
  if (!got)
    return;
  float sum = float(problem.ranks * (problem.ranks + 1) / 2);
  bool gathers = problem.op == fb::Op_AllGather;
  uint64_t last = problem.targetElements() - 1;
  if (got[0] == (gathers ? 1 : sum) &&
      got[last] == (gathers ? float(problem.ranks) : sum))
    return;
  std::fprintf(stderr, "rank %u: %s of %s is wrong: %g, %g\n", rank,
               nameOf(problem.op), contender.name.c_str(), double(got[0]),
               double(got[last]));
  std::exit(1);
}

static void fillSource(Contender &contender, const Problem &problem,
                       uint32_t rank) {
  if (float *source = contender.source())
    std::fill_n(source, problem.sourceElements(), float(rank + 1));
}

/// The best seconds of each contender.
static std::vector<double>
race(zrt_group &group, std::vector<std::unique_ptr<Contender>> &contenders,
     const Problem &problem, uint32_t rounds) {
  std::vector<double> best(contenders.size(), 1e9);
  uint32_t rank = group.processes->rank();
  for (std::unique_ptr<Contender> &contender : contenders) {
    contender->prepare(problem);
    fillSource(*contender, problem, rank);
    group.processes->barrier();
    contender->run(1);
    checkResult(*contender, problem, rank);
  }
  uint32_t times = timesFor(problem.elements * sizeof(float));
  for (uint32_t round = 0; round < rounds; ++round)
    for (size_t turn = 0; turn < contenders.size(); ++turn) {
      size_t index = (turn + round) % contenders.size();
      best[index] =
          std::min(best[index], secondsOf(group, *contenders[index], times));
    }
  return best;
}

static void printRow(const std::vector<double> &best, uint64_t bytes) {
  double theirs = 1e9;
  for (size_t index = 3; index < best.size(); ++index)
    theirs = std::min(theirs, best[index]);
  std::printf("| %8llu |", static_cast<unsigned long long>(bytes));
  for (double seconds : best)
    std::printf(" %8.3f |", double(bytes) / seconds * 1e-9);
  for (size_t index = 0; index < 3; ++index)
    std::printf(" %5.2f |", theirs / best[index]);
  std::printf(" %5.2f |\n", best[3] / best[2]);
  std::fflush(stdout);
}

static void printHead(const std::vector<std::unique_ptr<Contender>> &contenders,
                      fb::Op op, uint32_t ranks) {
  std::printf("\n%s, %u ranks, GB/s; then ours to the best of the others, and "
              "zero mpi to Open MPI\n\n| bytes |",
              nameOf(op), ranks);
  for (const std::unique_ptr<Contender> &contender : contenders)
    std::printf(" %s |", contender->name.c_str());
  std::printf(" threads | shm | mpi | mpi to Open MPI |\n|---:|");
  for (size_t column = 0; column < contenders.size() + 4; ++column)
    std::printf("---:|");
  std::printf("\n");
}

static uint32_t numberIn(const char *variable) {
  const char *text = std::getenv(variable);
  return text ? uint32_t(std::atoi(text)) : 0;
}

int main(int count, char **arguments) {
  zrt_group_options options = {};
  options.rank = numberIn("OMPI_COMM_WORLD_RANK");
  options.size = numberIn("OMPI_COMM_WORLD_SIZE");
  options.address = "127.0.0.1";
  options.port = uint16_t(count > 1 ? std::atoi(arguments[1]) : 0);
  uint32_t rounds = count > 2 ? uint32_t(std::atoi(arguments[2])) : 5;
  uint64_t most =
      count > 3 ? std::strtoull(arguments[3], nullptr, 10) : mostBytes;
  zrt_group *group = nullptr;
  if (!options.size || !options.port ||
      zrt_group_create(&options, &group) != ZRT_OK) {
    std::fprintf(stderr,
                 "usage: mpirun -np N bench-collectives PORT [ROUNDS] "
                 "[MAX_BYTES]\n%s\n",
                 zrt_last_error());
    return 2;
  }
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(makeThreads(*group));
  contenders.push_back(makeTransportContender(*group, "shm"));
  contenders.push_back(makeTransportContender(*group, "mpi"));
  contenders.push_back(makeMpi());
  if (std::unique_ptr<Contender> gloo = makeGloo(*group))
    contenders.push_back(std::move(gloo));
  bool prints = options.rank == 0;
  for (fb::Op op : {fb::Op_AllGather, fb::Op_ReduceScatter, fb::Op_AllReduce}) {
    if (prints)
      printHead(contenders, op, options.size);
    for (uint64_t bytes = 1 << 10; bytes <= std::min(most, mostBytes);
         bytes *= 4) {
      std::vector<double> best =
          race(*group, contenders, {op, bytes / sizeof(float), options.size},
               rounds);
      if (prints)
        printRow(best, bytes);
    }
  }
  contenders.clear();
  zrt_group_destroy(group);
  return 0;
}
