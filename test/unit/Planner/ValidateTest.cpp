//===- ValidateTest.cpp -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measured steps: how tables are read, and how far predictions are off.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/Validate.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::zero;
using testing::HasSubstr;

static const std::string folder = ZERO_TEST_MODELS "/planner/";

/// A file of the test's own.
static std::string write(llvm::StringRef text) {
  llvm::SmallString<128> path;
  int file;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("steps", "csv", file, path));
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << text;
  return path.str().str();
}

static std::string errorOf(llvm::StringRef text) {
  std::string path = write(text);
  llvm::Expected<std::vector<MeasuredStep>> steps = readMeasuredSteps(path);
  std::string message = steps ? "" : llvm::toString(steps.takeError());
  llvm::sys::fs::remove(path);
  return message;
}

static std::vector<MeasuredStep> read(llvm::StringRef name) {
  return llvm::cantFail(readMeasuredSteps(folder + name.str()));
}

static double errorOfStep(const MeasuredStep &step) {
  Machine machine = llvm::cantFail(loadMachine(step.machine));
  return predictStep(step, machine, *step.software) / step.seconds - 1;
}

TEST(Validate, ParametersAsPublished) {
  for (const MeasuredStep &step : read("steps.csv"))
    EXPECT_EQ(step.shape.size(step.config.seq), step.params) << step.line;
}

TEST(Validate, PredictionsAreClose) {
  std::vector<double> errors;
  for (llvm::StringRef name : {"steps.csv", "data_parallel.csv"})
    for (const MeasuredStep &step : read(name))
      errors.push_back(errorOfStep(step));
  ErrorSummary summary = summarizeErrors(errors);
  EXPECT_EQ(summary.rows, 29);
  EXPECT_LT(summary.medianPercent, 5);
  EXPECT_LT(summary.maxPercent, 25);
}

TEST(Validate, OrderIsKept) {
  std::vector<MeasuredStep> steps = read("data_parallel.csv");
  std::vector<double> predicted;
  for (const MeasuredStep &step : steps)
    predicted.push_back(step.seconds * (1 + errorOfStep(step)));
  EXPECT_GE(pairOrderPercent(steps, predicted), 95);
  // A constant keeps no order at all.
  EXPECT_EQ(pairOrderPercent(steps, std::vector<double>(steps.size(), 1.0)), 0);
}

TEST(Validate, SomeRowsAreFittedAndNotAll) {
  int fitted = 0, all = 0;
  for (llvm::StringRef name : {"steps.csv", "data_parallel.csv"})
    for (const MeasuredStep &step : read(name)) {
      fitted += isFittedStep(step);
      ++all;
    }
  EXPECT_GT(fitted, 0);
  EXPECT_LT(fitted, all);
}

TEST(Validate, Columns) {
  std::vector<MeasuredStep> steps = read("steps.csv");
  EXPECT_EQ(steps[0].machine, "h100");
  EXPECT_EQ(steps[0].software->name, "llm-foundry");
  EXPECT_EQ(steps[0].config.recompute, Recompute::Full);
  EXPECT_EQ(steps[0].config.precision, Precision::Mixed);
  std::vector<MeasuredStep> parallel = read("data_parallel.csv");
  EXPECT_EQ(parallel[0].software->name, "megatron-deepspeed");
  EXPECT_EQ(parallel[0].config.accumulate, 2); // 16 / (4 * 2)
  EXPECT_EQ(parallel[0].config.stage, 1);
  EXPECT_NEAR(parallel[0].seconds, 0.158717599, 1e-12);
}

static constexpr const char *header =
    "d_model,layers,heads,seq,gpus,micro_batch,gpu,step_s,sharding,"
    "activation_checkpointing,inter_node,source\n";

TEST(Validate, ForeignRowsAreReadToo) {
  std::string path = write(std::string(header) +
                           "512,4,8,128,16,2,H200_SXM,0.5,hsdp,12,"
                           "400Gbps/gpu,\"mine, and \"\"yours\"\"\"\r\n");
  std::vector<MeasuredStep> steps = llvm::cantFail(readMeasuredSteps(path));
  llvm::sys::fs::remove(path);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].machine, "h200");
  EXPECT_EQ(steps[0].source, "mine, and \"yours\"");
  EXPECT_EQ(steps[0].config.replicas, 2);
  EXPECT_EQ(steps[0].config.recomputeLayers, 12);
  EXPECT_EQ(steps[0].lineRate, 50e9);
  EXPECT_THAT(steps[0].note, HasSubstr("taken as fsdp2"));
}

TEST(Validate, ErrorsNameLineAndColumn) {
  auto row = [](const std::string &text) {
    return errorOf(std::string(header) + text + "\n");
  };
  EXPECT_THAT(row("512,4,8,128,8,1,tpu,0.5,zero3,0,,x"),
              HasSubstr(":2: gpu is 'tpu'; expected one of a100, h100"));
  EXPECT_THAT(row("-3,4,8,128,8,1,h100,0.5,zero3,0,,x"),
              HasSubstr(":2: d_model is '-3'; expected a whole number"));
  EXPECT_THAT(row("512,4,8,128,8,1,h100,nan,zero3,0,,x"),
              HasSubstr(":2: step_s is 'nan'; expected a number above 0"));
  EXPECT_THAT(row("512,4,8,128,8,1,h100,0.5,zero4,0,,x"),
              HasSubstr(":2: sharding is 'zero4'; expected zero0"));
  EXPECT_THAT(row("512,4,8,128,8,1,h100,0.5,zero3,some,,x"),
              HasSubstr(":2: activation_checkpointing is 'some'"));
  EXPECT_THAT(row("512,4,7,128,8,1,h100,0.5,zero3,0,,x"),
              HasSubstr(":2: hidden is 512, heads 7"));
  EXPECT_THAT(row("512,4"), HasSubstr(":2: found 2 fields; expected 12"));
  EXPECT_THAT(errorOf("gpus\n1\n"), HasSubstr("has no column 'seq'"));
  EXPECT_THAT(errorOf(""), HasSubstr("found no rows"));
}

TEST(Validate, Summaries) {
  ErrorSummary summary = summarizeErrors({0.01, -0.03, 0.02, -0.10});
  EXPECT_EQ(summary.rows, 4);
  EXPECT_NEAR(summary.medianPercent, 2.5, 1e-9);
  EXPECT_NEAR(summary.p95Percent, 10, 1e-9);
  EXPECT_NEAR(summary.maxPercent, 10, 1e-9);
  EXPECT_NEAR(summary.biasPercent, -2.5, 1e-9);
  EXPECT_EQ(summarizeErrors({}).rows, 0);
}
