//===- CostModelTest.cpp -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seconds of collectives beside measured ones, and how they move with what
// they depend on.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/CostModel.h"
#include "zero/Cost/Processor.h"

#include "gtest/gtest.h"

using namespace mlir::zero;

static Machine preset(llvm::StringRef name) {
  return llvm::cantFail(loadMachine(name));
}

// NCCL all-reduce on one node of A100 (vTrain, MIT licence, (c) its authors):
// ranks, bytes, microseconds.
TEST(CostModel, AllReduceOnA100) {
  struct Measured {
    int64_t ranks, bytes;
    double microseconds;
  };
  constexpr Measured rows[] = {
      {2, 9437184, 92.05}, {2, 101711872, 600.6}, {2, 1066401792, 5426.1},
      {4, 9437184, 120.4}, {4, 101711872, 799.4}, {4, 1066401792, 7217.9},
      {8, 9437184, 144.1}, {8, 101711872, 885.2}, {8, 1066401792, 8145.7},
  };
  CostModel cost(preset("a100-80"));
  for (const Measured &row : rows) {
    double seconds =
        cost.collective(TaskKind::AllReduce, row.bytes, cost.group(row.ranks));
    EXPECT_NEAR(seconds * 1e6 / row.microseconds, 1, 0.12)
        << row.ranks << " ranks, " << row.bytes << " bytes";
  }
}

// AutoParallel's fit to NCCL on H100: latency in microseconds and bytes per
// second of the whole tensor.
TEST(CostModel, AllGatherOnH100) {
  CostModel cost(preset("h100"));
  double algorithm[] = {537e9, 434e9, 394e9}, latency[] = {8e-6, 17e-6, 30e-6};
  for (int i : {0, 1, 2}) {
    RankGroup group = cost.group(2 << i);
    double seconds = latency[i] + 1e9 / algorithm[i];
    EXPECT_NEAR(cost.collective(TaskKind::AllGather, 1000000000, group) /
                    seconds,
                1, 0.02);
    EXPECT_NEAR(cost.collectiveLatency(TaskKind::AllGather, group), latency[i],
                6e-6);
  }
}

TEST(CostModel, GroupsLieOnNodes) {
  CostModel cost(preset("h100")); // 8 a node
  EXPECT_EQ(cost.group(4).perNode, 4);
  EXPECT_EQ(cost.group(64).perNode, 8);
  EXPECT_EQ(cost.group(16, 8).perNode, 1);
  EXPECT_EQ(cost.group(16, 4).perNode, 2);
  EXPECT_EQ(cost.group(1).perNode, 1);
}

TEST(CostModel, ANodeSharesItsNetwork) {
  CostModel cost(preset("h100"));
  double whole = cost.collective(TaskKind::AllGather, 1 << 30, cost.group(64));
  double strided =
      cost.collective(TaskKind::AllGather, 1 << 30, cost.group(8, 8));
  // One rank a node has an eighth of the node's adapters.
  EXPECT_GT(strided, 4 * whole);
}

TEST(CostModel, OneRankSendsNothing) {
  CostModel cost(preset("h100"));
  EXPECT_EQ(cost.collective(TaskKind::AllReduce, 1 << 20, {1, 1}), 0);
  EXPECT_EQ(cost.collectiveLatency(TaskKind::AllReduce, {1, 1}), 0);
}

TEST(CostModel, MoreBandwidthIsNeverSlowerAndMoreBytesNeverFaster) {
  Machine slow = preset("a100-80"), fast = slow;
  fast.intraNode.bandwidth *= 2;
  fast.interNode.bandwidth *= 2;
  CostModel a(slow), b(fast);
  for (TaskKind kind :
       {TaskKind::AllGather, TaskKind::ReduceScatter, TaskKind::AllReduce})
    for (int64_t ranks : {2, 8, 16, 64, 512})
      for (int64_t bytes = 1; bytes < (int64_t(1) << 34); bytes *= 16) {
        EXPECT_LE(b.collective(kind, bytes, b.group(ranks)),
                  a.collective(kind, bytes, a.group(ranks)));
        EXPECT_LE(a.collective(kind, bytes, a.group(ranks)),
                  a.collective(kind, 2 * bytes, a.group(ranks)));
        EXPECT_GE(a.collective(kind, bytes, a.group(ranks)),
                  a.collectiveLatency(kind, a.group(ranks)));
      }
}

static OpWork product(int64_t m, int64_t n, int64_t k, llvm::StringRef type) {
  OpWork work;
  work.cls = OpWork::Matmul;
  work.batch = 1;
  work.m = m;
  work.n = n;
  work.k = k;
  work.flops = 2.0 * m * n * k;
  work.bytes = 2.0 * (m * k + k * n + m * n);
  work.type = type;
  return work;
}

TEST(CostModel, LargeProductsAreMoreEfficient) {
  CostModel cost(preset("h100"));
  OpWork small = product(128, 256, 256, "bf16");
  OpWork large = product(16384, 8192, 8192, "bf16");
  EXPECT_LT(small.flops / cost.compute(small),
            0.2 * large.flops / cost.compute(large));
  // Never above the peak.
  EXPECT_LT(large.flops / cost.compute(large), 9.894e14);
}

TEST(CostModel, TypesHaveTheirPeaks) {
  CostModel cost(preset("h100"));
  double f32 = cost.compute(product(8192, 8192, 8192, "f32"));
  double bf16 = cost.compute(product(8192, 8192, 8192, "bf16"));
  double f8 = cost.compute(product(8192, 8192, 8192, "f8"));
  EXPECT_LT(f8, bf16);
  EXPECT_LT(bf16, f32);
  // What a machine has no unit for runs as the next wider type.
  CostModel a100(preset("a100-80"));
  EXPECT_GT(a100.compute(product(8192, 8192, 8192, "f64")), 0);
}

