//===- ProgressTest.cpp - Tests of the progress bar -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bar as text; that it is on terminals alone is shown by
// test/e2e/output.py.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Progress.h"
#include "tools/zero-run/Terminal.h"

#include <gtest/gtest.h>

using namespace zero_tools;

namespace {

ProgressState state(int64_t done, int64_t total) {
  ProgressState s;
  s.done = s.doneHere = done;
  s.total = total;
  s.seconds = double(done) / 2.5;
  return s;
}

TEST(Progress, LooksLikeTqdm) {
  EXPECT_EQ(formatProgress(state(30, 100), 60, true),
            "step:  30%|████▌          | 30/100 [00:12<00:28,  2.50it/s]");
  EXPECT_EQ(formatProgress(state(30, 100), 60, false),
            "step:  30%|####5          | 30/100 [00:12<00:28,  2.50it/s]");
  EXPECT_EQ(formatProgress(state(100, 100), 60, false),
            "step: 100%|##############| 100/100 [00:40<00:00,  2.50it/s]");
}

TEST(Progress, SlowStepsHaveSeconds) {
  ProgressState s = state(2, 4);
  s.seconds = 10;
  s.note = "loss 2.31";
  EXPECT_EQ(formatProgress(s, 200, false),
            "step:  50%|" + std::string(20, '#') + std::string(20, ' ') +
                "| 2/4 [00:10<00:10,  5.00s/it, loss 2.31]");
}

TEST(Progress, NothingIsKnownBeforeTheFirstStep) {
  EXPECT_EQ(formatProgress(state(0, 10), 50, false),
            "step:   0%|               | 0/10 [00:00<?, ?it/s]");
  EXPECT_EQ(formatProgress(state(0, 0), 60, false).rfind("step: 100%|#", 0),
            0u);
}

TEST(Progress, SpeedIsThatOfThisRun) {
  ProgressState s = state(30, 40);
  s.doneHere = 10; // 20 were done by the run that this one continues
  s.seconds = 10;
  EXPECT_NE(formatProgress(s, 80, false).find("[00:10<00:10,  1.00it/s]"),
            std::string::npos);
}

TEST(Progress, NeverWrapsTheLine) {
  for (int columns = 0; columns < 100; ++columns)
    EXPECT_LE(formatProgress(state(30, 100), columns, false).size(),
              size_t(std::max(0, columns - 1)));
}

TEST(Progress, Durations) {
  EXPECT_EQ(formatDuration(0), "00:00");
  EXPECT_EQ(formatDuration(59.9), "00:59");
  EXPECT_EQ(formatDuration(3599), "59:59");
  EXPECT_EQ(formatDuration(3600 * 30 + 61), "30:01:01");
}

TEST(Messages, NamesCannotCommandATerminal) {
  EXPECT_EQ(inertText("a\nb\r\x1b[2J\x7f</script>é"),
            "a\\x0ab\\x0d\\x1b[2J\\x7f</script>é");
  ::testing::internal::CaptureStderr();
  printMessage("error", "a\nb");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "zero-run: error: a\\x0ab\n");
}

TEST(Progress, NothingIsDrawnIntoAPipe) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress;
    progress.begin(0, 2);
    progress.show(1, "loss 1");
    progress.clear();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

} // namespace
