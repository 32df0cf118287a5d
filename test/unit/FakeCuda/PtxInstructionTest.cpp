//===- PtxInstructionTest.cpp - What each instruction computes ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Known values, from the PTX manual and from IEEE 754.
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/PtxCases.h"

using namespace ptx_test;

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
      {"mul.lo.s64 %x, %a, %b;", {"b64", "b64", "b64"}, {~0ull, 7}, ~0ull - 6},
      {"mad.lo.s64 %x, %a, %b, 3;",
       {"b64", "b64", "b64"},
       {~0ull, 7},
       ~0ull - 3},
      {"min.s64 %x, %a, %b;", {"b64", "b64", "b64"}, {~0ull, 7}, ~0ull},
      {"min.u64 %x, %a, %b;", {"b64", "b64", "b64"}, {~0ull, 7}, 7},
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
      {"and.b64 %x, %a, 6;", {"b64", "b64"}, {~0ull}, 6},
      {"not.b64 %x, %a;", {"b64", "b64"}, {1}, ~1ull},
      {"shl.b64 %x, %a, %b;", {"b64", "b64", "b32"}, {3, 62}, 3ull << 62},
      {"shr.s16 %x, %a, 4;", {"b16", "b16"}, {0x8000}, 0xF800},
      {"shf.r.wrap.b32 %x, %a, %b, 40;",
       {"b32", "b32", "b32"},
       {0x11223344, 0x55667788},
       0x88112233},
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
      {"add.rn.f64 %x, %a, %b;",
       {"f64", "f64", "f64"},
       {f64(0.1), f64(0.2)},
       f64(0.1 + 0.2)},
      {"mul.rn.f64 %x, %a, %a;", {"f64", "f64"}, {f64(0.1)}, f64(0.1 * 0.1)},
      {"rcp.rn.f64 %x, %a;", {"f64", "f64"}, {f64(3)}, f64(1.0 / 3)},
      {"min.f64 %x, %a, %b;",
       {"f64", "f64", "f64"},
       {f64(1), f64(-2)},
       f64(-2)},
      {"sub.rn.f32 %x, %a, %b;",
       {"f32", "f32", "f32"},
       {f32(1), f32(3)},
       f32(-2)},
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
      {"mul.rn.f16x2 %x, %a, %b;",
       {"b32", "b32", "b32"},
       {0x40004200, 0x40003C00},
       0x44004200},
      {"setp.gt.f16x2 %p|%q, %a, %b; selp.b32 %x, 1, 0, %p; @%q add.u32 %x, "
       "%x, 2;",
       {"b32", "b32", "b32"},
       {0x40003C00, 0x3C003C00},
       2},
      {"setp.num.f16 %p, %a, %b; selp.b16 %x, 1, 0, %p;",
       {"b16", "b16", "b16"},
       {0x7E00, 0x4000},
       0},
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

/// Bits of two f32 that `body` stores, on a device of sm_100.
static std::vector<float> runOnNewDevice(const std::string &body) {
  std::string text = kernel(body);
  text.replace(text.find("sm_90"), 5, "sm_100");
  std::string error;
  auto module = fake_cuda::Module::parse(text, 0, 100, error);
  EXPECT_TRUE(module) << error;
  Array<float> out(2);
  if (module)
    EXPECT_EQ(launch(*module, "test", {}, out.address()), "");
  return out.values();
}

// One operand of 16 bits, the sum in f32.
TEST(PtxInstruction, MixedSums) {
  EXPECT_EQ(runOnNewDevice(R"(
    .reg .b16 %h, %i;
    mov.b16 %h, 16896;
    mov.b16 %i, 16384;
    mov.f32 %f, 0f3F000000;
    add.rn.f32.f16 %g, %h, %f;
    st.global.f32 [%out], %g;
    sub.rn.f32.bf16 %g, %i, %f;
    fma.rn.f32.f16 %g, %h, %h, %g;
    st.global.f32 [%out+4], %g;
  )"),
            (std::vector<float>{3.5f, 9 + 1.5f}));
}

TEST(PtxInstruction, PairsOfFloats) {
  EXPECT_EQ(runOnNewDevice(R"(
    mov.f32 %f, 0f40000000;
    mov.f32 %g, 0f40400000;
    mov.b64 %l, {%f, %g};
    mul.rn.f32x2 %m, %l, %l;
    add.rn.f32x2 %m, %m, %l;
    sub.rn.f32x2 %m, %m, %l;
    add.rn.f32x2 %m, %m, %l;
    fma.rn.f32x2 %m, %m, %l, %l;
    st.global.b64 [%out], %m;
  )"),
            (std::vector<float>{14, 39}));
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
      {"le.f32", 1, 2, 1},
      {"gtu.f32", 1, nan, 1},
      {"ltu.f32", 2, 1, 0},
      // As bits of integers.
      {"gt.u32", -0.0f, 0, 1},
      {"eq.b32", 1, 1, 1},
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
      {"setp.gt.s64 %p, %a, %b; setp.lt.u64 %q, %a, %b; selp.b64 %x, 1, 0, %p; "
       "@%q add.u64 %x, %x, 2;",
       {"b64", "b64", "b64"},
       {~0ull, 1},
       0},
      {"setp.ne.b64 %p, %a, %b; setp.gt.u64 %q, %a, %b; selp.b64 %x, 1, 0, %p; "
       "@%q add.u64 %x, %x, 2;",
       {"b64", "b64", "b64"},
       {~0ull, 1},
       3},
      {"setp.ne.b16 %p, %a, %b; setp.eq.b16 %q, %a, 7; selp.b16 %x, 1, 0, %p; "
       "@%q add.u16 %x, %x, 2;",
       {"b16", "b16", "b16"},
       {7, 1},
       3},
      {"setp.equ.f64 %p, %a, %b; setp.nan.f64 %q, %a, %b; selp.f64 %x, "
       "0d3FF0000000000000, 0d0000000000000000, %p; @%q add.f64 %x, %x, %x;",
       {"f64", "f64", "f64"},
       {f64(std::nan("")), f64(1)},
       f64(2)},
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
