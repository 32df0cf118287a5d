//===- PtxCases.h - Instructions with known results -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each case is an entry of one module, which ptxas must accept where there is
// one.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_FAKECUDA_PTXCASES_H
#define ZERO_TEST_UNIT_FAKECUDA_PTXCASES_H

#include "test/unit/FakeCuda/PtxTest.h"

#include <cmath>
#include <fstream>
#include <limits>

namespace ptx_test {

/// `types` are those of the registers %x, %a, %b, %c and %d, as far as there
/// are any; %p and %q are predicates. Inputs and result as bits.
struct Case {
  const char *code;
  std::vector<const char *> types;
  std::vector<uint64_t> inputs;
  uint64_t expected;
};

inline uint64_t f32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline uint64_t f64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

static constexpr float kInf = std::numeric_limits<float>::infinity();
static constexpr uint64_t kNan = 0x7FFFFFFF;
static constexpr float kTiny = 1e-40f; // subnormal

inline uint64_t u32(int32_t value) { return static_cast<uint32_t>(value); }

inline std::string entryOf(const Case &test, size_t number) {
  const char *names[] = {"%x", "%a", "%b", "%c", "%d"};
  std::string text = ".visible .entry case" + std::to_string(number) +
                     "(.param .u64 io) {\n  .reg .b64 %io;\n  .reg .pred %p, "
                     "%q;\n  ld.param.u64 %io, [io];\n";
  for (size_t i = 0; i < test.types.size(); ++i) {
    text += std::string("  .reg .") + test.types[i] + " " + names[i] + ";\n";
    if (i > 0)
      text += std::string("  ld.global.") + test.types[i] + " " + names[i] +
              ", [%io+" + std::to_string(8 * i) + "];\n";
  }
  return text + "  " + test.code + "\n  st.global." + test.types[0] +
         " [%io], %x;\n  ret;\n}\n";
}

inline std::string moduleOf(const std::vector<Case> &cases) {
  std::string text =
      ".version 8.6\n.target sm_90\n.address_size 64\n"
      ".const .align 8 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
      ".global .align 4 .u32 numbers[3] = {10, 20, 30};\n";
  for (size_t i = 0; i < cases.size(); ++i)
    text += entryOf(cases[i], i);
  return text;
}

inline void expectPtxasAccepts(const std::string &text) {
  if (!*ZERO_PTXAS)
    return;
  TemporaryFile file(".ptx");
  std::ofstream(file.path) << text;
  std::string command =
      std::string(ZERO_PTXAS) + " -arch=sm_90 -o /dev/null " + file.path;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

inline void expectResults(const std::vector<Case> &cases) {
  std::string text = moduleOf(cases);
  auto module = parse(text);
  ASSERT_TRUE(module);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].code);
    Array<uint64_t> io(8, 0);
    for (size_t input = 0; input < cases[i].inputs.size(); ++input)
      io[input + 1] = cases[i].inputs[input];
    std::string name = "case" + std::to_string(i);
    EXPECT_EQ(launch(*module, name.c_str(), {}, io.address()), "");
    EXPECT_EQ(io[0], cases[i].expected)
        << std::hex << io[0] << " instead of " << cases[i].expected;
  }
  expectPtxasAccepts(text);
}

} // namespace ptx_test

#endif // ZERO_TEST_UNIT_FAKECUDA_PTXCASES_H
