//===- RunOptionsTest.cpp - Tests of zero-run's flags ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules between zero-run's flags.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/RunOptions.h"
#include "tools/zero-run/Flags.h"

#include <gtest/gtest.h>

using namespace zero_tools;

namespace {

std::optional<RunOptions> parse(std::vector<std::string> args) {
  std::vector<char *> argv = {const_cast<char *>("zero-run")};
  for (std::string &arg : args)
    argv.push_back(arg.data());
  return parseRunOptions(int(argv.size()), argv.data());
}

std::string errorOf(std::vector<std::string> args) {
  try {
    parse(std::move(args));
  } catch (const FlagError &error) {
    return error.what();
  }
  return "";
}

TEST(RunOptions, ReadsARun) {
  auto options = parse({"m.onnx", "--data", "d", "--loss", "mse", "--betas",
                        "0.8,0.9", "--dim", "a=b=3", "--ranks", "4"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->kind, ModelKind::Onnx);
  EXPECT_EQ(options->dims.at("a=b"), 3);
  EXPECT_EQ(options->betas, std::make_pair(0.8, 0.9));
  EXPECT_EQ(options->ranks, 4);
  EXPECT_EQ(options->learningRate, 1e-3);
  EXPECT_EQ(options->compileFlags, "--loss, --betas, --dim");
}

TEST(RunOptions, PlansAndStepsNeedNoLoss) {
  EXPECT_EQ(errorOf({"s.zplan", "--data", "d", "--ranks", "2"}), "");
  EXPECT_EQ(errorOf({"s.mlir", "--data", "d", "--zero-stage", "2"}), "");
}

TEST(RunOptions, ReadsASchedule) {
  auto options =
      parse({"m.onnx", "--data", "d", "--loss", "mse", "--memory", "24GiB",
             "--machine", "h100", "--zero-grid", "2x4",
             "--zero-schedule=prefetch", "--trace", "t", "--report", "r"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->memory, "24GiB");
  EXPECT_EQ(options->machine, "h100");
  EXPECT_EQ(options->schedule, "prefetch");
  EXPECT_EQ(options->grid, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(options->ranks, 8);
  EXPECT_FALSE(options->shardAll);
  EXPECT_EQ(options->trace, "t");
  EXPECT_EQ(options->report, "r");
  options = parse({"s.mlir", "--data", "d", "--zero-grid=8", "--ranks", "8",
                   "--zero-schedule", "none", "--zero-shard", "all"});
  EXPECT_TRUE(options->shardAll);
  EXPECT_EQ(options->grid, std::vector<int64_t>{8});
  EXPECT_EQ(
      errorOf({"s.zplan", "--data", "d", "--memory", "1", "--machine", "h100"}),
      "");
}

TEST(RunOptions, MistakesInFlagsOfTheStep) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--accumulate", "0"},
       "--accumulate '0': expected a whole number from 1 to 1048576"},
      {{"--precision", "f16"}, "--precision 'f16': expected f32, bf16 or fp16"},
      {{"--reduce-type", "int8"},
       "--reduce-type 'int8': expected f32, bf16 or fp16"},
      {{"--reduce-type", "fp16"}, "--reduce-type fp16 is for --precision fp16"},
      {{"--remat", "some"},
       "--remat 'some': expected none, selective, full or auto"},
      {{"--loss-scale", "big"},
       "--loss-scale 'big': expected a number of at least 0"},
      {{"--loss-scale", "-1"},
       "--loss-scale '-1': expected a number of at least 0"},
      {{"--loss-scale", "8", "--loss-scale-window", "9", "--precision", "fp16"},
       "--loss-scale is fixed; the other flags of the loss scale are for "
       "--loss-scale dynamic"},
      {{"--loss-scale-min", "8", "--precision", "bf16"},
       "--loss-scale and its numbers are for --precision fp16"},
      {{"--clip", "1", "--clip-value", "2"},
       "--clip and --clip-value exclude each other"},
      {{"--lr-schedule", "WarmupLR:warmup_type=fast"},
       "--lr-schedule 'WarmupLR:warmup_type=fast': warmup_type 'fast': "
       "expected a number of at least 0"},
      {{"--explain-config"}, "--explain-config needs --config"},
      {{"--lr-schedule", "cosine:warmup"},
       "--lr-schedule 'cosine:warmup': expected KEY=VALUE, found 'warmup'"},
      {{"--lr-schedule", "cosine:"},
       "--lr-schedule 'cosine:': expected KEY=VALUE, found ''"},
      {{"--lr-schedule", "cosine:a=1,a=2"},
       "--lr-schedule 'cosine:a=1,a=2': a is given twice"},
      {{"--group", "w"}, "--group 'w': expected PATTERN:lr=L,weight-decay=W"},
      {{"--group", "w:rate=1"},
       "--group 'w:rate=1': unknown 'rate', expected lr or weight-decay"},
      {{"--group", "w:lr=x"},
       "--group 'w:lr=x': lr 'x': expected a number of at least 0"},
      {{"--checkpoint-every", "5"},
       "--checkpoint-every, --keep and --checkpoint-sync need --checkpoint"},
      {{"--keep", "5"},
       "--checkpoint-every, --keep and --checkpoint-sync need --checkpoint"},
      {{"--shard-size", "5GB"}, "--shard-size needs --save-hf"},
      {{"--shard-size", "5QB"},
       "--shard-size '5QB': expected a size like 5GB, 2GiB or 1048576"},
      {{"--log", "wandb"}, "--log 'wandb': expected csv or tensorboard"},
      {{"--log", "csv"}, "--log needs --log-dir"},
      {{"--log-dir", "d"}, "--log-dir needs --log"},
      {{"--metric-names", "hf"}, "--metric-names needs --log"},
      {{"--metric-names", "mine"},
       "--metric-names 'mine': expected hf, deepspeed or torchtitan"},
  };
  for (const auto &[flags, message] : cases) {
    std::vector<std::string> args = {"m.onnx", "--data", "d", "--loss", "mse"};
    args.insert(args.end(), flags.begin(), flags.end());
    EXPECT_EQ(errorOf(args), message);
  }
}

TEST(RunOptions, GridsThatAreNone) {
  for (const char *grid :
       {"x", "4x", "x4", "4xx4", "0x4", "4x-1", "4X8", "axb", "33x32", "99999",
        "4x8 ", "1024x2", "1024x1024x1024x1024x1024x1024x1024"})
    EXPECT_EQ(errorOf({"s.mlir", "--data", "d", "--zero-grid", grid}),
              std::string("--zero-grid '") + grid +
                  "': expected sizes like 4x8 with at most 1024 ranks");
}

TEST(RunOptions, MistakesAreOneLine) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "no model: expected a .zplan, .mlir or .onnx file"},
      {{"a.onnx", "b.onnx"}, "more than one model: a.onnx and b.onnx"},
      {{"a.pt"}, "a.pt: expected a file named .zplan, .mlir or .onnx"},
      {{".onnx"}, ".onnx: expected a file named .zplan, .mlir or .onnx"},
      {{"s.zplan"}, "--data is missing: the file with the samples"},
      {{"s.zplan", "--data", "d", "--optimizer", "sgd", "--dim", "b=1"},
       "--optimizer, --dim: s.zplan has this decided already; give the flag to "
       "zero-compile or zero-import"},
      {{"m.onnx", "--data", "d"},
       "m.onnx: an ONNX model needs --loss to be trained"},
      {{"m.mlir", "--data", "d", "--momentum", "0.9"},
       "--momentum needs --loss: m.mlir is taken as a training step otherwise"},
      {{"m.mlir", "--data", "d", "--loss", "mse", "--dim", "b=1"},
       "--dim, --train and --freeze are for ONNX models"},
      {{"m.onnx", "--data", "d", "--dim", "b=0"},
       "--dim 'b=0': expected NAME=N with N of at least 1"},
      {{"m.onnx", "--data", "d", "--dim", "=1"},
       "--dim '=1': expected NAME=N with N of at least 1"},
      {{"m.onnx", "--data", "d", "--dim", "b"},
       "--dim 'b': expected NAME=N with N of at least 1"},
      {{"m.onnx", "--data", "d", "--dim", "b=9999999999999999999"},
       "--dim 'b=9999999999999999999': expected NAME=N with N of at least 1"},
      {{"m.onnx", "--data", "d", "--dim", "b=1", "--dim", "b=2"},
       "--dim 'b=2': the dimension is given twice"},
      {{"s.zplan", "--data", "d", "--backend", "cuda"},
       "not available yet: --backend cuda"},
      {{"s.zplan", "--data", "d", "--backend", "tpu"},
       "--backend 'tpu': expected host"},
      {{"m.onnx", "--data", "d", "--betas", "1"},
       "--betas '1': expected two numbers 'a,b'"},
      {{"m.onnx", "--data", "d", "--zero-grid", "2x3", "--ranks", "4"},
       "--zero-grid 2x3 has 6 ranks, --ranks says 4"},
      {{"m.onnx", "--data", "d", "--zero-schedule", "best"},
       "--zero-schedule 'best': expected none, prefetch, keep, reorder, bucket "
       "or joint"},
      {{"m.onnx", "--data", "d", "--zero-shard", "outer"},
       "--zero-shard 'outer': expected inner or all"},
      {{"s.zplan", "--data", "d", "--loss", "mse", "--zero-grid", "2",
        "--zero-shard", "all", "--zero-schedule", "none"},
       "--loss, --zero-grid, --zero-shard, --zero-schedule: s.zplan has this "
       "decided "
       "already; "
       "give the flag to zero-compile or zero-import"},
      {{"m.onnx", "--zero-stage", "4"},
       "--zero-stage '4': expected a whole number from 0 to 3"},
      {{"m.onnx", "--ranks", "0"},
       "--ranks '0': expected a whole number from 1 to 1024"},
  };
  for (const auto &[args, message] : cases)
    EXPECT_EQ(errorOf(args), message);
  EXPECT_EQ(errorOf({"s.zplan", "--save-onnx", "x"}),
            "not available yet: --save-onnx");
}

} // namespace
