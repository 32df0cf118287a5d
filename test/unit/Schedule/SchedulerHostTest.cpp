//===- SchedulerHostTest.cpp - Copies and compute of the host -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps of which something lies in host memory or on disk: schedules are right,
// within both budgets, never slower than without overlap, and as fast as an
// exhaustive search finds them to be.
//
//===----------------------------------------------------------------------===//

#include "HostGraphs.h"
#include "ScheduleExhaustive.h"
#include "zero/Schedule/Scheduler.h"

#include "gtest/gtest.h"
#include <limits>

using namespace mlir::zero;

static const HostShape kShapes[] = {
    {3, true, false, false, false}, {3, true, true, false, false},
    {3, true, false, true, false},  {3, true, true, true, false},
    {3, false, false, false, true}, {3, true, true, true, true},
    {6, false, false, true, false}, {6, true, true, true, true}};

/// What holds for every schedule of `graph`.
static void expectGood(const StepGraph &graph, const SchedulerOptions &options,
                       const ScheduleResult &result) {
  EXPECT_EQ(checkSchedule(graph, result.schedule), "");
  SimulatedStep simulated = simulate(graph, result.schedule);
  EXPECT_EQ(simulated.seconds, result.simulated.seconds);
  EXPECT_EQ(simulated.peakBytes, result.simulated.peakBytes);
  EXPECT_EQ(simulated.hostPeakBytes, result.simulated.hostPeakBytes);
  EXPECT_GE(simulated.seconds, result.lowerBoundSeconds * (1 - 1e-12));
  double serial = simulate(graph, serialSchedule(graph)).seconds;
  // The fastest of all is never slower than without overlap.
  EXPECT_LE(result.front.front().seconds, serial * (1 + 1e-12));
  auto missing = [](int64_t bytes, int64_t budget) {
    return budget < 0 ? 0 : std::max<int64_t>(bytes - budget, 0);
  };
  EXPECT_EQ(result.missingBytes,
            missing(simulated.peakBytes, options.memoryBytes));
  EXPECT_EQ(result.missingHostBytes,
            missing(simulated.hostPeakBytes, options.hostMemoryBytes));
  EXPECT_EQ(result.feasible,
            result.missingBytes == 0 && result.missingHostBytes == 0);
  int64_t sum = 0;
  for (int32_t buffer : result.hostPeakBuffers) {
    EXPECT_EQ(graph.buffers[buffer].space, MemorySpace::Host);
    sum += graph.buffers[buffer].bytes;
  }
  EXPECT_EQ(sum, simulated.hostPeakBytes);
}

TEST(SchedulerHost, SchedulesAreRightAndWithinBothBudgets) {
  std::mt19937 random(3);
  for (const HostShape &shape : kShapes) {
    StepGraph graph = hostStep(random, shape);
    ScheduleResult free = scheduleStep(graph, {});
    expectGood(graph, {}, free);
    for (double device : {1.0, 0.6})
      for (double host : {1.0, 0.7, 0.4}) {
        SchedulerOptions options;
        options.memoryBytes = free.simulated.peakBytes * device;
        options.hostMemoryBytes = free.simulated.hostPeakBytes * host;
        expectGood(graph, options, scheduleStep(graph, options));
      }
  }
}

TEST(SchedulerHost, TimeNeverRisesWithEitherBudget) {
  std::mt19937 random(4);
  for (const HostShape &shape : kShapes) {
    StepGraph graph = hostStep(random, shape);
    ScheduleResult free = scheduleStep(graph, {});
    // All budgets choose from one front: of a few, all pairs.
    auto secondsOf = [&](int64_t device, int64_t host) {
      for (const ParetoPoint &point : free.front)
        if (point.peakBytes <= device && point.hostPeakBytes <= host)
          return point.seconds;
      return std::numeric_limits<double>::max();
    };
    SchedulerOptions options;
    for (int64_t device :
         {free.simulated.peakBytes * 3 / 4, free.simulated.peakBytes * 2})
      for (int64_t host : {free.simulated.hostPeakBytes * 2 / 3,
                           free.simulated.hostPeakBytes * 2}) {
        options.memoryBytes = device;
        options.hostMemoryBytes = host;
        ScheduleResult result = scheduleStep(graph, options);
        if (result.feasible)
          EXPECT_EQ(result.simulated.seconds, secondsOf(device, host));
        EXPECT_EQ(result.front.size(), free.front.size());
      }
    // Fastest first, and none beaten in all.
    for (size_t i = 1; i < free.front.size(); ++i) {
      EXPECT_LE(free.front[i - 1].seconds, free.front[i].seconds);
      for (size_t j = 0; j != i; ++j)
        EXPECT_FALSE(free.front[j].peakBytes <= free.front[i].peakBytes &&
                     free.front[j].hostPeakBytes <=
                         free.front[i].hostPeakBytes);
    }
  }
}

