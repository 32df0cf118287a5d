//===- PtxFlowTest.cpp - Control flow of warps and blocks -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/PtxTest.h"

using namespace ptx_test;
using Values = std::vector<uint32_t>;

/// `value(t)` for each of the threads.
template <typename Fn>
static Values valuesOf(uint32_t threads, Fn value) {
  Values values;
  for (uint32_t t = 0; t < threads; ++t)
    values.push_back(value(t));
  return values;
}

TEST(PtxFlow, BothSidesOfABranch) {
  EXPECT_EQ(run(R"(
    setp.lt.u32 %p, %t, 10;
    @%p bra LESS;
    mov.u32 %x, 2;
    bra DONE;
  LESS:
    mov.u32 %x, 1;
  DONE:
    add.u32 %x, %x, %t;
  )",
                40),
            valuesOf(40, [](uint32_t t) { return t + (t < 10 ? 1 : 2); }));
}

TEST(PtxFlow, BranchesInBranches) {
  EXPECT_EQ(run(R"(
    and.b32 %a, %t, 1;
    and.b32 %b, %t, 2;
    and.b32 %c, %t, 4;
    mov.u32 %x, 0;
    setp.eq.u32 %p, %a, 0;
    @%p bra EVEN;
    setp.eq.u32 %q, %b, 0;
    @%q bra ODD_LOW;
    add.u32 %x, %x, 100;
    setp.ne.u32 %r, %c, 0;
    @!%r bra ODD_MEET;
    add.u32 %x, %x, 1000;
    bra ODD_MEET;
  ODD_LOW:
    add.u32 %x, %x, 10;
  ODD_MEET:
    add.u32 %x, %x, 1;
  EVEN:
    shl.b32 %x, %x, 1;
  )",
                32),
            valuesOf(32, [](uint32_t t) {
              uint32_t x = 0;
              if (t & 1) {
                x = t & 2 ? 100 + (t & 4 ? 1000 : 0) : 10;
                x += 1;
              }
              return x * 2;
            }));
}

// The lanes leave the loop at different times and go on together: the vote
// behind it sees all of them.
TEST(PtxFlow, LoopsOfDifferentLengths) {
  EXPECT_EQ(run(R"(
    mov.u32 %x, 0;
    mov.u32 %a, 0;
  LOOP:
    setp.ge.u32 %p, %a, %t;
    @%p bra DONE;
    add.u32 %x, %x, %a;
    add.u32 %a, %a, 1;
    bra LOOP;
  DONE:
    activemask.b32 %b;
    setp.eq.u32 %q, %b, -1;
    selp.b32 %b, 0, 5000, %q;
    add.u32 %x, %x, %b;
  )",
                32),
            valuesOf(32, [](uint32_t t) { return t * (t - 1) / 2; }));
}

TEST(PtxFlow, LoopsInLoops) {
  EXPECT_EQ(run(R"(
    mov.u32 %x, 0;
    mov.u32 %a, 0;
  OUTER:
    mov.u32 %b, 0;
  INNER:
    add.u32 %x, %x, 1;
    add.u32 %b, %b, 1;
    setp.le.u32 %p, %b, %a;
    @%p bra INNER;
    add.u32 %a, %a, 1;
    setp.lt.u32 %q, %a, %t;
    @%q bra OUTER;
  )",
                32),
            valuesOf(32, [](uint32_t t) {
              uint32_t rounds = t ? t : 1;
              return rounds * (rounds + 1) / 2;
            }));
}

// A loop with a second way out, to a place that the first does not pass.
TEST(PtxFlow, LoopWithTwoWaysOut) {
  EXPECT_EQ(
      run(R"(
    mov.u32 %a, 0;
  LOOP:
    add.u32 %a, %a, 1;
    setp.eq.u32 %p, %a, %t;
    @%p bra FOUND;
    setp.lt.u32 %q, %a, 20;
    @%q bra LOOP;
    mov.u32 %x, 777;
    bra DONE;
  FOUND:
    mov.u32 %x, %a;
  DONE:
    add.u32 %x, %x, 1;
  )",
          32),
      valuesOf(32, [](uint32_t t) { return t >= 1 && t <= 20 ? t + 1 : 778; }));
}

