//===- StepFunctionTest.cpp - From step functions to graphs ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ops have to do, and what a step looks like to the scheduler.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/StepFunction.h"
#include "zero/Schedule/OpWork.h"

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::zero;
using ::testing::ElementsAre;

namespace {
class StepFunctionTest : public ::testing::Test {
protected:
  StepFunctionTest() : cost(llvm::cantFail(loadMachine("h100"))) {
    context.loadDialect<train::TrainDialect, ZeroDialect, arith::ArithDialect,
                        func::FuncDialect, linalg::LinalgDialect,
                        tensor::TensorDialect, shard::ShardDialect>();
  }

  /// Parses a module of one function and returns the function.
  func::FuncOp parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(module);
    return *module->getOps<func::FuncOp>().begin();
  }

  /// The work of the first op of a function with these arguments.
  OpWork work(const std::string &arguments, const std::string &op) {
    func::FuncOp func =
        parse("func.func @f(" + arguments + ") {\n" + op + "\nreturn }");
    return getOpWork(&func.getBody().front().front());
  }

  StepFunction build(const std::string &text) {
    func::FuncOp func = parse(text);
    SymbolTable symbols(*module);
    return *buildStepGraph(func, symbols, cost);
  }

  /// Labels of the tasks, in order.
  static std::vector<std::string> labels(const StepFunction &step) {
    std::vector<std::string> result;
    for (const StepTask &task : step.graph.tasks)
      result.push_back(task.label);
    return result;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  CostModel cost;
};
} // namespace

TEST_F(StepFunctionTest, ProductsKnowTheirSizes) {
  OpWork w = work("%a: tensor<3x8x4xbf16>, %b: tensor<5x8xbf16>",
                  "%c = train.matmul %a, %b {transpose_a, transpose_b} : "
                  "(tensor<3x8x4xbf16>, tensor<5x8xbf16>) -> "
                  "tensor<3x4x5xbf16>");
  EXPECT_EQ(w.cls, OpWork::Matmul);
  EXPECT_EQ(w.batch, 3);
  EXPECT_EQ(w.m, 4);
  EXPECT_EQ(w.n, 5);
  EXPECT_EQ(w.k, 8);
  EXPECT_EQ(w.flops, 2 * 3 * 4 * 5 * 8);
  EXPECT_EQ(w.bytes, 2 * (96 + 40 + 60));
  EXPECT_EQ(w.type, "bf16");
}

TEST_F(StepFunctionTest, ConvolutionsAreProductsOfWindows) {
  OpWork w = work("%x: tensor<2x4x6x6xf32>, %w: tensor<8x2x3x3xf32>",
                  "%y = train.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] "
                  "dilations [1, 1] group 2 : (tensor<2x4x6x6xf32>, "
                  "tensor<8x2x3x3xf32>) -> tensor<2x8x6x6xf32>");
  EXPECT_EQ(w.batch, 2);
  EXPECT_EQ(w.m, 2 * 36);
  EXPECT_EQ(w.n, 4);
  EXPECT_EQ(w.k, 2 * 9);
}

