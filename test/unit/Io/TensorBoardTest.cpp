//===- TensorBoardTest.cpp - Tests of event files -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checksum against the vectors of RFC 3720, events against bytes that
// TensorFlow wrote. test/e2e/output.py reads whole files.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/TensorBoard.h"
#include "TestFiles.h"

#include <cmath>

using namespace zrt;
using namespace zrt::test;

namespace {

TEST(TensorBoard, ChecksumsAreThoseOfRfc3720) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i)
    ascending += char(i);
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  // (crc >> 15 | crc << 17) + 0xA282EAD8
  EXPECT_EQ(maskedCrc32c("123456789"), 0xC78AB0E5u);
}

TEST(TensorBoard, RecordsHaveLengthAndChecksums) {
  std::string record = tensorBoardRecord("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), little(3, 8));
  EXPECT_EQ(record.substr(8, 4), little(maskedCrc32c(little(3, 8)), 4));
  EXPECT_EQ(record.substr(12, 3), "abc");
  EXPECT_EQ(record.substr(15), little(maskedCrc32c("abc"), 4));
}

TEST(TensorBoard, EventsAreProtocolBuffers) {
  // wall_time 1.5, step 300, summary {value {tag "a/b" simple_value 0.5}}
  EXPECT_EQ(tensorBoardEvent(1.5, 300, {{"a/b", 0.5}}),
            std::string("\x09\x00\x00\x00\x00\x00\x00\xF8\x3F"
                        "\x10\xAC\x02"
                        "\x2A\x0C\x0A\x0A\x0A\x03"
                        "a/b\x15\x00\x00\x00\x3F",
                        26));
  EXPECT_EQ(tensorBoardEvent(0, -1, {}),
            std::string("\x09\x00\x00\x00\x00\x00\x00\x00\x00", 9) + "\x10" +
                std::string(9, '\xFF') + "\x01\x2A" + std::string(1, '\0'));
}

class TensorBoardFiles : public FileTest {
protected:
  std::string onlyFile() {
    std::string found;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      found = entry.path().filename();
    return found;
  }
};

TEST_F(TensorBoardFiles, BeginWithTheVersionAndGrowAtOnce) {
  TensorBoardFile file(folder, -1);
  std::string name = onlyFile();
  EXPECT_EQ(name.rfind("events.out.tfevents.", 0), 0u) << name;
  std::string begin = get(name);
  EXPECT_NE(begin.find("brain.Event:2"), begin.npos);
  EXPECT_EQ(begin.size(), 16 + 9 + 15u);
  file.write(7, {{"loss", NAN}});
  EXPECT_GT(get(name).size(), begin.size() + 16);
}

TEST_F(TensorBoardFiles, ARunThatContinuesSaysWhere) {
  TensorBoardFile file(folder, 20);
  std::string bytes = get(onlyFile());
  // step 21, session_log { status: START }
  EXPECT_NE(bytes.find("\x10\x15\x3A\x02\x08\x01"), bytes.npos);
}

} // namespace
