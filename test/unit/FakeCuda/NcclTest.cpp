//===- NcclTest.cpp - Collectives of the fake NCCL ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/Fixture.h"

#include "runtime/core/NarrowFloat.h"

#include <functional>
#include <nccl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace testing;

using NcclTest = FakeCudaTest;

#define NCCL(CALL) ASSERT_EQ(CALL, ncclSuccess)

namespace {
/// What a rank has at hand.
struct Rank {
  int rank = 0, size = 0;
  ncclComm_t comm = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0; ///< 256 bytes, then 256 for results

  void *send() const { return reinterpret_cast<void *>(memory); }
  void *receive() const { return reinterpret_cast<void *>(memory + 256); }
  std::vector<float> result(size_t count) const {
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    return read(memory + 256, count);
  }
};
} // namespace

static void beRank(const ncclUniqueId &id, int rank, int size,
                   const std::function<void(Rank &)> &body) {
  useDevice(rank);
  Rank self;
  self.rank = rank;
  self.size = size;
  NCCL(ncclCommInitRank(&self.comm, size, id, rank));
  self.stream = makeStream();
  self.memory = allocate(512);
  body(self);
  if (self.comm)
    NCCL(ncclCommDestroy(self.comm));
}

/// Ranks as threads.
static void onRanks(int size, const std::function<void(Rank &)> &body) {
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] { beRank(id, rank, size, body); });
  for (std::thread &thread : threads)
    thread.join();
}

static ncclResult_t waitFor(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress)
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

/// Element i of rank r is 10 r + i.
static void fill(const Rank &self, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(10 * self.rank + i);
  write(self.memory, values);
}

TEST_F(NcclTest, gathers) {
  onRanks(3, [](Rank &self) {
    fill(self, 2);
    NCCL(ncclAllGather(self.send(), self.receive(), 2, ncclFloat32, self.comm,
                       self.stream));
    EXPECT_EQ(self.result(6), (std::vector<float>{0, 1, 10, 11, 20, 21}));
  });
}

TEST_F(NcclTest, gathersInPlace) {
  onRanks(2, [](Rank &self) {
    write(self.memory, {-1, -1});
    write(self.memory + 4 * self.rank, {float(self.rank)});
    NCCL(ncclAllGather(reinterpret_cast<void *>(self.memory + 4 * self.rank),
                       self.send(), 1, ncclFloat32, self.comm, self.stream));
    CUDA(cuStreamSynchronize(self.stream));
    EXPECT_EQ(read(self.memory, 2), (std::vector<float>{0, 1}));
  });
}

TEST_F(NcclTest, reduces) {
  onRanks(4, [](Rank &self) {
    fill(self, 4);
    NCCL(ncclAllReduce(self.send(), self.receive(), 4, ncclFloat32, ncclSum,
                       self.comm, self.stream));
    EXPECT_EQ(self.result(4), (std::vector<float>{60, 64, 68, 72}));
    NCCL(ncclAllReduce(self.send(), self.receive(), 4, ncclFloat32, ncclAvg,
                       self.comm, self.stream));
    EXPECT_EQ(self.result(4), (std::vector<float>{15, 16, 17, 18}));
    NCCL(ncclAllReduce(self.send(), self.receive(), 4, ncclFloat32, ncclMax,
                       self.comm, self.stream));
    EXPECT_EQ(self.result(1)[0], 30);
  });
}

TEST_F(NcclTest, scatters) {
  onRanks(2, [](Rank &self) {
    fill(self, 4);
    NCCL(ncclReduceScatter(self.send(), self.receive(), 2, ncclFloat32, ncclSum,
                           self.comm, self.stream));
    float first = self.rank ? 14 : 10;
    EXPECT_EQ(self.result(2), (std::vector<float>{first, first + 2}));
  });
}

