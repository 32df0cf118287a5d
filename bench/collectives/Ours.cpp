//===- Ours.cpp - The runtime's collectives -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Contender.h.
//
//===----------------------------------------------------------------------===//

#include "Contender.h"

#include "runtime/comm/Transport.h"
#include "runtime/core/Memory.h"

#include <pthread.h>
#include <thread>

using namespace zrt;
using namespace zrt::bench;

static std::vector<uint32_t> everyone(uint32_t ranks) {
  std::vector<uint32_t> group;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    group.push_back(rank);
  return group;
}

static CollectivePiece pieceOf(const Problem &problem) {
  uint64_t chunk =
      problem.op == fb::Op_AllReduce ? problem.elements : problem.chunk();
  return {fb::DType_F32, problem.elements, chunk, {}, {}, problem.ranks};
}

/// A run is shorter than the system takes to spread new threads over cores.
static void takeCore(uint32_t rank, size_t ranks) {
  if (ranks > std::thread::hardware_concurrency())
    return;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(rank, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
}

namespace {
class Threads : public Contender {
public:
  explicit Threads(zrt_group &group)
      : Contender("threads"), processes(*group.processes) {
    if (processes.rank() == 0)
      for (uint32_t rank = 0; rank < processes.size(); ++rank)
        blocks.emplace_back(2 * mostBytes, "a rank");
  }

  void prepare(const Problem &problem) override {
    if (blocks.empty())
      return;
    CollectivePiece piece = pieceOf(problem);
    for (MemoryBlock &block : blocks) {
      piece.sources.push_back(block.data());
      piece.targets.push_back(block.data() + mostBytes);
    }
    barrier = std::make_unique<Barrier>(problem.ranks);
    collective = std::make_unique<Collective>(
        problem.op, false, std::vector<CollectivePiece>{piece}, *barrier);
    for (size_t rank = 1; rank < blocks.size(); ++rank)
      std::fill_n(reinterpret_cast<float *>(blocks[rank].data()),
                  problem.sourceElements(), float(rank + 1));
  }

  void run(uint32_t times) override {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < blocks.size(); ++rank)
      threads.emplace_back([this, rank, times] {
        takeCore(rank, blocks.size());
        for (uint32_t time = 0; time < times; ++time)
          collective->run(rank);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  float *source() override { return at(0); }
  float *target() override { return at(mostBytes); }

private:
  float *at(uint64_t offset) {
    return blocks.empty()
               ? nullptr
               : reinterpret_cast<float *>(blocks[0].data() + offset);
  }

  ProcessGroup &processes;
  std::vector<MemoryBlock> blocks;
  std::unique_ptr<Barrier> barrier;
  std::unique_ptr<Collective> collective;
};

class ByTransport : public Contender {
public:
  ByTransport(zrt_group &group, const std::string &kind)
      : Contender("zero " + kind), rank(group.processes->rank()) {
    uint32_t ranks = group.processes->size();
    program.ranks = ranks;
    program.grid = Grid({ranks});
    program.numStreams = 1;
    program.plannedSeconds = -1;
    program.arenas.push_back({fb::Space_Device, 2 * mostBytes, 64});
    command.plannedSeconds = -1;
    command.op = fb::Op_AllReduce;
    program.commands.push_back(command);
    group.transport = kind;
    transport = makeTransport(group, program);
    members = everyone(ranks);
    if (!transport->arena(rank, 0))
      own = std::make_unique<MemoryBlock>(2 * mostBytes, "a rank");
  }

  void prepare(const Problem &problem) override {
    CollectivePiece piece = pieceOf(problem);
    for (uint32_t of : members) {
      uint8_t *base = arena(of);
      piece.sources.push_back(base);
      piece.targets.push_back(base ? base + mostBytes : nullptr);
    }
    command.op = problem.op;
    collective = transport->makeCollective({command, members, 0, {piece}});
  }

  void run(uint32_t times) override {
    for (uint32_t time = 0; time < times; ++time)
      collective->run(rank);
  }

  float *source() override { return reinterpret_cast<float *>(arena(rank)); }
  float *target() override {
    return reinterpret_cast<float *>(arena(rank) + mostBytes);
  }

private:
  uint8_t *arena(uint32_t of) {
    return own && of == rank ? own->data() : transport->arena(of, 0);
  }

  uint32_t rank;
  Program program = Program();
  Command command = Command();
  std::vector<uint32_t> members;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<MemoryBlock> own;
  std::unique_ptr<CollectiveCall> collective;
};
} // namespace

std::unique_ptr<Contender> zrt::bench::makeThreads(zrt_group &group) {
  return std::make_unique<Threads>(group);
}

std::unique_ptr<Contender>
zrt::bench::makeTransportContender(zrt_group &group,
                                   const std::string &transport) {
  return std::make_unique<ByTransport>(group, transport);
}
