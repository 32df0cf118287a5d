//===- PtxFaultTest.cpp - What kernels must not do ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/PtxTest.h"

#include <gmock/gmock.h>

using namespace ptx_test;
using testing::HasSubstr;

static const char *const numbers = ".shared .align 16 .b8 numbers[128];";

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

TEST(PtxText, UnknownInstructionsNameLineAndText) {
  EXPECT_EQ(
      parseError(kernel("  wmma.load %a, %b;")),
      "PTX line 13: 'wmma.load %a, %b;': instruction 'wmma' is not known");
  EXPECT_THAT(parseError(kernel("add.funny.s32 %a, %b, %c;")),
              HasSubstr("'add.funny.s32 %a, %b, %c;': modifier '.funny' is not "
                        "known"));
  EXPECT_THAT(parseError(kernel("shfl.bfly.b32 %a, %b, 1, 31;")),
              HasSubstr("modifier '.sync' is missing"));
}

TEST(PtxText, OperandsMustFit) {
  EXPECT_THAT(parseError(kernel("add.s32 %a, %b;")),
              HasSubstr("it has 2 operands, expected 3"));
  EXPECT_THAT(parseError(kernel("add.s64 %l, %m, %a;")),
              HasSubstr("register '%a' has another type than expected"));
  EXPECT_THAT(parseError(kernel("add.s32 %a, %l, %b;")),
              HasSubstr("'%l' has 8 bytes, expected 4"));
  EXPECT_THAT(parseError(kernel("add.s32 %a, %p, %b;")),
              HasSubstr("another type"));
  EXPECT_THAT(parseError(kernel("add.s32 %a, %nothing, %b;")),
              HasSubstr("register '%nothing' is not known"));
  EXPECT_THAT(parseError(kernel("add.f32 %f, %g, 1;")),
              HasSubstr("an integer where a floating-point number belongs"));
  EXPECT_THAT(
      parseError(kernel("cvt.s32.f32 %a, %f;")),
      HasSubstr("a rounding to an integer, such as '.rzi', is missing"));
  EXPECT_THAT(parseError(kernel("ld.global.v2.u32 %a, [%out];")),
              HasSubstr("it needs 2 values"));
  EXPECT_THAT(parseError(kernel("mov.u32 %a, %clock;")),
              HasSubstr("register '%clock' is not known"));
}

TEST(PtxText, NamesMustExist) {
  EXPECT_THAT(parseError(kernel("bra NOWHERE;")),
              HasSubstr("there is no label 'NOWHERE'"));
  EXPECT_THAT(parseError(kernel("HERE: HERE:")),
              HasSubstr("each label once, but 'HERE' twice"));
  EXPECT_THAT(parseError(kernel("call.uni nobody, ();")),
              HasSubstr("only functions of the module can be called"));
  EXPECT_THAT(parseError(kernel("call.uni other, ();", ".func other();")),
              HasSubstr("function 'other' has no body in the module"));
  EXPECT_THAT(parseError(kernel("call.uni f, ();",
                                ".func f() { call.uni f, (); ret; }")),
              HasSubstr("function 'f' calls itself"));
  EXPECT_THAT(parseError(kernel("@%a bra NOWHERE;")),
              HasSubstr("expected a predicate register instead of '%a'"));
}

TEST(PtxText, BrokenTextNamesTheLine) {
  EXPECT_EQ(parseError(".version 8.0\n.target sm_90\nhello"),
            "PTX line 3: expected a directive at module level, found 'hello'");
  EXPECT_THAT(parseError(kernel("add.s32 %a, %b")),
              HasSubstr("expected ',' or ';'"));
  EXPECT_THAT(parseError(".version 8.0\n.target sm_90\n.visible .entry f() {"),
              HasSubstr("found the end of the text"));
  EXPECT_THAT(parseError(".global .align 4 .b8 x[1] = {1, 2};"),
              HasSubstr("no more values than 'x' holds"));
}