/// A pair of a query and a key that it sees is one exponential, and as many
/// multiply-adds as both have elements.
TEST_F(StepFunctionTest, AttentionCountsThePairsThatSeeEachOther) {
  std::string arguments = "%q: tensor<2x4x6x8xbf16>, %k: tensor<2x2x3x8xbf16>, "
                          "%v: tensor<2x2x3x16xbf16>, %l: tensor<2x4x6xf32>, "
                          "%y: tensor<2x4x6x16xbf16>",
              types = " : (tensor<2x4x6x8xbf16>, tensor<2x2x3x8xbf16>, "
                      "tensor<2x2x3x16xbf16>) -> (tensor<2x4x6x16xbf16>, "
                      "tensor<2x4x6xf32>)";
  std::string op = "%r, %s = train.attention %q, %k, %v scale 1.0";
  OpWork all = work(arguments, op + types);
  EXPECT_EQ(all.cls, OpWork::Matmul);
  EXPECT_EQ(all.batch, 8);
  EXPECT_EQ(all.m, 6);
  EXPECT_EQ(all.n, 3);
  EXPECT_EQ(all.k, 8 + 16);
  EXPECT_EQ(all.transcendentals, 8 * 6 * 3);
  EXPECT_EQ(all.flops, 2.0 * 8 * 6 * 3 * 24);
  EXPECT_EQ(all.bytes, 2 * (384 + 96 + 192 + 768) + 4 * 48);
  // Rows of 1, 2 and 3 keys, then whole ones.
  OpWork causal = work(arguments, op + " causal" + types);
  EXPECT_EQ(causal.transcendentals, 8 * (1 + 2 + 3 + 3 * 3));
  EXPECT_EQ(causal.flops, causal.transcendentals * 2 * 24);
  OpWork grad =
      work(arguments, "%a, %b, %c = train.attention_grad %y, %q, %k, %v, %y, "
                      "%l scale 1.0 causal : (tensor<2x4x6x16xbf16>, "
                      "tensor<2x4x6x8xbf16>, tensor<2x2x3x8xbf16>, "
                      "tensor<2x2x3x16xbf16>, tensor<2x4x6x16xbf16>, "
                      "tensor<2x4x6xf32>) -> (tensor<2x4x6x8xbf16>, "
                      "tensor<2x2x3x8xbf16>, tensor<2x2x3x16xbf16>)");
  EXPECT_EQ(grad.transcendentals, causal.transcendentals);
  EXPECT_EQ(grad.flops, causal.transcendentals * 2 * (3 * 8 + 2 * 16));
}

TEST_F(StepFunctionTest, ElementwiseOpsCountTheirElements) {
  OpWork w =
      work("%x: tensor<8x10xf32>", "%y = train.exp %x : tensor<8x10xf32>");
  EXPECT_EQ(w.cls, OpWork::Kernel);
  EXPECT_EQ(w.flops, 80);
  EXPECT_EQ(w.transcendentals, 80);
  EXPECT_EQ(w.bytes, 640);
}

TEST_F(StepFunctionTest, LookupsReadTheirRowsOnly) {
  OpWork w = work("%t: tensor<1000x16xf32>, %i: tensor<4xi64>",
                  "%y = train.gather %t, %i axis 0 : (tensor<1000x16xf32>, "
                  "tensor<4xi64>) -> tensor<4x16xf32>");
  EXPECT_EQ(w.bytes, 4 * 8 + 2 * 4 * 16 * 4);
}

TEST_F(StepFunctionTest, LinalgCountsItsLoops) {
  OpWork w = work("%a: tensor<4x8xf32>, %b: tensor<8x5xf32>, "
                  "%c: tensor<4x5xf32>",
                  "%d = linalg.matmul ins(%a, %b : tensor<4x8xf32>, "
                  "tensor<8x5xf32>) outs(%c : tensor<4x5xf32>) -> "
                  "tensor<4x5xf32>");
  EXPECT_EQ(w.cls, OpWork::Matmul);
  EXPECT_EQ(w.m, 4);
  EXPECT_EQ(w.n, 5);
  EXPECT_EQ(w.k, 8);
  EXPECT_EQ(w.flops, 2 * 4 * 5 * 8);
}

TEST_F(StepFunctionTest, ElementwiseOpsJoinTheirOnlyUser) {
  StepFunction step = build(R"(
    func.func @f(%x: tensor<64xf32>) -> (tensor<f32>, tensor<64xf32>) {
      %a = train.neg %x : tensor<64xf32>
      %b = train.exp %a : tensor<64xf32>
      %s = train.reduce_sum %b axes [0] : (tensor<64xf32>) -> tensor<f32>
      %c = train.neg %x : tensor<64xf32>
      return %s, %c : tensor<f32>, tensor<64xf32>
    })");
  EXPECT_THAT(labels(step),
              ElementsAre("train.reduce_sum", "train.neg", "return"));
  EXPECT_EQ(step.ops[0].size(), 3u);
  // The input, the sum and the second negation: nothing inside of the kernel.
  int64_t bytes = 0;
  for (const StepBuffer &buffer : step.graph.buffers)
    bytes += buffer.bytes;
  EXPECT_EQ(bytes, 256 + 64 + 256);
}

