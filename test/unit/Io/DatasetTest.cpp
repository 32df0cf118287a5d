//===- DatasetTest.cpp - Tests of datasets --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which samples a rank sees, and what is said about data that does not fit.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Dataset.h"
#include "TestFiles.h"
#include "runtime/io/SafeTensors.h"

#include <numeric>

using namespace zrt;
using namespace zrt::test;

namespace {

InputSpec input(std::string name, DataType type, std::vector<int64_t> shape) {
  InputSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.shape = std::move(shape);
  return spec;
}

InputSpec ranged(InputSpec spec, int64_t min, int64_t max) {
  spec.hasRange = true;
  spec.min = min;
  spec.max = max;
  return spec;
}

class Data : public FileTest {
protected:
  /// A data file with tensor x: value 10 * sample + column, two columns, and
  /// labels: the sample's number.
  std::string numbered(int64_t samples) {
    std::string path = in("d.safetensors");
    SafeTensorsWriter writer(path, {{"labels", DataType::I32, {samples}},
                                    {"x", DataType::F32, {samples, 2}}});
    std::vector<int32_t> labels(samples);
    std::iota(labels.begin(), labels.end(), 0);
    writer.write(labels.data(), labels.size() * 4);
    for (int64_t i = 0; i < samples; ++i) {
      float row[] = {float(10 * i), float(10 * i + 1)};
      writer.write(row, sizeof(row));
    }
    writer.commit();
    return path;
  }

  std::string verdict(const std::string &path, std::vector<InputSpec> inputs,
                      int64_t samples = 1) {
    return errorOf([&] { Dataset data(path, inputs, samples); });
  }
};

/// The example of the documentation: micro-batch k of step s on rank r starts
/// at ((s*A + k)*N + r)*B.
TEST(BatchPosition, FollowsTheFormula) {
  BatchPosition at;
  at.accumulate = 3;
  at.ranks = 4;
  at.step = 5;
  at.micro = 2;
  at.rank = 1;
  EXPECT_EQ(at.firstSample(8), ((5 * 3 + 2) * 4 + 1) * 8);
}

TEST(BatchPosition, RanksTogetherSeeWhatOneRankSees) {
  for (int64_t step = 0; step < 3; ++step)
    for (int64_t rank = 0; rank < 4; ++rank) {
      BatchPosition many{step, 0, rank, 1, 4}, one{step, 0, 0, 1, 1};
      EXPECT_EQ(many.firstSample(2), one.firstSample(8) + 2 * rank);
    }
}

TEST_F(Data, ReadsAndCycles) {
  Dataset data(
      numbered(5),
      {input("x", DataType::F32, {3, 2}), input("labels", DataType::I64, {3})},
      3);
  EXPECT_EQ(data.samples(), 5);
  float x[6];
  data.read(0, 13, x); // samples 3, 4, 0
  EXPECT_EQ(x[0], 30);
  EXPECT_EQ(x[3], 41);
  EXPECT_EQ(x[4], 0);
  EXPECT_EQ(x[5], 1);
  int64_t labels[3]; // I32 in the file
  data.read(1, 4, labels);
  EXPECT_EQ(labels[0], 4);
  EXPECT_EQ(labels[1], 0);
  EXPECT_EQ(labels[2], 1);
}

TEST_F(Data, SaysWhatDoesNotFit) {
  std::string path = numbered(5);
  EXPECT_EQ(verdict(path, {input("y", DataType::F32, {1, 2})}),
            "d.safetensors: has no tensor \"y\" for the input of that name; it "
            "has \"labels\", \"x\"");
  EXPECT_EQ(verdict(path, {input("x", DataType::F32, {1, 3})}),
            "d.safetensors: tensor \"x\" is F32[5x2], the step's input wants "
            "F32[samplesx3]");
  EXPECT_EQ(verdict(path, {input("x", DataType::F32, {1})}),
            "d.safetensors: tensor \"x\" is F32[5x2], the step's input wants "
            "F32[samples]");
  EXPECT_EQ(verdict(path, {input("x", DataType::I64, {1, 2})}),
            "d.safetensors: tensor \"x\" is F32[5x2], the step's input wants "
            "I64: the conversion could lose values, convert the file");
  EXPECT_EQ(verdict(path, {input("x", DataType::F32, {3, 2})}, 6),
            "d.safetensors: has 5 samples, one step over all ranks needs 6");
  EXPECT_EQ(verdict(path, {input("x", DataType::F32, {})}),
            "d.safetensors: the step's input \"x\" (F32[]) has no dimension of "
            "samples");
  EXPECT_EQ(verdict(in("no"), {}),
            "no: cannot open: No such file or directory");
}

TEST_F(Data, TensorsHaveEqualNumbersOfSamples) {
  std::string path =
      put("u.safetensors",
          safetensors(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}})",
                      5));
  EXPECT_EQ(verdict(path, {input("a", DataType::U8, {1}),
                           input("b", DataType::U8, {1})}),
            "u.safetensors: tensor \"b\" has 3 samples, tensor \"a\" has 2");
}