// Any text that is cut short is refused, not read past its end.
TEST(PtxText, EveryPrefixIsRefused) {
  std::string text = kernel("add.s32 %a, %b, 0f3F800000;\n L: @!%p bra L;",
                            ".global .b8 x[2] = {1, 0x2};");
  for (size_t length = text.size() - 3; length > 40; --length) {
    std::string error;
    auto module =
        fake_cuda::Module::parse(text.substr(0, length), 0, 90, error);
    EXPECT_TRUE(!module || !module->function("test")) << length;
  }
}

TEST(PtxText, TargetsMustFitTheDevice) {
  std::string error, text = kernel("");
  EXPECT_FALSE(fake_cuda::Module::parse(text, 0, 80, error));
  EXPECT_EQ(error, "PTX for sm_90 does not run on a device of sm_80");
  EXPECT_TRUE(fake_cuda::Module::parse(text, 0, 100, error));
  text.replace(text.find("sm_90"), 5, "sm_90a");
  EXPECT_FALSE(fake_cuda::Module::parse(text, 0, 100, error));
  EXPECT_THAT(parseError(".version 8.0\n.target vax\n"),
              HasSubstr("has no .target of the form sm_90, but 'vax'"));
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

TEST(PtxFault, SizesOfALaunch) {
  std::string text = kernel("", numbers);
  text.replace(text.find(".param .u64 out)"), 16,
               ".param .u64 out) .maxntid 64, 1, 1");
  auto module = parse(text);
  ASSERT_TRUE(module);
  EXPECT_EQ(module->function("test")->maxThreads(), 64u);
  EXPECT_EQ(launch(*module, "test", {{1, 1, 1}, {65, 1, 1}}, uint64_t(0)),
            "kernel 'test': blocks of 65 threads, but the kernel takes at most "
            "64");
  EXPECT_EQ(launch(*module, "test", {{1, 0, 1}, {1, 1, 1}}, uint64_t(0)),
            "kernel 'test': grid (1,0,1) of blocks (1,1,1) is no valid size");
  text.replace(text.find(".maxntid"), 8, ".reqntid");
  module = parse(text);
  ASSERT_TRUE(module);
  EXPECT_EQ(launch(*module, "test", {{1, 1, 1}, {32, 1, 1}}, uint64_t(0)),
            "kernel 'test': blocks (32,1,1), but the kernel requires (64,1,1)");
  EXPECT_THAT(
      launch(*module, "test", {{1, 1, 1}, {64, 1, 1}, 1 << 20}, uint64_t(0)),
      HasSubstr("bytes of shared memory, but a block has at most 232448"));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(PtxFault, AccessesOutOfBounds) {
  std::string fault = faultOf("mad.wide.u32 %at, %t, 4, %out;\n"
                              "st.global.u32 [%at+1048576], %t;",
                              32);
  EXPECT_THAT(fault, HasSubstr("kernel 'test': PTX line 14 'st.global.u32 "
                               "[%at+1048576], %t;': thread (0,0,0) of block "
                               "(0,0,0) writes 4 bytes at 0x"));
  EXPECT_THAT(faultOf("ld.global.u32 %a, [%out+-4096];", 1),
              HasSubstr("reads 4 bytes at 0x"));
  EXPECT_THAT(faultOf("mov.u64 %l, 0; ld.u32 %a, [%l];", 1),
              HasSubstr("of global memory"));
  EXPECT_THAT(faultOf("st.shared.u32 [numbers+128], %t;", 1, numbers),
              HasSubstr("of shared memory: it has 128 bytes"));
  EXPECT_THAT(faultOf("mov.u64 %l, numbers; cvta.shared.u64 %l, %l; "
                      "st.u64 [%l+124], %l;",
                      1, numbers),
              HasSubstr("shared memory: it has 128 bytes"));
  EXPECT_THAT(faultOf(".local .align 8 .b8 room[16]; st.local.u64 [room+16], "
                      "%out;",
                      1),
              HasSubstr("local memory: it has 16 bytes"));
  EXPECT_THAT(faultOf("ld.param.u64 %l, [out+8];", 1),
              HasSubstr("param memory: it has 8 bytes"));
}

TEST(PtxFault, AccessesWithoutAlignment) {
  EXPECT_THAT(faultOf("ld.global.u32 %a, [%out+2];", 1),
              HasSubstr("reads 4 bytes"));
  EXPECT_THAT(faultOf("ld.global.v4.u32 {%a, %b, %c, %d}, [%out+8];", 32),
              HasSubstr("reads 16 bytes"));
  EXPECT_THAT(faultOf("st.shared.u64 [numbers+4], %out;", 1, numbers),
              HasSubstr("the address is no multiple of the size"));
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

TEST(PtxFault, TwoThreadsWriteTheSame) {
  EXPECT_THAT(faultOf("st.global.u32 [%out], %t;", 2),
              HasSubstr("data race: thread (1,0,0) of block (0,0,0) writes 4 "
                        "bytes"));
  EXPECT_THAT(faultOf("st.shared.u32 [numbers], %t;", 2, numbers),
              HasSubstr("of shared memory, which thread (0,0,0) of block "
                        "(0,0,0) wrote, and no barrier is between the two"));
}

/// Each of 64 threads writes a number; then it reads that of thread t ^
/// `other`.
static std::string exchange(const std::string &other, const char *between) {
  return std::string(R"(
    mov.u32 %a, numbers;
    mad.lo.u32 %b, %t, 4, %a;
    st.shared.u32 [%b], %t;
    )") + between +
         "xor.b32 %c, %t, " + other + R"(;
    mad.lo.u32 %c, %c, 4, %a;
    ld.shared.u32 %x, [%c];
  )";
}

TEST(PtxFault, ReadsWithoutBarrier) {
  const char *room = ".shared .align 4 .b8 numbers[256];";
  EXPECT_EQ(faultOf(exchange("33", "bar.sync 0;"), 64, room), "");
  EXPECT_THAT(faultOf(exchange("33", ""), 64, room),
              HasSubstr("which no thread of the block has written"));
  // A barrier of the warp orders its own lanes only.
  EXPECT_EQ(faultOf(exchange("1", "bar.warp.sync -1;"), 64, room), "");
  EXPECT_THAT(faultOf(exchange("1", ""), 64, room),
              HasSubstr("data race: thread (0,0,0) of block (0,0,0) reads 4 "
                        "bytes"));
  EXPECT_NE(faultOf(exchange("33", "bar.warp.sync -1;"), 64, room), "");
}

// Read by all, then written by one: the readers may still be at it.
TEST(PtxFault, WritesAfterReadsWithoutBarrier) {
  std::string body = R"(
    setp.eq.u32 %p, %t, 0;
    @%p st.shared.u32 [numbers], %t;
    bar.sync 0;
    ld.shared.u32 %x, [numbers];
    BARRIER
    setp.eq.u32 %p, %t, 40;
    @%p st.shared.u32 [numbers], %t;
  )";
  std::string ordered = body;
  ordered.replace(body.find("BARRIER"), 7, "bar.sync 0;");
  body.replace(body.find("BARRIER"), 7, "");
  EXPECT_EQ(faultOf(ordered, 64, numbers), "");
  EXPECT_THAT(faultOf(body, 64, numbers),
              HasSubstr("which other threads read, and no barrier is between"));
}

TEST(PtxFault, SharedMemoryThatNobodyWrote) {
  EXPECT_THAT(faultOf("ld.shared.u32 %x, [numbers+4];", 1, numbers),
              HasSubstr("which no thread of the block has written"));
}

TEST(PtxFault, BlocksThatTouchTheSame) {
  const char *writes = "setp.eq.u32 %p, %t, 0; @%p st.global.u32 [%out], %t;";
  EXPECT_EQ(faultOf(writes, 32), "");
  EXPECT_THAT(faultOf(writes, 32, "", 2),
              HasSubstr("thread (0,0,0) of block (1,0,0) writes 4 bytes"));
  EXPECT_THAT(faultOf("mov.u32 %a, %ctaid.x; setp.eq.u32 %p, %a, 1; @%p "
                      "ld.global.u32 %x, [%out]; @!%p st.global.u32 [%out], "
                      "%t;",
                      1, "", 2),
              HasSubstr("which thread (0,0,0) of block (0,0,0) wrote"));
  // Neighbouring bytes of one word are not the same.
  EXPECT_EQ(faultOf("cvt.u64.u32 %l, %t; add.u64 %l, %l, %out; st.global.u8 "
                    "[%l], %t;",
                    32),
            "");
  // Handed on by a fence and an atomic: not looked into.
  EXPECT_EQ(faultOf("setp.eq.u32 %p, %t, 0; @%p st.global.u32 [%out], %t; "
                    "membar.gl; atom.global.add.u32 %x, [%out+4], 1;",
                    32, "", 2),
            "");
}

TEST(PtxFault, AtomicsRaceWithPlainAccesses) {
  EXPECT_EQ(faultOf("red.global.add.u32 [%out], 1;", 64, "", 2), "");
  EXPECT_THAT(
      faultOf("red.global.add.u32 [%out], 1; ld.global.u32 %x, [%out];", 64),
      HasSubstr("data race"));
}

//===----------------------------------------------------------------------===//
// Threads that do not come
//===----------------------------------------------------------------------===//

TEST(PtxFault, BarriersThatOthersNeverReach) {
  EXPECT_THAT(faultOf("setp.lt.u32 %p, %t, 16; @%p bra S; bra E; S: bar.sync "
                      "0; E:",
                      32),
              HasSubstr("lane 16 of warp 0 in block (0,0,0) is not at the "
                        "barrier that others of its warp are at"));
  EXPECT_THAT(faultOf("setp.lt.u32 %p, %t, 32; @%p bra S; bar.sync 1; bra E; "
                      "S: bar.sync 0; E:",
                      64),
              HasSubstr("block (0,0,0): threads wait at a barrier that others "
                        "never reach: warp 0 waits at barrier 0 (PTX line 13), "
                        "warp 1 waits at barrier 1"));
  // Threads that have ended are not waited for.
  EXPECT_EQ(faultOf("setp.lt.u32 %p, %t, 32; @%p ret; bar.sync 0;", 64), "");
}

TEST(PtxFault, MembersThatAreElsewhere) {
  const char *body = "setp.lt.u32 %p, %t, 16; @!%p bra E; "
                     "shfl.sync.bfly.b32 %x, %t, 1, 31, MEMBERS; E:";
  auto with = [&](const char *members) {
    std::string text = body;
    return text.replace(text.find("MEMBERS"), 7, members);
  };
  EXPECT_EQ(faultOf(with("0xffff"), 32), "");
  EXPECT_THAT(faultOf(with("-1"), 32),
              HasSubstr("lane 16 is in the mask of members, but takes another "
                        "branch than thread (0,0,0) of block (0,0,0)"));
  EXPECT_THAT(
      faultOf(with("0xfffe"), 32),
      HasSubstr("thread (0,0,0) of block (0,0,0) is not in its own mask "
                "of members"));
  EXPECT_THAT(faultOf("setp.lt.u32 %p, %t, 16; @!%p bra E; "
                      "shfl.sync.bfly.b32 %x, %t, 16, 31, 0xffff; E:",
                      32),
              HasSubstr("reads from lane 16, which does not take part"));
}

TEST(PtxFault, OtherFaults) {
  EXPECT_THAT(faultOf("setp.eq.u32 %p, %t, 3; @%p trap;", 32),
              HasSubstr("thread (3,0,0) of block (0,0,0) traps"));
  EXPECT_THAT(faultOf("setp.eq.u32 %p, %t, 3; @%p bra.uni E; E:", 32),
              HasSubstr("the branch is said to be uniform"));
  EXPECT_THAT(faultOf("T: .branchtargets E; brx.idx %t, T; E:", 2),
              HasSubstr("takes branch 1 of 1"));
  EXPECT_THAT(faultOf("bar.sync 0, 33;", 64),
              HasSubstr("a block has 16 barriers of whole warps"));
  EXPECT_THAT(faultOf("L: bra L;", 1), HasSubstr("the launch does not end"));
}
