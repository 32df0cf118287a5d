//===- TrainingTest.cpp - Tests of zero-run's loop ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A hand-made plan without kernels stands in for a model: its loss is the sum
// of squares of a rank's samples, and its one parameter takes the learning rate
// as new value. So the loss tells which samples a rank has seen, and the saved
// weights that the step has run.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Training.h"
#include "tools/zero-run/Summary.h"

#include "../Io/TestFiles.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/zplan_generated.h"

#include <cmath>
#include <cstring>

using namespace zero_tools;
using namespace zrt::test;
namespace fb = zrt::fb;

namespace {

constexpr int64_t batch = 2;

class PlanBuilder {
public:
  explicit PlanBuilder(uint32_t ranks) : ranks(ranks) {}

  std::string build() {
    uint32_t x = buffer("x", fb::DType_F32, {batch, 1}, fb::Kind_Input);
    uint32_t labels = buffer("labels", fb::DType_I64, {batch}, fb::Kind_Input);
    uint32_t lr = buffer("lr", fb::DType_F32, {}, fb::Kind_Input);
    uint32_t step = buffer("step", fb::DType_I64, {}, fb::Kind_Input);
    uint32_t w = buffer("w", fb::DType_F32, {}, fb::Kind_Parameter);
    uint32_t loss = buffer("loss", fb::DType_F32, {1, 1}, fb::Kind_Activation);
    inputs = {input("x", fb::InputRole_Data, x, fb::DType_F32, {batch, 1}),
              input("labels", fb::InputRole_Data, labels, fb::DType_I64,
                    {batch}, /*max=*/9),
              input("lr", fb::InputRole_LearningRate, lr, fb::DType_F32, {}),
              input("step", fb::InputRole_Step, step, fb::DType_I64, {})};
    std::vector<int64_t> shape;
    std::vector<flatbuffers::Offset<flatbuffers::String>> tied = {
        out.CreateString("w.tied")};
    parameters = {fb::CreateParameter(
        out, out.CreateString("w"), fb::ParamRole_Trained, w, fb::DType_F32,
        out.CreateVector(shape), false, 0, fb::Init_File,
        out.CreateString("init.safetensors"), 0, 0, out.CreateVector(tied))};
    outputs = {fb::CreateOutput(out, out.CreateString("loss"), loss,
                                fb::AcrossRanks_Mean)};
    commands = {
        call(fb::Op_Call, "matmul",
             {operand(x, {1, batch}, {1, 1}), operand(x, {batch, 1}, {1, 1}),
              operand(loss, {1, 1}, {1, 1})}),
        call(fb::Op_Copy, "", {operand(lr, {}, {}), operand(w, {}, {})})};
    return finish();
  }

private:
  uint32_t buffer(const char *name, fb::DType type, std::vector<int64_t> shape,
                  fb::Kind kind) {
    uint64_t bytes = type == fb::DType_I64 ? 8 : 4;
    for (int64_t dim : shape)
      bytes *= uint64_t(dim);
    buffers.push_back(fb::CreateBuffer(out, out.CreateString(name), 0, arena,
                                       bytes, 0, type, out.CreateVector(shape),
                                       kind));
    arena += 64;
    return uint32_t(buffers.size() - 1);
  }

  flatbuffers::Offset<fb::Input> input(const char *name, fb::InputRole role,
                                       uint32_t buffer, fb::DType type,
                                       std::vector<int64_t> shape,
                                       int64_t max = -1) {
    return fb::CreateInput(out, out.CreateString(name), role, buffer, type,
                           out.CreateVector(shape), max >= 0, 0, max);
  }

  flatbuffers::Offset<fb::Operand> operand(uint32_t buffer,
                                           std::vector<int64_t> sizes,
                                           std::vector<int64_t> strides) {
    return fb::CreateOperand(out, buffer, 0, out.CreateVector(sizes),
                             out.CreateVector(strides));
  }

  flatbuffers::Offset<fb::Command>
  call(fb::Op op, const char *callee,
       std::vector<flatbuffers::Offset<fb::Operand>> operands) {
    auto name = out.CreateString(callee);
    auto list = out.CreateVector(operands);
    return fb::CreateCommand(out, op, name, list);
  }