TEST(PtxFlow, EarlyReturn) {
  EXPECT_EQ(run(R"(
    mov.u32 %x, 3;
    mad.wide.u32 %at, %t, 4, %out;
    st.global.b32 [%at], %x;
    and.b32 %a, %t, 1;
    setp.eq.u32 %p, %a, 0;
    @%p ret;
    setp.lt.u32 %q, %t, 8;
    @%q bra LOW;
    exit;
  LOW:
    mov.u32 %x, 4;
  )",
                40),
            valuesOf(40, [](uint32_t t) { return t % 2 && t < 8 ? 4 : 3; }));
}

TEST(PtxFlow, TableOfBranches) {
  EXPECT_EQ(run(R"(
    rem.u32 %a, %t, 3;
    TABLE: .branchtargets ZERO, ONE, TWO;
    brx.idx %a, TABLE;
  ZERO:
    mov.u32 %x, 10;
    bra DONE;
  ONE:
    mov.u32 %x, 20;
    bra DONE;
  TWO:
    mov.u32 %x, 30;
  DONE:
    add.u32 %x, %x, 1;
  )",
                32),
            valuesOf(32, [](uint32_t t) { return 10 * (t % 3 + 1) + 1; }));
}

static const char *const square = R"(
.func (.param .b32 result) square(.param .b32 value, .param .b64 unused) {
  .reg .b32 %r<3>;
  .reg .pred %p;
  .local .align 4 .b8 room[8];
  .reg .b64 %rd;
  ld.param.b32 %r0, [value];
  setp.eq.u32 %p, %r0, 0;
  mov.u32 %r1, 99;
  st.param.b32 [result], %r1;
  @%p ret;
  mov.u64 %rd, room;
  mul.lo.u32 %r1, %r0, %r0;
  st.local.u32 [%rd+4], %r1;
  ld.local.u32 %r2, [room+4];
  st.param.b32 [result], %r2;
  ret;
}
.func (.param .b32 result) twice(.param .b32 value) {
  .reg .b32 %r<3>;
  .local .align 4 .b8 room[4];
  ld.param.b32 %r0, [value];
  st.local.b32 [room], %r0;
  {
    .param .b32 a;
    .param .b64 b;
    .param .b32 c;
    st.param.b32 [a], %r0;
    st.param.b64 [b], 0;
    call.uni (c), square, (a, b);
    ld.param.b32 %r1, [c];
  }
  ld.local.b32 %r2, [room];
  add.u32 %r1, %r1, %r2;
  st.param.b32 [result], %r1;
  ret;
}
)";

// Some lanes call, some lanes return early within; the others keep what they
// have.
TEST(PtxFlow, Calls) {
  EXPECT_EQ(run(R"(
    mov.u32 %x, 5;
    setp.lt.u32 %p, %t, 10;
    @!%p bra DONE;
    {
      .param .b32 a;
      .param .b32 b;
      st.param.b32 [a], %t;
      call (b), twice, (a);
      ld.param.b32 %x, [b];
    }
  DONE:
  )",
                32, square),
            valuesOf(32, [](uint32_t t) -> uint32_t {
              return t >= 10 ? 5 : t == 0 ? 99 : t * t + t;
            }));
}

