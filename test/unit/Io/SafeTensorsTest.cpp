//===- SafeTensorsTest.cpp - Tests of the safetensors format --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the reader accepts and refuses is a table of small files, with the
// verdicts of the format's reference implementation; the writer is tested
// through the reader.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/SafeTensors.h"
#include "TestFiles.h"

#include <cstring>

using namespace zrt;
using namespace zrt::test;

namespace {

class SafeTensors : public FileTest {
protected:
  std::string verdict(const std::string &bytes) {
    std::string path = put("f.safetensors", bytes);
    return errorOf([&] { SafeTensorsFile file(path); });
  }
};

/// One F32 tensor "a" with the given text for shape and offsets.
std::string one(const std::string &shape, const std::string &offsets,
                const std::string &type = "F32") {
  return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}}";
}

TEST_F(SafeTensors, RefusesWhatIsMalformed) {
  const std::string good = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const struct {
    const char *why;
    std::string bytes;
    const char *message;
  } cases[] = {
      {"empty file", "", "0 bytes, at least 8"},
      {"7 bytes", std::string(7, 0), "7 bytes, at least 8"},
      {"header longer than file", little(100, 8) + "{}", "is truncated"},
      {"absurd length", little(~0ull, 8) + "{}", "is over 100000000"},
      {"length just over the limit", little(100000001, 8) + "{}", "is over"},
      {"no header", little(0, 8), "is not a JSON object"},
      {"not UTF-8", safetensors("{\"\xff\":1}"), "is not UTF-8"},
      {"overlong UTF-8", safetensors("{\"\xc0\x80\":1}"), "is not UTF-8"},
      {"surrogate", safetensors("{\"\xed\xa0\x80\":1}"), "is not UTF-8"},
      {"byte order mark", safetensors("\xef\xbb\xbf{}"), "not a JSON object"},
      {"bad JSON", safetensors("{\"a\""), "is not JSON (byte"},
      {"array", safetensors("[]"), "is not a JSON object"},
      {"text behind", safetensors("{} x"), "is not JSON"},
      {"duplicate tensor",
       safetensors("{\"a\":" + good + ",\"a\":" + good + "}", 1),
       "has the key \"a\" twice"},
      {"duplicate field",
       safetensors(
           R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
           1),
       "has the key \"dtype\" twice"},
      {"overlap",
       safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                   6),
       "tensor \"b\" overlaps another one: begins at byte 2, expected 4"},
      {"hole",
       safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})",
                   10),
       "tensor \"b\" leaves a hole before it: begins at byte 6, expected 4"},
      {"hole at the front", safetensors(one("[1]", "[4,8]"), 8),
       "leaves a hole"},
      {"trailing bytes", safetensors(one("[1]", "[0,4]"), 5), "trailing bytes"},
      {"short data", safetensors(one("[2]", "[0,8]"), 7),
       "is truncated: the tensors have 8"},
      {"size mismatch", safetensors(one("[3]", "[0,8]"), 8),
       "tensor \"a\" (F32[3]) needs 12 bytes, its data_offsets give 8"},
      {"shape overflows", safetensors(one("[4294967296,4294967296]", "[0,0]")),
       "overflows"},
      {"bytes overflow", safetensors(one("[9223372036854775807]", "[0,0]")),
       "overflows"},
      {"number over 63 bits",
       safetensors(one("[18446744073709551615]", "[0,0]")), "too large"},
      {"number over 64 bits",
       safetensors(one("[18446744073709551616]", "[0,0]")), "the number 1844"},
      {"negative", safetensors(one("[-1]", "[0,4]"), 4), "a negative number"},
      {"minus zero", safetensors(one("[-0]", "[0,0]")), "a negative number"},
      {"fraction", safetensors(one("[1.0]", "[0,4]"), 4), "the number 1.0"},
      {"end before begin", safetensors(one("[0]", "[4,0]"), 4),
       "ends before it begins"},
      {"three offsets", safetensors(one("[1]", "[0,4,8]"), 4),
       "3 data_offsets"},
      {"nested shape", safetensors(one("[[1]]", "[0,4]"), 4), "has an array"},
      {"object as shape", safetensors(one("{}", "[0,4]"), 4), "has an object"},
      {"unknown dtype", safetensors(one("[1]", "[0,4]", "F33"), 4),
       "unknown dtype \"F33\""},
      {"half a byte", safetensors(one("[1]", "[0,1]", "F4"), 1),
       "no whole number of bytes"},
      {"missing field", safetensors(R"({"a":{"dtype":"U8","shape":[]}})"),
       "lacks data_offsets"},
      {"null tensor", safetensors(R"({"a":null})"), "has null"},
      {"metadata not strings", safetensors(R"({"__metadata__":{"a":1}})"),
       "the number 1"},
      {"metadata nested", safetensors(R"({"__metadata__":{"a":{}}})"),
       "has an object"},
      {"metadata a list", safetensors(R"({"__metadata__":[]})"),
       "has an array"},
      {"deep",
       safetensors(R"({"a":{"x":)" + std::string(200, '[') +
                   std::string(200, ']') + "}}"),
       "nested deeper than 128"},
  };
  for (const auto &test : cases) {
    std::string message = verdict(test.bytes);
    EXPECT_NE(message.find(test.message), message.npos)
        << test.why << ": expected '" << test.message << "', got '" << message
        << "'";
    EXPECT_EQ(message.find('\n'), message.npos) << test.why;
  }
}

