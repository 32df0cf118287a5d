//===- OffloadTest.cpp --------------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps that are offloaded: formulas, traffic and the published tables of
// ZeRO-Offload (arXiv 2101.06840) and ZeRO-Infinity (arXiv 2104.07857).
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/Search.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace mlir::zero;

static constexpr OffloadShare kAll{-1, false};
static constexpr OffloadShare kAllOnDisk{-1, true};
static constexpr double kGiB = 1 << 30;

static Machine preset(llvm::StringRef name) {
  return llvm::cantFail(loadMachine(name));
}

/// The GPTs of both papers: 12 L d^2 in the layers.
static ModelShape gpt(int64_t layers, int64_t hidden, int64_t heads = 16) {
  ModelShape shape;
  shape.name = "gpt";
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = shape.kvHeads = heads;
  shape.ffn = 4 * hidden;
  shape.vocab = 50257;
  shape.tied = true;
  return shape;
}

static StepPlanner planner(ModelShape shape, Machine machine) {
  return StepPlanner(std::move(shape), CostModel(std::move(machine)),
                     *findSoftware("zero"));
}

static StepConfig oneRank() {
  StepConfig config;
  config.ranks = 1;
  config.stage = 2;
  config.seq = 1024;
  return config;
}

//===----------------------------------------------------------------------===//
// ZeRO-Offload
//===----------------------------------------------------------------------===//

// Table 1: bytes of device memory for M parameters. 16M, 14M with gradients on
// the host, 2M with the update there too. Its row of 4M has the update on the
// host and all gradients on the device: here these leave as they are made, so
// the update alone gives the last row.
TEST(ZeroOffload, DeviceBytesOfStates) {
  StepPlanner model = planner(gpt(20, 2048), preset("v100-32"));
  StepConfig config = oneRank();
  int64_t size = model.getShape().size(config.seq);
  auto state = [&](StepOffload offload) {
    config.offload = offload;
    return model.memory(config).state() / double(size);
  };
  EXPECT_EQ(state({}), 16);
  EXPECT_EQ(state({{}, kAll, {}, {}}), 14);
  EXPECT_EQ(state({kAll, {}, {}, {}}), 2);
  EXPECT_EQ(state({kAll, kAll, {}, {}}), 2);
  config.accumulate = 4; // accumulators stay unless they are moved as well
  EXPECT_EQ(state({kAll, {}, {}, {}}), 4);
  EXPECT_EQ(state({kAll, kAll, {}, {}}), 2);
}

// Section 3: 2M bytes of gradients down and 2M of parameters up, the least of
// all cuts that take the states off the device.
TEST(ZeroOffload, TrafficIsFourBytesAParameter) {
  for (int64_t stage : {0, 1, 2, 3}) {
    StepPlanner model = planner(gpt(20, 2048), preset("v100-32"));
    StepConfig config = oneRank();
    config.stage = stage;
    config.offload.optimizer = kAll;
    int64_t size = model.getShape().size(config.seq);
    TrafficParts traffic = model.traffic(config);
    EXPECT_EQ(traffic.toHost, 2 * size);
    EXPECT_EQ(traffic.toDevice, 2 * size);
  }
  // A rank of four moves its part.
  StepPlanner model = planner(gpt(20, 2048), preset("v100-32"));
  StepConfig config = oneRank();
  config.ranks = 4;
  config.offload.optimizer = kAll;
  EXPECT_NEAR(model.traffic(config).toHost,
              2 * model.getShape().size(1024) / 4.0,
              2e-4 * model.getShape().size(1024));
}

// Table 4: seconds of CPU-Adam on the two processors of a DGX-2. They grow
// faster than the parameters from 2 to 8 billion; bytes over bandwidth do not.
TEST(ZeroOffload, SecondsOfTheHostsAdam) {
  constexpr std::pair<double, double> rows[] = {
      {1e9, 0.22}, {2e9, 0.51}, {4e9, 1.03}, {8e9, 2.41}, {10e9, 2.57}};
  CostModel cost(preset("v100-32"));
  for (auto [params, seconds] : rows) {
    OpWork update; // 16 sixteenths of the node: that of one rank each
    update.bytes = params * (2 * 12 + 2 + 2) / 16;
    EXPECT_NEAR(cost.hostCompute(update) / seconds, 1, 0.21) << params;
  }
}

