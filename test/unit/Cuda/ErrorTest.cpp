//===- ErrorTest.cpp - Tests of what fails on GPUs ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <iostream>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {
PlanBuilder simple(uint32_t ranks = 1) {
  PlanBuilder plan(ranks);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("double4", {x, y}).location = "fc1";
  plan.output(y);
  forCuda(plan);
  return plan;
}
} // namespace

TEST(CudaError, DevicesThatAreNotThere) {
  PlanBuilder plan = simple(5);
  EXPECT_EQ(sessionError(plan),
            "rank 4: device 4 does not exist: this machine has 4 CUDA devices");
  plan = simple();
  zrt_session_options options = {};
  options.device = 7;
  EXPECT_EQ(sessionError(plan, options),
            "rank 0: device 7 does not exist: this machine has 4 CUDA devices");
}

TEST(CudaError, ProgramsForNewerDevices) {
  PlanBuilder plan = simple();
  plan.program.target = "cuda:sm_100";
  EXPECT_THAT(sessionError(plan),
              AllOf(StartsWith("rank 0: the program is compiled for "
                               "cuda:sm_100, but device 0 ("),
                    HasSubstr(" is sm_90: compile it with --target "
                              "cuda:sm_90")));
}

TEST(CudaError, CodeThatIsNoPtx) {
  PlanBuilder plan = simple();
  plan.program.device_code.push_back('}');
  EXPECT_THAT(sessionError(plan),
              StartsWith("rank 0: the device code cannot be loaded: "));
}

TEST(CudaError, MemoryThatDoesNotSuffice) {
  PlanBuilder plan = simple();
  plan.program.arenas[0]->bytes = uint64_t(1) << 60;
  EXPECT_THAT(sessionError(plan),
              AllOf(StartsWith("rank 0: the device memory of rank 0 does not "
                               "fit on the device: it needs "
                               "1152921504606846976 bytes, "),
                    HasSubstr(" are free")));
}

TEST(CudaError, SearchForWhatIsNotFinite) {
  PlanBuilder plan = simple();
  zrt_session_options options = {};
  options.check_finite = 1;
  EXPECT_EQ(sessionError(plan, options),
            "the search for what is not finite is not possible on CUDA: "
            "compile the model for the host for it");
}

/// Takes two steps, the first of which has an access out of bounds, and prints
/// what they say.
static void failTwice() {
  PlanBuilder plan = simple();
  plan.program.device_kernels[0]->launches[0]->block = {1024, 1, 1};
  plan.program.device_kernels[0]->launches[0]->grid = {1 << 20, 1, 1};
  Running running(plan);
  for (int step = 0; step < 2; ++step) {
    setInputs(running, 1);
    std::cerr << running.session.step().message() << "\n";
  }
  _exit(3);
}

/// An error comes with its command; nothing works afterwards, in the whole
/// process.
TEST(CudaError, KernelsThatFail) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      failTwice(), testing::ExitedWithCode(3),
      AllOf(HasSubstr("\nrank 0, command 0 (launch double4) from fc1: "),
            HasSubstr("CUDA_ERROR_"),
            HasSubstr("an earlier step failed: rank 0, command 0 ")));
}

/// The rank that fails says so; the others end.
TEST(CudaError, HostLaunchesThatThrow) {
  PlanBuilder plan(2);
  plan.streams(1, 1);
  plan.in(fb::Space_Host);
  uint32_t x = plan.input("x", {4});
  plan.in(fb::Space_Device);
  uint32_t y = plan.input("y", {4}), z = plan.buffer("z", {4});
  fb::CommandT &launch = plan.launch("refuse_negative", {x});
  launch.host = true;
  place(launch, 1, {}, 0);
  place(plan.collective(fb::Op_AllReduce, y, z, 4, 4), 0, {0});
  forCuda(plan);
  Running running(plan);
  running.set<float>("x", 0, {1, 1, 1, 1});
  running.set<float>("x", 1, {-1, 1, 1, 1});
  running.set<float>("y", ZRT_ALL_RANKS, {1, 1, 1, 1});
  EXPECT_THAT(running.session.step().message(),
              StartsWith("rank 1, command 0 (launch refuse_negative): "));
}

namespace {
/// Takes a step of a program that communicates, with a fault in the libraries,
/// and prints what is said.
[[noreturn]] void failWith(const char *fault) {
  setenv("FAKE_CUDA_FAULT", fault, 1);
  PlanBuilder plan(2);
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {8});
  plan.collective(fb::Op_AllGather, x, y, 8, 4).location = "fc1";
  plan.output(y);
  forCuda(plan);
  std::string bytes = plan.bytes();
  Program program;
  Session session;
  Status failed = program.loadBytes(bytes.data(), bytes.size());
  if (!failed)
    failed = session.create(program);
  std::vector<float> values(4, 1);
  if (!failed)
    failed = session.setInput(0, ZRT_ALL_RANKS, values.data(), 16);
  if (!failed)
    failed = session.step();
  std::cerr << "said: " << failed.message() << "\n";
  _exit(3);
}

void expectFailure(const char *fault, const std::string &words) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(failWith(fault), testing::ExitedWithCode(3),
              testing::ContainsRegex("said: rank [01]" + words));
}
} // namespace

/// Whatever fails, one rank says it and no rank waits.
TEST(CudaError, FaultsOfTheLibraries) {
  expectFailure("ncclCommInitRankConfig:1", ": ncclCommInitRankConfig: ");
  expectFailure("ncclMemAlloc:1:memory",
                ": the device memory of rank [01] does not fit on the device");
  expectFailure("cuStreamCreateWithPriority:1",
                ": cuStreamCreateWithPriority: ");
  expectFailure("cuModuleLoadDataEx:1", ": the device code cannot be loaded");
  expectFailure("ncclAllGather:1",
                ", command 0 .all_gather. from fc1: ncclAllGather: ");
  expectFailure("ncclAllGather:1:async", ", command 0 .all_gather. from fc1: ");
}
