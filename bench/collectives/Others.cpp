//===- Others.cpp - MPI's and gloo's collectives --------------------------===//
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

#include <mpi.h>

#ifdef ZERO_BENCH_GLOO
#include <filesystem>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#endif

using namespace zrt;
using namespace zrt::bench;

namespace {
class Mpi : public Contender {
public:
  Mpi()
      : Contender("Open MPI"), from(mostBytes / sizeof(float)),
        to(mostBytes / sizeof(float)) {}

  void prepare(const Problem &made) override { problem = made; }

  void run(uint32_t times) override {
    int chunk = int(problem.chunk()), all = int(problem.elements);
    for (uint32_t time = 0; time < times; ++time)
      if (problem.op == fb::Op_AllGather)
        MPI_Allgather(from.data(), chunk, MPI_FLOAT, to.data(), chunk,
                      MPI_FLOAT, MPI_COMM_WORLD);
      else if (problem.op == fb::Op_ReduceScatter)
        MPI_Reduce_scatter_block(from.data(), to.data(), chunk, MPI_FLOAT,
                                 MPI_SUM, MPI_COMM_WORLD);
      else
        MPI_Allreduce(from.data(), to.data(), all, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
  }

  float *source() override { return from.data(); }
  float *target() override { return to.data(); }

private:
  Problem problem = {};
  std::vector<float> from, to;
};

#ifdef ZERO_BENCH_GLOO
class Gloo : public Contender {
public:
  Gloo(zrt_group &group, const std::string &folder)
      : Contender("gloo"), from(mostBytes / sizeof(float)),
        to(mostBytes / sizeof(float)),
        context(std::make_shared<gloo::rendezvous::Context>(
            int(group.processes->rank()), int(group.processes->size()))) {
    gloo::rendezvous::FileStore store(folder);
    auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
    context->connectFullMesh(store, device);
  }

  void prepare(const Problem &made) override {
    problem = made;
    // It reduces in place, and each rank's part then stands first.
    if (problem.op == fb::Op_ReduceScatter)
      scatter = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
          context, std::vector<float *>{to.data()}, int(problem.elements),
          std::vector<int>(problem.ranks, int(problem.chunk())));
  }

  void run(uint32_t times) override {
    for (uint32_t time = 0; time < times; ++time)
      if (problem.op == fb::Op_AllGather)
        gather();
      else if (problem.op == fb::Op_AllReduce)
        reduce();
      else
        scatter->run();
  }

  float *source() override {
    return problem.op == fb::Op_ReduceScatter ? to.data() : from.data();
  }
  float *target() override { return to.data(); }

private:
  void gather() {
    gloo::AllgatherOptions options(context);
    options.setInput(from.data(), problem.chunk());
    options.setOutput(to.data(), problem.elements);
    gloo::allgather(options);
  }
  void reduce() {
    gloo::AllreduceOptions options(context);
    options.setInput(from.data(), problem.elements);
    options.setOutput(to.data(), problem.elements);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(
            &gloo::sum<float>));
    gloo::allreduce(options);
  }

  Problem problem = {};
  std::vector<float> from, to;
  std::shared_ptr<gloo::rendezvous::Context> context;
  std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> scatter;
};
#endif
} // namespace

std::unique_ptr<Contender> zrt::bench::makeMpi() {
  return std::make_unique<Mpi>();
}

#ifdef ZERO_BENCH_GLOO
std::unique_ptr<Contender> zrt::bench::makeGloo(zrt_group &group) {
  namespace fs = std::filesystem;
  std::string folder;
  if (group.processes->rank() == 0) {
    folder = (fs::temp_directory_path() / "bench-gloo-XXXXXX").string();
    if (!mkdtemp(folder.data()))
      fail(ZRT_ERROR_IO, "no folder for gloo");
  }
  folder = group.processes->broadcast(folder);
  auto made = std::make_unique<Gloo>(group, folder);
  group.processes->barrier();
  if (group.processes->rank() == 0)
    fs::remove_all(folder);
  return made;
}
#else
std::unique_ptr<Contender> zrt::bench::makeGloo(zrt_group &) { return nullptr; }
#endif