TEST_F(NcclTest, hasARoot) {
  onRanks(3, [](Rank &self) {
    fill(self, 2);
    CUDA(cuMemsetD8(self.memory + 256, 0, 16));
    NCCL(ncclReduce(self.send(), self.receive(), 2, ncclFloat32, ncclSum, 1,
                    self.comm, self.stream));
    EXPECT_EQ(self.result(2), self.rank == 1 ? (std::vector<float>{30, 33})
                                             : (std::vector<float>{0, 0}));
    NCCL(ncclBroadcast(self.send(), self.receive(), 2, ncclFloat32, 2,
                       self.comm, self.stream));
    EXPECT_EQ(self.result(2), (std::vector<float>{20, 21}));
  });
}

TEST_F(NcclTest, addsNarrowTypes) {
  onRanks(2, [](Rank &self) {
    uint16_t values[2] = {zrt::BFloat16::round(1.5f + self.rank).bits,
                          zrt::Half::round(0.25f + self.rank).bits};
    uint16_t sums[2] = {};
    CUDA(cuMemcpyHtoD(self.memory, values, sizeof values));
    NCCL(ncclAllReduce(self.send(), self.receive(), 1, ncclBfloat16, ncclSum,
                       self.comm, self.stream));
    NCCL(ncclAllReduce(reinterpret_cast<void *>(self.memory + 2),
                       reinterpret_cast<void *>(self.memory + 258), 1,
                       ncclFloat16, ncclAvg, self.comm, self.stream));
    CUDA(cuStreamSynchronize(self.stream));
    CUDA(cuMemcpyDtoH(sums, self.memory + 256, sizeof sums));
    EXPECT_EQ(zrt::BFloat16{sums[0]}.widen(), 4);
    EXPECT_EQ(zrt::Half{sums[1]}.widen(), 0.75);
  });
}

TEST_F(NcclTest, addsIntegers) {
  onRanks(2, [](Rank &self) {
    int64_t value = (int64_t(1) << 40) + self.rank, sum = 0;
    CUDA(cuMemcpyHtoD(self.memory, &value, 8));
    NCCL(ncclAllReduce(self.send(), self.receive(), 1, ncclInt64, ncclSum,
                       self.comm, self.stream));
    CUDA(cuStreamSynchronize(self.stream));
    CUDA(cuMemcpyDtoH(&sum, self.memory + 256, 8));
    EXPECT_EQ(sum, (int64_t(2) << 40) + 1);
  });
}

TEST_F(NcclTest, startsAGroupTogether) {
  onRanks(2, [](Rank &self) {
    fill(self, 4);
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(self.send(), self.receive(), 2, ncclFloat32, ncclSum,
                       self.comm, self.stream));
    NCCL(ncclAllGather(reinterpret_cast<void *>(self.memory + 8),
                       reinterpret_cast<void *>(self.memory + 264), 1,
                       ncclFloat32, self.comm, self.stream));
    CUDA(cuStreamQuery(self.stream)); // nothing is there yet
    NCCL(ncclGroupEnd());
    EXPECT_EQ(self.result(4), (std::vector<float>{10, 12, 2, 12}));
  });
}

TEST_F(NcclTest, splits) {
  onRanks(4, [](Rank &self) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t half = nullptr;
    // Ranks 0, 2 and 1, 3, the higher first.
    ncclResult_t result =
        ncclCommSplit(self.comm, self.rank % 2, -self.rank, &half, &config);
    ASSERT_TRUE(result == ncclSuccess || result == ncclInProgress);
    NCCL(waitFor(self.comm));
    NCCL(waitFor(half));
    int size = 0, rank = 0;
    NCCL(ncclCommCount(half, &size));
    NCCL(ncclCommUserRank(half, &rank));
    EXPECT_EQ(size, 2);
    EXPECT_EQ(rank, self.rank < 2 ? 1 : 0);
    fill(self, 1);
    NCCL(ncclAllGather(self.send(), self.receive(), 1, ncclFloat32, half,
                       self.stream));
    float odd = static_cast<float>(self.rank % 2 * 10);
    EXPECT_EQ(self.result(2), (std::vector<float>{20 + odd, odd}));
    result = ncclCommFinalize(half);
    ASSERT_TRUE(result == ncclSuccess || result == ncclInProgress);
    NCCL(waitFor(half));
    NCCL(ncclCommDestroy(half));
  });
}

