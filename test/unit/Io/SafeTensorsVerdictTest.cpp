//===- SafeTensorsVerdictTest.cpp - Verdicts of the reference -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the format's reference implementation accepts and refuses, both readers
// here accept and refuse. data/make_verdicts.py asked it.
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"
#include "runtime/io/SafeTensors.h"

#include <sstream>

using namespace zrt;
using namespace zrt::test;

namespace {

/// The bytes that "00*3 7b" stands for.
std::string unpack(std::istream &words) {
  std::string bytes, word;
  while (words >> word) {
    size_t count = word.size() > 3 ? std::stoul(word.substr(3)) : 1;
    bytes.append(count, char(std::stoi(word.substr(0, 2), nullptr, 16)));
  }
  return bytes;
}

TEST_F(FileTest, SafeTensorsVerdictsAreTheReferences) {
  std::ifstream table(ZERO_TEST_IO_DATA "/safetensors-verdicts.txt");
  std::string line, verdict, name;
  int accepted = 0, refused = 0;
  while (std::getline(table, line)) {
    if (line[0] == '#')
      continue;
    std::istringstream words(line);
    words >> verdict >> name;
    std::string path = put("f", unpack(words));
    std::string mapped = errorOf([&] { SafeTensorsFile file(path); });
    std::string streamed = errorOf([&] {
      File file = File::open(path);
      readSafeTensorsHeader(file);
    });
    EXPECT_EQ(mapped, streamed) << name;
    EXPECT_EQ(mapped.find('\n'), mapped.npos) << name;
    // The format forbids it; the reference keeps the last of two equal ones.
    if (name == "duplicate-key")
      verdict = "refuse";
    EXPECT_EQ(mapped.empty(), verdict == "accept") << name << ": " << mapped;
    ++(verdict == "accept" ? accepted : refused);
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 20);
  std::printf("%d files accepted, %d refused, as the reference does\n",
              accepted, refused);
}

} // namespace