static constexpr const char *kStep = R"(
  module attributes {zero.stage = 3 : i64} {
  shard.grid @hsdp(shape = 2x4)
  zero.param @w : !zero.sharded<8x16xf32, @hsdp, axes = [1], dim = 0> unit("l")
  func.func @f(%x: tensor<16x8xf32>, %lr: tensor<f32>) {
    %s = zero.read @w : !zero.sharded<8x16xf32, @hsdp, axes = [1], dim = 0>
    %w = zero.all_gather %s on @hsdp axes [1]
      : (!zero.sharded<8x16xf32, @hsdp, axes = [1], dim = 0>) -> tensor<8x16xf32>
    %y = train.matmul %x, %w : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    zero.release %w : tensor<8x16xf32>
    %v = zero.all_gather %s on @hsdp axes [1]
      : (!zero.sharded<8x16xf32, @hsdp, axes = [1], dim = 0>) -> tensor<8x16xf32>
    %d = train.matmul %v, %y : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    zero.release %v : tensor<8x16xf32>
    %r = zero.reduce_scatter %d average on @hsdp axes [1] : (tensor<8x16xf32>) -> tensor<2x16xf32>
    %g = zero.all_reduce %r average on @hsdp axes [0] : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %l = zero.local %s on @hsdp axes [1]
      : !zero.sharded<8x16xf32, @hsdp, axes = [1], dim = 0> -> tensor<2x16xf32>
    %n = train.sgd %l, %g, %lr : (tensor<2x16xf32>, tensor<2x16xf32>, tensor<f32>) -> tensor<2x16xf32>
    zero.assign @w, %n : tensor<2x16xf32>
    return
  }
  })";

TEST_F(StepFunctionTest, CollectivesHaveChannelsByKindAndAxes) {
  StepFunction step = build(kStep);
  EXPECT_THAT(
      step.graph.channels,
      ElementsAre("compute", "all_gather", "reduce_scatter", "all_reduce.0"));
  EXPECT_THAT(labels(step),
              ElementsAre("all_gather of 'l'", "train.matmul",
                          "all_gather of 'l'", "train.matmul",
                          "reduce_scatter of 'l'", "all_reduce of 'l'",
                          "train.sgd", "return"));
  EXPECT_EQ(step.graph.tasks[0].sentBytes, 8 * 16 * 4 / 4 * 3);
  EXPECT_EQ(checkSchedule(step.graph, serialSchedule(step.graph)), "");
}

TEST_F(StepFunctionTest, SecondGatherRepeatsTheFirst) {
  StepFunction step = build(kStep);
  EXPECT_EQ(step.graph.tasks[0].repeats, -1);
  EXPECT_EQ(step.graph.tasks[2].repeats, 0);
}

TEST_F(StepFunctionTest, UpdatesAndSumsHappenInPlace) {
  StepFunction step = build(kStep);
  const StepTask &sum = step.graph.tasks[5], &update = step.graph.tasks[6];
  EXPECT_EQ(sum.reads, sum.writes);
  ASSERT_EQ(update.writes.size(), 1u);
  const StepBuffer &state = step.graph.buffers[update.writes[0]];
  EXPECT_EQ(state.kind, MemoryKind::Parameter);
  EXPECT_TRUE(state.resident);
  EXPECT_EQ(state.bytes, 2 * 16 * 4);
}