/// Compute of ten layers of one size, whose updates are made from disk.
static StepGraph evenDiskStep(double computeSeconds) {
  StepBuilder b;
  b.graph.channels = {"compute",   "to_host",    "to_device",
                      "disk_read", "disk_write", "host"};
  auto buffer = [&](int64_t bytes, MemorySpace space, bool resident = false) {
    int32_t number = b.buffer(bytes, MemoryKind::OptimizerState, resident);
    b.graph.buffers[number].space = space;
    return number;
  };
  std::vector<int32_t> lasting;
  int32_t last = buffer(1, MemorySpace::Device, true);
  for (int i = 0; i != 10; ++i) {
    int32_t weight = buffer(2, MemorySpace::Device, true);
    int32_t onDisk = buffer(12, MemorySpace::Disk, true);
    int32_t gradient = buffer(2, MemorySpace::Device);
    for (int part = 0; part != 9; ++part)
      b.run(computeSeconds / 10, {last}, {last});
    b.run(computeSeconds / 10, {last}, {gradient});
    int32_t down = buffer(2, MemorySpace::Host);
    b.task(TaskKind::CopyOut, 1, 1, {gradient}, {down});
    int32_t state = buffer(12, MemorySpace::Host);
    b.task(TaskKind::DiskRead, 3, 6, {onDisk}, {state});
    int32_t fresh = buffer(2, MemorySpace::Host);
    int32_t update =
        b.task(TaskKind::HostCompute, 5, 2, {state, down}, {state, fresh});
    b.graph.tasks[update].bucketClass = update;
    b.task(TaskKind::DiskWrite, 4, 6, {state}, {onDisk});
    b.task(TaskKind::CopyIn, 2, 1, {fresh}, {weight});
    lasting.push_back(weight);
    lasting.push_back(onDisk);
  }
  b.run(0, lasting, {});
  return std::move(b.graph);
}

TEST(SchedulerHost, DisksAreReadJustInTime) {
  StepGraph graph = evenDiskStep(/*computeSeconds=*/20);
  ScheduleResult result = scheduleStep(graph, {});
  expectGood(graph, {}, result);
  // Nothing but the last layer's chain is exposed.
  EXPECT_NEAR(result.simulated.seconds, 10 * 20 + 1 + 2 + 6, 1e-9);
  // One layer's state, and that of the next: not all of them, although memory
  // has no limit.
  EXPECT_LE(result.simulated.hostPeakBytes, 2 * 16);
}

TEST(SchedulerHost, ABudgetOfHostMemoryMakesAWindow) {
  // The disk is what limits the step: 6 s a layer each way against 2 s.
  StepGraph graph = evenDiskStep(/*computeSeconds=*/2);
  ScheduleResult free = scheduleStep(graph, {});
  double before = std::numeric_limits<double>::max();
  for (int64_t layers : {1, 2, 3, 4, 10}) {
    SchedulerOptions options;
    options.hostMemoryBytes = layers * 16;
    ScheduleResult result = scheduleStep(graph, options);
    expectGood(graph, options, result);
    EXPECT_TRUE(result.feasible) << layers << " layers";
    EXPECT_LE(result.simulated.seconds, before);
    before = result.simulated.seconds;
    // One at a time: read, update, write. With two, reads beside writes; with
    // three also beside the updates.
    if (layers == 1)
      EXPECT_LE(result.simulated.seconds, 10 * 14 + 3);
    if (layers >= 3)
      EXPECT_LE(result.simulated.seconds, 1.2 * free.simulated.seconds);
  }
}

TEST(SchedulerHost, BothDirectionsAndTheHostWorkAtOnce) {
  // Backward is short: the tail is what the channels need.
  StepBuilder b;
  b.graph.channels = {"compute", "to_host", "to_device", "host"};
  auto buffer = [&](MemorySpace space, bool resident = false) {
    int32_t number = b.buffer(2, MemoryKind::Gradient, resident);
    b.graph.buffers[number].space = space;
    return number;
  };
  std::vector<int32_t> weights;
  for (int i = 0; i != 8; ++i) {
    int32_t gradient = buffer(MemorySpace::Device);
    b.run(1, {}, {gradient});
    int32_t down = buffer(MemorySpace::Host);
    b.task(TaskKind::CopyOut, 1, 5, {gradient}, {down});
    int32_t fresh = buffer(MemorySpace::Host);
    b.task(TaskKind::HostCompute, 3, 5, {down}, {fresh});
    weights.push_back(buffer(MemorySpace::Device, true));
    b.task(TaskKind::CopyIn, 2, 5, {fresh}, {weights.back()});
  }
  b.run(0, weights, {});
  ScheduleResult result = scheduleStep(b.graph, {});
  expectGood(b.graph, {}, result);
  // A pipeline of three stages: eight of one, and one of the two others.
  EXPECT_NEAR(result.simulated.seconds, 1 + 10 * 5, 1e-9);
  EXPECT_NEAR(result.lowerBoundSeconds, 1 + 10 * 5, 1e-9);
}

