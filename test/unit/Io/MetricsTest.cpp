//===- MetricsTest.cpp - Tests of metrics and JSON text -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lines are part of the contract with other tools: they are compared as
// text.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Metrics.h"
#include "TestFiles.h"
#include "runtime/io/Json.h"

#include <limits>

using namespace zrt;
using namespace zrt::test;

namespace {

class Metrics : public FileTest {};

StepMetrics sample() {
  StepMetrics m;
  m.step = 3;
  m.loss = 2.3783674240112305;
  m.learningRate = 0.001;
  m.samplesSeen = 24;
  m.stepMs = 12.5;
  m.dataMs = 0.5;
  m.samplesPerSecond = 640;
  m.allGatherBytes = 100.5;
  m.toHostBytes = 10;
  m.toDeviceBytes = 11.5;
  m.diskReadBytes = 12;
  m.diskWriteBytes = 13;
  m.transferMs = 0.25;
  m.hostMs = 0.75;
  m.peak = {1, 2, 3};
  m.plannedPeak = {4, 5, 6};
  m.gatheredBytes = 7;
  m.plannedGatheredBytes = 8;
  m.parameterBytes = 7;
  m.optimizerBytes = 9;
  return m;
}

TEST_F(Metrics, LineIsAsDocumented) {
  EXPECT_EQ(
      formatMetrics(sample()),
      R"({"step":3,"loss":2.3783674240112305,"lr":0.001,"step_ms":12.5,)"
      R"("samples_per_s":640,"micro_batches":1,"samples":24,"data_ms":0.5,)"
      R"("comm_bytes":{"all_gather":100.5,)"
      R"("reduce_scatter":0,"all_reduce":0},"comm_padding_bytes":0,)"
      R"("exposed_comm_ms":0,"transfer_bytes":{"to_host":10,)"
      R"("to_device":11.5,"disk_read":12,"disk_write":13},)"
      R"("transfer_ms":0.25,"host_ms":0.75,)"
      R"("peak_bytes":{"device":1,"host":2,"disk":3},)"
      R"("planned_peak_bytes":{"device":4,"host":5,"disk":6},)"
      R"("gathered_bytes":7,"planned_gathered_bytes":8,)"
      R"("state_bytes":{"parameters":7,"gradients":0,"optimizer":9},)"
      R"("state_padding_bytes":0})");
}

TEST_F(Metrics, OptionalMembersAppearWhenKnown) {
  StepMetrics m = sample();
  m.gradNorm = 1.5;
  m.gradNormClipped = 1;
  m.lossScale = 65536;
  m.skipped = true;
  m.tokensPerSecond = 20480;
  m.teraflops = 0.5;
  m.mfu = 0.25;
  std::string line = formatMetrics(m);
  EXPECT_NE(line.find(R"("grad_norm":1.5,"grad_norm_clipped":1,"lr":0.001,)"
                      R"("loss_scale":65536,"skipped":true,"step_ms")"),
            line.npos);
  EXPECT_NE(line.find(R"("tokens_per_s":20480,"tflops":0.5,"mfu":0.25,)"),
            line.npos);
}

TEST_F(Metrics, EachLineIsInTheFileAtOnce) {
  put("m.jsonl", "old\n");
  MetricsFile file(in("m.jsonl"));
  file.write(sample());
  EXPECT_EQ(get("m.jsonl"), formatMetrics(sample()) + "\n");
  EXPECT_EQ(errorOf([&] { MetricsFile file(in("no/m.jsonl")); }),
            "m.jsonl: cannot create: No such file or directory");
}

TEST_F(Metrics, ARunThatContinuesKeepsTheStepsBeforeIt) {
  std::string lines;
  StepMetrics m = sample();
  for (m.step = 1; m.step < 13; ++m.step)
    lines += formatMetrics(m) + "\n";
  put("m.jsonl", lines + "{\"step\":13,\"lo"); // of a later step
  { MetricsFile all(in("m.jsonl"), 12); }
  EXPECT_EQ(get("m.jsonl"), lines);
  MetricsFile file(in("m.jsonl"), 2);
  file.write(sample());
  std::string kept = lines.substr(0, lines.find("{\"step\":3"));
  EXPECT_EQ(get("m.jsonl"), kept + formatMetrics(sample()) + "\n");
  { MetricsFile absent(in("absent"), 2); }
  EXPECT_EQ(get("absent"), "");
}

TEST_F(Metrics, NoLineBeforeTheStepIsLost) {
  std::string warning;
  auto resume = [&](const std::string &text) {
    put("m.jsonl", text);
    warning.clear();
    MetricsFile file(in("m.jsonl"), 4, [&](const std::string &said) {
      warning = said.substr(folder.size() + 1);
    });
    return get("m.jsonl");
  };
  EXPECT_EQ(resume("{\"step\":1}"), "{\"step\":1}\n");
  EXPECT_EQ(warning, "");
  std::string damaged = "{\"step\":3}\ngarbage{\n\n{\"step\":4}\n";
  EXPECT_EQ(resume(damaged + "{\"step\":5}\nmore\n"), damaged);
  EXPECT_EQ(warning, "m.jsonl: line 2, the first of 2, is none that such a run "
                     "writes; it stays");
  EXPECT_EQ(resume("{\"step\":4,\"lo"), "{\"step\":4,\"lo\n");
  EXPECT_EQ(warning, "m.jsonl: line 1, the first of 1, is none that such a run "
                     "writes; it stays");
}

TEST_F(Metrics, FullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full";
  MetricsFile file("/dev/full");
  EXPECT_EQ(errorOf([&] { file.write(sample()); }),
            "full: cannot write: No space left on device");
}

TEST(Json, NumbersReadBack) {
  EXPECT_EQ(jsonNumber(0.1), "0.1");
  EXPECT_EQ(jsonNumber(5), "5");
  EXPECT_EQ(jsonNumber(1e-300), "1e-300");
  EXPECT_EQ(jsonNumber(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(jsonNumber(std::numeric_limits<double>::quiet_NaN()), "null");
}

TEST(Json, StringsAreQuoted) {
  EXPECT_EQ(jsonQuote("a\"b\\c\n\x01"), R"("a\"b\\c\u000a\u0001")");
  EXPECT_EQ(jsonQuote("é\U0001F600"), "\"é\U0001F600\"");
  EXPECT_EQ(jsonQuote("a\xFF\xE2\x82"),
            "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(Json, Utf8IsStrict) {
  EXPECT_TRUE(isUtf8("\xF4\x8F\xBF\xBF"));
  for (const char *bad :
       {"\x80", "\xC1\x81", "\xE0\x9F\x80", "\xED\xA0\x80", "\xF0\x8F\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3"})
    EXPECT_FALSE(isUtf8(bad));
}

} // namespace