TEST(CostModel, KernelsAreBoundByMemory) {
  Machine machine = preset("h100");
  CostModel cost(machine);
  OpWork work;
  work.bytes = 1e9;
  work.flops = 1e6;
  EXPECT_NEAR(cost.compute(work),
              1e9 / (machine.memoryBandwidth *
                     machine.constant("kernel_bandwidth_efficiency")) +
                  machine.kernelLatency,
              1e-9);
}

TEST(CostModel, Copies) {
  CostModel cost(preset("h100"));
  EXPECT_NEAR(cost.copy(TaskKind::CopyIn, 54800000000), 1, 0.01);
  EXPECT_GT(cost.copy(TaskKind::CopyOut, 1 << 30),
            cost.copy(TaskKind::CopyIn, 1 << 30));
  // Disks write slower than they read.
  EXPECT_GT(cost.copy(TaskKind::DiskRead, 1 << 30),
            cost.copy(TaskKind::CopyIn, 1 << 30));
  EXPECT_GT(cost.copy(TaskKind::DiskWrite, 1 << 30),
            cost.copy(TaskKind::DiskRead, 1 << 30));
  EXPECT_EQ(cost.copy(TaskKind::DiskRead, 0),
            cost.copyLatency(TaskKind::DiskRead));
  EXPECT_EQ(cost.copy(TaskKind::AllGather, 1 << 30), 0);
}

/// Adam of a mixed-precision step: master, gradient and two moments are read,
/// master, moments and the 2-byte parameter written.
static OpWork hostAdam(double elements) {
  OpWork work;
  work.bytes = 30 * elements;
  work.flops = 14 * elements;
  work.transcendentals = 2 * elements;
  return work;
}

// CPU-Adam on a DGX-2 that one rank has alone (arXiv 2101.06840, table 4):
// billions of parameters, seconds.
TEST(CostModel, HostUpdatesAreCpuAdams) {
  Machine machine = preset("v100-32");
  machine.hostBandwidth *= machine.ranksPerNode;
  machine.hostFlops *= machine.ranksPerNode;
  CostModel cost(machine);
  constexpr double measured[][2] = {
      {1, 0.22}, {2, 0.51}, {4, 1.03}, {8, 2.41}, {10, 2.57}};
  for (auto [billions, seconds] : measured)
    EXPECT_NEAR(cost.hostCompute(hostAdam(billions * 1e9)) / seconds, 1, 0.18)
        << billions << " billion";
}

TEST(CostModel, AHostOfWhichNothingIsKnownHasTheBandwidthOfItsLink) {
  Machine machine = preset("h100");
  machine.hostBandwidth = machine.hostFlops = 0;
  OpWork work;
  work.bytes = 1e9;
  double efficiency = machine.constant("host_bandwidth_efficiency");
  double latency = machine.constant("host_latency");
  EXPECT_NEAR(CostModel(machine).hostCompute(work),
              1e9 / (machine.hostToDevice.bandwidth * efficiency) + latency,
              1e-9);
  machine.hostToDevice.bandwidth = 0;
  EXPECT_NEAR(CostModel(machine).hostCompute(work),
              1e9 / (machine.memoryBandwidth * efficiency) + latency, 1e-9);
}

TEST(CostModel, HostArithmeticBoundsWhatMovesLittle) {
  CostModel cost(preset("h100"));
  OpWork work;
  work.flops = 1e12;
  double arithmetic = cost.hostCompute(work);
  EXPECT_GT(arithmetic, 1e12 / cost.getMachine().hostFlops);
  work.transcendentals = 1e11;
  EXPECT_GT(cost.hostCompute(work), 2 * arithmetic);
}

TEST(CostModel, RingBytes) {
  EXPECT_EQ(ringBytes(TaskKind::AllGather, 800, 8), 700);
  EXPECT_EQ(ringBytes(TaskKind::ReduceScatter, 800, 8), 700);
  EXPECT_EQ(ringBytes(TaskKind::AllReduce, 800, 8), 1400);
  EXPECT_EQ(ringBytes(TaskKind::Compute, 800, 8), 0);
}

// Where the device is the host's processor, all ranks of a node share its
// cores.
TEST(CostModel, TheRanksOfANodeShareItsProcessor) {
  Machine machine = preset("this-cpu");
  EXPECT_EQ(machine.constant("processor_cores"), 2);
  EXPECT_DOUBLE_EQ(processorSeconds(machine, 1, 3), 1.5);
  EXPECT_DOUBLE_EQ(processorSeconds(machine, 4, 3), 6);
  machine.ranksPerNode = 2; // more ranks are on more nodes
  EXPECT_DOUBLE_EQ(processorSeconds(machine, 4, 3), 3);
  machine.constants["processor_cores"] = 0;
  EXPECT_EQ(processorSeconds(machine, 4, 3), 0);
  EXPECT_EQ(processorSeconds(preset("h100"), 8, 3), 0);
  for (TaskKind kind :
       {TaskKind::Compute, TaskKind::AllGather, TaskKind::ReduceScatter,
        TaskKind::AllReduce, TaskKind::CopyIn, TaskKind::CopyOut,
        TaskKind::HostCompute})
    EXPECT_TRUE(usesProcessor(kind));
  EXPECT_FALSE(usesProcessor(TaskKind::DiskRead));
  EXPECT_FALSE(usesProcessor(TaskKind::DiskWrite));
}