/// The largest of `layers` x `hidden` whose step fits.
static double largest(StepConfig config, int64_t hidden, Machine machine,
                      int64_t hostBytes) {
  double size = 0;
  for (int64_t layers = 1; layers <= 2048; layers += 1 + layers / 64) {
    ModelShape shape = gpt(layers, hidden);
    StepPlanner model = planner(shape, machine);
    MemoryParts memory = model.memory(config);
    if (memory.total() > model.capacity() || memory.host > hostBytes)
      break;
    size = double(shape.size(config.seq)) / 1e9;
  }
  return size;
}

// Section 6.2 and ZeRO-Infinity's figure 1: billions of parameters on one GPU
// and on 16 of 32 GB, activations recomputed.
TEST(ZeroOffload, LargestModels) {
  Machine machine = preset("v100-32");
  int64_t hostBytes = int64_t(1.5e12);
  StepConfig config = oneRank();
  config.recompute = Recompute::Full;
  // Published 1.4: data parallel frameworks also hold f32 gradients and
  // buckets; 16 bytes a parameter are all that a plan of ours needs.
  config.stage = 0;
  double plain = largest(config, 2048, machine, hostBytes);
  EXPECT_GT(plain, 1.4);
  EXPECT_LT(plain, 2.1);
  // Published 13: 2 bytes a parameter on the device.
  config.stage = 2;
  config.offload.optimizer = kAll;
  double offload = largest(config, 4096, machine, hostBytes);
  EXPECT_GE(offload, 13);
  EXPECT_LE(offload, 16.5);
  // On 16, published: ZeRO-2 10, offload 13, ZeRO-3 20.
  config.ranks = 16;
  int64_t hostOfRank = hostBytes / 16;
  double offload16 = largest(config, 4096, machine, hostOfRank);
  EXPECT_GE(offload16, 13);
  EXPECT_LE(offload16, 16.5);
  config.offload = {};
  double stage2 = largest(config, 4096, machine, hostOfRank);
  EXPECT_NEAR(stage2, 10, 2);
  config.stage = 3;
  double stage3 = largest(config, 8192, machine, hostOfRank);
  EXPECT_GE(stage3, 20);
  EXPECT_LE(stage3, 33);
}

//===----------------------------------------------------------------------===//
// ZeRO-Infinity
//===----------------------------------------------------------------------===//

namespace {
struct InfinityRow {
  int64_t layers, hidden, heads;
  double params, states, activations, checkpoints; // 1e12, TiB, TiB, TiB
};
} // namespace

// Figure 2a; K is 1024. States are 20 bytes a parameter: with f32 gradients,
// where a plan of ours has bf16 ones, so 16.
static constexpr InfinityRow kInfinityRows[] = {
    {80, 10, 128, 0.10, 1.83, 2.03, 0.05},
    {100, 20, 160, 0.50, 9.16, 3.91, 0.12},
    {128, 25, 256, 1.01, 18.31, 7.13, 0.20},
    {195, 64, 512, 10.05, 182.81, 24.38, 0.76},
    {315, 160, 1024, 101.47, 1845.70, 88.59, 3.08},
};

TEST(ZeroInfinity, MemoryOfTheTable) {
  constexpr double tib = kGiB * 1024;
  for (const InfinityRow &row : kInfinityRows) {
    StepConfig config = oneRank();
    config.batch = 32;
    ModelShape shape = gpt(row.layers, row.hidden * 1024, row.heads);
    StepPlanner model = planner(shape, preset("v100-32"));
    // Biases, norms and embeddings come on top of 12 nl hd^2.
    EXPECT_NEAR(shape.size(1024) / 1e12 / row.params, 1, 0.03);
    MemoryParts memory = model.memory(config);
    EXPECT_NEAR(20.0 / 16 * memory.state() / tib / row.states, 1, 0.03);
    // A checkpoint is a layer's input; of a node, on one rank.
    int64_t saved = row.layers * model.savedBytes(config, Recompute::Full);
    EXPECT_NEAR(saved / tib, row.checkpoints, 0.006);
  }
}

