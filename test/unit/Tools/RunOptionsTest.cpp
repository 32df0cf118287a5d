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

TEST(RunOptions, ReadsProcesses) {
  auto options = parse({"s.zplan", "--data", "d", "--processes", "4",
                        "--transport", "shm", "--timeout", "5",
                        "--timeout-factor", "10", "--connect-timeout", "7"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->launch.processes, 4);
  EXPECT_EQ(options->transport, "shm");
  EXPECT_EQ(options->timeoutSeconds, 5);
  EXPECT_EQ(options->timeoutFactor, 10);
  EXPECT_EQ(options->connectSeconds, 7);
  options = parse({"s.zplan", "--data", "d", "--rank", "1", "--world-size", "2",
                   "--master-addr", "h", "--master-port", "7"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->launch.rank, 1);
  EXPECT_EQ(options->launch.worldSize, 2);
  EXPECT_EQ(options->launch.masterAddress, "h");
  EXPECT_EQ(options->launch.masterPort, 7);
}

TEST(RunOptions, RefusesProcessesThatAreStartedTwice) {
  EXPECT_EQ(
      errorOf({"s.zplan", "--data", "d", "--processes", "2", "--rank", "0"}),
      "--processes starts all processes here; --rank, --world-size, "
      "--local-rank, --master-addr and --master-port are for processes "
      "started otherwise");
  EXPECT_EQ(errorOf({"s.zplan", "--data", "d", "--transport", "tcp"}),
            "--transport 'tcp': expected auto, shm or mpi");
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

TEST(RunOptions, ReadsTheStep) {
  auto options =
      parse({"m.onnx",
             "--data",
             "d",
             "--loss",
             "mse",
             "--precision",
             "fp16",
             "--reduce-type",
             "bf16",
             "--loss-scale",
             "dynamic",
             "--loss-scale-window",
             "10",
             "--loss-scale-hysteresis",
             "3",
             "--loss-scale-min",
             "2",
             "--initial-scale-power",
             "8",
             "--clip",
             "0.5",
             "--accumulate",
             "4",
             "--remat",
             "auto",
             "--no-decay",
             "auto",
             "--no-decay",
             "*.bias",
             "--group",
             "a:b*:lr=0.1,weight-decay=0.2",
             "--group",
             "c:lr=1",
             "--lr-schedule",
             "WarmupDecayLR:total_num_steps=1e3,warmup_type=linear"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->precision, "fp16");
  EXPECT_EQ(options->reduceType, "bf16");
  EXPECT_EQ(options->lossScale.scale, 0);
  EXPECT_EQ(options->lossScale.window, 10);
  EXPECT_EQ(options->lossScale.hysteresis, 3);
  EXPECT_EQ(options->lossScale.min, 2);
  EXPECT_EQ(options->lossScale.initialPower, 8);
  EXPECT_EQ(options->clipNorm, 0.5);
  EXPECT_EQ(options->accumulate, 4);
  EXPECT_EQ(options->remat, "auto");
  EXPECT_EQ(options->noDecay, (std::vector<std::string>{"auto", "*.bias"}));
  ASSERT_EQ(options->groups.size(), 2u);
  EXPECT_EQ(options->groups[0].pattern, "a:b*");
  EXPECT_EQ(options->groups[0].learningRate, 0.1);
  EXPECT_EQ(options->groups[0].weightDecay, 0.2);
  EXPECT_FALSE(options->groups[1].weightDecay);
  ASSERT_TRUE(options->lrSchedule);
  EXPECT_EQ(options->lrSchedule->kind, "WarmupDecayLR");
  EXPECT_EQ(options->lrSchedule->numbers,
            (std::map<std::string, double>{{"total_num_steps", 1000},
                                           {"warmup_type", 1}}));
  EXPECT_TRUE(options->given.count("--clip"));
  EXPECT_FALSE(options->given.count("--clip-value"));
}

TEST(RunOptions, ReadsWhatARunWrites) {
  auto options = parse({"s.mlir",
                        "--data",
                        "d",
                        "--checkpoint",
                        "c",
                        "--checkpoint-every",
                        "5",
                        "--keep",
                        "2",
                        "--resume",
                        "r",
                        "--checkpoint-sync",
                        "--save-hf",
                        "h",
                        "--shard-size",
                        "1.5KiB",
                        "--log",
                        "csv",
                        "--log",
                        "tensorboard",
                        "--log-dir",
                        "l",
                        "--metric-names",
                        "hf",
                        "--log-every",
                        "0",
                        "--check-finite"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->checkpoint, "c");
  EXPECT_EQ(options->checkpointEvery, 5);
  EXPECT_EQ(options->keepCheckpoints, 2);
  EXPECT_EQ(options->resume, "r");
  EXPECT_TRUE(options->checkpointSync);
  EXPECT_EQ(options->saveHf, "h");
  EXPECT_EQ(options->shardBytes, 1536);
  EXPECT_EQ(options->logs, (std::vector<std::string>{"csv", "tensorboard"}));
  EXPECT_EQ(options->logDir, "l");
  EXPECT_EQ(options->metricNames, "hf");
  EXPECT_EQ(options->logEvery, 0);
  EXPECT_TRUE(options->checkFinite);
}

TEST(RunOptions, ExplainingNeedsNoModel) {
  auto options = parse({"--explain-config", "--config", "ds.json"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->explainConfig);
  EXPECT_TRUE(options->model.empty());
  EXPECT_EQ(options->config, "ds.json");
  EXPECT_TRUE(parse({"--explain-config"}));
  EXPECT_TRUE(parse({"m.onnx", "--explain-config", "--config", "ds.json"}));
}

/// With a config, they wait for its settings.
TEST(RunOptions, RulesBetweenSettings) {
  EXPECT_EQ(errorOf({"m.onnx", "--data", "d", "--loss", "mse", "--config", "c",
                     "--loss-scale", "8"}),
            "");
  RunOptions options;
  options.optimizer = "sgd";
  options.epsilon = 1e-3;
  EXPECT_THROW(checkRunOptions(options), FlagError);
  options.epsilon.reset();
  EXPECT_NO_THROW(checkRunOptions(options));
  options.lossScale.scale = 8;
  EXPECT_THROW(checkRunOptions(options), FlagError);
  options.precision = "fp16";
  EXPECT_NO_THROW(checkRunOptions(options));
}

TEST(RunOptions, ReadsOffload) {
  auto options =
      parse({"m.mlir", "--data", "d", "--offload", "optimizer=disk",
             "--offload=parameters@h.*=host:0.5", "--offload-path", "/tmp",
             "--host-memory", "2GiB", "--host-threads", "3"});
  ASSERT_TRUE(options);
  EXPECT_EQ(
      options->offload,
      (std::vector<std::string>{"optimizer=disk", "parameters@h.*=host:0.5"}));
  EXPECT_EQ(options->offloadPath, "/tmp");
  EXPECT_EQ(options->hostMemory, "2GiB");
  EXPECT_EQ(options->hostThreads, 3);
  // Where the files of a plan go is no affair of the plan.
  EXPECT_EQ(errorOf({"s.zplan", "--data", "d", "--offload-path", "/tmp",
                     "--host-memory", "2GiB", "--host-threads", "3"}),
            "");
}

TEST(RunOptions, MistakesInOffload) {
  EXPECT_EQ(errorOf({"s.zplan", "--data", "d", "--offload", "auto"}),
            "--offload: s.zplan has this decided already; give the flag to "
            "zero-compile or zero-import");
  EXPECT_EQ(errorOf({"m.mlir", "--data", "d", "--offload=optimizer=disk"}),
            "--offload optimizer=disk needs --offload-path, a folder on a fast "
            "disk");
  EXPECT_EQ(errorOf({"m.mlir", "--data", "d", "--offload=optimizer=host",
                     "--offload=auto"}),
            "--offload auto is alone: it decides all kinds");
  EXPECT_EQ(errorOf({"m.mlir", "--data", "d", "--host-threads", "0"}),
            "--host-threads '0': expected a whole number from 1 to 1024");
}

TEST(RunOptions, PlansHaveTheirStep) {
  EXPECT_EQ(
      errorOf({"s.zplan", "--data", "d", "--clip", "1", "--remat", "full"}),
      "--clip, --remat: s.zplan has this decided already; give the flag "
      "to zero-compile or zero-import");
  EXPECT_EQ(errorOf({"s.zplan", "--data", "d", "--accumulate", "2"}), "");
  EXPECT_EQ(errorOf({"s.mlir", "--data", "d", "--precision", "bf16"}),
            "--precision needs --loss: s.mlir is taken as a training step "
            "otherwise");
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
      {{"--group", "w:lr=1e39"},
       "--group 'w:lr=1e39': lr '1e39' is outside the range of f32, 1.4e-45 to "
       "3.4e38"},
      {{"--loss-scale", "1e39"},
       "--loss-scale '1e39' is outside the range of f32, 1.4e-45 to 3.4e38"},
      {{"--lr-schedule", "constant:lr=1e39"},
       "--lr-schedule 'constant:lr=1e39': lr '1e39' is outside the range of "
       "f32, 1.4e-45 to 3.4e38"},
      {{"--clip-value", "1e39"},
       "--clip-value '1e39' is outside the range of f32, 1.4e-45 to 3.4e38"},
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
      {{"m.mlir", "--data", "d", "--momentum", "0.9"},
       "--momentum needs --loss: m.mlir is taken as a training step otherwise"},
      {{"m.mlir", "--data", "d", "--loss", "mse", "--dim", "b=1"},
       "--dim, --value, --train and --freeze are for ONNX models"},
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
      {{"s.zplan", "--data", "d", "--backend", "tpu"},
       "--backend 'tpu': expected host, cuda or cuda:sm_90"},
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
  EXPECT_EQ(errorOf({"s.zplan", "--data", "d", "--save-onnx", "x"}),
            "--save-onnx is for ONNX models: s.zplan does not have the graph; "
            "--save-weights and zero-import --export write one");
}

} // namespace
