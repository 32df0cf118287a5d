//===- PtxInstructionTest.cpp - What each instruction computes ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Known values, from the PTX manual and from IEEE 754. Each case is an entry of
// one module, which ptxas must accept where there is one.
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/PtxTest.h"

#include <cmath>
#include <fstream>
#include <limits>

using namespace ptx_test;

namespace {
/// `types` are those of the registers %x, %a, %b, %c and %d, as far as there
/// are any; %p and %q are predicates. Inputs and result as bits.
struct Case {
  const char *code;
  std::vector<const char *> types;
  std::vector<uint64_t> inputs;
  uint64_t expected;
};
} // namespace

static uint64_t f32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t f64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

static constexpr float kInf = std::numeric_limits<float>::infinity();
static constexpr uint64_t kNan = 0x7FFFFFFF;
static constexpr float kTiny = 1e-40f; // subnormal

static uint64_t u32(int32_t value) { return static_cast<uint32_t>(value); }

static std::string entryOf(const Case &test, size_t number) {
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

static std::string moduleOf(const std::vector<Case> &cases) {
  std::string text =
      ".version 8.6\n.target sm_90\n.address_size 64\n"
      ".const .align 8 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
      ".global .align 4 .u32 numbers[3] = {10, 20, 30};\n";
  for (size_t i = 0; i < cases.size(); ++i)
    text += entryOf(cases[i], i);
  return text;
}

static void expectPtxasAccepts(const std::string &text) {
#ifdef ZERO_PTXAS
  std::string path = testing::TempDir() + "zero-ptx-instruction-test.ptx";
  std::ofstream(path) << text;
  std::string command =
      std::string(ZERO_PTXAS) + " -arch=sm_90 -o /dev/null " + path;
  EXPECT_EQ(std::system(command.c_str()), 0);
#else
  (void)text;
#endif
}

static void expectResults(const std::vector<Case> &cases) {
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

TEST(PtxInstruction, IntegerArithmetic) {
  expectResults({
      {"add.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {0xFFFFFFFF, 2}, 1},
      {"add.s16 %x, %a, %b;", {"b16", "b16", "b16"}, {0xFFFF, 2}, 1},
      {"add.u64 %x, %a, %b;",
       {"b64", "b64", "b64"},
       {1ull << 63, 1ull << 63},
       0},
      {"add.sat.s32 %x, %a, %b;",
       {"b32", "b32", "b32"},
       {0x7FFFFFFF, 2},
       0x7FFFFFFF},
      {"sub.s32 %x, %a, 5;", {"b32", "b32"}, {3}, u32(-2)},
      {"mul.lo.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {u32(-3), 7}, u32(-21)},
      {"mul.lo.u16 %x, %a, %b;", {"b16", "b16", "b16"}, {0xFFFF, 0xFFFF}, 1},
      {"mul.hi.u32 %x, %a, %b;", {"b32", "b32", "b32"}, {0x80000000, 6}, 3},
      {"mul.hi.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {u32(-1), 6}, u32(-1)},
      {"mul.hi.u64 %x, %a, %b;", {"b64", "b64", "b64"}, {1ull << 63, 6}, 3},
      {"mul.wide.s32 %x, %a, %b;",
       {"b64", "b32", "b32"},
       {u32(-2), 0x40000000},
       0xFFFFFFFF80000000},
      {"mul.wide.u32 %x, %a, %b;",
       {"b64", "b32", "b32"},
       {0xFFFFFFFF, 0xFFFFFFFF},
       0xFFFFFFFE00000001},
      {"mul.wide.u16 %x, %a, %b;", {"b32", "b16", "b16"}, {0xFFFF, 2}, 0x1FFFE},
      {"mad.lo.s32 %x, %a, %b, %c;",
       {"b32", "b32", "b32", "b32"},
       {7, 8, u32(-6)},
       50},
      {"mad.wide.s32 %x, %a, %b, %c;",
       {"b64", "b32", "b32", "b64"},
       {u32(-2), 3, 10},
       4},
      {"mad.hi.u32 %x, %a, %b, %c;",
       {"b32", "b32", "b32", "b32"},
       {0x80000000, 2, 5},
       6},
      {"div.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {u32(-7), 2}, u32(-3)},
      {"div.u64 %x, %a, %b;", {"b64", "b64", "b64"}, {~0ull, 16}, ~0ull / 16},
      {"rem.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {u32(-7), 2}, u32(-1)},
      {"rem.u32 %x, %a, %b;", {"b32", "b32", "b32"}, {17, 5}, 2},
      {"abs.s32 %x, %a;", {"b32", "b32"}, {u32(-9)}, 9},
      {"neg.s64 %x, %a;", {"b64", "b64"}, {9}, 0xFFFFFFFFFFFFFFF7},
      {"min.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {u32(-1), 1}, u32(-1)},
      {"min.u32 %x, %a, %b;", {"b32", "b32", "b32"}, {u32(-1), 1}, 1},
      {"max.s64 %x, %a, %b;", {"b64", "b64", "b64"}, {~0ull, 1}, 1},
      {"max.u16 %x, %a, %b;", {"b16", "b16", "b16"}, {3, 0xFFFF}, 0xFFFF},
      {"sad.u32 %x, %a, %b, %c;", {"b32", "b32", "b32", "b32"}, {3, 10, 5}, 12},
  });
}

TEST(PtxInstruction, Carries) {
  expectResults({
      // (2^32 - 1) + (2 << 32) + 1 in two halves.
      {"add.cc.u32 %x, %a, %b; addc.u32 %x, %c, %d;",
       {"b32", "b32", "b32", "b32", "b32"},
       {0xFFFFFFFF, 1, 2, 3},
       6},
      {"sub.cc.u32 %x, %a, %b; subc.u32 %x, %c, %d;",
       {"b32", "b32", "b32", "b32", "b32"},
       {0, 1, 7, 3},
       3},
      {"mad.lo.cc.u32 %x, %a, %b, %c; madc.hi.u32 %x, %a, %b, %d;",
       {"b32", "b32", "b32", "b32", "b32"},
       {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 5},
       0xFFFFFFFE + 5ull + 1 - (1ull << 32)},
  });
}

TEST(PtxInstruction, Bits) {
  expectResults({
      {"and.b32 %x, %a, %b;", {"b32", "b32", "b32"}, {12, 10}, 8},
      {"or.b64 %x, %a, %b;", {"b64", "b64", "b64"}, {12, 10}, 14},
      {"xor.b16 %x, %a, %b;", {"b16", "b16", "b16"}, {12, 10}, 6},
      {"not.b32 %x, %a;", {"b32", "b32"}, {0xF0}, 0xFFFFFF0F},
      {"cnot.b32 %x, %a;", {"b32", "b32"}, {0}, 1},
      {"shl.b32 %x, %a, %b;", {"b32", "b32", "b32"}, {3, 4}, 48},
      {"shl.b32 %x, %a, %b;", {"b32", "b32", "b32"}, {3, 32}, 0},
      {"shr.u32 %x, %a, %b;", {"b32", "b32", "b32"}, {0x80000000, 31}, 1},
      {"shr.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {0x80000000, 99}, ~0u},
      {"shr.u64 %x, %a, 40;", {"b64", "b64"}, {1ull << 63}, 1ull << 23},
      {"popc.b32 %x, %a;", {"b32", "b32"}, {0xF0F0}, 8},
      {"popc.b64 %x, %a;", {"b32", "b64"}, {~0ull}, 64},
      {"clz.b32 %x, %a;", {"b32", "b32"}, {1}, 31},
      {"clz.b64 %x, %a;", {"b32", "b64"}, {0}, 64},
      {"bfind.u32 %x, %a;", {"b32", "b32"}, {0x100}, 8},
      {"bfind.s32 %x, %a;", {"b32", "b32"}, {u32(-1)}, ~0u},
      {"brev.b32 %x, %a;", {"b32", "b32"}, {3}, 0xC0000000},
      {"bfe.u32 %x, %a, 4, 8;", {"b32", "b32"}, {0xABCDE}, 0xCD},
      {"bfe.s32 %x, %a, 4, 8;", {"b32", "b32"}, {0xABCDE}, 0xFFFFFFCD},
      {"bfe.u64 %x, %a, 60, 8;", {"b64", "b64"}, {~0ull}, 15},
      {"bfi.b32 %x, %a, %b, 8, 4;", {"b32", "b32", "b32"}, {0xF, 0}, 0xF00},
      {"bfi.b64 %x, %a, %b, 32, 32;",
       {"b64", "b64", "b64"},
       {0x12345678, 0x9ABCDEF0},
       0x123456789ABCDEF0},
      {"shf.l.wrap.b32 %x, %a, %b, 8;",
       {"b32", "b32", "b32"},
       {0x11223344, 0x55667788},
       0x66778811},
      {"shf.r.clamp.b32 %x, %a, %b, 40;",
       {"b32", "b32", "b32"},
       {0x11223344, 0x55667788},
       0x55667788},
      {"lop3.b32 %x, %a, %b, %c, 0x96;", // exclusive or of three
       {"b32", "b32", "b32", "b32"},
       {0xF0, 0xCC, 0xAA},
       0x96},
      {"prmt.b32 %x, %a, %b, 0x7531;",
       {"b32", "b32", "b32"},
       {0x33221100, 0x77665544},
       0x77553311},
      {"prmt.b32 %x, %a, %b, 0xB000;", // the sign of byte 3
       {"b32", "b32", "b32"},
       {0x80000011, 0},
       0xFF111111},
  });
}

TEST(PtxInstruction, FloatArithmetic) {
  expectResults({
      {"add.f32 %x, %a, %b;", {"f32", "f32", "f32"}, {f32(1), f32(2)}, f32(3)},
      {"add.rn.f32 %x, %a, 0f3F800000;", {"f32", "f32"}, {f32(1)}, f32(2)},
      {"add.rz.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(1), f32(0x1.8p-24f)},
       f32(1)},
      {"add.rp.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(1), f32(1e-30f)},
       f32(1 + 0x1p-23f)},
      {"add.rm.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(-1), f32(-1e-30f)},
       f32(-1 - 0x1p-23f)},
      {"add.sat.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(1), f32(2)},
       f32(1)},
      {"add.ftz.f32 %x, %a, %b;", {"f32", "f32", "f32"}, {f32(kTiny), 0}, 0},
      {"add.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(kTiny), 0},
       f32(kTiny)},
      {"sub.f64 %x, %a, %b;",
       {"f64", "f64", "f64"},
       {f64(1), f64(0x1p-53)},
       f64(1 - 0x1p-53)},
      {"mul.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(3), f32(-0.5f)},
       f32(-1.5f)},
      {"fma.rn.f32 %x, %a, %b, %c;",
       {"f32", "f32", "f32", "f32"},
       {f32(1 + 0x1p-12f), f32(1 + 0x1p-12f), f32(-1 - 0x1p-11f)},
       f32(0x1p-24f)},
      {"fma.rm.f32 %x, %a, %b, %c;",
       {"f32", "f32", "f32", "f32"},
       {f32(1), f32(1), f32(-1e-30f)},
       f32(1 - 0x1p-24f)},
      {"fma.rn.f64 %x, %a, %b, %c;",
       {"f64", "f64", "f64", "f64"},
       {f64(1 + 0x1p-30), f64(1 + 0x1p-30), f64(-1 - 0x1p-29)},
       f64(0x1p-60)},
      {"div.rn.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(1), f32(3)},
       f32(1.0f / 3)},
      {"div.full.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(6), f32(3)},
       f32(2)},
      {"div.rn.f64 %x, %a, %b;",
       {"f64", "f64", "f64"},
       {f64(1), f64(3)},
       f64(1.0 / 3)},
      {"rcp.rn.f32 %x, %a;", {"f32", "f32"}, {f32(4)}, f32(0.25f)},
      {"rcp.approx.ftz.f64 %x, %a;", {"f64", "f64"}, {f64(4)}, f64(0.25)},
      {"sqrt.rn.f32 %x, %a;", {"f32", "f32"}, {f32(2)}, f32(std::sqrt(2.0f))},
      {"sqrt.rn.f64 %x, %a;", {"f64", "f64"}, {f64(2)}, f64(std::sqrt(2.0))},
      {"rsqrt.approx.f32 %x, %a;", {"f32", "f32"}, {f32(4)}, f32(0.5f)},
      {"sin.approx.f32 %x, %a;", {"f32", "f32"}, {f32(1)}, f32(std::sin(1.0))},
      {"cos.approx.f32 %x, %a;", {"f32", "f32"}, {f32(1)}, f32(std::cos(1.0))},
      {"lg2.approx.f32 %x, %a;", {"f32", "f32"}, {f32(8)}, f32(3)},
      {"ex2.approx.ftz.f32 %x, %a;", {"f32", "f32"}, {f32(-3)}, f32(0.125f)},
      {"tanh.approx.f32 %x, %a;",
       {"f32", "f32"},
       {f32(1)},
       f32(std::tanh(1.0))},
      {"abs.f32 %x, %a;", {"f32", "f32"}, {f32(-2)}, f32(2)},
      {"neg.f64 %x, %a;", {"f64", "f64"}, {f64(0)}, f64(-0.0)},
      {"copysign.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(-1), f32(3)},
       f32(-3)},
  });
}

TEST(PtxInstruction, FloatMinimumAndMaximum) {
  expectResults({
      {"min.f32 %x, %a, %b;", {"f32", "f32", "f32"}, {f32(1), f32(2)}, f32(1)},
      {"min.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(0), f32(-0.0f)},
       f32(-0.0f)},
      {"max.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(-0.0f), f32(0)},
       f32(0)},
      // A number wins over a NaN, on either side.
      {"max.f32 %x, %a, %b;", {"f32", "f32", "f32"}, {kNan, f32(2)}, f32(2)},
      {"min.f32 %x, %a, %b;", {"f32", "f32", "f32"}, {f32(2), kNan}, f32(2)},
      {"max.f64 %x, %a, %b;", {"f64", "f64", "f64"}, {f64(1), f64(-2)}, f64(1)},
      {"max.NaN.f32 %x, %a, %b; testp.notanumber.f32 %p, %x; selp.f32 %x, "
       "0f3F800000, 0f00000000, %p;",
       {"f32", "f32", "f32"},
       {kNan, f32(2)},
       f32(1)},
  });
}

TEST(PtxInstruction, SixteenBits) {
  expectResults({
      {"add.f16 %x, %a, %b;", {"b16", "b16", "b16"}, {0x3C00, 0x4000}, 0x4200},
      {"mul.rn.bf16 %x, %a, %b;",
       {"b16", "b16", "b16"},
       {0x4000, 0x4040},
       0x40C0},
      // 2048 + 1 is a tie in f16, to even.
      {"add.rn.f16 %x, %a, %b;",
       {"b16", "b16", "b16"},
       {0x6800, 0x3C00},
       0x6800},
      {"fma.rn.f16 %x, %a, %b, %c;",
       {"b16", "b16", "b16", "b16"},
       {0x3C01, 0x3C01, 0xBC02}, // (1 + u)^2 - (1 + 2u) = u^2
       0x0010},
      {"fma.rn.bf16x2 %x, %a, %b, %c;",
       {"b32", "b32", "b32", "b32"},
       {0x40003F80, 0x40404000, 0x3F803F80}, // 2*3+1, 1*2+1
       0x40E04040},
      {"add.f16x2 %x, %a, %b;",
       {"b32", "b32", "b32"},
       {0x3C004000, 0x3C003C00},
       0x40004200},
      {"fma.rn.relu.f16 %x, %a, %b, %c;",
       {"b16", "b16", "b16", "b16"},
       {0xC000, 0x3C00, 0},
       0},
      {"max.bf16 %x, %a, %b;", {"b16", "b16", "b16"}, {0xBF80, 0x3F80}, 0x3F80},
      {"neg.bf16 %x, %a;", {"b16", "b16"}, {0x3F80}, 0xBF80},
      {"abs.f16x2 %x, %a;", {"b32", "b32"}, {0xBC00C000}, 0x3C004000},
      {"ex2.approx.ftz.bf16 %x, %a;", {"b16", "b16"}, {0x4000}, 0x4080},
      {"tanh.approx.f16 %x, %a;", {"b16", "b16"}, {0}, 0},
      {"setp.lt.bf16x2 %p|%q, %a, %b; selp.b32 %x, 1, 0, %p; @%q add.u32 %x, "
       "%x, 2;",
       {"b32", "b32", "b32"},
       {0x3F804000, 0x40003F80}, // lower 2 < 1, upper 1 < 2
       2},
      {"setp.lt.f16 %p, %a, %b; selp.b16 %x, 1, 0, %p;",
       {"b16", "b16", "b16"},
       {0x3C00, 0x4000},
       1},
      {"setp.geu.bf16 %p, %a, %b; selp.b16 %x, 1, 0, %p;",
       {"b16", "b16", "b16"},
       {0x7FFF, 0x4000},
       1},
  });
}

// Pairs of f32, which devices have from sm_100 on.
TEST(PtxInstruction, PairsOfFloats) {
  std::string text = kernel(R"(
    mov.f32 %f, 0f40000000;
    mov.f32 %g, 0f40400000;
    mov.b64 %l, {%f, %g};
    mul.rn.f32x2 %m, %l, %l;
    add.rn.f32x2 %m, %m, %l;
    fma.rn.f32x2 %m, %m, %l, %l;
    st.global.b64 [%out], %m;
  )");
  text.replace(text.find("sm_90"), 5, "sm_100");
  std::string error;
  auto module = fake_cuda::Module::parse(text, 0, 100, error);
  ASSERT_TRUE(module) << error;
  Array<float> out(2);
  EXPECT_EQ(launch(*module, "test", {}, out.address()), "");
  EXPECT_EQ(out.values(), (std::vector<float>{14, 39}));
}

TEST(PtxInstruction, Comparisons) {
  auto compare = [](const char *how) {
    return std::string("setp.") + how + " %p, %a, %b; selp.b32 %x, 1, 0, %p;";
  };
  struct Table {
    const char *how;
    float a, b;
    uint64_t expected;
  };
  const float nan = std::nanf("");
  std::vector<Table> tables = {
      {"eq.f32", 1, 1, 1},
      {"ne.f32", 1, 1, 0},
      {"lt.f32", -1, 1, 1},
      {"le.f32", 1, 1, 1},
      {"gt.f32", 1, 1, 0},
      {"ge.f32", 1, 1, 1},
      {"eq.f32", nan, 1, 0},
      {"ne.f32", nan, 1, 0},
      {"lt.f32", nan, 1, 0},
      {"equ.f32", nan, 1, 1},
      {"neu.f32", nan, 1, 1},
      {"ltu.f32", 1, nan, 1},
      {"leu.f32", 2, 1, 0},
      {"gtu.f32", 2, 1, 1},
      {"geu.f32", nan, nan, 1},
      {"num.f32", 1, 2, 1},
      {"num.f32", 1, nan, 0},
      {"nan.f32", 1, nan, 1},
      {"eq.ftz.f32", kTiny, 0, 1},
      {"eq.f32", kTiny, 0, 0},
      {"eq.f32", 0.0f, -0.0f, 1},
      // As bits of integers.
      {"lt.s32", -0.0f, 0, 1},
      {"lo.u32", -0.0f, 0, 0},
      {"hi.u32", -0.0f, 0, 1},
      {"ls.u32", 0, 0, 1},
      {"hs.u32", 0, 0, 1},
      {"ne.b32", 1, 2, 1},
  };
  std::vector<std::string> texts;
  for (const Table &table : tables)
    texts.push_back(compare(table.how));
  std::vector<Case> cases;
  for (size_t i = 0; i < tables.size(); ++i)
    cases.push_back({texts[i].c_str(),
                     {"b32", "b32", "b32"},
                     {f32(tables[i].a), f32(tables[i].b)},
                     tables[i].expected});
  expectResults(cases);
}

TEST(PtxInstruction, PredicatesAndSelections) {
  expectResults({
      // Two results: the second is the opposite, joined alike.
      {"setp.eq.s32 %p, %c, 1; setp.lt.and.s32 %p|%q, %a, %b, %p; selp.b32 %x, "
       "2, 0, %p; selp.b32 %a, 1, 0, %q; or.b32 %x, %x, %a;",
       {"b32", "b32", "b32", "b32"},
       {1, 2, 1},
       2},
      {"setp.eq.s32 %p, %c, 1; setp.lt.or.s32 %q, %a, %b, !%p; selp.b32 %x, 1, "
       "0, %q;",
       {"b32", "b32", "b32", "b32"},
       {3, 2, 0},
       1},
      {"setp.eq.s32 %p, %a, 1; not.pred %q, %p; and.pred %p, %p, %q; selp.b32 "
       "%x, 1, 0, %p;",
       {"b32", "b32"},
       {1},
       0},
      {"setp.eq.s32 %p, %a, 1; mov.u32 %x, 5; @%p mov.u32 %x, 6; @!%p add.s32 "
       "%x, %x, 9;",
       {"b32", "b32"},
       {2},
       14},
      {"set.lt.u32.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {1, 2}, ~0u},
      {"set.gt.f32.s32 %x, %a, %b;", {"b32", "b32", "b32"}, {3, 2}, f32(1)},
      {"slct.b32.s32 %x, %a, %b, %c;",
       {"b32", "b32", "b32", "b32"},
       {7, 8, u32(-1)},
       8},
      {"slct.f32.f32 %x, %a, %b, %c;",
       {"f32", "f32", "f32", "f32"},
       {f32(7), f32(8), f32(-0.0f)},
       f32(7)},
      {"setp.eq.u64 %p, %a, 1; selp.f64 %x, 0d3FF0000000000000, "
       "0d4000000000000000, %p;",
       {"f64", "b64"},
       {1},
       f64(1)},
  });
}

TEST(PtxInstruction, IntegerConversions) {
  expectResults({
      {"cvt.s64.s32 %x, %a;", {"b64", "b32"}, {u32(-5)}, ~0ull - 4},
      {"cvt.u64.u32 %x, %a;", {"b64", "b32"}, {u32(-5)}, 0xFFFFFFFB},
      {"cvt.u32.u64 %x, %a;", {"b32", "b64"}, {0x123456789}, 0x23456789},
      {"cvt.s32.s8 %x, %a;", {"b32", "b32"}, {0x80}, 0xFFFFFF80},
      {"cvt.u32.u8 %x, %a;", {"b32", "b32"}, {0x1280}, 0x80},
      {"cvt.u16.u32 %x, %a;", {"b16", "b32"}, {0x12345}, 0x2345},
      {"cvt.s32.s16 %x, %a;", {"b32", "b16"}, {0x8000}, 0xFFFF8000},
      {"cvt.sat.s8.s32 %x, %a;", {"b32", "b32"}, {1000}, 127},
      {"cvt.sat.u8.s32 %x, %a;", {"b32", "b32"}, {u32(-3)}, 0},
      {"cvt.sat.u32.s32 %x, %a;", {"b32", "b32"}, {u32(-3)}, 0},
  });
}

TEST(PtxInstruction, ConversionsToIntegers) {
  expectResults({
      {"cvt.rzi.s32.f32 %x, %a;", {"b32", "f32"}, {f32(-2.7f)}, u32(-2)},
      {"cvt.rni.s32.f32 %x, %a;", {"b32", "f32"}, {f32(2.5f)}, 2},
      {"cvt.rmi.s32.f32 %x, %a;", {"b32", "f32"}, {f32(-2.1f)}, u32(-3)},
      {"cvt.rpi.s32.f32 %x, %a;", {"b32", "f32"}, {f32(2.1f)}, 3},
      {"cvt.rzi.s32.f32 %x, %a;", {"b32", "f32"}, {f32(kInf)}, 0x7FFFFFFF},
      {"cvt.rzi.u32.f32 %x, %a;", {"b32", "f32"}, {f32(-5)}, 0},
      {"cvt.rzi.s32.f32 %x, %a;", {"b32", "f32"}, {kNan}, 0},
      {"cvt.rzi.s64.f32 %x, %a;", {"b64", "f32"}, {kNan}, 1ull << 63},
      {"cvt.rzi.s64.f64 %x, %a;", {"b64", "f64"}, {f64(-1e300)}, 1ull << 63},
      {"cvt.rzi.u64.f64 %x, %a;", {"b64", "f64"}, {f64(0x1p63)}, 1ull << 63},
      {"cvt.rni.f32.f32 %x, %a;", {"f32", "f32"}, {f32(3.5f)}, f32(4)},
      {"cvt.rzi.f64.f64 %x, %a;", {"f64", "f64"}, {f64(-3.9)}, f64(-3)},
  });
}

TEST(PtxInstruction, FloatConversions) {
  expectResults({
      {"cvt.rn.f32.s32 %x, %a;", {"f32", "b32"}, {u32(-7)}, f32(-7)},
      {"cvt.rn.f32.u32 %x, %a;",
       {"f32", "b32"},
       {0xFFFFFFFF},
       f32(4294967296.f)},
      {"cvt.rz.f32.u32 %x, %a;",
       {"f32", "b32"},
       {0xFFFFFFFF},
       f32(4294967040.f)},
      {"cvt.rn.f32.u64 %x, %a;", {"f32", "b64"}, {~0ull}, f32(0x1p64f)},
      {"cvt.rn.f64.s64 %x, %a;", {"f64", "b64"}, {~0ull}, f64(-1)},
      {"cvt.f64.f32 %x, %a;", {"f64", "f32"}, {f32(1.5f)}, f64(1.5)},
      {"cvt.rn.f32.f64 %x, %a;", {"f32", "f64"}, {f64(0.1)}, f32(0.1f)},
      {"cvt.rp.f32.f64 %x, %a;",
       {"f32", "f64"},
       {f64(1 + 1e-12)},
       f32(1 + 0x1p-23f)},
      {"cvt.sat.f32.f32 %x, %a;", {"f32", "f32"}, {f32(7)}, f32(1)},
      {"cvt.ftz.f32.f32 %x, %a;", {"f32", "f32"}, {f32(kTiny)}, 0},
      {"cvt.rn.f16.f32 %x, %a;", {"b16", "f32"}, {f32(65520)}, 0x7C00},
      {"cvt.rz.f16.f32 %x, %a;", {"b16", "f32"}, {f32(65535)}, 0x7BFF},
      {"cvt.rn.f16.f32 %x, %a;", {"b16", "f32"}, {f32(0x1p-24f)}, 1},
      {"cvt.rn.f16.f32 %x, %a;", {"b16", "f32"}, {f32(0x1p-25f)}, 0},
      {"cvt.f32.f16 %x, %a;", {"f32", "b16"}, {1}, f32(0x1p-24f)},
      {"cvt.f32.f16 %x, %a;", {"f32", "b16"}, {0xFC00}, f32(-kInf)},
      {"cvt.rn.bf16.f32 %x, %a;", {"b16", "f32"}, {0x3F808000}, 0x3F80},
      {"cvt.rn.bf16.f32 %x, %a;", {"b16", "f32"}, {0x3F818000}, 0x3F82},
      {"cvt.rz.bf16.f32 %x, %a;", {"b16", "f32"}, {0x3F81FFFF}, 0x3F81},
      {"cvt.rn.bf16.f32 %x, %a;", {"b16", "f32"}, {kNan}, 0x7FFF},
      {"cvt.f32.bf16 %x, %a;", {"f32", "b16"}, {0xC040}, f32(-3)},
      {"cvt.rn.bf16x2.f32 %x, %a, %b;",
       {"b32", "f32", "f32"},
       {f32(1), f32(2)},
       0x3F804000},
      {"cvt.rn.relu.f16x2.f32 %x, %a, %b;",
       {"b32", "f32", "f32"},
       {f32(-1), f32(2)},
       0x00004000},
      {"cvt.rn.f16.s32 %x, %a;", {"b16", "b32"}, {3}, 0x4200},
      {"cvt.rzi.s32.f16 %x, %a;", {"b32", "b16"}, {0xC100}, u32(-2)},
      {"cvt.rna.tf32.f32 %x, %a;", {"b32", "f32"}, {0x3F801000}, 0x3F802000},
  });
}

TEST(PtxInstruction, MovesAndAddresses) {
  expectResults({
      {"mov.b64 %x, {%a, %b};", {"b64", "b32", "b32"}, {1, 2}, 0x200000001},
      {"mov.b64 {%a, %x}, %b;", {"b32", "b32", "b64"}, {0, 0x500000007}, 5},
      {"mov.b32 %x, {%a, %b};", {"b32", "b16", "b16"}, {1, 2}, 0x20001},
      {"mov.b32 {_, %x}, %a;", {"b16", "b32"}, {0x20001}, 2},
      {"mov.b32 %x, 0fC0000000;", {"b32"}, {}, 0xC0000000},
      {"mov.f32 %x, 0f40490FDB;", {"f32"}, {}, 0x40490FDB},
      {"mov.f64 %x, 0d400921FB54442D18;", {"f64"}, {}, 0x400921FB54442D18},
      {"mov.pred %p, 1; selp.b32 %x, 3, 4, %p;", {"b32"}, {}, 3},
      {"ld.const.u8 %x, [table+5];", {"b32"}, {}, 6},
      {"mov.u64 %a, table; cvta.const.u64 %a, %a; ld.u16 %x, [%a+2];",
       {"b32", "b64"},
       {0},
       0x403},
      {"ld.global.u32 %x, [numbers+8];", {"b32"}, {}, 30},
      {"mov.u64 %a, numbers+4; ld.global.nc.L1::no_allocate.u32 %x, [%a];",
       {"b32", "b64"},
       {0},
       20},
      {"isspacep.global %p, %a; selp.b32 %x, 1, 0, %p;",
       {"b32", "b64"},
       {4096},
       1},
      {"ld.global.s8 %x, [%io+8];", {"b64", "b64"}, {0x80}, ~0ull - 127},
      {"st.global.u8 [%io+8], %b; ld.global.b32 %x, [%io+8];",
       {"b32", "b32", "b32"},
       {0x11223344, 0xFF},
       0x112233FF},
  });
}