// Activations without recomputation are 16 hd + 2 h seq in the table, which
// holds attention's matrix. Ours is fused and holds none: 15 hd and 4 bytes of
// statistics a head.
TEST(ZeroInfinity, ActivationsAreLessWhereAttentionIsFused) {
  for (const InfinityRow &row : kInfinityRows) {
    StepConfig config = oneRank();
    config.batch = 2 * 32;
    ModelShape shape = gpt(row.layers, row.hidden * 1024, row.heads);
    StepPlanner model = planner(shape, preset("v100-32"));
    double tokens = double(config.batch) * config.seq;
    double published =
        tokens * row.layers * (16 * shape.hidden + 2 * row.heads * 1024.0);
    EXPECT_NEAR(published / kGiB / 1024 / row.activations, 1, 0.01);
    double ours =
        row.layers * double(model.savedBytes(config, Recompute::None));
    double expected =
        tokens * row.layers * (2 * 15 * shape.hidden + 4.0 * row.heads);
    EXPECT_NEAR(ours / expected, 1, 0.15);
  }
}

/// Part of its peak that a device reaches if it needs a byte from a link of
/// `bandwidth` for each `intensity` flops (section 4.1).
static double efficiency(double intensity, double bandwidth, double peak) {
  return intensity * bandwidth / (intensity * bandwidth + peak);
}

// Section 4: parameters and gradients seq x bsz flops a byte, states a quarter,
// checkpoints 24 hd ci. The same intensities from our plan's bytes.
TEST(ZeroInfinity, EfficiencyOfTheLinks) {
  EXPECT_NEAR(efficiency(1024, 70e9, 70e12), 0.506, 0.001);
  EXPECT_NEAR(efficiency(2 * 1024 / 4, 1.5e12, 70e12), 0.916, 0.001);

  ModelShape shape = gpt(80, 10240, 128);
  StepPlanner model = planner(shape, preset("v100-32"));
  StepConfig config = oneRank();
  config.stage = 3;
  config.recompute = Recompute::Full;
  config.offload = {kAllOnDisk, {}, kAll, kAll};
  double params = double(shape.size(config.seq));
  double flops = 8.0 * config.batch * config.seq * params;
  TrafficParts traffic = model.traffic(config);
  // Theirs: parameters three times (twice and again to recompute, which shares
  // a gather here) and gradients once, 2 bytes each.
  int64_t saved = model.offloadedActivations(config, kAll);
  double moved = traffic.toDevice - saved + traffic.toHost - saved;
  EXPECT_NEAR(moved / params, 2 * 2 + 2, 1e-6);
  EXPECT_NEAR(flops / (moved + 2 * params) / config.seq, 1, 1e-6);
  // Theirs: 16 bytes of states read and written. Ours are 12, since neither
  // gradients nor the compute copy are on the disk.
  double states = traffic.diskRead + traffic.diskWrite;
  EXPECT_NEAR(states / params, 24, 1e-6);
  EXPECT_NEAR(flops / (states * 32 / 24) / (config.seq / 4.0), 1, 1e-6);
  // Checkpoints, written and read: 24 hd.
  double layers = 12.0 * shape.layers * shape.hidden * shape.hidden;
  EXPECT_NEAR(8.0 * config.seq * layers / (2 * saved) / (24 * shape.hidden), 1,
              0.03);
}