TEST(SchedulerHost, OfWhatIsReadyTheLongestChainGoesFirst) {
  // All gradients are there at once: the long update first, so that its copy
  // runs beside the others.
  StepBuilder b;
  b.graph.channels = {"compute", "to_host", "to_device", "host"};
  std::vector<int32_t> weights;
  int32_t gradients = b.buffer(8, MemoryKind::Gradient);
  b.run(1, {}, {gradients});
  for (double seconds : {1.0, 1.0, 1.0, 9.0}) {
    int32_t fresh = b.buffer(2, MemoryKind::Parameter);
    b.graph.buffers[fresh].space = MemorySpace::Host;
    b.task(TaskKind::HostCompute, 3, 1, {gradients}, {fresh});
    weights.push_back(b.buffer(2, MemoryKind::Parameter, true));
    b.task(TaskKind::CopyIn, 2, seconds, {fresh}, {weights.back()});
  }
  b.run(0, weights, {});
  SchedulerOptions options;
  ScheduleResult result = scheduleStep(b.graph, options);
  expectGood(b.graph, options, result);
  EXPECT_NEAR(result.simulated.seconds, 1 + 1 + 9 + 3, 1e-9);
}

TEST(SchedulerHost, OffloadedActivationsFreeTheirMemory) {
  // The same step with them on the device and in host memory.
  std::mt19937 random(8), same(8);
  StepGraph device = hostStep(random, {8, false, false, false, false});
  StepGraph host = hostStep(same, {8, false, false, false, true});
  int64_t most = 0;
  for (const StepBuffer &buffer : host.buffers)
    if (buffer.space == MemorySpace::Host)
      most += buffer.bytes;
  ScheduleResult stay = scheduleStep(device, {}), go = scheduleStep(host, {});
  auto leanest = [](const ScheduleResult &result) {
    int64_t least = result.front.front().peakBytes;
    for (const ParetoPoint &point : result.front)
      least = std::min(least, point.peakBytes);
    return least;
  };
  EXPECT_LT(leanest(go), leanest(stay) - most / 2);
  // It is for the memory that they go: without a budget it is free.
  EXPECT_LE(go.simulated.peakBytes,
            leanest(go) + (go.front.front().peakBytes - leanest(go)) / 8);
  EXPECT_LE(go.simulated.hostPeakBytes, most);
  EXPECT_EQ(stay.simulated.hostPeakBytes, 0);
}

namespace {
struct HostFamily {
  const char *name;
  HostShape shape;
  unsigned seed;
  int graphs;
};
class SchedulerHostOptimal : public testing::TestWithParam<HostFamily> {};
} // namespace

TEST_P(SchedulerHostOptimal, NothingIsTwoPercentFaster) {
  std::mt19937 random(GetParam().seed);
  SchedulerOptions options;
  options.bucket = options.reorder = options.keepGathered = false;
  int tried = 0, skipped = 0;
  for (int i = 0; i != GetParam().graphs; ++i) {
    StepGraph graph = hostStep(random, GetParam().shape);
    ScheduleResult free = scheduleStep(graph, options);
    for (size_t point = 0; point <= free.front.size(); ++point) {
      // Host memory without a limit: the points that are best without one.
      int64_t budget = std::numeric_limits<int64_t>::max();
      if (point)
        budget = free.front[point - 1].peakBytes - 1;
      auto found = llvm::find_if(free.front, [&](const ParetoPoint &other) {
        return other.peakBytes <= budget;
      });
      if (found == free.front.end())
        continue;
      ExhaustiveResult other = searchFaster(
          graph, budget, found->seconds / 1.02, false, false, 150'000);
      ++tried;
      skipped += !other.complete;
      EXPECT_FALSE(other.found)
          << "graph " << i << " within " << budget
          << " bytes: " << simulate(graph, other.schedule).seconds
          << " s are possible, found " << found->seconds;
    }
  }
  EXPECT_LE(skipped * 5, tried);
}

INSTANTIATE_TEST_SUITE_P(
    Steps, SchedulerHostOptimal,
    testing::Values(
        HostFamily{"Optimizer", {2, true, false, false, false}, 1, 4},
        HostFamily{"Disk", {2, true, true, false, false}, 2, 4},
        HostFamily{"Parameters", {2, false, false, true, false}, 3, 4},
        HostFamily{"Activations", {3, false, false, false, true}, 4, 3}),
    [](const testing::TestParamInfo<HostFamily> &info) {
      return info.param.name;
    });
