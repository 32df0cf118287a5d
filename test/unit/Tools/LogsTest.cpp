//===- LogsTest.cpp - Tests of metrics under other names ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The names are those of other systems to the letter; files are compared as
// text.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Logs.h"

#include "../Io/TestFiles.h"

#include <cmath>

using namespace zero_tools;
using namespace zrt::test;

namespace {

zrt::StepMetrics sample(int64_t step = 3) {
  zrt::StepMetrics m;
  m.step = step;
  m.samplesSeen = step * 8;
  m.epoch = 0.75;
  m.loss = 2.5;
  m.maxLoss = 2.75;
  m.gradNorm = 1.5;
  m.learningRate = 0.001;
  m.stepMs = 500;
  m.dataMs = 5;
  m.tokensPerSecond = 4096;
  m.tokensSeen = 6144;
  m.teraflops = 0.5;
  m.mfu = 0.25;
  m.peak.device = 3u << 29;
  return m;
}

std::string listed(const std::string &system) {
  std::string text;
  for (const NamedMetric &metric :
       namedMetrics(system, sample(), 4, 6.0 * (1 << 30)))
    text += metric.name + "=" +
            (metric.value ? std::to_string(*metric.value) : "") + "\n";
  return text;
}

TEST(MetricNames, OfHuggingFace) {
  EXPECT_EQ(listed("hf"), "train/loss=2.500000\ntrain/grad_norm=1.500000\n"
                          "train/learning_rate=0.001000\n"
                          "train/epoch=0.750000\n");
}

TEST(MetricNames, OfDeepSpeedAreBySamples) {
  EXPECT_EQ(listed("deepspeed"), "Train/Samples/train_loss=2.500000\n"
                                 "Train/Samples/lr=0.001000\n"
                                 "Train/Samples/loss_scale=\n");
  EXPECT_EQ(axisValue("deepspeed", sample()), 24);
  EXPECT_EQ(axisName("deepspeed"), "samples");
  EXPECT_EQ(axisValue("hf", sample()), 3);
  EXPECT_EQ(axisName("torchtitan"), "step");
}

TEST(MetricNames, OfTorchtitan) {
  EXPECT_EQ(listed("torchtitan"),
            "loss_metrics/global_avg_loss=2.500000\n"
            "loss_metrics/global_max_loss=2.750000\ngrad_norm=1.500000\n"
            "n_tokens_seen=6144.000000\nlr=0.001000\n"
            "throughput(tps)=1024.000000\ntflops=0.500000\nmfu(%)=25.000000\n"
            "time_metrics/end_to_end(s)=0.500000\n"
            "time_metrics/data_loading(s)=0.005000\n"
            "time_metrics/data_loading(%)=1.000000\n"
            "memory/max_active(GiB)=1.500000\n"
            "memory/max_active(%)=25.000000\n"
            "memory/max_reserved(GiB)=1.500000\n"
            "memory/max_reserved(%)=25.000000\n"
            "memory/num_alloc_retries=0.000000\nmemory/num_ooms=0.000000\n");
}

TEST(Csv, HostileTextIsInert) {
  EXPECT_EQ(csvField("loss"), "loss");
  EXPECT_EQ(csvField("a,b"), "\"a,b\"");
  EXPECT_EQ(csvField("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csvField("a\nb\r\x1b[2J"), "a b  [2J");
  EXPECT_EQ(csvField("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
  EXPECT_EQ(csvField("</script>"), "</script>");
}

class LogFiles : public FileTest {
protected:
  LogOptions options(const std::string &names) {
    LogOptions o;
    o.kinds = {"csv"};
    o.folder = folder;
    o.names = names;
    return o;
  }
};

TEST_F(LogFiles, CsvHasALineAStep) {
  Logs logs(options("hf"));
  zrt::StepMetrics m = sample();
  m.gradNorm.reset();
  logs.write(sample());
  logs.write(m);
  m.loss = NAN;
  m.gradNorm = INFINITY;
  logs.write(m);
  EXPECT_EQ(get("metrics.csv"),
            "step,train/loss,train/grad_norm,train/learning_rate,train/epoch\n"
            "3,2.5,1.5,0.001,0.75\n3,2.5,,0.001,0.75\n3,nan,inf,0.001,0.75\n");
}

TEST_F(LogFiles, ARunThatContinuesContinuesTheFile) {
  {
    Logs logs(options("hf"));
    for (int64_t step = 1; step < 6; ++step)
      logs.write(sample(step));
  }
  LogOptions resumed = options("hf");
  resumed.resumedAt = 2;
  resumed.samplesAtResume = 16;
  { Logs logs(resumed); }
  EXPECT_EQ(get("metrics.csv"),
            "step,train/loss,train/grad_norm,train/learning_rate,train/epoch\n"
            "1,2.5,1.5,0.001,0.75\n2,2.5,1.5,0.001,0.75\n");
  resumed.names = "deepspeed";
  EXPECT_EQ(errorOf([&] { Logs logs(resumed); }),
            "metrics.csv: has other columns than this run writes; give another "
            "--log-dir or the --metric-names that it was begun with");
}

TEST_F(LogFiles, NoLineBeforeTheStepIsLost) {
  std::string header =
      "step,train/loss,train/grad_norm,train/learning_rate,train/epoch\n";
  std::string kept = "1,2.5,1.5,0.001,0.75\nnote\n2,2.5,1.5,0.001,0.75";
  LogOptions resumed = options("hf");
  resumed.resumedAt = 2;
  std::vector<std::string> warnings;
  resumed.warn = [&](const std::string &text) {
    warnings.push_back(text.substr(folder.size() + 1));
  };
  put("metrics.csv", header + kept);
  { Logs logs(resumed); }
  EXPECT_EQ(get("metrics.csv"), header + kept + "\n");
  EXPECT_EQ(warnings, (std::vector<std::string>{
                          "metrics.csv: line 3, the first of 1, is none that "
                          "such a run writes; it stays"}));
}

TEST_F(LogFiles, SamplesAreTheAxisOfDeepSpeed) {
  {
    Logs logs(options("deepspeed"));
    logs.write(sample(1));
    logs.write(sample(2));
  }
  LogOptions resumed = options("deepspeed");
  resumed.resumedAt = 1;
  resumed.samplesAtResume = 8;
  { Logs logs(resumed); }
  EXPECT_EQ(get("metrics.csv"),
            "samples,Train/Samples/train_loss,Train/Samples/lr,"
            "Train/Samples/loss_scale\n8,2.5,0.001,\n");
}

} // namespace