// Figure 1: 70 billion parameters with states in host memory and 1000 on NVMe,
// on 16 GPUs of 32 GB with 1.5 TB of host memory.
TEST(ZeroInfinity, LargestModels) {
  Machine machine = preset("v100-32");
  StepConfig config = oneRank();
  config.ranks = 16;
  config.stage = 3;
  config.recompute = Recompute::Full;
  config.offload = {kAll, {}, kAll, kAll};
  int64_t hostOfRank = int64_t(1.5e12) / 16;
  double host = largest(config, 8192, machine, hostOfRank);
  // 14 bytes a parameter here; 20 there, and pinned buffers.
  EXPECT_GE(host, 70);
  EXPECT_LE(host, 70 * 20 / 14.0 * 1.1);
  config.offload = {kAllOnDisk, {}, kAllOnDisk, kAll};
  // In layers of 8192: wider ones need their tiling, a layer of 25600 has 16
  // GB.
  double disk = largest(config, 8192, machine, hostOfRank);
  EXPECT_GE(disk, 1000);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

TEST(StepOffload, NothingOffloadedIsNothingChanged) {
  StepPlanner model = planner(gpt(24, 2048), preset("h100"));
  StepConfig config = oneRank();
  TimeParts time = model.time(config);
  EXPECT_EQ(time.exposedOffload, 0);
  EXPECT_EQ(time.toHost + time.toDevice + time.host, 0);
  EXPECT_EQ(model.memory(config).host, 0);
}

TEST(StepOffload, LessBandwidthIsNeverFaster) {
  for (StepOffload offload :
       {StepOffload{kAll, {}, {}, {}}, StepOffload{kAll, {}, kAll, {}},
        StepOffload{{}, {}, {}, kAll}, StepOffload{kAllOnDisk, {}, {}, {}}}) {
    Machine machine = preset("h100");
    StepConfig config = oneRank();
    config.stage = 3;
    config.ranks = 8;
    config.offload = offload;
    double before = 0;
    for (double scale : {4.0, 2.0, 1.0, 0.5, 0.25}) {
      Machine slower = machine;
      for (Link *link : {&slower.hostToDevice, &slower.deviceToHost,
                         &slower.diskRead, &slower.diskWrite})
        link->bandwidth *= scale;
      double now = planner(gpt(24, 2048), slower).time(config).step;
      EXPECT_GE(now, before);
      before = now;
    }
  }
}

TEST(StepOffload, BusyChannelsBoundTheStep) {
  Machine machine = preset("a100-40");
  StepConfig config = oneRank();
  config.stage = 3;
  config.ranks = 8;
  config.offload = {kAllOnDisk, {}, kAll, kAll};
  StepPlanner model = planner(gpt(24, 2048), machine);
  std::vector<StepEvent> events;
  TimeParts time = model.time(config, &events);
  for (double busy : {time.toHost, time.toDevice, time.diskRead, time.diskWrite,
                      time.host, time.compute()})
    EXPECT_GE(time.step * (1 + 1e-9), busy);
  EXPECT_NEAR(time.step, time.compute() + time.exposed() + time.slowdown,
              1e-9 * time.step);
  // What is traced is what is counted.
  TrafficParts traffic = model.traffic(config);
  int64_t toHost = 0, toDevice = 0, read = 0, written = 0;
  for (const StepEvent &event : events) {
    toHost += event.kind == TaskKind::CopyOut ? event.sentBytes : 0;
    toDevice += event.kind == TaskKind::CopyIn ? event.sentBytes : 0;
    read += event.kind == TaskKind::DiskRead ? event.sentBytes : 0;
    written += event.kind == TaskKind::DiskWrite ? event.sentBytes : 0;
  }
  EXPECT_EQ(toHost, traffic.toHost);
  EXPECT_EQ(toDevice, traffic.toDevice);
  EXPECT_EQ(read, traffic.diskRead);
  EXPECT_EQ(written, traffic.diskWrite);
}

// The choice is at least as fast as nothing, as ZeRO-Offload's switch, as
// FSDP2's (all state) and as all of each other kind, wherever these fit; and
// with more memory it is never slower. Both but for the gain that it takes to
// offload what need not be.
TEST(StepOffload, NeverSlowerThanAllOrNothing) {
  const StepOffload policies[] = {
      {},
      {kAll, {}, {}, {}},
      {kAll, kAll, kAll, {}},
      {{}, {}, kAll, {}},
      {{}, {}, {}, {12, false}},
      {kAll, {}, kAll, {12, false}},
  };
  int64_t compared = 0, partial = 0;
  for (llvm::StringRef machine : {"h100", "v100-32"})
    for (int64_t ranks : {1, 8})
      for (int64_t stage : {2, 3}) {
        StepPlanner model = planner(gpt(12, 2048), preset(machine));
        StepConfig config = oneRank();
        config.ranks = ranks;
        config.stage = stage;
        double need = double(model.memory(config).total()), before = 0;
        for (double part : {1.0, 0.8, 0.6, 0.4, 0.2}) {
          SearchSpace space;
          space.memoryBytes = int64_t(part * need);
          std::optional<StepOffload> best =
              chooseOffload(model, config, space, /*coarse=*/true);
          double seconds = HUGE_VAL;
          if (best) {
            config.offload = *best;
            EXPECT_TRUE(space.fits(model.memory(config)));
            seconds = model.time(config).step;
            partial += best->optimizer.layers > 0;
          }
          EXPECT_GE(seconds * (1 + kWorthOffloading), before);
          before = seconds;
          for (const StepOffload &policy : policies) {
            config.offload = policy;
            if (!space.fits(model.memory(config)))
              continue;
            EXPECT_LE(seconds,
                      (1 + kWorthOffloading) * model.time(config).step);
            ++compared;
          }
        }
      }
  EXPECT_GT(compared, 80);
  EXPECT_GT(partial, 10); // it is the partial shares that win
}

// Where host memory is too small, states go to disk, if there is one. Two
// buckets of what is on its way, 1.6 GB, have to be in host memory all the
// same.
TEST(StepOffload, HostBudgetIsKept) {
  StepPlanner model = planner(gpt(12, 2048), preset("h100"));
  StepConfig config = oneRank();
  SearchSpace space;
  space.memoryBytes = model.memory(config).total() / 3;
  space.hostBytes = int64_t(2 * kGiB);
  EXPECT_FALSE(chooseOffload(model, config, space, /*coarse=*/true));
  space.disk = true;
  std::optional<StepOffload> best =
      chooseOffload(model, config, space, /*coarse=*/true);
  ASSERT_TRUE(best);
  EXPECT_TRUE(best->optimizer.disk);
  config.offload = *best;
  EXPECT_LE(model.memory(config).host, space.hostBytes);
}

// Where all fits and the host is the device, nothing is gained by offload.
TEST(StepOffload, NothingWhereTheHostIsTheDevice) {
  Machine machine = preset("h100");
  StepConfig config = oneRank();
  SearchSpace space;
  for (double cores : {0.0, 1.0}) {
    machine.constants["processor_cores"] = cores;
    StepPlanner model = planner(gpt(12, 2048), machine);
    space.memoryBytes = model.memory(config).total();
    std::optional<StepOffload> best =
        chooseOffload(model, config, space, /*coarse=*/true);
    ASSERT_TRUE(best);
    EXPECT_TRUE(cores == 0 || best->optimizer.layers == 0);
    space.memoryBytes /= 2;
    best = chooseOffload(model, config, space, /*coarse=*/true);
    ASSERT_TRUE(best);
    EXPECT_NE(best->optimizer.layers, 0);
  }
}

TEST(StepOffload, WordsNameLayersAndCost) {
  StepPlanner model = planner(gpt(24, 2048), preset("h100"));
  StepConfig config = oneRank();
  config.offload.optimizer.layers = 16;
  config.offload.parameters = kAllOnDisk;
  EXPECT_EQ(describeOffload(model, config),
            "m, v, master of layers 8-23; parameters of all layers to disk");
  std::vector<std::string> notes =
      explainStep(model, config, model.estimate(config), model.capacity());
  EXPECT_TRUE(llvm::any_of(notes, [](llvm::StringRef note) {
    return note.starts_with("Offloading m, v, master of layers 8-23") &&
           note.contains(" saves ") && note.contains(" % of the step");
  }));
}
