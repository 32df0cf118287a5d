//===- ProcessPlans.h - Programs that test collectives --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every collective over some axes of a grid, on several streams and in all
// types, for tests that compare ways for data to travel.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_PROCESSPLANS_H
#define ZERO_TEST_UNIT_RUNTIME_PROCESSPLANS_H

#include "PlanBuilder.h"

namespace zrt::test {

struct GridCase {
  std::vector<uint32_t> grid, axes;
};
const std::vector<GridCase> &gridCases();

/// All collectives, over some axes, on three streams, in four types. Its input
/// "x" has `count` floats.
PlanBuilder collectives(const GridCase &one, int64_t count);

/// Two steps, each rank with values of its own.
void runSteps(Running &running, uint32_t ranks, int64_t count);

/// All outputs of a rank.
std::vector<std::vector<uint8_t>> outputsOf(Running &running, uint32_t rank);

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_RUNTIME_PROCESSPLANS_H