TEST(PtxFlow, SpecialRegisters) {
  auto module = parse(kernel(R"(
    mov.u32 %a, %tid.y;
    mov.u32 %b, %ntid.x;
    mad.lo.u32 %t, %a, %b, %t;
    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ctaid.y;
    mov.u32 %c, %nctaid.x;
    mad.lo.u32 %a, %b, %c, %a;
    mov.u32 %d, %ntid.y;
    mov.u32 %c, %ntid.x;
    mul.lo.u32 %d, %d, %c;
    mad.lo.u32 %t, %a, %d, %t;
    mov.u32 %x, %laneid;
    mov.u32 %y, %warpid;
    mad.lo.u32 %x, %y, 100, %x;
  )" + std::string(storeX)));
  ASSERT_TRUE(module);
  Array<uint32_t> out(2 * 3 * 8 * 6);
  EXPECT_EQ(launch(*module, "test", {{2, 3, 1}, {8, 6, 1}}, out.address()), "");
  EXPECT_EQ(out.values(), valuesOf(2 * 3 * 48, [](uint32_t i) {
              return i % 48 % 32 + i % 48 / 32 * 100;
            }));
}

TEST(PtxFlow, Shuffles) {
  auto shuffle = [](const char *how) {
    return run(std::string("add.u32 %a, %t, 100; shfl.sync.") + how +
                   " %x|%p, %a, 5, " + (how[0] == 'u' ? "0" : "31") +
                   ", -1; @!%p add.u32 %x, %x, 1000;",
               32);
  };
  EXPECT_EQ(shuffle("up.b32"), valuesOf(32, [](uint32_t t) {
              return t >= 5 ? t + 95 : t + 1100;
            }));
  EXPECT_EQ(shuffle("down.b32"), valuesOf(32, [](uint32_t t) {
              return t + 5 < 32 ? t + 105 : t + 1100;
            }));
  EXPECT_EQ(shuffle("bfly.b32"),
            valuesOf(32, [](uint32_t t) { return (t ^ 5) + 100; }));
  EXPECT_EQ(shuffle("idx.b32"), Values(32, 105));
  // In segments of 8 lanes.
  EXPECT_EQ(run("shfl.sync.idx.b32 %x, %t, 2, 6175, -1;", 32),
            valuesOf(32, [](uint32_t t) { return t / 8 * 8 + 2; }));
}

TEST(PtxFlow, VotesMatchesAndReductions) {
  EXPECT_EQ(run("setp.lt.u32 %p, %t, 3; vote.sync.ballot.b32 %x, %p, -1;", 32),
            Values(32, 7));
  EXPECT_EQ(run("setp.lt.u32 %p, %t, 32; vote.sync.all.pred %q, %p, -1; "
                "vote.sync.any.pred %r, !%p, -1; selp.b32 %x, 1, 0, %q; @%r "
                "add.u32 %x, %x, 2;",
                32),
            Values(32, 1));
  EXPECT_EQ(
      run("and.b32 %a, %t, 1; match.any.sync.b32 %x, %a, -1;", 32),
      valuesOf(32, [](uint32_t t) { return t % 2 ? 0xAAAAAAAA : 0x55555555; }));
  EXPECT_EQ(run("redux.sync.add.u32 %x, %t, -1;", 32), Values(32, 496));
  EXPECT_EQ(run("sub.s32 %a, %t, 7; redux.sync.min.s32 %x, %a, -1;", 32),
            Values(32, uint32_t(-7)));
  // Of the last warp only its threads take part.
  EXPECT_EQ(run("activemask.b32 %a; redux.sync.or.b32 %x, %t, %a;", 3),
            Values(3, 3));
}

// Every thread writes, waits, and reads what the opposite one wrote.
TEST(PtxFlow, BarriersAndSharedMemory) {
  EXPECT_EQ(run(R"(
    mov.u32 %a, numbers;
    shl.b32 %b, %t, 2;
    add.u32 %b, %a, %b;
    mul.lo.u32 %c, %t, %t;
    st.shared.u32 [%b], %c;
    bar.sync 0;
    mov.u32 %c, 127;
    sub.u32 %c, %c, %t;
    shl.b32 %c, %c, 2;
    add.u32 %c, %a, %c;
    ld.shared.u32 %x, [%c];
  )",
                128, ".shared .align 4 .b8 numbers[512];"),
            valuesOf(128, [](uint32_t t) { return (127 - t) * (127 - t); }));
}

TEST(PtxFlow, ReductionsOfBarriers) {
  EXPECT_EQ(run("setp.lt.u32 %p, %t, 40; barrier.cta.red.popc.aligned.u32 %x, "
                "0, %p;",
                96),
            Values(96, 40));
  EXPECT_EQ(run("setp.lt.u32 %p, %t, 40; bar.red.and.pred %q, 0, %p; "
                "bar.red.or.pred %r, 1, %p; selp.b32 %x, 1, 0, %q; @%r "
                "add.u32 %x, %x, 2;",
                96),
            Values(96, 2));
}