TEST_F(SafeTensors, AcceptsWhatTheReferenceAccepts) {
  const struct {
    const char *why;
    std::string bytes;
  } cases[] = {
      {"empty header", safetensors("{}")},
      {"space before", safetensors("  {}")},
      {"space behind", safetensors("{}      ")},
      {"scalar", safetensors(one("[]", "[0,4]"), 4)},
      {"no element", safetensors(one("[0,5]", "[0,0]"))},
      {"metadata", safetensors(R"({"__metadata__":{"format":"pt"}})")},
      {"null metadata", safetensors(R"({"__metadata__":null})")},
      {"a type that is only listed", safetensors(one("[2]", "[0,1]", "F4"), 1)},
      {"complex", safetensors(one("[1]", "[0,8]", "C64"), 8)},
      {"unknown field",
       safetensors(
           R"({"a":{"dtype":"U8","x":[{"dtype":1}],"shape":[1],"data_offsets":[0,1]}})",
           1)},
      {"no element between two",
       safetensors(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                   R"("e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
                   R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                   2)},
  };
  for (const auto &test : cases)
    EXPECT_EQ(verdict(test.bytes), "") << test.why;
}

TEST_F(SafeTensors, EveryCutOfAFileIsRefused) {
  std::string whole = safetensors(one("[2]", "[0,8]"), 8);
  ASSERT_EQ(verdict(whole), "");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(verdict(whole.substr(0, size)), "") << size << " bytes";
}

TEST_F(SafeTensors, EveryFlippedHeaderByteIsHarmless) {
  std::string whole = safetensors(
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"I16","shape":[2,1],)"
      R"("data_offsets":[0,4]}})",
      4);
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] ^= char(1 << bit);
      std::string path = put("f.safetensors", flipped);
      errorOf([&] {
        SafeTensorsFile file(path);
        for (const auto &[name, info] : file.tensors()) {
          std::vector<uint8_t> copy(info.bytes);
          std::memcpy(copy.data(), file.data(name), info.bytes);
        }
      });
    }
}

TEST_F(SafeTensors, NamesTheFileThatIsMissing) {
  EXPECT_EQ(errorOf([&] { SafeTensorsFile file(in("no.safetensors")); }),
            "no.safetensors: cannot open: No such file or directory");
  EXPECT_NE(
      errorOf([&] { SafeTensorsFile file(folder); }).find("Is a directory"),
      std::string::npos);
}

TEST_F(SafeTensors, WhatIsWrittenReadsBack) {
  std::string path = in("w.safetensors");
  SafeTensorsWriter writer(path,
                           {{"b \"quoted\"\n", DataType::F32, {2, 2}},
                            {"é", DataType::I64, {}},
                            {"none", DataType::F32, {0, 3}}},
                           {{"format", "pt"}});
  std::string values = bytesOf<float>({1, 2, 3, 4}),
              scalar = bytesOf<int64_t>({-7});
  writer.write(values.data(), 5);
  writer.write(values.data() + 5, 11);
  writer.write(scalar.data(), scalar.size());
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.commit();

  SafeTensorsFile file(path);
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const TensorInfo *info = file.find("b \"quoted\"\n");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(std::memcmp(file.data("b \"quoted\"\n"), values.data(), 16), 0);
  EXPECT_EQ(integerAt(DataType::I64, file.data("é"), 0), -7);
  EXPECT_EQ(get("w.safetensors")[8], '{');
  EXPECT_EQ((file.data("b \"quoted\"\n") - file.data("é") + 16) % 8, 0);
}

TEST_F(SafeTensors, WriterLeavesTheOldFileUntilCommit) {
  put("w.safetensors", "old");
  {
    SafeTensorsWriter writer(in("w.safetensors"), {{"a", DataType::F32, {1}}});
    EXPECT_EQ(errorOf([&] { writer.commit(); }),
              "w.safetensors: 4 bytes of values were not written");
    char more[5] = {};
    EXPECT_EQ(errorOf([&] { writer.write(more, 5); }),
              "w.safetensors: more values are written than were declared");
  }
  EXPECT_EQ(get("w.safetensors"), "old");
  EXPECT_EQ(numFiles(), 1u);
}

TEST_F(SafeTensors, WriterRefusesBadNames) {
  auto names = [&](std::string a, std::string b) {
    return errorOf([&] {
      SafeTensorsWriter writer(
          in("w"), {{a, DataType::U8, {0}}, {b, DataType::U8, {0}}});
    });
  };
  EXPECT_EQ(names("a", "a"), "w: tensor name \"a\" is used twice");
  EXPECT_EQ(names("a", "__metadata__"),
            "w: tensor name \"__metadata__\" is reserved");
  EXPECT_NE(names("a", "\xff").find("is not UTF-8"), std::string::npos);
  EXPECT_EQ(errorOf([&] {
              SafeTensorsWriter writer(
                  in("w"), {{"a", DataType::F64, {int64_t(1) << 62}}});
            }),
            "w: tensor \"a\" is too large");
  EXPECT_EQ(numFiles(), 0u);
}

} // namespace