TEST_F(StepFunctionTest, ScheduleIsAppliedAsItSays) {
  StepFunction step = build(kStep);
  // The second gather is dropped; the reduction is begun, then awaited after
  // nothing: neighbours stay one op.
  Schedule schedule = serialSchedule(step.graph);
  schedule.dropped = {2};
  llvm::erase_if(schedule.steps, [](ScheduleStep at) { return at.task == 2; });
  ASSERT_EQ(checkSchedule(step.graph, schedule), "");
  applySchedule(step, schedule);
  std::vector<std::string> names;
  module->walk([&](Operation *op) {
    if (isa<AllGatherOp, AllGatherStartOp, ReduceScatterOp, WaitOp, ReleaseOp>(
            op))
      names.push_back(op->getName().getStringRef().str());
  });
  EXPECT_THAT(names, ElementsAre("zero.all_gather", "zero.release",
                                 "zero.reduce_scatter"));
  EXPECT_TRUE(succeeded(verify(*module)));
}

/// A step whose master and momentum lie in host memory and on disk: the
/// gradient goes down, the update runs on the host, the parameter comes back.
static constexpr const char *kOffloaded = R"(
  module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<8x16xf32, @dp, dim = 0> unit("l")
  zero.state @m of @w : !zero.sharded<8x16xf32, @dp, dim = 0, mem = disk> zeros
  zero.state @s of @w : !zero.sharded<8x16xf32, @dp, dim = 0, mem = host> zeros
  func.func @f(%g: tensor<2x16xf32>, %lr: tensor<f32>) {
    %rh = zero.transfer %lr from device to host : (tensor<f32>) -> tensor<f32>
    %r = zero.read @w : !zero.sharded<8x16xf32, @dp, dim = 0>
    %l = zero.local %r on @dp : !zero.sharded<8x16xf32, @dp, dim = 0> -> tensor<2x16xf32>
    %ph, %gh = zero.transfer %l, %g from device to host
      : (tensor<2x16xf32>, tensor<2x16xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>)
    %m = zero.read @m : !zero.sharded<8x16xf32, @dp, dim = 0, mem = disk>
    %mh = zero.transfer %m from disk to host
      : (!zero.sharded<8x16xf32, @dp, dim = 0, mem = disk>) -> !zero.sharded<8x16xf32, @dp, dim = 0, mem = host>
    %ml = zero.local %mh on @dp : !zero.sharded<8x16xf32, @dp, dim = 0, mem = host> -> tensor<2x16xf32>
    %s = zero.read @s : !zero.sharded<8x16xf32, @dp, dim = 0, mem = host>
    %sl = zero.local %s on @dp : !zero.sharded<8x16xf32, @dp, dim = 0, mem = host> -> tensor<2x16xf32>
    %n:3 = zero.on_host (%p = %ph, %d = %gh, %v = %ml, %t = %sl, %e = %rh)
      : (tensor<2x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>, tensor<f32>)
      -> (tensor<2x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>) {
      %a, %b = train.sgd %p, %d, %v, %e {momentum = 0.9 : f64}
        : (tensor<2x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>, tensor<f32>) -> (tensor<2x16xf32>, tensor<2x16xf32>)
      %c = train.add %t, %d : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
      zero.yield %a, %b, %c : tensor<2x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>
    }
    %md = zero.transfer %n#1 from host to disk : (tensor<2x16xf32>) -> tensor<2x16xf32>
    zero.assign @m, %md : tensor<2x16xf32>
    zero.assign @s, %n#2 : tensor<2x16xf32>
    %u = zero.transfer %n#0 from host to device : (tensor<2x16xf32>) -> tensor<2x16xf32>
    zero.assign @w, %u : tensor<2x16xf32>
    return
  }
  })";