// One warp writes and goes on, the other waits for it.
TEST(PtxFlow, BarriersThatSomePassWithoutWaiting) {
  EXPECT_EQ(run(R"(
    mov.u32 %x, 1;
    setp.lt.u32 %p, %t, 32;
    @!%p bra WAIT;
    setp.eq.u32 %q, %t, 3;
    @%q st.shared.u32 [number], 42;
    bar.arrive 1, 64;
    bra DONE;
  WAIT:
    bar.sync 1, 64;
    ld.shared.u32 %x, [number];
  DONE:
  )",
                64, ".shared .align 4 .b8 number[4];"),
            valuesOf(64, [](uint32_t t) { return t < 32 ? 1 : 42; }));
}

TEST(PtxFlow, DynamicSharedMemory) {
  auto module = parse(kernel(R"(
    mov.u64 %l, dynamic;
    cvta.shared.u64 %l, %l;
    mad.wide.u32 %m, %t, 8, %l;
    cvt.u64.u32 %n, %t;
    st.u64 [%m], %n;
    bar.sync 0;
    xor.b32 %a, %t, 1;
    mad.wide.u32 %m, %a, 8, %l;
    ld.u64 %n, [%m];
    cvt.u32.u64 %x, %n;
    mov.u32 %a, %dynamic_smem_size;
    add.u32 %x, %x, %a;
    setp.eq.u32 %p, %t, 0;
    @%p st.shared.u32 [fixed], %x;
  )" + std::string(storeX),
                             R"(
    .shared .align 4 .b8 fixed[4];
    .extern .shared .align 16 .b8 dynamic[];
  )"));
  ASSERT_TRUE(module);
  EXPECT_EQ(module->function("test")->staticSharedBytes(), 16u);
  Array<uint32_t> out(2);
  EXPECT_EQ(launch(*module, "test", {{1, 1, 1}, {2, 1, 1}, 16}, out.address()),
            "");
  EXPECT_EQ(out.values(), (Values{17, 16}));
}

TEST(PtxFlow, Atomics) {
  auto module = parse(kernel(R"(
    atom.global.add.u32 %x, [%out], 1;
    red.global.max.u32 [%out+4], %t;
    atom.global.inc.u32 %y, [%out+8], 2;
    atom.global.exch.b32 %y, [%out+12], %t;
    atom.global.cas.b32 %y, [%out+16], %t, 77;
    red.global.add.f32 [%out+20], 0f3F000000;
    atom.global.add.noftz.bf16x2 %y, [%out+24], 1065369472;
  )"));
  ASSERT_TRUE(module);
  Array<uint32_t> out(7, 0);
  out[4] = 8;
  EXPECT_EQ(launch(*module, "test", {{2, 1, 1}, {32, 1, 1}}, out.address()),
            "");
  EXPECT_EQ(out.values(), (Values{64, 31, 1, 31, 77, 0x42000000, 0x42804280}));
}

// The ranges of a launch, as the checks between streams see them.
TEST(PtxFlow, RangesOfALaunch) {
  auto module = parse(kernel(R"(
    mad.wide.u32 %at, %t, 4, %out;
    ld.global.u32 %x, [%at];
    st.global.v2.u32 [%at+1024], {%x, %x};
  )"));
  ASSERT_TRUE(module);
  Array<uint32_t> out(1024);
  fake_cuda::AccessRecorder recorder(0);
  EXPECT_EQ(
      launch(*module, "test", {{1, 1, 1}, {1, 1, 1}}, recorder, out.address()),
      "");
  std::vector<fake_cuda::Range> reads = recorder.takeReads();
  std::vector<fake_cuda::Range> writes = recorder.takeWrites();
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].end - reads[0].begin, 4u);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].begin, out.address() + 1024);
  EXPECT_EQ(writes[0].end, out.address() + 1032);
}
