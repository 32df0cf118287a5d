//===- FrameTest.cpp - Messages of the control plane ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Frames come whole out of bytes that come in any pieces; what is no frame is
// refused, whatever it claims.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Frame.h"

#include "gtest/gtest.h"
#include <random>

using namespace zrt;

TEST(Frame, ComesWholeOutOfAnyPieces) {
  std::string stream = encodeFrame(FrameKind::Gather, "first") +
                       encodeFrame(FrameKind::Alive, "") +
                       encodeFrame(FrameKind::Bye, std::string(300, 'x'));
  for (size_t piece : {1, 3, 16, 17, 1000}) {
    FrameReader reader(1000);
    std::vector<std::string> payloads;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.add(stream.data() + at, std::min(piece, stream.size() - at));
      bool valid = true;
      while (auto frame = reader.next(valid))
        payloads.push_back(frame->payload);
      EXPECT_TRUE(valid);
    }
    EXPECT_EQ(payloads,
              (std::vector<std::string>{"first", "", std::string(300, 'x')}));
  }
}

/// Whether a reader takes `bytes` for the begin of frames.
static bool accepts(const std::string &bytes, uint64_t limit) {
  FrameReader reader(limit);
  reader.add(bytes.data(), bytes.size());
  bool valid = true;
  while (reader.next(valid))
    continue;
  return valid;
}

TEST(Frame, RefusesWhatIsNone) {
  EXPECT_FALSE(accepts("GET / HTTP/1.1\r\n\r\n", 1000));
  EXPECT_FALSE(accepts("Z!", 1000)); // known by its first bytes
  EXPECT_TRUE(accepts("ZR", 1000));
  std::string frame = encodeFrame(FrameKind::Hello, "0123456789");
  EXPECT_TRUE(accepts(frame, 10));
  EXPECT_FALSE(accepts(frame, 9));
  frame[4] = char(numFrameKinds);
  EXPECT_FALSE(accepts(frame, 1000));
  std::string huge = encodeFrame(FrameKind::Hello, "");
  huge.replace(8, 8, 8, char(0xff));
  EXPECT_FALSE(accepts(huge, uint64_t(1) << 36));
}

TEST(Frame, NoBytesBreakTheReader) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = encodeFrame(FrameKind::Hello, "some payload");
    for (int i = 0; i < 3; ++i)
      bytes[random() % bytes.size()] = char(random());
    accepts(bytes.substr(0, random() % bytes.size()), 4096);
    PayloadReader reader(bytes);
    while (reader.text())
      continue;
  }
}

TEST(Payload, EndsWhereItEnds) {
  std::string bytes = PayloadWriter().number(7).text("ab").bytes;
  PayloadReader whole(bytes);
  EXPECT_EQ(whole.number(), 7u);
  EXPECT_EQ(whole.text(), "ab");
  EXPECT_TRUE(whole.atEnd());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    PayloadReader part(std::string_view(bytes).substr(0, cut));
    if (part.number()) {
      EXPECT_EQ(part.text(), std::nullopt);
    }
  }
}