TEST_F(StepFunctionTest, TransfersAndTheHostHaveChannels) {
  StepFunction step = build(kOffloaded);
  EXPECT_THAT(step.graph.channels,
              ElementsAre("compute", "to_host", "disk_read", "host",
                          "disk_write", "to_device"));
  EXPECT_THAT(labels(step),
              ElementsAre("copy to the host", "copy to the host of 'l'",
                          "read from disk of 'l'", ::testing::_, ::testing::_,
                          ::testing::_, "return"));
  EXPECT_EQ(step.graph.tasks[2].kind, TaskKind::DiskRead);
  EXPECT_EQ(step.graph.tasks[3].kind, TaskKind::HostCompute);
  EXPECT_EQ(step.graph.tasks[4].kind, TaskKind::DiskWrite);
  EXPECT_EQ(step.graph.tasks[5].kind, TaskKind::CopyIn);
  EXPECT_EQ(step.graph.tasks[5].seconds,
            cost.copy(TaskKind::CopyIn, 2 * 16 * 4));
  EXPECT_EQ(checkSchedule(step.graph, serialSchedule(step.graph)), "");
}

TEST_F(StepFunctionTest, WhatTheHostUpdatesStaysWhereItIs) {
  StepFunction step = build(kOffloaded);
  const StepGraph &graph = step.graph;
  const StepTask &update = graph.tasks[3];
  ASSERT_EQ(update.writes.size(), 3u);
  // The copies of the parameter and of the momentum are updated in place.
  EXPECT_EQ(update.writes[0], graph.tasks[1].writes[0]);
  EXPECT_EQ(update.writes[1], graph.tasks[2].writes[0]);
  const StepBuffer &state = graph.buffers[update.writes[2]];
  EXPECT_TRUE(state.resident);
  EXPECT_EQ(state.space, MemorySpace::Host);
  // So are the states on disk and on the device that the copies go to.
  EXPECT_EQ(graph.tasks[4].writes, graph.tasks[2].reads);
  EXPECT_EQ(graph.buffers[graph.tasks[4].writes[0]].space, MemorySpace::Disk);
  const StepBuffer &parameter = graph.buffers[graph.tasks[5].writes[0]];
  EXPECT_TRUE(parameter.resident);
  EXPECT_EQ(parameter.space, MemorySpace::Device);
}

TEST_F(StepFunctionTest, SpacesAreCountedApart) {
  StepFunction step = build(kOffloaded);
  SimulatedStep simulated = simulate(step.graph, serialSchedule(step.graph));
  int64_t shard = 2 * 16 * 4, page = 4096;
  // The parameter, the gradient and the rate.
  EXPECT_EQ(simulated.peakBytes, 2 * shard + 64);
  // The other state, copies of three shards, one of them read from disk in
  // whole blocks, and of the rate.
  EXPECT_EQ(simulated.hostPeakBytes, shard + 2 * shard + page + 64);
  EXPECT_EQ(simulated.diskBytes, page);
}

TEST_F(StepFunctionTest, BodiesMoveWithWhatTheHostBegins) {
  StepFunction step = build(kOffloaded);
  // The read before everything, the host's compute begun and awaited apart.
  Schedule schedule = serialSchedule(step.graph);
  auto start = [](int32_t task) {
    return ScheduleStep{ScheduleStep::Start, task};
  };
  llvm::erase(schedule.steps, start(2));
  schedule.steps.insert(schedule.steps.begin(), start(2));
  ASSERT_EQ(checkSchedule(step.graph, schedule), "");
  applySchedule(step, schedule);
  EXPECT_TRUE(succeeded(verify(*module)));
  auto starts = [&] {
    int count = 0;
    module->walk([&](TransferStartOp) { ++count; });
    return count;
  };
  EXPECT_EQ(starts(), 1);
  Block &body = step.func.getFunctionBody().front();
  makeSynchronous(body);
  EXPECT_EQ(starts(), 0);
  int updates = 0;
  module->walk([&](OnHostOp op) { updates += !op.getBody().empty(); });
  EXPECT_EQ(updates, 1);
  EXPECT_TRUE(succeeded(verify(*module)));
}
