//===- SpacesTest.cpp - Tests of host memory and disk beside a GPU --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <cstdlib>
#include <filesystem>

using namespace zrt;
using namespace zrt::test;

namespace {
void copy(PlanBuilder &plan, uint32_t from, uint32_t to, uint32_t stream,
          std::vector<uint32_t> wait, int32_t signal) {
  fb::CommandT &command = plan.command(fb::Op_Copy);
  plan.operand(command, from);
  plan.operand(command, to);
  place(command, stream, std::move(wait), signal);
}

/// A folder for disk arenas.
struct Folder {
  Folder() {
    std::string form = testing::TempDir() + "zero-cuda-XXXXXX";
    path = mkdtemp(form.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

/// To the host, an update there, to disk and back, and to the device, each on a
/// stream of its own.
PlanBuilder roundTrip(uint32_t ranks, bool disk) {
  PlanBuilder plan(ranks);
  plan.streams(3, 5);
  uint32_t x = plan.input("x", {4}), z = plan.buffer("z", {4});
  plan.in(fb::Space_Host);
  uint32_t onHost = plan.buffer("on host", {4});
  uint32_t updated = plan.buffer("updated", {4});
  uint32_t back = updated;
  copy(plan, x, onHost, 1, {}, 0);
  fb::CommandT &launch = plan.launch("double4", {onHost, updated});
  launch.host = true;
  launch.writes = {1};
  place(launch, 2, {0}, 1);
  if (disk) {
    back = plan.buffer("back", {4});
    plan.in(fb::Space_Disk);
    uint32_t onDisk = plan.buffer("on disk", {4});
    copy(plan, updated, onDisk, 3, {1}, 2);
    copy(plan, onDisk, back, 3, {}, 3);
  }
  copy(plan, back, z, 1, {disk ? 3u : 1u}, 4);
  plan.output(z);
  return plan;
}
} // namespace

TEST(CudaSpaces, UpdatesOnTheHost) {
  for (uint32_t ranks : {1, 2})
    for (int graph : {0, 1}) {
      PlanBuilder plan = roundTrip(ranks, false);
      zrt_session_options options = {};
      options.graph = graph;
      expectSame(plan, 0, options);
    }
}

TEST(CudaSpaces, CopiesFromAndToDisk) {
  Folder folder;
  PlanBuilder plan = roundTrip(2, true);
  zrt_session_options options = {};
  options.offload_path = folder.path.c_str();
  expectSame(plan, 0, options);
}

TEST(CudaSpaces, ADiskNeedsAFolder) {
  PlanBuilder plan = roundTrip(1, true);
  forCuda(plan);
  EXPECT_EQ(sessionError(plan), "the program keeps 4096 bytes a rank on disk: "
                                "name a folder for them");
}

/// State on the host is set and read like that on the device.
TEST(CudaSpaces, ParametersOnTheHost) {
  PlanBuilder plan(2);
  plan.in(fb::Space_Host);
  plan.parameter("w", {5}, true);
  plan.in(fb::Space_Device);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y});
  forCuda(plan);
  Running running(plan);
  std::vector<float> values = {1, 2, 3, 4, 5}, read(5);
  ASSERT_FALSE(running.session.setParameter(0, values.data(), 20));
  ASSERT_FALSE(running.session.getParameter(0, read.data(), 20));
  EXPECT_EQ(read, values);
  float chunk[2] = {};
  ASSERT_FALSE(running.session.readChunk(0, 1, 0, chunk, 8));
  EXPECT_EQ(chunk[0], 4);
  chunk[0] = 7;
  ASSERT_FALSE(running.session.writeChunk(0, 1, 0, chunk, 4));
  ASSERT_FALSE(running.session.getParameter(0, read.data(), 20));
  EXPECT_EQ(read[3], 7);
}
