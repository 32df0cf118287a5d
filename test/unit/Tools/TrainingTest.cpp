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
// weights that the step has run. With two micro-batches the loss is the product
// of the first one's samples and the second's. The columns of the input `says`
// become what a step with loss scaling says of itself.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Training.h"
#include "tools/zero-run/Summary.h"

#include "../Io/TestFiles.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/zplan_generated.h"

#include <array>
#include <cmath>
#include <cstring>

using namespace zero_tools;
using namespace zrt::test;
namespace fb = zrt::fb;

namespace {

constexpr int64_t batch = 2;

/// The columns of `says`, in the order of the data.
const char *const sayings[] = {"overflow",  "loss_scale",
                               "grad_norm", "grad_norm_clipped",
                               "lr",        "loss_scale_exhausted"};
constexpr int64_t numSayings = 6;

class PlanBuilder {
public:
  explicit PlanBuilder(uint32_t ranks, uint32_t microBatches = 1,
                       bool says = false, bool twoParameters = false)
      : ranks(ranks), microBatches(microBatches), says(says),
        twoParameters(twoParameters) {}

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
    if (twoParameters)
      parameters.push_back(fb::CreateParameter(
          out, out.CreateString("v"), fb::ParamRole_Trained,
          buffer("v", fb::DType_F32, {}, fb::Kind_Parameter), fb::DType_F32,
          out.CreateVector(shape), false, 0, fb::Init_Zeros));
    outputs = {fb::CreateOutput(out, out.CreateString("loss"), loss,
                                fb::AcrossRanks_Mean)};
    uint32_t first = x;
    if (microBatches > 1) {
      first = buffer("kept", fb::DType_F32, {batch, 1}, fb::Kind_Activation);
      commands = {call(fb::Op_Copy, "",
                       {operand(x, {batch, 1}, {1, 1}),
                        operand(first, {batch, 1}, {1, 1})})};
    }
    commands.push_back(
        call(fb::Op_Call, "matmul",
             {operand(first, {1, batch}, {1, 1}),
              operand(x, {batch, 1}, {1, 1}), operand(loss, {1, 1}, {1, 1})}));
    commands.push_back(
        call(fb::Op_Copy, "", {operand(lr, {}, {}), operand(w, {}, {})}));
    if (says)
      addSayings();
    return finish();
  }

private:
  /// The first row of `says` becomes outputs.
  void addSayings() {
    uint32_t table =
        buffer("says", fb::DType_F32, {batch, numSayings}, fb::Kind_Input);
    inputs.push_back(input("says", fb::InputRole_Data, table, fb::DType_F32,
                           {batch, numSayings}));
    for (int64_t column = 0; column < numSayings; ++column) {
      std::string name = sayings[column];
      uint32_t cell =
          buffer(name.c_str(), fb::DType_F32, {}, fb::Kind_Activation);
      outputs.push_back(fb::CreateOutput(out, out.CreateString(name), cell,
                                         fb::AcrossRanks_Same));
      commands.push_back(
          call(fb::Op_Copy, "",
               {operand(table, {}, {}, column), operand(cell, {}, {})}));
    }
  }

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
                                           std::vector<int64_t> strides,
                                           int64_t offset = 0) {
    return fb::CreateOperand(out, buffer, offset, out.CreateVector(sizes),
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
    program.add_micro_batches(microBatches);
    program.add_micro_commands(microBatches > 1 ? 1 : 0);
    out.Finish(program.Finish(), fb::ProgramIdentifier());
    return {reinterpret_cast<const char *>(out.GetBufferPointer()),
            out.GetSize()};
  }

  uint32_t ranks, microBatches;
  bool says, twoParameters;
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

  /// The table of what each step says; a step sees two rows.
  void writeSayings(std::vector<std::array<float, numSayings>> steps) {
    int64_t samples = 2 * int64_t(steps.size());
    zrt::SafeTensorsWriter writer(
        options.data, {{"labels", zrt::DataType::I64, {samples}},
                       {"says", zrt::DataType::F32, {samples, numSayings}},
                       {"x", zrt::DataType::F32, {samples, 1}}});
    std::vector<int64_t> labels(size_t(samples), 1);
    std::vector<float> x(size_t(samples), 1);
    writer.write(labels.data(), labels.size() * 8);
    for (const auto &row : steps)
      for (int copy = 0; copy < 2; ++copy)
        writer.write(row.data(), sizeof(row));
    writer.write(x.data(), x.size() * 4);
    writer.commit();
    options.steps = int64_t(steps.size());
    says = true;
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
    std::string plan =
        PlanBuilder(ranks, microBatches, says, twoParameters).build();
    ::testing::internal::CaptureStdout();
    std::string error;
    try {
      require(program.loadBytes(plan.data(), plan.size()));
      Training training(options, program, folder, [this](const std::string &w) {
        warnings.push_back(w.substr(folder.size() + 1));
      });
      training.setPeakFlops(peakFlops);
      training.setInitialValues();
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
  uint32_t microBatches = 1;
  bool says = false, twoParameters = false;
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

TEST_F(TrainingTest, MicroBatchesComeOneAfterTheOther) {
  microBatches = 2;
  writeData({1, 2, 3, 4, 5, 6, 7, 8, 9});
  // Step 1: ranks see 1 2 | 3 4, then 5 6 | 7 8; step 2: 9 1 | 2 3, 4 5 | 6 7.
  ASSERT_EQ(run(2), "");
  std::string text = get("m.jsonl");
  EXPECT_NE(text.find(R"({"step":1,"loss":35,)"), text.npos) << text;
  EXPECT_NE(text.find(R"({"step":2,"loss":37,)"), text.npos) << text;
  EXPECT_NE(text.find(R"("micro_batches":2,"samples":16,)"), text.npos);
  // Once through the data is one step of eight samples.
  options.steps.reset();
  ASSERT_EQ(run(2), "");
  EXPECT_NE(printed.find("1 step on 2 ranks"), printed.npos);
}

TEST_F(TrainingTest, ASkippedStepIsCountedAndShown) {
  // overflow, loss_scale, grad_norm, clipped, lr, exhausted
  writeSayings({{0, 8, 1.5, 1, 0.5, 0},
                {1, 8, INFINITY, INFINITY, 0.5, 0},
                {0, 4, 1.5, 1, 0.25, 0}});
  ASSERT_EQ(run(1), "");
  std::string text = get("m.jsonl");
  EXPECT_NE(text.find(R"({"step":1,"loss":2,"grad_norm":1.5,)"
                      R"("grad_norm_clipped":1,"lr":0.5,"loss_scale":8,)"
                      R"("skipped":false,)"),
            text.npos)
      << text;
  EXPECT_NE(text.find(R"({"step":2,"loss":2,"grad_norm":null,)"
                      R"("grad_norm_clipped":null,"lr":0.5,"loss_scale":8,)"
                      R"("skipped":true,)"),
            text.npos)
      << text;
  EXPECT_NE(printed.find("grad_norm:  1.5000 (clipped to 1)  "), printed.npos)
      << printed;
  EXPECT_NE(printed.find("  lr: 0.25  loss_scale: 4  skipped: 1\n"),
            printed.npos)
      << printed;
  EXPECT_NE(printed.find(" ms a step, 1 skipped\n"), printed.npos) << printed;
}

TEST_F(TrainingTest, ANanHasNoSign) {
  writeSayings({{1, 8, -NAN, -NAN, 0.5, 0}});
  options.steps = 1;
  ASSERT_EQ(run(1), "");
  EXPECT_NE(printed.find("grad_norm:     nan  "), printed.npos) << printed;
}

TEST_F(TrainingTest, AnOverflowAtTheSmallestScaleEndsTheRun) {
  writeSayings({{1, 2, INFINITY, INFINITY, 0.5, 0},
                {0, 1, 1, 1, 0.5, 0},
                {1, 1, INFINITY, INFINITY, 0.5, 1}});
  EXPECT_EQ(run(1), "step.zplan: step 3: the gradients overflow at the "
                    "smallest loss scale, 1; lower the learning rate, clip, or "
                    "train in bf16, which needs no loss scale");
}

TEST_F(TrainingTest, ANormThatIsNotFiniteEndsARunThatDoesNotSkip) {
  writeSayings({{0, 8, NAN, NAN, 0.5, 0}});
  EXPECT_EQ(run(1), "step.zplan: step 1: the gradients' norm is nan; "
                    "data.safetensors: tensor \"says\" has nan in sample 0, "
                    "element 2, which rank 0 has seen");
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
  EXPECT_NE(printed.find("3 steps on 1 rank,"), printed.npos);
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

TEST_F(TrainingTest, WeightsThatLackSomeAreSaid) {
  twoParameters = true;
  options.weights = writeScalar("over.safetensors", "w", 9);
  ASSERT_EQ(run(1), "");
  EXPECT_EQ(warnings,
            (std::vector<std::string>{
                "over.safetensors: has 1 of the 2 parameters and buffers of "
                "the model; those without begin with the model's own values, "
                "first \"v\""}));
}

TEST_F(TrainingTest, WeightsThatAreRoundedAreSaid) {
  options.steps = 0;
  options.weights = in("over.safetensors");
  options.saveWeights = in("out.safetensors");
  zrt::SafeTensorsWriter writer(options.weights,
                                {{"w", zrt::DataType::F64, {}}});
  double value = 0.1;
  writer.write(&value, 8);
  writer.commit();
  ASSERT_EQ(run(1), "");
  EXPECT_EQ(saved("w"), 0.1f);
  EXPECT_EQ(warnings, (std::vector<std::string>{
                          "over.safetensors: 1 tensors are rounded to the "
                          "model's type, first \"w\" from F64[] to F32[]"}));
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
