//===- WireWalkTest.cpp - Models without the bytes of their weights -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The walk has to read what protobuf reads: with the stored elements put back,
// the messages are the same, and both refuse the same damaged files.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/WireWalk.h"

#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

using namespace mlir;
using namespace mlir::zero::onnx_import;
using onnx::ModelProto;
using onnx::TensorProto;

namespace {
/// What the walk made of some bytes, the elements put back.
struct Walked {
  WireResult result;
  ModelProto model;
  std::vector<StoredData> stored;
};
} // namespace

static void putBack(TensorProto &tensor, const StoredData &stored) {
  std::string bytes(stored.bytes.begin(), stored.bytes.end());
  if (stored.field == TensorProto::kRawDataFieldNumber)
    tensor.set_raw_data(bytes);
  for (size_t at = 0; stored.field == TensorProto::kFloatDataFieldNumber &&
                      at + 4 <= bytes.size();
       at += 4) {
    float value;
    memcpy(&value, bytes.data() + at, 4);
    tensor.add_float_data(value);
  }
  for (size_t at = 0; stored.field == TensorProto::kDoubleDataFieldNumber &&
                      at + 8 <= bytes.size();
       at += 8) {
    double value;
    memcpy(&value, bytes.data() + at, 8);
    tensor.add_double_data(value);
  }
}

static void walk(const std::string &bytes, Walked &walked) {
  walked.result = walkModel(ArrayRef<char>(bytes.data(), bytes.size()),
                            walked.model, walked.stored);
  if (walked.result != WireResult::Done)
    return;
  ASSERT_EQ(size_t(walked.model.graph().initializer_size()),
            walked.stored.size());
  for (auto [i, stored] : llvm::enumerate(walked.stored))
    putBack(*walked.model.mutable_graph()->mutable_initializer(int(i)), stored);
}

/// Field `number` with `content`, of any length.
static std::string delimited(int number, const std::string &content) {
  std::string out(1, char(number << 3 | 2));
  for (uint64_t n = content.size();; n >>= 7) {
    out.push_back(char(n < 128 ? n : n | 128));
    if (n < 128)
      return out + content;
  }
}

static std::string inInitializer(const std::string &tensor) {
  return delimited(7, delimited(5, tensor));
}

TEST(WireWalk, ReadsTheModelsOfTheTests) {
  unsigned count = 0;
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(ZERO_TEST_MODELS)) {
    if (entry.path().extension() != ".onnx")
      continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    Walked walked;
    walk(bytes, walked);
    ModelProto whole;
    ASSERT_TRUE(whole.ParseFromString(bytes));
    EXPECT_EQ(walked.model.SerializeAsString(), whole.SerializeAsString())
        << entry.path();
    ++count;
  }
  EXPECT_GE(count, 9u);
}

TEST(WireWalk, LeavesElementsInTheFile) {
  ModelProto model;
  TensorProto &raw = *model.mutable_graph()->add_initializer();
  raw.set_raw_data("12345678");
  model.mutable_graph()->add_initializer()->add_float_data(1.5f);
  model.mutable_graph()->add_initializer()->add_double_data(2.5);
  model.mutable_graph()->add_initializer()->add_int64_data(7);
  std::string bytes = model.SerializeAsString();
  ModelProto parsed;
  std::vector<StoredData> stored;
  ASSERT_EQ(
      walkModel(ArrayRef<char>(bytes.data(), bytes.size()), parsed, stored),
      WireResult::Done);
  ASSERT_EQ(stored.size(), 4u);
  EXPECT_EQ(StringRef(stored[0].bytes.data(), stored[0].bytes.size()),
            "12345678");
  EXPECT_EQ(stored[1].bytes.size(), 4u);
  EXPECT_EQ(stored[2].bytes.size(), 8u);
  EXPECT_EQ(stored[3].field, 0);
  const auto &tensors = parsed.graph().initializer();
  EXPECT_FALSE(tensors[0].has_raw_data());
  EXPECT_EQ(tensors[1].float_data_size() + tensors[2].double_data_size(), 0);
  EXPECT_EQ(tensors[3].int64_data(0), 7);
}

TEST(WireWalk, MergesAsProtobufDoes) {
  // Two raw_data: the last; floats in two runs: one after the other; a graph in
  // two pieces: one graph, the scalars of the later piece.
  std::string floats("\0\0\x80\x3f", 4);
  for (const std::string &bytes :
       {inInitializer(delimited(9, "first") + delimited(9, "last")),
        inInitializer(delimited(4, floats) + delimited(4, floats)),
        inInitializer("\x25" + floats + delimited(4, floats)),
        inInitializer(delimited(4, floats) + delimited(10, floats + floats)),
        delimited(7, delimited(2, "a") + delimited(5, delimited(8, "w"))) +
            delimited(3, "version") +
            delimited(7, delimited(5, delimited(8, "v")) + delimited(2, "b")),
        delimited(7, "")}) {
    ModelProto whole;
    ASSERT_TRUE(whole.ParseFromString(bytes));
    Walked walked;
    walk(bytes, walked);
    ASSERT_EQ(walked.result, WireResult::Done);
    EXPECT_EQ(walked.model.SerializeAsString(), whole.SerializeAsString());
  }
}

TEST(WireWalk, RefusesWhatProtobufRefuses) {
  std::ifstream file(std::string(ZERO_TEST_MODELS) + "/mlp/ts_train.onnx",
                     std::ios::binary);
  std::string sound((std::istreambuf_iterator<char>(file)), {});
  std::mt19937 random(7);
  unsigned refused = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    std::string bytes = sound;
    for (unsigned k = 0; k <= random() % 3; ++k)
      bytes[random() % bytes.size()] = char(random());
    if (i % 4 == 0)
      bytes.resize(random() % bytes.size());
    ModelProto whole;
    bool parses = whole.ParseFromString(bytes);
    Walked walked;
    walk(bytes, walked);
    // Groups, which no ONNX file has, are refused; elements that do not fill
    // their type are an error of the tensor's size later.
    if (walked.result == WireResult::Malformed) {
      refused += !parses;
      continue;
    }
    if (parses) {
      EXPECT_EQ(walked.model.SerializeAsString(), whole.SerializeAsString());
    }
  }
  EXPECT_GT(refused, 500u);
}

TEST(WireWalk, StopsAtADepth) {
  // If inside If: graph, node and attribute are three levels.
  std::string graph;
  for (unsigned i = 0; i < 40; ++i)
    graph = delimited(1, delimited(5, delimited(6, graph)));
  Walked walked;
  walk(delimited(7, graph), walked);
  EXPECT_EQ(walked.result, WireResult::Malformed);
}

TEST(WireWalk, ReadsLengthsOfMoreThan32Bits) {
  // The header of a graph of 4 GiB, without the graph.
  Walked walked;
  walk(std::string("\x3a\x80\x80\x80\x80\x10", 6), walked);
  EXPECT_EQ(walked.result, WireResult::Malformed);
  // A length that would wrap around.
  walk("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", walked);
  EXPECT_EQ(walked.result, WireResult::Malformed);
}
