//===- ProgramDeviceTest.cpp - Tests of tables of device code -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program whose launches a GPU cannot do is refused when it is loaded.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

using namespace zrt;
using namespace zrt::test;

namespace {
const std::string code = R"(.version 7.8
.target sm_90
.visible .entry add_4(
.visible .entry add_4_2(
)";

/// A kernel of two launches on buffers x and y, with scratch memory.
PlanBuilder onDevice() {
  PlanBuilder plan(1);
  plan.program.target = "cuda:sm_90";
  uint32_t x = plan.input("x", {4}), y = plan.buffer("y", {4});
  plan.launch("add_4", {x, y});
  plan.output(y);
  plan.program.kernels.clear();
  plan.program.device_code.assign(code.begin(), code.end());
  auto kernel = std::make_unique<fb::DeviceKernelT>();
  kernel->name = "add_4";
  kernel->scratch_bytes = 16;
  for (auto [entry, from, to] :
       {std::tuple("add_4", 0, -1), {"add_4_2", -1, 1}}) {
    auto launch = std::make_unique<fb::DeviceLaunchT>();
    launch->entry = entry;
    launch->grid = {1, 1, 1};
    launch->block = {128, 1, 1};
    launch->arguments = {from, to};
    kernel->launches.push_back(std::move(launch));
  }
  plan.program.device_kernels.push_back(std::move(kernel));
  return plan;
}

template <typename Change>
std::string errorAfter(Change change) {
  PlanBuilder plan = onDevice();
  change(plan.program);
  return loadError(plan);
}

/// The error after a change of the second launch.
template <typename Change>
std::string launchError(Change change) {
  return errorAfter([&](fb::ProgramT &program) {
    change(*program.device_kernels[0]->launches[1]);
  });
}

const std::string second = "device kernel add_4, launch 1: ";
} // namespace

TEST(ProgramDevice, IsAccepted) {
  EXPECT_EQ(errorAfter([](fb::ProgramT &) {}), "");
  EXPECT_EQ(launchError([](fb::DeviceLaunchT &launch) {
              launch.grid = {0x7FFFFFFF, 65535, 65535};
              launch.block = {1024, 1, 1};
              launch.shared_bytes = 227 << 10;
            }),
            "");
}

TEST(ProgramDevice, CodeIsForADevice) {
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &program) { program.target = "host:znver4"; }),
      "the program has device code, but its target is host:znver4");
}

TEST(ProgramDevice, KernelsExist) {
  EXPECT_EQ(errorAfter([](fb::ProgramT &program) {
              program.commands[0]->callee = "sub_4";
            }),
            "command 0 (launch sub_4): the program has no device kernel of "
            "this name");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &program) {
        program.device_kernels.push_back(
            std::make_unique<fb::DeviceKernelT>(*program.device_kernels[0]));
      }),
      "device kernel add_4: is there twice");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &program) { program.commands[0]->split = 4; }),
      "command 0 (launch add_4): runs in parts, which only the host "
      "does");
}

TEST(ProgramDevice, FunctionsAreInTheCode) {
  EXPECT_EQ(
      launchError([](fb::DeviceLaunchT &launch) { launch.entry = "add_"; }),
      second + "the device code has no function 'add_'");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &program) { program.device_code.clear(); }),
      "device kernel add_4, launch 0: the device code has no function "
      "'add_4'");
}

TEST(ProgramDevice, SizesAreCudas) {
  EXPECT_EQ(launchError([](fb::DeviceLaunchT &launch) { launch.grid = {1}; }),
            second + "its grid has 1 dimensions instead of 3");
  EXPECT_EQ(launchError([](fb::DeviceLaunchT &launch) {
              launch.grid = {1, 65536, 1};
            }),
            second + "its grid is 65536 in dimension 1; 1 to 65535 are "
                     "possible");
  EXPECT_EQ(launchError([](fb::DeviceLaunchT &launch) {
              launch.block = {1, 1, 65};
            }),
            second + "its block is 65 in dimension 2; 1 to 64 are possible");
  EXPECT_EQ(launchError([](fb::DeviceLaunchT &launch) {
              launch.block = {0, 1, 1};
            }),
            second + "its block is 0 in dimension 0; 1 to 1024 are possible");
  EXPECT_EQ(launchError([](fb::DeviceLaunchT &launch) {
              launch.block = {1024, 2, 1};
            }),
            second + "its block has 2048 threads; 1024 are possible");
  EXPECT_EQ(launchError([](fb::DeviceLaunchT &launch) {
              launch.shared_bytes = 1 << 20;
            }),
            second + "a block needs 1048576 bytes of shared memory; 232448 are "
                     "possible");
}

TEST(ProgramDevice, ArgumentsExist) {
  EXPECT_EQ(
      launchError([](fb::DeviceLaunchT &launch) { launch.arguments = {-2}; }),
      second + "argument -2 is neither an operand nor -1");
  EXPECT_EQ(
      launchError([](fb::DeviceLaunchT &launch) { launch.arguments = {2}; }),
      "command 0 (launch add_4): function add_4_2 takes operand 2 of 2");
  EXPECT_EQ(launchError([](fb::DeviceLaunchT &launch) {
              launch.arguments.assign(4096, 0);
            }),
            second + "it takes 4096 arguments; 4095 are possible");
  EXPECT_EQ(errorAfter([](fb::ProgramT &program) {
              program.device_kernels[0]->scratch_bytes = 0;
            }),
            "device kernel add_4, launch 0: it takes scratch memory, of which "
            "the kernel has none");
  EXPECT_EQ(errorAfter([](fb::ProgramT &program) {
              program.device_kernels[0]->scratch_bytes = ~uint64_t(0);
            }),
            "device kernel add_4: needs 18446744073709551615 bytes of scratch "
            "memory; 1099511627776 are possible");
}
