//===- StepLineTest.cpp - Tests of the line of a step ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lines as people see them, compared as text.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/StepLine.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace zero_tools;

namespace {

zrt::StepMetrics metrics(int64_t step, double loss = 4.12345) {
  zrt::StepMetrics m;
  m.step = step;
  m.loss = loss;
  m.learningRate = 3e-4;
  m.stepMs = 500;
  m.samplesPerSecond = 64;
  m.peak.device = uint64_t(30.12 * (1 << 30));
  return m;
}

zrt::StepMetrics full(int64_t step) {
  zrt::StepMetrics m = metrics(step);
  m.gradNorm = 1.2345;
  m.tokensPerSecond = 46096;
  m.teraflops = 311.2;
  m.mfu = 0.31467;
  return m;
}

StepLineOptions eightRanks() {
  StepLineOptions options;
  options.ranks = 8;
  options.memoryLimit = 80.0 * (1 << 30);
  return options;
}

TEST(StepLine, IsTorchtitans) {
  StepLine line(eightRanks());
  EXPECT_TRUE(line.add(full(1), false));
  EXPECT_EQ(line.format(),
            "step:  1  loss:  4.12345  grad_norm:  1.2345  memory: "
            "30.12GiB(37.65%)  tps: 5,762  tflops: 311.20  mfu: 31.47%  lr: "
            "0.0003");
  // What has not changed is not said again.
  line.add(full(10), false);
  EXPECT_EQ(line.format(),
            "step: 10  loss:  4.12345  grad_norm:  1.2345  memory: "
            "30.12GiB(37.65%)  tps: 5,762  tflops: 311.20  mfu: 31.47%");
}

TEST(StepLine, LeavesOutWhatIsNotKnown) {
  StepLine line({});
  line.add(metrics(3), false);
  EXPECT_EQ(line.format(), "step:  3  loss:  4.12345  memory: 30.12GiB  "
                           "samples/s: 64.0  lr: 0.0003");
}

TEST(StepLine, ShowsTheSpacesThatAreUsed) {
  StepLine line({});
  zrt::StepMetrics m = metrics(1);
  m.peak.host = 3 << 20;
  line.add(m, false);
  EXPECT_NE(line.format().find("memory: 30.12GiB  host: 3.00MiB  samples/s"),
            std::string::npos);
  m.peak.disk = 4096;
  line.add(m, false);
  EXPECT_NE(line.format().find("  host: 3.00MiB  disk: 4.00KiB  samples/s"),
            std::string::npos);
}

TEST(StepLine, SaysWhatChanged) {
  StepLine line(eightRanks());
  zrt::StepMetrics m = metrics(1);
  m.lossScale = 65536;
  m.skipped = true;
  m.skippedSteps = 1;
  m.gradNorm = INFINITY;
  line.add(m, false);
  EXPECT_EQ(line.format(),
            "step:  1  loss:  4.12345  grad_norm:     inf  memory: "
            "30.12GiB(37.65%)  samples/s: 8.0  lr: 0.0003  loss_scale: 65536  "
            "skipped: 1");
  m.step = 2;
  m.lossScale = 32768;
  m.gradNorm = 3;
  m.gradNormClipped = 1;
  line.add(m, false);
  EXPECT_EQ(line.format(),
            "step:  2  loss:  4.12345  grad_norm:  3.0000 (clipped to 1)  "
            "memory: 30.12GiB(37.65%)  samples/s: 8.0  loss_scale: 32768");
}

TEST(StepLine, SpeedsAreMeansSinceTheLastLine) {
  StepLineOptions options;
  options.every = 2;
  StepLine line(options);
  zrt::StepMetrics slow = full(2), fast = full(3);
  line.add(full(1), false);
  line.format();
  slow.stepMs = 3000; // 3,000 tokens in 3 s, 3,000 in 1 s
  slow.tokensPerSecond = 1000;
  fast.stepMs = 1000;
  fast.tokensPerSecond = 3000;
  slow.step = 3;
  fast.step = 4;
  EXPECT_FALSE(line.add(slow, false));
  EXPECT_TRUE(line.add(fast, false));
  EXPECT_NE(line.format().find("  tps: 1,500  "), std::string::npos);
}

TEST(StepLine, IsDueAtTheFirstTheLastAndEveryNth) {
  StepLineOptions options;
  options.every = 5;
  StepLine line(options);
  EXPECT_TRUE(line.add(metrics(7), false)); // where a run continues
  EXPECT_FALSE(line.add(metrics(8), false));
  EXPECT_TRUE(line.add(metrics(10), false));
  EXPECT_TRUE(line.add(metrics(11), true));
  options.every = 0;
  StepLine none(options);
  EXPECT_FALSE(none.add(metrics(1), true));
}

TEST(StepLine, ColorsOnlyWhereAskedFor) {
  StepLineOptions options;
  options.colors = true;
  StepLine line(options);
  line.add(metrics(1), false);
  EXPECT_EQ(line.format().rfind("\033[31mstep:  1\033[0m  \033[32mloss:", 0),
            0u);
  StepLine plain({});
  plain.add(metrics(1), false);
  EXPECT_EQ(plain.format().find('\033'), std::string::npos);
}

TEST(StepLine, Numbers) {
  EXPECT_EQ(withThousands(0), "0");
  EXPECT_EQ(withThousands(999.6), "1,000");
  EXPECT_EQ(withThousands(1234567), "1,234,567");
  EXPECT_EQ(withThousands(-123456), "-123,456");
  EXPECT_EQ(withThousands(INFINITY), "inf");
  EXPECT_EQ(formatBytes(800), "800B");
  EXPECT_EQ(formatBytes(1536), "1.50KiB");
  EXPECT_EQ(formatBytes(1.5 * (1 << 20)), "1.50MiB");
  EXPECT_EQ(formatBytes(30.12 * (1 << 30)), "30.12GiB");
}

TEST(StepLine, SmallRatesKeepTwoDigits) {
  StepLine line({});
  zrt::StepMetrics m = metrics(1);
  m.teraflops = 0.00031234;
  line.add(m, false);
  EXPECT_NE(line.format().find("tflops: 0.00031  "), std::string::npos);
}

} // namespace
