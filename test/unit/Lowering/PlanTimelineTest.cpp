//===- PlanTimelineTest.cpp - Simulated programs --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times, memory and reasons of a program, against a simulation by hand.
//
//===----------------------------------------------------------------------===//

#include "PlanStep.h"

#include "zero/Lowering/PlanTimeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace mlir;
using namespace mlir::zero;
using plan::CommandOpInterface;

/// A machine of round numbers, with links so slow that nothing hides.
static CostModel slowLinks(double bandwidth) {
  Machine machine;
  machine.name = "round";
  machine.ranksPerNode = 8;
  machine.peakFlops["f32"] = 1e9;
  machine.memoryBandwidth = 1e9;
  machine.kernelLatency = 1e-6;
  machine.intraNode = {/*latency=*/1e-6, bandwidth, /*halfSizeBytes=*/0};
  machine.interNode = machine.intraNode;
  return CostModel(machine);
}

static std::vector<CommandOpInterface> commandsOf(plan::ProgramOp program) {
  std::vector<CommandOpInterface> commands;
  for (auto op : program.getBody().getOps<CommandOpInterface>())
    if (!isa<plan::ReleaseOp>(op.getOperation()))
      commands.push_back(op);
  return commands;
}

namespace {
class PlanTimeline : public testing::Test {
protected:
  plan::ProgramOp make(int layers, bool hsdp) {
    module = makePlan(makeStep(layers, hsdp), context);
    return programOf(*module);
  }
  plan::ProgramOp parse(const std::string &text) {
    context.loadDialect<plan::PlanDialect>();
    module = parseSourceString<ModuleOp>(text, &context);
    return programOf(*module);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

// Every command keeps to the rules of streams and events, and starts as soon as
// they allow.
TEST_F(PlanTimeline, CommandsStartWhenStreamAndEventsAllow) {
  plan::ProgramOp program = make(4, /*hsdp=*/true);
  CostModel cost = slowLinks(1e7);
  Timeline timeline = predictTimeline(program, cost);
  auto commands = commandsOf(program);
  ASSERT_EQ(timeline.spans.size(), commands.size());
  std::map<std::string, double> free;
  llvm::DenseMap<Value, double> happened;
  double compute = 0, last = 0;
  for (auto [i, span] : llvm::enumerate(timeline.spans)) {
    EXPECT_EQ(span.command, static_cast<int>(i));
    EXPECT_EQ(span.channel, commands[i].getStreamName());
    double start = free[span.channel];
    for (Value event : commands[i].getWaitEvents())
      start = std::max(start, happened.lookup(event));
    EXPECT_DOUBLE_EQ(span.start, start);
    EXPECT_NEAR(span.end - span.start, predictSeconds(commands[i], cost),
                1e-12);
    free[span.channel] = span.end;
    if (Value event = commands[i].getSignalEvent())
      happened[event] = span.end;
    compute += span.channel == "compute" ? span.end - span.start : 0;
    last = std::max(last, span.end);
  }
  EXPECT_DOUBLE_EQ(timeline.stepSeconds, last);
  EXPECT_NEAR(timeline.exposedSeconds, last - compute, 1e-12);
  EXPECT_GT(timeline.exposedSeconds, 0);
}

TEST_F(PlanTimeline, TheMostMemoryIsTheLowerBound) {
  for (bool hsdp : {false, true}) {
    Timeline timeline = predictTimeline(make(4, hsdp), slowLinks(1e8));
    int64_t most = 0;
    double time = 0;
    for (const TimelineMemory &at : timeline.memory) {
      int64_t bytes = 0;
      for (int64_t kind : at.bytes)
        bytes += kind;
      most = std::max(most, bytes);
      EXPECT_GE(at.time, time);
      time = at.time;
    }
    EXPECT_EQ(most, timeline.lowerBound);
    EXPECT_LE(timeline.lowerBound, timeline.plannedPeak);
    EXPECT_DOUBLE_EQ(timeline.memory.back().time, timeline.stepSeconds);
  }
}

// A faster link never makes the step longer, and one that is fast enough hides
// all but the first gather and the last reduction.
TEST_F(PlanTimeline, FasterLinksExposeLess) {
  plan::ProgramOp program = make(6, /*hsdp=*/false);
  double before = std::numeric_limits<double>::infinity();
  for (double bandwidth : {1e6, 1e7, 1e8, 1e9, 1e12}) {
    Timeline timeline = predictTimeline(program, slowLinks(bandwidth));
    EXPECT_LE(timeline.stepSeconds, before);
    before = timeline.stepSeconds;
  }
}

static std::string reasonOf(const Timeline &timeline, StringRef name) {
  for (const TimelineSpan &span : timeline.spans)
    if (span.name == name && span.exposed > 0)
      return span.reason;
  return "";
}

TEST_F(PlanTimeline, ExplainsWhatIsExposed) {
  Timeline timeline = predictTimeline(make(3, /*hsdp=*/false), slowLinks(1e6));
  std::vector<std::string> reasons;
  for (const TimelineSpan &span : timeline.spans) {
    EXPECT_EQ(span.reason.empty(), span.exposed == 0) << span.name;
    reasons.push_back(span.reason);
  }
  EXPECT_NE(reasonOf(timeline, "all_gather w0")
                .find("needed at once, no compute between its start and its "
                      "use: it starts with the step"),
            std::string::npos);
  auto some = [&](StringRef words) {
    return llvm::any_of(reasons, [&](const std::string &reason) {
      return StringRef(reason).contains(words);
    });
  };
  EXPECT_TRUE(some("of compute lie between its start and its use"));
  EXPECT_TRUE(some("it needs the result of matmul"));
  EXPECT_TRUE(some("its channel is busy with"));
}

TEST_F(PlanTimeline, NamesTheBudgetWhereItForbidsAnEarlierStart) {
  plan::ProgramOp program = make(3, /*hsdp=*/false);
  auto arena = *program.getBody().getOps<plan::ArenaOp>().begin();
  // Less than the program takes: then no start could be any earlier.
  int64_t budget = *arena.getBytes() / 2;
  program.setBudget(budget);
  Timeline timeline = predictTimeline(program, slowLinks(1e6));
  EXPECT_EQ(timeline.budgetBytes, budget);
  EXPECT_TRUE(llvm::any_of(timeline.spans, [](const TimelineSpan &span) {
    return StringRef(span.reason).contains("budget: starting before") &&
           StringRef(span.reason).contains("bytes more");
  }));
}

TEST_F(PlanTimeline, CollectivesCostWhatTheirGroupDoes) {
  plan::ProgramOp program = make(2, /*hsdp=*/true);
  CostModel cost = slowLinks(1e8);
  int reduces = 0;
  for (CommandOpInterface command : commandsOf(program)) {
    if (isa<plan::AllGatherOp>(*command)) {
      EXPECT_EQ(getSentBytes(command), 256 / 4 * 3);
      EXPECT_DOUBLE_EQ(predictSeconds(command, cost),
                       cost.collective(TaskKind::AllGather, 256,
                                       cost.group(4, /*stride=*/1)));
    }
    if (isa<plan::AllReduceOp>(*command)) {
      ++reduces;
      EXPECT_EQ(getSentBytes(command), 2 * 64 / 2);
      EXPECT_DOUBLE_EQ(predictSeconds(command, cost),
                       cost.collective(TaskKind::AllReduce, 64,
                                       cost.group(2, /*stride=*/4)));
    }
  }
  EXPECT_EQ(reduces, 2);
}

TEST_F(PlanTimeline, ListsParameters) {
  Timeline timeline = predictTimeline(make(2, /*hsdp=*/true), slowLinks(1e8));
  ASSERT_EQ(timeline.parameters.size(), 2u);
  EXPECT_EQ(timeline.parameters[0].name, "w0");
  EXPECT_EQ(timeline.parameters[0].shape, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(timeline.parameters[0].shard, (std::vector<int64_t>{2, 8}));
  EXPECT_EQ(timeline.parameters[0].gathered, "twice");
  EXPECT_EQ(timeline.parameters[0].bytes, 64);
  EXPECT_EQ(timeline.grid, (std::vector<int64_t>{2, 4}));
}

TEST_F(PlanTimeline, CountsTheWorkOfLibraryCalls) {
  plan::ProgramOp program = parse(R"(plan.program @p ranks(1) {
    %dev = plan.arena device
    %a = plan.buffer %dev input : memref<3x8x4xf32>
    %b = plan.buffer %dev input : memref<3x4x5xf32>
    %c = plan.buffer %dev activation : memref<3x8x5xf32>
    plan.call @matmul(%a, %b, %c) writes [2]
      : memref<3x8x4xf32>, memref<3x4x5xf32>, memref<3x8x5xf32>
    %x = plan.buffer %dev input : memref<2x3x8x8xf32>
    %w = plan.buffer %dev input : memref<5x3x3x3xf32>
    %y = plan.buffer %dev activation : memref<2x5x6x6xf32>
    plan.call @conv(%x, %w, %y) writes [2]
      : memref<2x3x8x8xf32>, memref<5x3x3x3xf32>, memref<2x5x6x6xf32>
    %dx = plan.buffer %dev activation : memref<2x3x8x8xf32>
    plan.call @conv_grad_input(%y, %w, %dx) writes [2]
      : memref<2x5x6x6xf32>, memref<5x3x3x3xf32>, memref<2x3x8x8xf32>
    %dw = plan.buffer %dev activation : memref<5x3x3x3xf32>
    plan.call @conv_grad_weight(%y, %x, %dw) writes [2]
      : memref<2x5x6x6xf32>, memref<2x3x8x8xf32>, memref<5x3x3x3xf32>
  })");
  auto commands = commandsOf(program);
  OpWork matmul = getCommandWork(commands[0]);
  EXPECT_EQ(matmul.cls, OpWork::Matmul);
  EXPECT_EQ(std::make_tuple(matmul.batch, matmul.m, matmul.n, matmul.k),
            std::make_tuple(3, 8, 5, 4));
  EXPECT_EQ(matmul.flops, 2 * 3 * 8 * 5 * 4);
  EXPECT_EQ(matmul.bytes, 4 * (96 + 60 + 120));
  for (size_t i = 1; i < 4; ++i)
    EXPECT_EQ(getCommandWork(commands[i]).flops, 2 * (2 * 6 * 6) * 5 * 27) << i;
}

TEST_F(PlanTimeline, CountsTheWorkOfAttention) {
  plan::ProgramOp program = parse(R"(plan.program @p ranks(1) {
    %dev = plan.arena device
    %q = plan.buffer %dev input : memref<2x4x6x8xbf16>
    %k = plan.buffer %dev input : memref<2x2x3x8xbf16>
    %v = plan.buffer %dev input : memref<2x2x3x16xbf16>
    %y = plan.buffer %dev activation : memref<2x4x6x16xbf16>
    %l = plan.buffer %dev activation : memref<2x4x6xf32>
    plan.call @attention(%q, %k, %v, %y, %l) writes [3, 4] {scale = 1.0}
      : memref<2x4x6x8xbf16>, memref<2x2x3x8xbf16>, memref<2x2x3x16xbf16>, memref<2x4x6x16xbf16>, memref<2x4x6xf32>
    %dq = plan.buffer %dev activation : memref<2x4x6x8xbf16>
    %dk = plan.buffer %dev activation : memref<2x2x3x8xbf16>
    %dv = plan.buffer %dev activation : memref<2x2x3x16xbf16>
    plan.call @attention_grad(%y, %q, %k, %v, %y, %l, %dq, %dk, %dv) writes [6, 7, 8] {causal, scale = 1.0}
      : memref<2x4x6x16xbf16>, memref<2x4x6x8xbf16>, memref<2x2x3x8xbf16>, memref<2x2x3x16xbf16>, memref<2x4x6x16xbf16>, memref<2x4x6xf32>, memref<2x4x6x8xbf16>, memref<2x2x3x8xbf16>, memref<2x2x3x16xbf16>
    %key = plan.buffer %dev input : memref<i64>
    plan.call @attention(%q, %k, %v, %key, %key, %y, %l) writes [5, 6] {ratio = 0.1, scale = 1.0}
      : memref<2x4x6x8xbf16>, memref<2x2x3x8xbf16>, memref<2x2x3x16xbf16>, memref<i64>, memref<i64>, memref<2x4x6x16xbf16>, memref<2x4x6xf32>
  })");
  auto commands = commandsOf(program);
  OpWork forward = getCommandWork(commands[0]);
  EXPECT_EQ(forward.type, "bf16");
  EXPECT_EQ(forward.flops, 2 * (2 * 4) * 6 * 3 * (8 + 16));
  EXPECT_EQ(forward.bytes, 2 * (384 + 96 + 192 + 768) + 4 * 48);
  // Rows of 1, 2 and 3 keys, then whole ones.
  OpWork backward = getCommandWork(commands[1]);
  EXPECT_EQ(backward.transcendentals, (2 * 4) * (1 + 2 + 3 + 3 * 3));
  EXPECT_EQ(backward.flops, 2 * backward.transcendentals * (3 * 8 + 2 * 16));
  // Utilization counts the square, and scores once.
  EXPECT_EQ(countModelFlops(commands[0]), forward.flops);
  EXPECT_EQ(countModelFlops(commands[1]), 2 * forward.flops);
  // What dropout draws is work, and none of the model's products.
  EXPECT_EQ(getCommandWork(commands[2]).flops,
            forward.flops + 100 * (2 * 4) * 6 * 3);
  EXPECT_EQ(countModelFlops(commands[2]), forward.flops);
}

TEST_F(PlanTimeline, CountsTheWorkOfKernels) {
  makePlan(makeStep(1, false), context); // loads the dialects
  plan::ProgramOp program = parse(R"(
  func.func private @exp(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {plan.kernel} {
    %y = train.exp %x : tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
  func.func private @lookup(%t: tensor<1000x4xf32>, %i: tensor<2xi64>) -> tensor<2x4xf32> attributes {plan.kernel} {
    %y = train.gather %t, %i axis 0 : (tensor<1000x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  plan.program @p ranks(1) {
    %dev = plan.arena device
    %a = plan.buffer %dev input : memref<8x4xf32>
    %b = plan.buffer %dev activation : memref<8x4xf32>
    plan.launch @exp(%a, %b) writes [1] : memref<8x4xf32>, memref<8x4xf32>
    %t = plan.buffer %dev input : memref<1000x4xf32>
    %i = plan.buffer %dev input : memref<2xi64>
    %r = plan.buffer %dev activation : memref<2x4xf32>
    plan.launch @lookup(%t, %i, %r) writes [2] : memref<1000x4xf32>, memref<2xi64>, memref<2x4xf32>
  })");
  auto commands = commandsOf(program);
  OpWork exp = getCommandWork(commands[0]);
  EXPECT_EQ(exp.cls, OpWork::Kernel);
  EXPECT_EQ(exp.bytes, 2 * 128);
  EXPECT_EQ(exp.transcendentals, 32);
  // Rows looked up, not the table.
  EXPECT_EQ(getCommandWork(commands[1]).bytes, 32 + 16 + 32);
}

// Of the micro-batches before the last the first is drawn; all of them take
// their time, and count in what compute stands still for.
TEST_F(PlanTimeline, MicroBatchesRepeat) {
  const char *text = R"mlir(
    plan.program @step ranks(2) micro_batches(5) {
      %dev = plan.arena device bytes(4096) lower_bound(2048)
      %a = plan.buffer %dev[0] parameter : memref<128xf32>
      plan.parameter "w" %a trained shape [256] : memref<128xf32>
      %b = plan.buffer %dev[512] gathered : memref<256xf32>
      %c = plan.buffer %dev[1536] activation : memref<128xf32>
      plan.all_gather %a -> %b elements [256] chunks [128] : memref<128xf32> -> memref<256xf32>
      plan.copy %a -> %c : memref<128xf32> -> memref<128xf32>
      plan.micro_batch_end
      plan.all_gather %a -> %b elements [256] chunks [128] : memref<128xf32> -> memref<256xf32>
      plan.fill %c : memref<128xf32>
    })mlir";
  Timeline timeline = predictTimeline(parse(text), slowLinks(1e8));
  ASSERT_EQ(timeline.spans.size(), 4u);
  ArrayRef<TimelineSpan> spans = timeline.spans;
  double front = spans[1].end, gather = spans[0].end;
  EXPECT_DOUBLE_EQ(spans[0].start, 0);
  EXPECT_NEAR(spans[2].start, 4 * front, 1e-12);
  EXPECT_NEAR(timeline.stepSeconds, 4 * front + spans[3].end - spans[2].start,
              1e-12);
  EXPECT_NEAR(timeline.exposedSeconds, 5 * gather, 1e-12);
  Machine machine = slowLinks(1e8).getMachine();
  machine.constants["processor_cores"] = 1; // for two ranks
  EXPECT_NEAR(
      predictTimeline(programOf(*module), CostModel(machine)).stepSeconds,
      2 * timeline.stepSeconds, 1e-12);
  ASSERT_EQ(timeline.parameters.size(), 1u);
  EXPECT_EQ(timeline.parameters[0].gathered, "5 times");
  EXPECT_NE(timeline.notes.back().find("of the 5 micro-batches the first and "
                                       "the last are shown"),
            std::string::npos);
}

// Where devices and the host are one processor, a step takes no less than its
// cores do for the commands of all ranks.
TEST_F(PlanTimeline, CoresAreShared) {
  plan::ProgramOp program = make(4, /*hsdp=*/true);
  Machine machine = slowLinks(1e8).getMachine();
  Timeline own = predictTimeline(program, CostModel(machine));
  machine.constants["processor_cores"] = 2;
  Timeline shared = predictTimeline(program, CostModel(machine));
  double busy = 0;
  for (CommandOpInterface command : commandsOf(program))
    busy += predictSeconds(command, CostModel(machine));
  EXPECT_LT(own.stepSeconds, 4 * busy);
  EXPECT_NEAR(shared.stepSeconds, 8 * busy / 2, 1e-12);
  EXPECT_DOUBLE_EQ(shared.memory.back().time, shared.stepSeconds);
  EXPECT_NE(
      shared.notes.front().find("the cores that they and the node's ranks "
                                "share take"),
      std::string::npos);
  machine.constants["processor_cores"] = 64; // enough for all at once
  EXPECT_EQ(predictTimeline(program, CostModel(machine)).stepSeconds,
            own.stepSeconds);
}

// What lies outside device memory has curves of its own, and the timeline says
// what was chosen to.
TEST_F(PlanTimeline, SaysWhatLivesElsewhere) {
  const char *text = R"mlir(
    module attributes {zero.offload_choice = "offloading m saves 512 B",
                       zero.offload_rules = ["optimizer@w=host"]} {
      plan.program @step ranks(1) {
        %dev = plan.arena device bytes(512) lower_bound(512)
        %host = plan.arena host bytes(1024) lower_bound(1000) budget(4096)
        %a = plan.buffer %dev[0] parameter : memref<128xf32>
        plan.parameter "w" %a trained : memref<128xf32>
        %m = plan.buffer %host[0] state : memref<128xf32>
        plan.parameter "w.m" %m state of("w") : memref<128xf32>
        %h = plan.buffer %host[512] gradient : memref<128xf32>
        %e = plan.event
        plan.copy %a -> %h stream("to_host") signal(%e) : memref<128xf32> -> memref<128xf32>
        plan.fill %a wait(%e) : memref<128xf32>
      }
    })mlir";
  Timeline timeline = predictTimeline(parse(text), slowLinks(1e8));
  EXPECT_EQ(timeline.offload, "offloading m saves 512 B");
  EXPECT_EQ(timeline.offloadRules,
            std::vector<std::string>({"optimizer@w=host"}));
  EXPECT_EQ(timeline.host.plannedPeak, 1024);
  EXPECT_EQ(timeline.host.lowerBound, 1000);
  EXPECT_EQ(timeline.host.budgetBytes, 4096);
  ASSERT_FALSE(timeline.host.memory.empty());
  using Bytes = std::array<int64_t, kNumMemoryKinds>;
  EXPECT_EQ(timeline.host.memory.front().bytes,
            (Bytes{0, 512, 512, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(timeline.disk.memory.empty());
  EXPECT_EQ(timeline.plannedPeak, 512);
}

// Copies go by the spaces of their buffers, compute of the host by its memory.
TEST_F(PlanTimeline, CopiesAndTheHostTakeTheirChannels) {
  context.loadDialect<func::FuncDialect>();
  plan::ProgramOp program = parse(R"(
  func.func private @update(tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32> attributes {plan.kernel}
  plan.program @p ranks(1) {
    %dev = plan.arena device
    %host = plan.arena host bytes(8192) lower_bound(8192) budget(16384)
    %disk = plan.arena disk bytes(4096) lower_bound(4096)
    %g = plan.buffer %dev gradient : memref<1024xf32>
    %gh = plan.buffer %host gradient : memref<1024xf32>
    %m = plan.buffer %disk state : memref<1024xf32>
    %mh = plan.buffer %host state : memref<1024xf32>
    plan.parameter "w.m" %m state of("w") : memref<1024xf32>
    %read = plan.event
    %down = plan.event
    %updated = plan.event
    plan.copy %m -> %mh label("w.m") stream("disk_read") signal(%read)
      : memref<1024xf32> -> memref<1024xf32>
    plan.copy %g -> %gh label("gradient of w") stream("to_host") signal(%down)
      : memref<1024xf32> -> memref<1024xf32>
    plan.launch @update(%mh, %gh) writes [0] host stream("host")
      wait(%read, %down) signal(%updated) : memref<1024xf32>, memref<1024xf32>
    plan.copy %mh -> %m stream("disk_write") wait(%updated)
      : memref<1024xf32> -> memref<1024xf32>
    plan.copy %gh -> %g stream("to_device") wait(%updated)
      : memref<1024xf32> -> memref<1024xf32>
  })");
  Machine machine = slowLinks(1e8).getMachine();
  machine.deviceToHost = machine.hostToDevice = {1e-6, 1e9};
  machine.diskRead = {1e-4, 1e8};
  machine.diskWrite = {1e-4, 5e7};
  machine.hostBandwidth = 1e9;
  CostModel cost(machine);
  Timeline timeline = predictTimeline(program, cost);
  ASSERT_EQ(timeline.spans.size(), 5u);
  TaskKind kinds[] = {TaskKind::DiskRead, TaskKind::CopyOut,
                      TaskKind::HostCompute, TaskKind::DiskWrite,
                      TaskKind::CopyIn};
  const char *channels[] = {"disk_read", "to_host", "host", "disk_write",
                            "to_device"};
  for (auto [i, span] : llvm::enumerate(timeline.spans)) {
    EXPECT_EQ(span.kind, kinds[i]) << i;
    EXPECT_EQ(span.channel, channels[i]) << i;
    if (span.kind != TaskKind::HostCompute)
      EXPECT_NEAR(span.end - span.start, cost.copy(span.kind, 4096), 1e-12)
          << i;
    EXPECT_EQ(span.sentBytes, span.kind == TaskKind::HostCompute ? 0 : 4096);
  }
  EXPECT_EQ(timeline.spans[0].name, "copy w.m");
  EXPECT_EQ(timeline.spans[1].name, "copy gradient of w");
  // Two buffers are read and one of them is written.
  OpWork work;
  work.bytes = 3 * 4096;
  EXPECT_NEAR(timeline.spans[2].end - timeline.spans[2].start,
              cost.hostCompute(work), 1e-5);
  EXPECT_DOUBLE_EQ(timeline.stepSeconds, timeline.spans[3].end);
  EXPECT_EQ(timeline.host.budgetBytes, 16384);
  EXPECT_EQ(timeline.host.plannedPeak, 8192);
  EXPECT_EQ(timeline.disk.plannedPeak, 4096);
  auto most = [](const std::vector<TimelineMemory> &memory) {
    int64_t bytes = 0;
    for (const TimelineMemory &at : memory)
      bytes = std::max(
          bytes, std::accumulate(at.bytes.begin(), at.bytes.end(), int64_t(0)));
    return bytes;
  };
  EXPECT_EQ(most(timeline.memory), 4096);
  EXPECT_EQ(most(timeline.host.memory), 8192);
  EXPECT_EQ(most(timeline.disk.memory), 4096);
}
