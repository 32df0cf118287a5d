//===- HuggingFaceTest.cpp - Tests of weights in Hugging Face's form ------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How tensors are split, what the index says, and indexes that lead elsewhere.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/HuggingFace.h"
#include "TestFiles.h"

#include <gmock/gmock.h>

#include <cstring>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

std::vector<SafeTensorsWriter::Tensor>
tensorsOf(const std::vector<int64_t> &bytes) {
  std::vector<SafeTensorsWriter::Tensor> tensors;
  for (size_t i = 0; i < bytes.size(); ++i)
    tensors.push_back(
        {std::string(1, char('a' + i)), DataType::U8, {bytes[i]}});
  return tensors;
}

/// The verdicts of huggingface_hub 2.4.0's
/// split_state_dict_into_shards_factory.
TEST(HuggingFaceShards, SplitAsTheLibrary) {
  using Shards = std::vector<std::vector<size_t>>;
  EXPECT_EQ(huggingFaceShards(tensorsOf({}), 10), (Shards{{}}));
  EXPECT_EQ(huggingFaceShards(tensorsOf({4, 6}), 10), (Shards{{0, 1}}));
  EXPECT_EQ(huggingFaceShards(tensorsOf({4, 7}), 10), (Shards{{0}, {1}}));
  // A large one does not end the file before it.
  EXPECT_EQ(huggingFaceShards(tensorsOf({4, 11, 6, 1}), 10),
            (Shards{{1}, {0, 2}, {3}}));
  EXPECT_EQ(huggingFaceShards(tensorsOf({11, 12}), 10), (Shards{{0}, {1}}));
}

class HuggingFace : public FileTest {
protected:
  void write(const std::string &name, uint64_t limit) {
    writeHuggingFace(
        in(name), tensorsOf({4, 6, 3}), limit,
        [](size_t tensor,
           const std::function<void(const void *, size_t)> &take) {
          std::string half(tensor == 2 ? 1 : tensor + 2, char('0' + tensor));
          take(half.data(), half.size());
          std::string rest(tensor == 1 ? 3 : 2, char('0' + tensor));
          take(rest.data(), rest.size());
        });
  }
  std::string readError(const std::string &name) {
    return errorOf([&] { openWeights(in(name)); });
  }
  std::string withIndex(const std::string &text) {
    std::filesystem::create_directories(in("m"));
    put("m/model.safetensors.index.json", text);
    return readError("m");
  }
};

TEST_F(HuggingFace, WritesAndReads) {
  write("one", 13);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(in("one")),
                          std::filesystem::directory_iterator()),
            1);
  write("many", 10);
  EXPECT_EQ(get("many/model.safetensors.index.json"), R"({
  "metadata": {
    "total_size": 13
  },
  "weight_map": {
    "a": "model-00001-of-00002.safetensors",
    "b": "model-00001-of-00002.safetensors",
    "c": "model-00002-of-00002.safetensors"
  }
}
)");
  for (const char *name : {"one", "many", "many/model.safetensors.index.json",
                           "one/model.safetensors"}) {
    auto weights = openWeights(in(name));
    EXPECT_EQ(weights->tensors().size(), 3u);
    EXPECT_EQ(std::memcmp(weights->data("b"), "111111", 6), 0);
    EXPECT_EQ(std::memcmp(weights->data("c"), "222", 3), 0);
    EXPECT_THAT(errorOf([&] { weights->data("d"); }),
                HasSubstr("has no tensor 'd'"));
  }
  SafeTensorsFile file(in("many/model-00002-of-00002.safetensors"));
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

TEST_F(HuggingFace, WeightsThatAreThereStay) {
  write("m", 10);
  EXPECT_EQ(errorOf([&] { write("m", 10); }),
            "m: has weights already (model-00001-of-00002.safetensors); write "
            "to another folder");
  std::filesystem::create_directories(in("config"));
  put("config/config.json", "{}");
  write("config", 13);
}

TEST_F(HuggingFace, FoldersWithoutWeights) {
  EXPECT_THAT(errorOf([&] { openWeights(folder); }),
              HasSubstr(": is a folder without model.safetensors.index.json "
                        "and model.safetensors"));
  EXPECT_THAT(readError("none"), HasSubstr("cannot open"));
}

TEST_F(HuggingFace, IndexesLeadNowhereElse) {
  put("secret.safetensors", safetensors("{}"));
  for (const char *file :
       {"../secret.safetensors", "/etc/passwd", "..", "", "a/b"})
    EXPECT_THAT(
        withIndex(std::string("{\"weight_map\": {\"a\": \"") + file + "\"}}"),
        HasSubstr("tensor \"a\" is in \"" + std::string(file) +
                  "\", which is not the name of a file beside it"));
  ASSERT_EQ(symlink("../secret.safetensors", in("m/link").c_str()), 0);
  EXPECT_THAT(withIndex(R"({"weight_map": {"a": "link"}})"),
              HasSubstr("is a symbolic link, which is not followed"));
  EXPECT_THAT(withIndex(R"({"weight_map": {"a": "none"}})"),
              HasSubstr("none: cannot open: No such file"));
  EXPECT_THAT(withIndex(R"({"weight_map": {"a": "."}})"),
              HasSubstr("is not the name of a file"));
}

TEST_F(HuggingFace, AnIndexOfAnotherSizeIsNoted) {
  std::vector<std::string> notes;
  auto note = [&](const std::string &text) { notes.push_back(text); };
  write("m", 10);
  openWeights(in("m"), note);
  EXPECT_TRUE(notes.empty());
  // As if the tensor "c" had been lost from the index.
  EXPECT_EQ(withIndex(R"({"metadata": {"total_size": 13}, "weight_map": {
      "a": "model-00001-of-00002.safetensors",
      "b": "model-00001-of-00002.safetensors"}})"),
            "");
  openWeights(in("m"), note);
  EXPECT_THAT(
      notes,
      ElementsAre(in("m") +
                  "/model.safetensors.index.json: \"total_size\" is 13, but "
                  "the tensors it lists have 10 bytes; see that index and "
                  "files are of one save, and complete"));
  for (const char *metadata : {"1", "{}", R"({"total_size": "13"})"})
    EXPECT_EQ(withIndex(std::string("{\"metadata\": ") + metadata +
                        ", \"weight_map\": {}}"),
              "");
}

TEST_F(HuggingFace, DamagedIndexes) {
  EXPECT_THAT(withIndex(""), HasSubstr("is not a JSON object"));
  EXPECT_THAT(withIndex("[]"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(withIndex("{\"\xff\": 1}"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(withIndex(std::string(100000, '[')),
              HasSubstr("is not a JSON object"));
  EXPECT_THAT(withIndex("{}"), HasSubstr("has no \"weight_map\""));
  EXPECT_THAT(withIndex(R"({"weight_map": []})"),
              HasSubstr("has no \"weight_map\""));
  EXPECT_THAT(withIndex(R"({"weight_map": {"a": 1}})"),
              HasSubstr("tensor \"a\" is in \"1\""));
  EXPECT_THAT(withIndex(R"({"weight_map": {"a": "f", "a": "g"}})"),
              HasSubstr("has the key \"a\" twice"));
  put("m/f", safetensors("{}"));
  EXPECT_THAT(withIndex(R"({"weight_map": {"a": "f"}})"),
              HasSubstr("f: lacks tensor \"a\", which "
                        "model.safetensors.index.json says is in it"));
}

} // namespace