TEST_F(Data, ValuesOutOfRangeAreNamed) {
  InputSpec labels = ranged(input("labels", DataType::I64, {2}), 0, 3);
  Dataset data(numbered(6), {labels}, 1);
  int64_t target[2];
  EXPECT_EQ(errorOf([&] { data.read(0, 2, target); }), "");
  EXPECT_EQ(errorOf([&] { data.read(0, 3, target); }),
            "d.safetensors: tensor \"labels\" has the value 4 at [4], which is "
            "outside [0, 3]");
  labels.hasIgnore = true;
  labels.ignore = 4;
  Dataset ignoring(numbered(6), {labels}, 1);
  EXPECT_EQ(errorOf([&] { ignoring.read(0, 3, target); }), "");
  EXPECT_EQ(errorOf([&] { ignoring.read(0, 4, target); }),
            "d.safetensors: tensor \"labels\" has the value 5 at [5], which is "
            "outside [0, 3] and not 4");
}

TEST_F(Data, TokensAreSequences) {
  std::string path =
      put("t.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5, 6, 65535}) + "");
  InputSpec ids = input("input_ids", DataType::I64, {1, 3});
  InputSpec labels = input("labels", DataType::I64, {1, 3});
  Dataset data(path, {ids, labels}, 1);
  EXPECT_EQ(data.samples(), 2);
  int64_t target[3];
  data.read(1, 3, target);
  EXPECT_EQ(target[0], 4);
  EXPECT_EQ(target[2], 6);
  Dataset narrow(
      path, {ranged(input("input_ids", DataType::I64, {1, 7}), 0, 255)}, 1);
  int64_t all[7];
  EXPECT_EQ(errorOf([&] { narrow.read(0, 0, all); }),
            "t.bin: token 6 is 65535 (position 6 of sample 0), input "
            "\"input_ids\" takes [0, 255]: is the file of the model's "
            "tokenizer?");
}

TEST_F(Data, TokensFitOnlySequencesOfIntegers) {
  std::string path = put("t.bin", std::string(20, 0));
  EXPECT_NE(verdict(path, {input("x", DataType::F32, {1, 3})})
                .find("tokens do not fit"),
            std::string::npos);
  EXPECT_NE(
      verdict(path, {input("x", DataType::I64, {1})}).find("tokens do not fit"),
      std::string::npos);
  EXPECT_NE(verdict(path, {input("x", DataType::I64, {1, 2}),
                           input("y", DataType::I64, {1, 3})})
                .find("unequal lengths 2 and 3"),
            std::string::npos);
  EXPECT_EQ(verdict(put("odd.bin", "abc"), {input("x", DataType::I64, {1, 1})}),
            "odd.bin: has 3 bytes, which are no whole 16-bit tokens: the file "
            "is cut or of another kind");
  EXPECT_EQ(
      verdict(put("few.bin", "abcd"), {input("x", DataType::I64, {1, 3})}),
      "few.bin: has 0 samples (2 tokens; nanoGPT, 16-bit), one step over "
      "all ranks needs 1");
  EXPECT_EQ(verdict(put("none.bin", ""), {input("x", DataType::I64, {1, 3})}),
            "none.bin: has 0 samples (0 tokens; nanoGPT, 16-bit), one step "
            "over all ranks needs 1");
}

/// A header of llm.c.
std::string header(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> words(256);
  words[0] = magic;
  words[1] = version;
  words[2] = count;
  return bytesOf(words);
}

TEST_F(Data, TokenFilesOfLlmC) {
  InputSpec ids = input("ids", DataType::I64, {1, 3});
  std::string gpt2 =
      put("gpt2.bin", header(20240520, 1, 7) +
                          bytesOf<uint16_t>({1, 2, 3, 4, 5, 65535, 7}));
  Dataset narrow(gpt2, {ids}, 1);
  EXPECT_EQ(narrow.samples(), 2);
  int64_t target[3];
  narrow.read(0, 1, target);
  EXPECT_EQ(target[0], 4);
  EXPECT_EQ(target[2], 65535);
  std::string llama3 =
      put("llama3.bin",
          header(20240801, 7, 6) + bytesOf<uint32_t>({1, 2, 3, 4, 128000, 6}));
  Dataset wide(llama3, {ids}, 1);
  wide.read(0, 1, target);
  EXPECT_EQ(target[1], 128000);
  Dataset bounded(llama3, {ranged(ids, 0, 127999)}, 1);
  EXPECT_EQ(errorOf([&] { bounded.read(0, 0, target); }), "");
  EXPECT_EQ(errorOf([&] { bounded.read(0, 1, target); }),
            "llama3.bin: token 4 is 128000 (position 1 of sample 1), input "
            "\"ids\" takes [0, 127999]: is the file of the model's tokenizer?");
}

TEST_F(Data, WideTokensFitNarrowInputsOnlyWithARange) {
  std::string path = put("t.bin", header(20240801, 7, 2) +
                                      bytesOf<uint32_t>({70000, 3000000000u}));
  InputSpec ids = input("ids", DataType::I32, {1, 1});
  EXPECT_EQ(verdict(path, {ids}), "t.bin: 32-bit tokens do not fit the input "
                                  "\"ids\" of I32[1x1], expected I64");
  Dataset data(path, {ranged(ids, 0, 128255)}, 1);
  int32_t target;
  data.read(0, 0, &target);
  EXPECT_EQ(target, 70000);
  EXPECT_NE(errorOf([&] { data.read(0, 1, &target); }).find("3000000000"),
            std::string::npos);
}

TEST_F(Data, DamagedTokenFilesAreRefused) {
  InputSpec ids = input("ids", DataType::I64, {1, 1});
  auto verdictOf = [&](const std::string &bytes) {
    return verdict(put("t.bin", bytes), {ids});
  };
  std::string tokens = bytesOf<uint16_t>({1, 2, 3});
  EXPECT_EQ(verdictOf(header(20240520, 1, 4) + tokens),
            "t.bin: has 3 tokens, its header says 4: the file is cut or has "
            "more behind it");
  EXPECT_EQ(verdictOf(header(20240520, 1, -3) + tokens),
            "t.bin: has 3 tokens, its header says -3: the file is cut or has "
            "more behind it");
  EXPECT_EQ(verdictOf(header(20240520, 1, 3) + tokens + "x"),
            "t.bin: has 7 bytes after its header, which are no whole 16-bit "
            "tokens: the file is cut or of another kind");
  EXPECT_EQ(verdictOf(header(20240801, 7, 1) + tokens),
            "t.bin: has 6 bytes after its header, which are no whole 32-bit "
            "tokens: the file is cut or of another kind");
  EXPECT_EQ(verdictOf(header(20240520, 2, 3) + tokens),
            "t.bin: is a token file of llm.c of version 2, expected version 1");
  EXPECT_EQ(verdictOf(header(20240520, 1, 3).substr(0, 100)),
            "t.bin: begins as a token file of llm.c and has 100 bytes; the "
            "header alone has 1024");
  // Other magic numbers are tokens.
  EXPECT_EQ(verdictOf(header(20240521, 1, 3) + tokens), "");
}

TEST_F(Data, LabelsDefaultToTheTokensWhereAsked) {
  std::string path =
      put("d.safetensors",
          safetensors(
              R"({"ids":{"dtype":"I64","shape":[2,2],"data_offsets":[0,32]}})",
              bytesOf<int64_t>({1, 2, 3, 4})));
  std::vector<InputSpec> inputs = {input("ids", DataType::I64, {1, 2}),
                                   input("labels", DataType::I64, {1, 2})};
  EXPECT_NE(verdict(path, inputs), "");
  inputs[1] = ranged(inputs[1], 0, 3);
  Dataset data(path, inputs, 1, true);
  EXPECT_EQ(data.sourceName(1), "ids");
  int64_t target[2];
  data.read(1, 0, target);
  EXPECT_EQ(target[1], 2);
  EXPECT_EQ(
      errorOf([&] { data.read(1, 1, target); }),
      "d.safetensors: tensor \"ids\" for input \"labels\" has the value 4 "
      "at [1, 1], which is outside [0, 3]");
}

TEST_F(Data, ShapesAreKnownWithoutAPlan) {
  std::string path = numbered(5);
  EXPECT_EQ(dataShape(path, "x"), (std::vector<int64_t>{5, 2}));
  EXPECT_FALSE(dataShape(path, "y"));
  EXPECT_FALSE(dataShape(put("t.bin", "1234"), "x"));
}

} // namespace
