//===- CheckpointTest.cpp - Tests of checkpoints --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format, which checkpoint is the newest, damage of every kind, and indexes
// that lie. Crashes are in CheckpointCrashTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "CheckpointRun.h"
#include "MemoryFileSystem.h"
#include "TestFiles.h"

#include "runtime/io/Hash.h"
#include "runtime/io/SafeTensors.h"

#include <gmock/gmock.h>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

class Checkpoints : public FileTest {
protected:
  std::string save(int64_t step, int64_t keep = 0) {
    CheckpointFolder run(in("run"));
    return saveKnown(run, step, keep);
  }
  std::string loadError(const std::string &path) {
    try {
      loadKnown(Checkpoint::open(path));
    } catch (const IoError &error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Checkpoints, WhatIsSavedLoads) {
  EXPECT_EQ(save(12), "step-00000012");
  Checkpoint checkpoint = Checkpoint::open(in("run"));
  EXPECT_EQ(loadKnown(checkpoint), 12);
  EXPECT_EQ(checkpoint.path(), in("run/step-00000012"));
  const RunFacts &facts = checkpoint.facts();
  EXPECT_EQ(facts.model, "m");
  EXPECT_EQ(facts.optimizer, "adamw");
  EXPECT_EQ(facts.precision, "f32");
  EXPECT_EQ(facts.ranks, 4u);
  EXPECT_EQ(facts.stage, 3u);
  EXPECT_THAT(facts.grid, ElementsAre(4));
  EXPECT_EQ(facts.seed, 5);
  std::vector<StateTensor> tensors = knownTensors();
  ASSERT_EQ(checkpoint.tensors().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StateTensor &got = checkpoint.tensors()[i];
    EXPECT_EQ(got.name, tensors[i].name);
    EXPECT_EQ(got.role, tensors[i].role);
    EXPECT_EQ(got.of, tensors[i].of);
    EXPECT_EQ(got.tied, tensors[i].tied);
    EXPECT_EQ(got.shape, tensors[i].shape);
    EXPECT_EQ(got.layout, tensors[i].layout);
    EXPECT_EQ(got.parts, tensors[i].parts);
  }
}

/// Each rank's file is a safetensors file of its own rows.
TEST_F(Checkpoints, FilesAreSafetensors) {
  save(1);
  SafeTensorsFile first(in("run/step-00000001/rank-00000.safetensors"));
  EXPECT_EQ(first.metadata().at("step"), "1");
  EXPECT_EQ(first.find("w")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(first.find("b")->type, DataType::BF16);
  EXPECT_TRUE(first.find("loss_scale"));
  SafeTensorsFile third(in("run/step-00000001/rank-00002.safetensors"));
  EXPECT_EQ(third.find("w")->shape, (std::vector<int64_t>{1, 3}));
  EXPECT_FALSE(third.find("b"));
  // No row of w is on rank 3: only its own statistic.
  SafeTensorsFile last(in("run/step-00000001/rank-00003.safetensors"));
  EXPECT_EQ(last.tensors().size(), 1u);
}

TEST_F(Checkpoints, TheNewestIsTakenAndOldOnesGo) {
  for (int64_t step : {2, 4, 100000000, 8})
    save(step);
  CheckpointFolder run(in("run"));
  EXPECT_THAT(run.checkpoints(),
              ElementsAre("step-00000002", "step-00000004", "step-00000008",
                          "step-100000000"));
  EXPECT_EQ(newestStep(in("run"), FileSystem::real()), 100000000);
  saveKnown(run, 100000001, 2);
  EXPECT_THAT(run.checkpoints(),
              ElementsAre("step-100000000", "step-100000001"));
}

/// A step that is saved again has a name of its own: the first stays whole
/// until the second is.
TEST_F(Checkpoints, SameStepAgain) {
  save(3);
  EXPECT_EQ(save(3), "step-00000003.1");
  EXPECT_EQ(save(3, 1), "step-00000003.2");
  EXPECT_EQ(Checkpoint::open(in("run")).path(), in("run/step-00000003.2"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(in("run")),
                          std::filesystem::directory_iterator()),
            1);
}

TEST_F(Checkpoints, NamesOfFoldersAreExact) {
  for (const char *name :
       {"step-", "step-1", "step-0000000x", "step-00000001.", "step-00000001.0",
        "step-000000001", "xstep-00000001", "step-00000001.tmp",
        "step-9999999999999999999"})
    EXPECT_FALSE(CheckpointName::parse(name)) << name;
  EXPECT_EQ(CheckpointName::parse("step-00000001.2")->again, 2);
}

TEST_F(Checkpoints, OneRunAtATime) {
  CheckpointFolder run(in("run"));
  EXPECT_EQ(errorOf([&] { CheckpointFolder other(in("run")); }),
            "run: another run saves its checkpoints here; give each run a "
            "folder of its own");
}

TEST_F(Checkpoints, FolderThatCannotBe) {
  EXPECT_EQ(errorOf([&] { CheckpointFolder run(in("no/run")); }),
            "run: cannot create: No such file or directory");
  put("file", "");
  EXPECT_EQ(errorOf([&] { CheckpointFolder run(in("file")); }),
            "file: cannot open: Not a directory");
  EXPECT_EQ(errorOf([&] { Checkpoint::open(in("none")); }),
            "none: cannot open: No such file or directory");
  EXPECT_THAT(errorOf([&] { Checkpoint::open(folder); }),
              HasSubstr("has no checkpoint"));
}

/// Each file that is removed, cut or longer is named.
TEST_F(Checkpoints, EveryMissingFileIsNamed) {
  save(1);
  std::string path = in("run/step-00000001/");
  int removed = 0;
  for (const char *name :
       {"rank-00000.safetensors", "rank-00001.safetensors",
        "rank-00002.safetensors", "rank-00003.safetensors", "index.json"}) {
    std::filesystem::rename(path + name, in("kept"));
    std::string error = loadError(in("run"));
    EXPECT_THAT(error, HasSubstr(name));
    removed += error.find(name) != error.npos;
    std::string bytes = get("kept");
    std::ofstream(path + name) << bytes.substr(0, bytes.size() - 1);
    EXPECT_THAT(loadError(in("run")), HasSubstr(name));
    std::ofstream(path + name) << bytes << "x";
    EXPECT_THAT(loadError(in("run")), HasSubstr(name));
    std::filesystem::rename(in("kept"), path + name);
  }
  EXPECT_EQ(loadError(in("run")), "");
  std::printf("%d of 5 removed files named\n", removed);
}

/// Each flipped byte of a checkpoint is found, and its file named; one in a
/// value also with its tensor.
TEST_F(Checkpoints, EveryFlippedByteIsNamed) {
  MemoryFileSystem disk;
  {
    CheckpointFolder run("run", disk);
    saveKnown(run, 1);
  }
  int flipped = 0, named = 0, tensors = 0;
  Folder inner = Folder::open("run/step-00000001", disk);
  for (const std::string &name : inner.list()) {
    File file = inner.openFile(name);
    std::string bytes = readAll(file, 1 << 20);
    for (size_t at = 0; at < bytes.size(); ++at) {
      char wrong = bytes[at] ^ char(1 << at % 8);
      ASSERT_EQ(disk.writeAt(file.descriptor(), &wrong, 1, at), 1);
      std::string error;
      try {
        loadKnown(Checkpoint::open("run", disk));
      } catch (const IoError &failed) {
        error = failed.what();
      }
      ++flipped;
      named += error.find("run/step-00000001/" + name) == 0;
      tensors += error.find("is damaged: tensor") != error.npos;
      ASSERT_EQ(disk.writeAt(file.descriptor(), &bytes[at], 1, at), 1);
    }
  }
  EXPECT_EQ(loadKnown(Checkpoint::open("run", disk)), 1);
  EXPECT_EQ(named, flipped);
  uint64_t values = 0;
  for (const StateTensor &tensor : knownTensors())
    for (uint32_t part = 0; part < tensor.parts; ++part)
      values += tensor.partBytes(part);
  EXPECT_GE(tensors, int(values)); // a header may give an offset away as well
  std::printf("%d flipped bytes, %d named with their file, %d with their "
              "tensor\n",
              flipped, named, tensors);
}

/// Parts of several chunks, a small one between them, elements at odd places:
/// with any number of threads the same bytes come, elements whole.
TEST_F(Checkpoints, LargeTensorsAreCutAtElements) {
  MemoryFileSystem disk;
  StateTensor odd{"a", "frozen", "", {}, DataType::BF16, {3}};
  StateTensor large{"b", "trained", "", {}, DataType::F64, {5, 61003}};
  large.layout = StateLayout::Rows;
  large.parts = 2;
  large.chunkRows = 4;
  std::vector<StateTensor> tensors = {odd, large, odd, large};
  tensors[2].name = "c";
  tensors[3].name = "d";
  auto byteAt = [](size_t tensor, uint32_t part, uint64_t at) {
    return uint8_t(at % 251 + at / 65536 * 3 + tensor * 5 + part * 7);
  };
  for (unsigned threads : {0, 1, 2, 5}) {
    std::string name = "run" + std::to_string(threads);
    CheckpointFolder run(name, disk, threads);
    run.save(
        knownFacts(1), tensors,
        [&](size_t tensor, uint32_t part, uint64_t offset, void *data,
            size_t bytes) {
          for (size_t i = 0; i < bytes; ++i)
            static_cast<uint8_t *>(data)[i] = byteAt(tensor, part, offset + i);
        },
        0);
    uint64_t got = 0, wrong = 0, cut = 0;
    Checkpoint checkpoint = Checkpoint::open(name, disk);
    checkpoint.stream(
        [&](size_t tensor, uint32_t part, uint64_t offset, const void *data,
            size_t bytes) {
          got += bytes;
          size_t element = bitWidth(tensors[tensor].type) / 8;
          cut += offset % element || bytes % element ||
                 bytes > checkpointBucketBytes;
          for (size_t i = 0; i < bytes; ++i)
            wrong += static_cast<const uint8_t *>(data)[i] !=
                     byteAt(tensor, part, offset + i);
        },
        threads);
    EXPECT_EQ(got, 2 * (6 + uint64_t(5) * 61003 * 8));
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(cut, 0u);
  }
}

TEST_F(Checkpoints, DamagedNewestNamesAnOlderOne) {
  save(1);
  save(2);
  std::filesystem::remove(in("run/step-00000002/rank-00001.safetensors"));
  std::string error = loadError(in("run"));
  EXPECT_THAT(error, HasSubstr("step-00000002/rank-00001.safetensors: cannot "
                               "open: No such file or directory"));
  EXPECT_THAT(error, HasSubstr("to go back, name an older one: " +
                               in("run/step-00000001")));
  EXPECT_EQ(loadError(in("run/step-00000001")), "");
}

TEST_F(Checkpoints, NamesAreThoseOfTheirSteps) {
  save(1);
  save(2);
  std::filesystem::rename(in("run/step-00000001"), in("run/step-00000009"));
  std::string message = "run/step-00000009: is the checkpoint after step 1; "
                        "give it the name that it was saved under";
  EXPECT_THAT(loadError(in("run")), HasSubstr(message));
  EXPECT_THAT(loadError(in("run/step-00000009")), HasSubstr(message));
  EXPECT_EQ(loadError(in("run/step-00000002")), "");
}

TEST_F(Checkpoints, NoneInsideAnother) {
  save(1);
  EXPECT_EQ(errorOf([&] { CheckpointFolder run(in("run/step-00000001")); }),
            "step-00000001: is a checkpoint; name the folder that it is in");
}

/// A file whose values were exchanged for others, with a hash to match in its
/// own header, still is not what the index says.
TEST_F(Checkpoints, FilesOfAnotherCheckpointAreNotTaken) {
  save(1);
  save(2);
  std::filesystem::copy_file(in("run/step-00000001/rank-00001.safetensors"),
                             in("run/step-00000002/rank-00001.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(loadError(in("run/step-00000002")),
              HasSubstr("rank-00001.safetensors: is damaged: its header has "
                        "the hash xxh3:"));
}

/// An index whose sizes do not fit its files, with a hash to match.
TEST_F(Checkpoints, IndexWithOtherSizesIsNamed) {
  std::string path = in("run/step-00000001/");
  auto errorWith = [&](const std::string &from, const std::string &to) {
    save(1);
    std::ifstream file(path + "index.json");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text.resize(text.rfind("\"index_hash\""));
    for (size_t at; (at = text.find(from)) != text.npos;)
      text.replace(at, from.size(), to);
    Hash hash;
    hash.update(text);
    std::ofstream(path + "index.json")
        << text << "\"index_hash\": \"" << hash.text() << "\"}\n";
    std::string error = loadError(path);
    std::filesystem::remove_all(in("run"));
    return error;
  };
  EXPECT_THAT(errorWith("\"shape\":[5,3]", "\"shape\":[5,300]"),
              HasSubstr("rank-00000.safetensors: has "));
  EXPECT_THAT(errorWith("\"shape\":[5,3]", "\"shape\":[5,300]"),
              HasSubstr(" bytes, too few for the tensors that the index says "
                        "are in it"));
  EXPECT_THAT(errorWith("\"shape\":[5,3]", "\"shape\":[5,2]"),
              HasSubstr("is damaged: its header has the hash"));
}

/// A file that is all hole where the index has no tensor is not read.
TEST_F(Checkpoints, HugeHeaderIsRefused) {
  save(1);
  std::string path = in("run/step-00000001/");
  std::filesystem::resize_file(path + "rank-00003.safetensors", 200000000);
  std::string text = get("run/step-00000001/index.json");
  text.resize(text.rfind("\"index_hash\""));
  size_t at = text.find("\"bytes\": ", text.find("rank-00003")) + 9;
  text.replace(at, text.find(',', at) - at, "200000000");
  Hash hash;
  hash.update(text);
  put("run/step-00000001/index.json",
      text + "\"index_hash\": \"" + hash.text() + "\"}\n");
  EXPECT_THAT(loadError(path), HasSubstr(" bytes that are of no tensor of the "
                                         "index"));
}

TEST(SafeTensorsStart, LengthMustFit) {
  std::string start("\2\0\0\0\0\0\0\0{}", 10);
  EXPECT_TRUE(parseSafeTensorsHeader("f", start, 10).infos.empty());
  EXPECT_EQ(errorOf([&] { parseSafeTensorsHeader("f", start + "  ", 12); }),
            "f: has a safetensors header of 2 bytes, expected 4");
  EXPECT_THAT(errorOf([&] { parseSafeTensorsHeader("f", "abc", 12); }),
              HasSubstr("is not a safetensors file: 3 bytes"));
}

TEST_F(Checkpoints, LinksAreNotFollowed) {
  save(1);
  std::string file = in("run/step-00000001/rank-00001.safetensors");
  std::filesystem::rename(file, in("elsewhere"));
  ASSERT_EQ(symlink(in("elsewhere").c_str(), file.c_str()), 0);
  EXPECT_THAT(loadError(in("run")),
              HasSubstr("is a symbolic link, which is not followed"));
}

TEST_F(Checkpoints, LeftoversOfKilledRunsGo) {
  std::filesystem::create_directories(in("run/.saving-step-00000002"));
  std::filesystem::create_directories(in("run/.removing-step-00000001"));
  std::ofstream(in("run/.saving-step-00000002/rank-00000.safetensors")) << "x";
  std::ofstream(in("run/notes.txt")) << "mine";
  save(3);
  EXPECT_FALSE(std::filesystem::exists(in("run/.saving-step-00000002")));
  EXPECT_FALSE(std::filesystem::exists(in("run/.removing-step-00000001")));
  EXPECT_TRUE(std::filesystem::exists(in("run/notes.txt")));
}

//===----------------------------------------------------------------------===//
// Indexes that lie: with a hash that matches
//===----------------------------------------------------------------------===//

std::string indexError(const std::string &from, const std::string &to) {
  CheckpointIndex index;
  index.facts = knownFacts(1);
  index.tensors = knownTensors();
  index.files = {{"rank-00000.safetensors", 10, "h", {}}};
  for (size_t i = 0; i < index.tensors.size(); ++i)
    for (uint32_t part = 0; part < index.tensors[i].parts; ++part)
      if (!part || index.tensors[i].partBytes(part))
        index.files[0].pieces.push_back({i, part, "h"});
  std::string text = writeCheckpointIndex(index);
  if (!from.empty()) {
    size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
  }
  text.resize(text.rfind("\"index_hash\""));
  Hash hash;
  hash.update(text);
  text += "\"index_hash\": \"" + hash.text() + "\"}\n";
  try {
    readCheckpointIndex("index.json", text);
  } catch (const IoError &error) {
    return error.what();
  }
  return "";
}

TEST(CheckpointIndexes, NothingIsBelieved) {
  EXPECT_EQ(indexError("", ""), "");
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"\"zero-checkpoint\"", "\"x\"", "is not \"zero-checkpoint\""},
      {"\"version\": 2", "\"version\": 1",
       "has format version 1, this program reads version 2"},
      {"\"version\": 2,", "", "lacks \"version\""},
      {"\"header_hash\": \"h\",", "", "lacks \"header_hash\""},
      {"\"step\": 1", "\"step\": -1", ".step is -1, outside [0, "},
      {"\"step\": 1", "\"step\": 1.5", ".step is not an integer"},
      {"\"step\": 1", "\"step\": 18446744073709551615", "is not an integer"},
      {"\"samples\": 10", "\"samples\": \"10\"", "is not an integer"},
      {"\"ranks\":4", "\"ranks\":99999999", ".ranks is 99999999, outside"},
      {"\"stage\":3", "\"stage\":4", ".stage is 4, outside [0, 3]"},
      {"\"model\":\"m\"", "\"model\":1", ".model is not a string"},
      {"\"role\":\"trained\"", "\"role\":\"x\"", "is the unknown \"x\""},
      {"\"dtype\":\"F32\"", "\"dtype\":\"F33\"", "is no element type"},
      {"\"dtype\":\"F32\"", "\"dtype\":\"F4\"", "is no element type"},
      {"\"shape\":[5,3]", "\"shape\":[-5,3]", "is -5, outside"},
      {"\"shape\":[5,3]", "\"shape\":[9223372036854775807,3]", "overflows"},
      {"\"shape\":[5,3]", "\"shape\":[]", "cuts a scalar"},
      {"\"shape\":[5,3]", "\"shape\":[9,3]", "chunk_rows leaves rows out"},
      {"\"shape\":[5,3]", "\"shape\":{}", "is not a list"},
      {"\"layout\":\"rows\"", "\"layout\":\"columns\"", "unknown \"columns\""},
      {"\"parts\":4", "\"parts\":0", "is 0, outside [1, "},
      {"\"name\":\"w\"", "\"name\":\"b\"", "is there twice"},
      {"\"name\": \"rank-00000.safetensors\"", "\"name\": \"../x\"",
       "is \"../x\", which is not the plain name"},
      {"\"name\": \"rank-00000.safetensors\"", "\"name\": \"/etc/passwd\"",
       "is \"/etc/passwd\", which is not"},
      {"\"name\": \"rank-00000.safetensors\"", "\"name\": \"a\\u0000b\"",
       "which is not the plain name"},
      {"\"name\": \"rank-00000.safetensors\"", "\"name\": \"..\"",
       "is \"..\", which is not"},
      {"{\"tensor\":\"w\",\"hash\":\"h\",\"part\":1",
       "{\"tensor\":\"x\","
       "\"hash\":\"h\",\"part\":1",
       "is not in the list of tensors"},
      {"\"part\":1", "\"part\":4", "is 4, outside [0, 3]"},
      {"\"part\":1", "\"part\":0", "is there twice"},
      {"\"rows\":[4,5]", "\"rows\":[2,5]",
       "rows is not [4, 5], the rows of part 2"},
      {"\"rows\":[4,5]", "\"rows\":[5,4]", "is not [4, 5]"},
      {",\"rows\":[4,5]", "", "lacks \"rows\""},
      {"{\"tensor\":\"w\",\"hash\":\"h\",\"part\":2,\"rows\":[4,5]},\n  ", "",
       "has no piece for part 2 of tensor \"w\""},
      {"\"files\": [", "\"files\": [[", "is not JSON"},
  };
  for (const auto &test : cases)
    EXPECT_THAT(indexError(test.from, test.to), HasSubstr(test.message))
        << test.from << " -> " << test.to;
}

TEST(CheckpointIndexes, DeepNestingEnds) {
  std::string deep(200000, '[');
  EXPECT_THAT(indexError("\"seed\": 5", "\"seed\": " + deep),
              HasSubstr("is not JSON"));
}

TEST(PlainNames, NothingElse) {
  for (const char *name : {"", ".", "..", "/", "a/b", "../a", "/a"})
    EXPECT_FALSE(isPlainName(name)) << name;
  EXPECT_FALSE(isPlainName(std::string("a\0b", 3)));
  EXPECT_FALSE(isPlainName(std::string(256, 'a')));
  EXPECT_TRUE(isPlainName(std::string(255, 'a')));
  EXPECT_TRUE(isPlainName("rank-00000.safetensors"));
}

} // namespace
