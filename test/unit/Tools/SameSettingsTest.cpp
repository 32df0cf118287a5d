//===- SameSettingsTest.cpp - Tests of the flags of several processes -----===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which flags the processes of a run must share, and what is said otherwise.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/SameSettings.h"
#include "tools/zero-run/RunOptions.h"

#include <gtest/gtest.h>

using namespace zero_tools;

namespace {

std::string settings(std::vector<std::string> flags,
                     const std::string &model = "m.onnx") {
  std::vector<std::string> args = {model, "--data", "d"};
  if (model == "m.onnx")
    args.insert(args.end(), {"--loss", "mse"});
  args.insert(args.end(), flags.begin(), flags.end());
  std::vector<char *> argv = {const_cast<char *>("zero-run")};
  for (std::string &arg : args)
    argv.push_back(arg.data());
  return sharedSettings(*parseRunOptions(int(argv.size()), argv.data()));
}

std::string difference(std::vector<std::string> first,
                       std::vector<std::string> second) {
  std::string other = settings(first);
  return findDifference({other, other, settings(second)});
}

TEST(SameSettings, NamesTheFirstDifference) {
  EXPECT_EQ(difference({"--lr", "0.1", "--steps", "3"},
                       {"--lr", "0.9", "--steps", "4"}),
            "rank 2 has --lr 0.9, rank 0 --lr 0.1: all processes of a run need "
            "the same flags");
  EXPECT_EQ(difference({"--clip", "1"}, {}),
            "rank 2 has no --clip, rank 0 --clip 1: all processes of a run "
            "need the same flags");
  EXPECT_EQ(difference({}, {"--checkpoint", "c"}),
            "rank 2 has --checkpoint, rank 0 no --checkpoint: all processes of "
            "a run need the same flags");
  EXPECT_EQ(findDifference({settings({}, "m.zplan"), settings({}, "m.mlir")}),
            "rank 1 has a model named .mlir, rank 0 a model named .zplan: all "
            "processes of a run need the same flags");
}

TEST(SameSettings, EveryFlagThatChangesTheRun) {
  std::vector<std::vector<std::string>> flags = {
      {"--zero-stage", "3"},
      {"--zero-grid", "2x2"},
      {"--zero-shard", "all"},
      {"--zero-schedule", "none"},
      {"--memory", "1GiB"},
      {"--host-memory", "1GiB"},
      {"--machine", "h100"},
      {"--offload", "optimizer=host"},
      {"--offload-path", "p"},
      {"--remat", "full"},
      {"--backend", "cuda"},
      {"--optimizer", "adam"},
      {"--lr-schedule", "cosine:warmup=1,total=2"},
      {"--betas", "0.8,0.9"},
      {"--epsilon", "1e-7"},
      {"--weight-decay", "0.5"},
      {"--dim", "n=2"},
      {"--train", "w"},
      {"--freeze", "w"},
      {"--no-decay", "auto"},
      {"--group", "w:lr=1"},
      {"--accumulate", "2"},
      {"--clip-value", "1"},
      {"--precision", "bf16"},
      {"--reduce-type", "bf16"},
      {"--weights", "w"},
      {"--batch", "2"},
      {"--seed", "2"},
      {"--resume", "r"},
      {"--save-weights", "w"},
      {"--save-hf", "h"},
      {"--trace", "t"},
      {"--report", "t"},
      {"--check-finite"},
      {"--cuda-graph"},
      {"--transport", "shm"},
      {"--timeout", "3"},
      {"--timeout-factor", "3"}};
  for (const std::vector<std::string> &flag : flags)
    EXPECT_NE(difference({}, flag).find(flag[0]), std::string::npos) << flag[0];
  std::vector<std::string> sgd = {"--optimizer", "sgd"}, more = sgd;
  more.insert(more.end(), {"--momentum", "0.9"});
  EXPECT_NE(difference(sgd, more).find("--momentum 0.9"), std::string::npos);
  more = sgd;
  more.push_back("--nesterov");
  EXPECT_NE(difference(sgd, more).find("--nesterov"), std::string::npos);
  std::vector<std::string> half = {"--precision", "fp16"};
  for (const char *flag :
       {"--loss-scale", "--loss-scale-window", "--loss-scale-hysteresis",
        "--loss-scale-min", "--initial-scale-power"}) {
    more = half;
    more.insert(more.end(), {flag, "4"});
    EXPECT_NE(difference(half, more).find(flag), std::string::npos) << flag;
  }
  std::vector<std::string> keep = {"--checkpoint", "c"};
  for (const char *flag : {"--checkpoint-every", "--keep"}) {
    more = keep;
    more.insert(more.end(), {flag, "4"});
    EXPECT_NE(difference(keep, more).find(flag), std::string::npos) << flag;
  }
}

TEST(SameSettings, PathsAndOutputsMayDiffer) {
  EXPECT_EQ(
      difference({"--weights", "/a/w", "--checkpoint", "/a/c", "--machine",
                  "/a/m.json"},
                 {"--weights", "/b/w", "--checkpoint", "/b/c", "--machine",
                  "/b/m.json", "--metrics", "m", "--summary", "--log-every",
                  "3", "--rank", "1", "--local-rank", "0", "--threads", "2"}),
      "");
}

TEST(SameSettings, AnotherVersionHasOtherSettings) {
  std::string mine = settings({});
  EXPECT_EQ(findDifference({mine, mine.substr(0, mine.size() / 2)}),
            "rank 1 and rank 0 are of different versions of zero-run: all "
            "processes of a run need the same");
}

} // namespace
