//===- SchedulerOptimalTest.cpp -------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// At every budget, no schedule of a small step is more than 2 % faster than
// what the scheduler finds: 340 steps with up to 12 collectives, all starts,
// waits and sets of kept gathers.
//
//===----------------------------------------------------------------------===//

#include "ScheduleExhaustive.h"
#include "ScheduleGraphs.h"
#include "zero/Schedule/Scheduler.h"

#include "gtest/gtest.h"
#include <limits>

using namespace mlir::zero;

namespace {
/// A family of steps. No layers: random tasks.
struct Family {
  const char *name;
  RandomShape shape;
  unsigned seed;
  int graphs;
};

class SchedulerOptimal : public testing::TestWithParam<Family> {
protected:
  StepGraph next();
  void compare(const StepGraph &graph);

  std::mt19937 random{GetParam().seed};
  int budgets = 0, skipped = 0;
};
} // namespace

StepGraph SchedulerOptimal::next() {
  RandomShape shape = GetParam().shape;
  if (!shape.layers) {
    int numCompute = 6 + static_cast<int>(random() % 6);
    return randomTasks(random, numCompute, 4 + random() % 9);
  }
  shape.layers -= random() % 2;
  return randomStep(random, shape);
}

/// The front is a staircase: on each step it suffices to try the most memory,
/// one byte less than the next faster point takes. Below the last point nothing
/// may fit at all.
void SchedulerOptimal::compare(const StepGraph &graph) {
  SchedulerOptions options;
  options.bucket = options.reorder = false; // as the search has it
  std::vector<ParetoPoint> front = scheduleStep(graph, options).front;
  for (size_t i = 0; i <= front.size(); ++i) {
    int64_t budget =
        i ? front[i - 1].peakBytes - 1 : std::numeric_limits<int64_t>::max();
    double seconds = i != front.size() ? front[i].seconds / 1.02
                                       : std::numeric_limits<double>::max();
    ExhaustiveResult other =
        searchFaster(graph, budget, seconds, false, true, 150'000);
    ++budgets;
    skipped += !other.complete;
    if (!other.found)
      continue;
    EXPECT_EQ(checkSchedule(graph, other.schedule), "");
    SimulatedStep simulated = simulate(graph, other.schedule);
    EXPECT_LE(simulated.peakBytes, budget);
    ADD_FAILURE() << "within " << budget << " bytes " << simulated.seconds
                  << " s are possible, found " << seconds * 1.02;
  }
}

TEST_P(SchedulerOptimal, NothingIsTwoPercentFaster) {
  for (int i = 0; i != GetParam().graphs; ++i) {
    StepGraph graph = next();
    SCOPED_TRACE(testing::Message() << "graph " << i);
    compare(graph);
  }
  // The search gives up on few.
  EXPECT_LE(skipped * 20, budgets);
}

INSTANTIATE_TEST_SUITE_P(
    Steps, SchedulerOptimal,
    testing::Values(Family{"Stage3", {4, true, false, false}, 11, 10},
                    Family{"Stage3Small", {3, true, false, false}, 17, 50},
                    Family{"Stage2", {4, false, false, false}, 12, 50},
                    Family{"Hybrid", {3, true, true, false}, 13, 50},
                    Family{"Stage3LateUpdate", {3, true, false, true}, 14, 50},
                    Family{"Stage2LateUpdate", {4, false, false, true}, 15, 50},
                    Family{"HybridLateUpdate", {3, true, true, true}, 16, 30},
                    Family{"Tasks", {0, false, false, false}, 77, 50}),
    [](const testing::TestParamInfo<Family> &info) { return info.param.name; });