TEST_F(NcclTest, runsInAGraph) {
  onRanks(2, [](Rank &self) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUDA(cuStreamBeginCapture(self.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    NCCL(ncclAllReduce(self.send(), self.receive(), 1, ncclFloat32, ncclSum,
                       self.comm, self.stream));
    CUDA(cuStreamEndCapture(self.stream, &graph));
    CUDA(cuGraphInstantiate(&exec, graph, 0));
    for (float value : {1.0f, 2.0f}) {
      write(self.memory, {value});
      CUDA(cuGraphLaunch(exec, self.stream));
      EXPECT_EQ(self.result(1)[0], 2 * value);
    }
    CUDA(cuGraphExecDestroy(exec));
    CUDA(cuGraphDestroy(graph));
  });
}

TEST_F(NcclTest, joinsProcesses) {
  // The identifier goes through a pipe, as through a launcher's network.
  EXPECT_FINE("", [] {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    pid_t child = fork();
    int rank = child ? 0 : 1;
    ncclUniqueId id;
    if (rank == 0) {
      NCCL(ncclGetUniqueId(&id));
      ASSERT_EQ(::write(ends[1], &id, sizeof id), ssize_t(sizeof id));
    } else {
      ASSERT_EQ(::read(ends[0], &id, sizeof id), ssize_t(sizeof id));
    }
    beRank(id, rank, 2, [](Rank &self) {
      fill(self, 2);
      NCCL(ncclAllGather(self.send(), self.receive(), 2, ncclFloat32, self.comm,
                         self.stream));
      EXPECT_EQ(self.result(4), (std::vector<float>{0, 1, 10, 11}));
    });
    int status = 0;
    if (rank == 1)
      std::exit(HasFailure() ? 2 : 0);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

TEST_F(NcclTest, findsOtherOperations) {
  EXPECT_FAULT(
      "operation 1 of communicator 1 differs: rank 0 calls "
      "ncclAllGather of 1 float32, rank 1 ncclAllReduce of 1 float32, "
      "sum",
      [] {
        onRanks(2, [](Rank &self) {
          if (self.rank == 0)
            NCCL(ncclAllGather(self.send(), self.receive(), 1, ncclFloat32,
                               self.comm, self.stream));
          else
            NCCL(ncclAllReduce(self.send(), self.receive(), 1, ncclFloat32,
                               ncclSum, self.comm, self.stream));
          EXPECT_EQ(cuStreamSynchronize(self.stream), CUDA_ERROR_LAUNCH_FAILED);
        });
      });
}

TEST_F(NcclTest, findsOtherCounts) {
  EXPECT_FAULT(
      "differs: rank 0 calls ncclReduceScatter of 1 float32, avg, "
      "rank 1 ncclReduceScatter of 2 float32, avg",
      [] {
        onRanks(2, [](Rank &self) {
          NCCL(ncclReduceScatter(self.send(), self.receive(), 1 + self.rank,
                                 ncclFloat32, ncclAvg, self.comm, self.stream));
          EXPECT_EQ(cuStreamSynchronize(self.stream), CUDA_ERROR_LAUNCH_FAILED);
        });
      });
}

TEST_F(NcclTest, racesWithOtherStreams) {
  EXPECT_FAULT("race: it", [] {
    onRanks(2, [](Rank &self) {
      CUstream other = makeStream();
      NCCL(ncclAllGather(self.send(), self.receive(), 1, ncclFloat32, self.comm,
                         self.stream));
      CUDA(cuMemsetD8Async(self.memory + 260, 0, 4, other));
      EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    });
  });
}

TEST_F(NcclTest, needsMemoryOfItsDevice) {
  EXPECT_FAULT("writes memory that it may not: .*beyond it", [] {
    onRanks(2, [](Rank &self) {
      NCCL(ncclAllGather(self.send(), self.receive(), 64, ncclFloat32,
                         self.comm, self.stream));
      EXPECT_EQ(cuStreamSynchronize(self.stream), CUDA_ERROR_LAUNCH_FAILED);
    });
  });
}

TEST_F(NcclTest, refusesWrongCalls) {
  EXPECT_FINE(
      "the buffers overlap, but not in place(.|\n)*"
      "no multiple of the element's size(.|\n)*"
      "there is no rank 7(.|\n)*no such communicator",
      [] {
        onRanks(1, [](Rank &self) {
          EXPECT_EQ(ncclAllReduce(self.send(),
                                  reinterpret_cast<void *>(self.memory + 4), 2,
                                  ncclFloat32, ncclSum, self.comm, self.stream),
                    ncclInvalidArgument);
          EXPECT_EQ(ncclAllReduce(reinterpret_cast<void *>(self.memory + 2),
                                  self.receive(), 2, ncclFloat32, ncclSum,
                                  self.comm, self.stream),
                    ncclInvalidArgument);
          EXPECT_EQ(ncclBroadcast(self.send(), self.receive(), 1, ncclFloat32,
                                  7, self.comm, self.stream),
                    ncclInvalidArgument);
          EXPECT_EQ(ncclCommDestroy(nullptr), ncclInvalidArgument);
        });
      });
}

TEST_F(NcclTest, needsAllRanks) {
  EXPECT_FINE("the communicator is not ready", [] {
    useDevice(0);
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
    ncclResult_t state = ncclSuccess;
    NCCL(ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(state, ncclInProgress);
    EXPECT_EQ(ncclAllGather(nullptr, nullptr, 1, ncclFloat32, comm, nullptr),
              ncclInvalidUsage);
    NCCL(ncclCommAbort(comm));
  });
}

TEST_F(NcclTest, hangsUntilItIsAborted) {
  EXPECT_FINE("", [] {
    onRanks(2, [](Rank &self) {
      if (self.rank == 1)
        return;
      NCCL(ncclAllGather(self.send(), self.receive(), 1, ncclFloat32, self.comm,
                         self.stream));
      usleep(20000);
      EXPECT_EQ(cuStreamQuery(self.stream), CUDA_ERROR_NOT_READY);
      NCCL(ncclCommAbort(self.comm));
      self.comm = nullptr;
      CUDA(cuStreamSynchronize(self.stream));
    });
  });
}

TEST_F(NcclTest, failsWhereItIsTold) {
  auto gatherTwice = [](Rank &self) {
    NCCL(ncclAllGather(self.send(), self.receive(), 1, ncclFloat32, self.comm,
                       self.stream));
    CUDA(cuStreamSynchronize(self.stream));
    ncclResult_t result = ncclAllGather(self.send(), self.receive(), 1,
                                        ncclFloat32, self.comm, self.stream);
    ncclResult_t state = ncclSuccess;
    NCCL(ncclCommGetAsyncError(self.comm, &state));
    fprintf(stderr, "call %d, later %d\n", result, state);
    NCCL(ncclCommAbort(self.comm));
    self.comm = nullptr;
  };
  auto onOne = [&] { onRanks(1, gatherTwice); };
  EXPECT_FINE("call 2, later 0", onOne, {"FAKE_CUDA_FAULT", "ncclAllGather:2"});
  EXPECT_FINE("call 0, later 6", onOne,
              {"FAKE_CUDA_FAULT", "ncclAllGather:2:async"});
}

TEST_F(NcclTest, leaks) {
  EXPECT_FAULT("1 communicator",
               [] { onRanks(1, [](Rank &self) { self.comm = nullptr; }); },
               {"FAKE_CUDA_LEAKS", "1"});
}