  std::string finish() {
    std::vector<flatbuffers::Offset<fb::Arena>> arenas = {
        fb::CreateArena(out, fb::Space_Device, arena, 64)};
    auto name = out.CreateString("step");
    auto target = out.CreateString("host");
    auto arenaList = out.CreateVector(arenas);
    auto bufferList = out.CreateVector(buffers);
    auto parameterList = out.CreateVector(parameters);
    auto inputList = out.CreateVector(inputs);
    auto outputList = out.CreateVector(outputs);
    auto commandList = out.CreateVector(commands);
    fb::ProgramBuilder program(out);
    program.add_version(1);
    program.add_name(name);
    program.add_ranks(ranks);
    program.add_arenas(arenaList);
    program.add_buffers(bufferList);
    program.add_parameters(parameterList);
    program.add_inputs(inputList);
    program.add_outputs(outputList);
    program.add_commands(commandList);
    program.add_num_streams(1);
    program.add_target(target);
    program.add_samples_per_rank(batch);
    program.add_flops_per_rank(12);
    out.Finish(program.Finish(), fb::ProgramIdentifier());
    return {reinterpret_cast<const char *>(out.GetBufferPointer()),
            out.GetSize()};
  }

  uint32_t ranks;
  uint64_t arena = 0;
  flatbuffers::FlatBufferBuilder out;
  std::vector<flatbuffers::Offset<fb::Buffer>> buffers;
  std::vector<flatbuffers::Offset<fb::Parameter>> parameters;
  std::vector<flatbuffers::Offset<fb::Input>> inputs;
  std::vector<flatbuffers::Offset<fb::Output>> outputs;
  std::vector<flatbuffers::Offset<fb::Command>> commands;
};

class TrainingTest : public FileTest {
protected:
  TrainingTest() {
    options.model = "step.zplan";
    options.data = in("data.safetensors");
    options.metrics = in("m.jsonl");
    options.steps = 2;
    options.learningRate = 0.25;
    writeData({1, 2, 3, 4, 5});
    writeScalar("init.safetensors", "w", 7);
  }

  void writeData(std::vector<float> x, int64_t label = 3) {
    int64_t samples = int64_t(x.size());
    zrt::SafeTensorsWriter writer(options.data,
                                  {{"x", zrt::DataType::F32, {samples, 1}},
                                   {"labels", zrt::DataType::I64, {samples}}});
    writer.write(x.data(), x.size() * 4);
    for (int64_t i = 0; i < samples; ++i)
      writer.write(&label, 8);
    writer.commit();
  }

  std::string writeScalar(const std::string &file, const std::string &name,
                          float value, std::vector<int64_t> shape = {}) {
    zrt::SafeTensorsWriter writer(in(file),
                                  {{name, zrt::DataType::F32, shape}});
    writer.write(&value, 4);
    writer.commit();
    return in(file);
  }

  /// Runs the plan; "" or the error's text. What it prints is in `printed`.
  std::string run(uint32_t ranks) {
    std::string plan = PlanBuilder(ranks).build();
    ::testing::internal::CaptureStdout();
    std::string error;
    try {
      require(program.loadBytes(plan.data(), plan.size()));
      Training training(options, program, folder, [this](const std::string &w) {
        warnings.push_back(w.substr(folder.size() + 1));
      });
      training.setPeakFlops(peakFlops);
      training.run();
      if (!options.saveWeights.empty())
        training.saveWeights(options.saveWeights);
      printSummary(program, training.metrics());
    } catch (const std::exception &e) {
      error = e.what();
      size_t at = error.find(folder + "/");
      if (at != error.npos)
        error.erase(at, folder.size() + 1);
    }
    printed = ::testing::internal::GetCapturedStdout();
    return error;
  }

  float saved(const std::string &name) {
    zrt::SafeTensorsFile file(options.saveWeights);
    float value;
    std::memcpy(&value, file.data(name), 4);
    return value;
  }

