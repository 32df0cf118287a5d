//===- PtxConversionTest.cpp - Conversions, moves, loads and stores -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/PtxCases.h"

using namespace ptx_test;

TEST(PtxConversion, IntegerConversions) {
  expectResults({
      {"cvt.s64.s32 %x, %a;", {"b64", "b32"}, {u32(-5)}, ~0ull - 4},
      {"cvt.u64.u32 %x, %a;", {"b64", "b32"}, {u32(-5)}, 0xFFFFFFFB},
      {"cvt.u32.u64 %x, %a;", {"b32", "b64"}, {0x123456789}, 0x23456789},
      {"cvt.s32.s8 %x, %a;", {"b32", "b32"}, {0x80}, 0xFFFFFF80},
      {"cvt.u32.u8 %x, %a;", {"b32", "b32"}, {0x1280}, 0x80},
      {"cvt.u16.u32 %x, %a;", {"b16", "b32"}, {0x12345}, 0x2345},
      {"cvt.s32.s16 %x, %a;", {"b32", "b16"}, {0x8000}, 0xFFFF8000},
      {"cvt.s64.s16 %x, %a;", {"b64", "b16"}, {0x8001}, 0xFFFFFFFFFFFF8001},
      {"cvt.u16.u64 %x, %a;", {"b16", "b64"}, {0x123456}, 0x3456},
      {"cvt.u32.u16 %x, %a;", {"b32", "b16"}, {0x8001}, 0x8001},
      {"cvt.sat.s8.s32 %x, %a;", {"b32", "b32"}, {1000}, 127},
      {"cvt.sat.u8.s32 %x, %a;", {"b32", "b32"}, {u32(-3)}, 0},
      {"cvt.sat.u32.s32 %x, %a;", {"b32", "b32"}, {u32(-3)}, 0},
  });
}

TEST(PtxConversion, ConversionsToIntegers) {
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
      {"cvt.rmi.f32.f32 %x, %a;", {"f32", "f32"}, {f32(-3.5f)}, f32(-4)},
      {"cvt.rni.f32.f32 %x, %a;", {"f32", "f32"}, {f32(3.5f)}, f32(4)},
      {"cvt.rzi.f64.f64 %x, %a;", {"f64", "f64"}, {f64(-3.9)}, f64(-3)},
  });
}

TEST(PtxConversion, FloatConversions) {
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
      {"cvt.rn.f32.s64 %x, %a;", {"f32", "b64"}, {~0ull}, f32(-1)},
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

TEST(PtxConversion, MovesAndAddresses) {
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

// Each copies from one place to another, with all that goes through at a time.
TEST(PtxConversion, LoadsAndStores) {
  for (unsigned bytes : {1, 2, 4, 8})
    for (unsigned lanes : {1, 2, 4})
      for (std::string space : {"global", "shared", "local"}) {
        if (bytes * lanes > 16)
          continue;
        std::string type = ".b" + std::to_string(8 * bytes);
        std::string words =
            (lanes > 1 ? ".v" + std::to_string(lanes) : "") + type;
        std::string values = lanes == 1   ? "%v0"
                             : lanes == 2 ? "{%v0, %v1}"
                                          : "{%v0, %v1, %v2, %v3}";
        std::string held = bytes == 1 ? ".b16" : type;
        std::string body = ".reg " + held +
                           " %v<4>;\n.local .align 16 .b8 "
                           "inLocal[16];\nld.global.nc" +
                           words + " " + values + ", [%out];\n";
        if (space != "global") {
          std::string name = space == "shared" ? "inShared" : "inLocal";
          body += "st." + space + words + " [" + name + "], " + values +
                  ";\nmov" + held + " %v0, 0;\nld." + space + words + " " +
                  values + ", [" + name + "];\n";
        }
        body += "st.global" + words + " [%out+16], " + values + ";";
        SCOPED_TRACE(body);
        auto module =
            parse(kernel(body, ".shared .align 16 .b8 inShared[16];"));
        ASSERT_TRUE(module);
        Array<uint8_t> out(32, 0);
        for (int i = 0; i < 16; ++i)
          out[i] = 0x81 + i;
        EXPECT_EQ(launch(*module, "test", {}, out.address()), "");
        for (unsigned i = 0; i < 16; ++i)
          EXPECT_EQ(out[16 + i], i < bytes * lanes ? 0x81 + i : 0) << i;
      }
}