  RunOptions options;
  zrt::Program program;
  std::vector<std::string> warnings;
  std::string printed;
  double peakFlops = 0;
};

TEST_F(TrainingTest, RanksSeeTheirSamples) {
  ASSERT_EQ(run(2), "");
  std::string text = get("m.jsonl");
  // Step 1: samples 1 2 | 3 4; step 2 cycles: 5 1 | 2 3.
  EXPECT_NE(text.find(R"({"step":1,"loss":15,"lr":0.25,)"), text.npos) << text;
  EXPECT_NE(text.find(R"({"step":2,"loss":19.5,"lr":0.25,)"), text.npos);
  EXPECT_NE(text.find(R"("peak_bytes":{"device":)"), text.npos);
  EXPECT_EQ(text.find("grad_norm"), text.npos); // the plan has no such output
  EXPECT_EQ(text.find("tokens_per_s"), text.npos);
  EXPECT_NE(printed.find("2 steps on 2 ranks, ZeRO stage 0: loss 15 to 19.5"),
            printed.npos);
  EXPECT_NE(printed.find("  parameters                      4              4"),
            printed.npos)
      << printed;
}

TEST_F(TrainingTest, UtilizationNeedsAPeak) {
  ASSERT_EQ(run(2), "");
  EXPECT_EQ(get("m.jsonl").find("mfu"), std::string::npos);
  peakFlops = 1e6;
  ASSERT_EQ(run(2), "");
  auto number = [line = get("m.jsonl")](const std::string &name) {
    return std::stod(
        line.substr(line.find("\"" + name + "\":") + name.size() + 3));
  };
  // 12 operations a step, a million a second.
  EXPECT_NEAR(number("mfu"), 12 / (number("step_ms") * 1e-3) / 1e6, 1e-6);
}

TEST_F(TrainingTest, RunsOnceThroughTheDataByDefault) {
  options.steps.reset();
  writeData({1, 2, 3, 4, 5, 6, 7});
  ASSERT_EQ(run(1), "");
  EXPECT_NE(printed.find("3 steps on 1 ranks"), printed.npos);
}

TEST_F(TrainingTest, InitialValuesComeFromTheFileOfThePlan) {
  options.steps = 0;
  options.saveWeights = in("w.safetensors");
  ASSERT_EQ(run(2), "");
  EXPECT_EQ(saved("w"), 7);
}

TEST_F(TrainingTest, WeightsOverrideByAnyTiedName) {
  options.steps = 0;
  options.saveWeights = in("out.safetensors");
  options.weights = writeScalar("over.safetensors", "w.tied", 9);
  ASSERT_EQ(run(2), "");
  EXPECT_EQ(saved("w"), 9);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(TrainingTest, WeightsThatFitNothingAreSaid) {
  options.weights = writeScalar("over.safetensors", "v", 9);
  EXPECT_EQ(run(1), "over.safetensors: has no tensor with the name of one of "
                    "the model's parameters");
  options.weights = writeScalar("over.safetensors", "w", 9, {1});
  EXPECT_EQ(run(1), "over.safetensors: tensor \"w\" is F32[1], the model's "
                    "parameter is F32[]");
  zrt::SafeTensorsWriter writer(options.weights,
                                {{"w", zrt::DataType::F32, {}},
                                 {"y", zrt::DataType::F32, {}},
                                 {"count", zrt::DataType::I64, {}}});
  writer.write("0123456789abcdef", 16);
  writer.commit();
  EXPECT_EQ(run(1), "");
  EXPECT_EQ(warnings, (std::vector<std::string>{
                          "over.safetensors: 1 tensors are in no parameter of "
                          "the model, first \"y\""}));
}

TEST_F(TrainingTest, InitialValuesThatAreMissingAreSaid) {
  writeScalar("init.safetensors", "v", 7);
  EXPECT_EQ(run(1), "init.safetensors: has no tensor \"w\" for the parameter "
                    "\"w\"");
  std::filesystem::remove(in("init.safetensors"));
  EXPECT_EQ(run(1), "init.safetensors: cannot open: No such file or directory");
}

TEST_F(TrainingTest, StepsChangeWhatIsSaved) {
  options.saveWeights = in("w.safetensors");
  ASSERT_EQ(run(2), "");
  EXPECT_EQ(saved("w"), 0.25f);
}

TEST_F(TrainingTest, NotANumberEndsTheRunAndKeepsTheMetrics) {
  writeData({1, 2, 3, 4, 5, 6, 7, NAN});
  EXPECT_EQ(run(2),
            "step.zplan: step 2: the loss is nan on rank 1; data.safetensors: "
            "tensor \"x\" has nan in sample 7, element 0, which rank 1 has "
            "seen");
  std::string text = get("m.jsonl");
  EXPECT_NE(text.find(R"({"step":1,"loss":15,)"), text.npos);
  EXPECT_EQ(text.find(R"("step":2)"), text.npos);
}

TEST_F(TrainingTest, AnInfinityThatIsNotOfTheDataHasAHint) {
  writeData({1, 2, 1e30f, 4}); // its square is too large
  EXPECT_EQ(run(2), "step.zplan: step 1: the loss is inf on rank 1; run it "
                    "with --check-finite to see the first tensor that is not "
                    "finite, and look at the learning rate and the initial "
                    "weights");
}

TEST_F(TrainingTest, LinesComeAtTheFirstTheLastAndEveryNth) {
  options.steps = 7;
  options.logEvery = 3;
  ASSERT_EQ(run(1), "");
  for (int step = 1; step <= 7; ++step)
    EXPECT_EQ(printed.find("step:  " + std::to_string(step) + "  loss: ") !=
                  printed.npos,
              step == 1 || step == 3 || step == 6 || step == 7)
        << step;
  EXPECT_NE(printed.find("  lr: 0.25\n"), printed.npos) << printed;
  options.logEvery = 0;
  ASSERT_EQ(run(1), "");
  EXPECT_EQ(printed.find("step:"), printed.npos);
}

TEST_F(TrainingTest, LogsHaveALineAStep) {
  options.logs = {"csv", "tensorboard"};
  options.logDir = in("logs/here");
  options.metricNames = "deepspeed";
  ASSERT_EQ(run(2), "");
  EXPECT_EQ(get("logs/here/metrics.csv"),
            "samples,Train/Samples/train_loss,Train/Samples/lr,"
            "Train/Samples/loss_scale\n4,15,0.25,\n8,19.5,0.25,\n");
  options.logDir = in("m.jsonl/x");
  EXPECT_EQ(run(2), "m.jsonl/x: cannot create the folder: Not a directory");
}

TEST_F(TrainingTest, LabelsOutOfRangeAreNamed) {
  writeData({1, 2, 3, 4}, 10);
  EXPECT_EQ(run(1), "data.safetensors: tensor \"labels\" has the value 10 at "
                    "[0], which is outside [0, 9]");
}

TEST_F(TrainingTest, FlagsMustFitThePlan) {
  options.ranks = 3;
  EXPECT_EQ(run(2), "step.zplan: is made for a number of ranks of 2, --ranks "
                    "says 3");
  options.ranks.reset();
  options.batch = 4;
  EXPECT_EQ(run(2), "step.zplan: is made for a batch per rank of 2, --batch "
                    "says 4");
  options.batch.reset();
  options.stage = 1;
  EXPECT_EQ(run(2),
            "step.zplan: is made for ZeRO stage 0, --zero-stage says 1");
}

TEST_F(TrainingTest, TooFewSamplesAreSaid) {
  EXPECT_EQ(run(3), "data.safetensors: has 5 samples, one step over all ranks "
                    "needs 6");
}

TEST_F(TrainingTest, FoldersForOutputAreCheckedFirst) {
  for (std::string *path :
       {&options.saveWeights, &options.trace, &options.report}) {
    *path = in("no/file");
    EXPECT_EQ(run(1), "no/file: cannot create: No such file or directory");
    EXPECT_FALSE(std::filesystem::exists(in("m.jsonl")));
    path->clear();
  }
}

} // namespace
