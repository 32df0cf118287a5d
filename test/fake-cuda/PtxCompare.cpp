//===- PtxCompare.cpp - Comparisons and selections ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxHalf.h"
#include "test/fake-cuda/PtxLanes.h"

#include <cmath>
#include <limits>

using namespace fake_cuda;
using namespace fake_cuda::ptx;

namespace {
enum Comparison : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Num, Nan };
/// How a comparison is joined with a third operand.
enum Join : uint8_t { NoJoin, JoinAnd, JoinOr, JoinXor };
enum Flags : uint8_t { kNegateThird = 1, kFlush = 2 };

/// In Inst::imm.
struct Setting {
  Comparison comparison = Eq;
  bool orUnordered = false;
  Join join = NoJoin;
};
} // namespace

static int64_t pack(const Setting &setting) {
  return setting.comparison | setting.orUnordered << 8 | setting.join << 16;
}
static Join joinOf(const Inst &inst) { return Join(inst.imm >> 16); }

template <typename T, typename Read>
static Mask compare(Comparison comparison, Read a, Read b) {
  switch (comparison) {
  case Eq:
    return testLanes([&](unsigned i) { return a(i) == b(i); });
  case Ne: // false where unordered
    return testLanes([&](unsigned i) { return a(i) < b(i) || a(i) > b(i); });
  case Lt:
    return testLanes([&](unsigned i) { return a(i) < b(i); });
  case Le:
    return testLanes([&](unsigned i) { return a(i) <= b(i); });
  case Gt:
    return testLanes([&](unsigned i) { return a(i) > b(i); });
  case Ge:
    return testLanes([&](unsigned i) { return a(i) >= b(i); });
  case Num:
    return testLanes([&](unsigned i) { return a(i) == a(i) && b(i) == b(i); });
  case Nan:
    return testLanes([&](unsigned i) { return a(i) != a(i) || b(i) != b(i); });
  }
  return 0;
}

template <typename T>
static T flush(T value) {
  return std::fabs(value) < std::numeric_limits<T>::min() ? T(0) : value;
}

template <typename T>
static Mask compareLanes(Warp &warp, const Inst &inst) {
  struct Read {
    const T *lanes;
    T operator()(unsigned i) const { return lanes[i]; }
  };
  Read a{warp.lanes<T>(inst.a)}, b{warp.lanes<T>(inst.b)};
  auto comparison = Comparison(inst.imm & 0xFF);
  Mask made = compare<T>(comparison, a, b);
  if (inst.imm >> 8 & 1)
    made |= compare<T>(Nan, a, b);
  return made;
}

/// Through f32: of 16 bits, or with subnormals as zeros.
template <typename T>
static Mask compareWidened(Warp &warp, const Inst &inst) {
  struct Read {
    const T *lanes;
    bool flushes;
    float operator()(unsigned i) const {
      float value;
      if constexpr (std::is_same_v<T, float>)
        value = lanes[i];
      else
        value = lanes[i].widen();
      return flushes ? flush(value) : value;
    }
  };
  bool flushes = inst.flags & kFlush;
  Read a{warp.lanes<T>(inst.a), flushes}, b{warp.lanes<T>(inst.b), flushes};
  Mask made = compare<float>(Comparison(inst.imm & 0xFF), a, b);
  if (inst.imm >> 8 & 1)
    made |= compare<float>(Nan, a, b);
  return made;
}

static Mask join(Warp &warp, const Inst &inst, Mask made) {
  if (joinOf(inst) == NoJoin)
    return made;
  Mask third = warp.predicate(inst.c);
  if (inst.flags & kNegateThird)
    third = ~third;
  switch (joinOf(inst)) {
  case JoinAnd:
    return made & third;
  case JoinOr:
    return made | third;
  default:
    return made ^ third;
  }
}

template <Mask (*Compare)(Warp &, const Inst &)>
static void setp(Warp &warp, const Inst &inst, Mask mask) {
  Mask made = Compare(warp, inst);
  Mask direct = join(warp, inst, made);
  if (inst.d != kNone)
    storePredicate(warp, inst.d, join(warp, inst, ~made), mask);
  storePredicate(warp, inst.dst, direct, mask);
}

/// All ones, or 1.0, where it holds (`count` says which).
template <Mask (*Compare)(Warp &, const Inst &)>
static void set(Warp &warp, const Inst &inst, Mask mask) {
  Mask made = join(warp, inst, Compare(warp, inst));
  uint32_t yes = inst.count ? 0x3F800000 : kAllLanes;
  eachLane<uint32_t>(warp, inst.dst, mask,
                     [&](unsigned i) { return made >> i & 1 ? yes : 0; });
}

/// Of a pair of halves: the lower makes the first predicate, the upper the
/// second.
template <typename H>
static void setpPacked(Warp &warp, const Inst &inst, Mask mask) {
  struct Read {
    const H *lanes;
    unsigned part;
    float operator()(unsigned i) const { return lanes[2 * i + part].widen(); }
  };
  Mask made[2];
  for (unsigned part : {0, 1}) {
    Read a{warp.lanes<H>(inst.a), part}, b{warp.lanes<H>(inst.b), part};
    made[part] = compare<float>(Comparison(inst.imm & 0xFF), a, b);
    if (inst.imm >> 8 & 1)
      made[part] |= compare<float>(Nan, a, b);
    made[part] = join(warp, inst, made[part]);
  }
  storePredicate(warp, inst.dst, made[0], mask);
  storePredicate(warp, inst.d, made[1], mask);
}

static Setting takeSetting(Decoder &decoder, Inst &inst) {
  struct Name {
    const char *word;
    Comparison comparison;
    bool orUnordered;
  };
  static const Name names[] = {
      {"eq", Eq, false}, {"ne", Ne, false},   {"lt", Lt, false},
      {"le", Le, false}, {"gt", Gt, false},   {"ge", Ge, false},
      {"lo", Lt, false}, {"ls", Le, false},   {"hi", Gt, false},
      {"hs", Ge, false}, {"equ", Eq, true},   {"neu", Ne, true},
      {"ltu", Lt, true}, {"leu", Le, true},   {"gtu", Gt, true},
      {"geu", Ge, true}, {"num", Num, false}, {"nan", Nan, false}};
  Setting setting;
  bool found = false;
  for (const Name &name : names) {
    if (decoder.firstWord() != name.word)
      continue;
    decoder.take(name.word);
    setting.comparison = name.comparison;
    setting.orUnordered = name.orUnordered;
    found = true;
    break;
  }
  if (!found)
    decoder.fail("comparison '." + std::string(decoder.firstWord()) +
                 "' is not known");
  std::string_view joined = decoder.takeOne({"and", "or", "xor"});
  setting.join = joined == "and"  ? JoinAnd
                 : joined == "or" ? JoinOr
                 : joined.empty() ? NoJoin
                                  : JoinXor;
  if (decoder.take("ftz"))
    inst.flags |= kFlush;
  return setting;
}

template <template <Mask (*)(Warp &, const Inst &)> class Make>
static Handler handlerOf(Decoder &decoder, Type type, bool flushes) {
  switch (type) {
  case Type::B16:
  case Type::U16:
    return Make<compareLanes<uint16_t>>::run;
  case Type::S16:
    return Make<compareLanes<int16_t>>::run;
  case Type::B32:
  case Type::U32:
    return Make<compareLanes<uint32_t>>::run;
  case Type::S32:
    return Make<compareLanes<int32_t>>::run;
  case Type::B64:
  case Type::U64:
    return Make<compareLanes<uint64_t>>::run;
  case Type::S64:
    return Make<compareLanes<int64_t>>::run;
  case Type::F64:
    return Make<compareLanes<double>>::run;
  case Type::F32:
    return flushes ? Make<compareWidened<float>>::run
                   : Make<compareLanes<float>>::run;
  case Type::F16:
    return Make<compareWidened<F16>>::run;
  case Type::BF16:
    return Make<compareWidened<BF16>>::run;
  default:
    decoder.fail("comparisons of this type are not supported");
  }
}

namespace {
template <Mask (*Compare)(Warp &, const Inst &)>
struct MakeSetp {
  static constexpr Handler run = setp<Compare>;
};
template <Mask (*Compare)(Warp &, const Inst &)>
struct MakeSet {
  static constexpr Handler run = set<Compare>;
};
} // namespace

/// Sources from operand 1 on.
static void decodeSources(Decoder &decoder, Inst &inst, Type type, Join join) {
  decoder.expectOperands(join == NoJoin ? 3 : 4);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, type);
  if (join == NoJoin)
    return;
  inst.c = decoder.value(3, Type::Pred);
  if (decoder.operand(3).negated)
    inst.flags |= kNegateThird;
}

static void decodeSetp(Decoder &decoder, Inst &inst) {
  Setting setting = takeSetting(decoder, inst);
  Type type = decoder.takeType();
  inst.imm = pack(setting);
  const Operand &results = decoder.operand(0);
  if (results.kind == Operand::Pair) {
    inst.dst = decoder.result(results.parts[0], Type::Pred);
    inst.d = decoder.result(results.parts[1], Type::Pred);
  } else {
    inst.dst = decoder.result(0, Type::Pred);
  }
  decodeSources(decoder, inst, type, setting.join);
  if (type == Type::F16x2 || type == Type::BF16x2) {
    if (inst.d == kNone || (inst.flags & kFlush))
      decoder.fail("of a packed type it needs two results and no .ftz");
    inst.run = type == Type::F16x2 ? setpPacked<F16> : setpPacked<BF16>;
    return;
  }
  inst.run = handlerOf<MakeSetp>(decoder, type, inst.flags & kFlush);
}

static void decodeSet(Decoder &decoder, Inst &inst) {
  Setting setting = takeSetting(decoder, inst);
  Type made = decoder.takeType();
  Type type = decoder.takeType();
  inst.imm = pack(setting);
  inst.count = made == Type::F32;
  if (made != Type::F32 && made != Type::U32 && made != Type::S32)
    decoder.fail("results of this type are not supported");
  inst.dst = decoder.result(0, made);
  decodeSources(decoder, inst, type, setting.join);
  inst.run = handlerOf<MakeSet>(decoder, type, inst.flags & kFlush);
}

template <typename T>
static void selp(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a), *b = warp.lanes<T>(inst.b);
  Mask first = warp.predicate(inst.c);
  eachLane<T>(warp, inst.dst, mask, [&](unsigned i) {
    return first & kLaneBits.bits[i] ? a[i] : b[i];
  });
}

static Handler selectOf(Type type) {
  switch (bytesOf(type)) {
  case 2:
    return selp<uint16_t>;
  case 4:
    return selp<uint32_t>;
  default:
    return selp<uint64_t>;
  }
}

static void decodeSelp(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(4);
  Type type = decoder.takeType();
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, type);
  inst.c = decoder.value(3, Type::Pred);
  inst.run = selectOf(type);
}

template <typename T, typename C>
static void slct(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a), *b = warp.lanes<T>(inst.b);
  const C *c = warp.lanes<C>(inst.c);
  eachLane<T>(warp, inst.dst, mask,
              [&](unsigned i) { return c[i] >= 0 ? a[i] : b[i]; });
}

static void decodeSlct(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(4);
  Type type = decoder.takeType();
  Type by = decoder.takeType();
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, type);
  inst.c = decoder.value(3, by);
  bool isLong = bytesOf(type) == 8;
  if (bytesOf(type) == 2 || (by != Type::S32 && by != Type::F32))
    decoder.fail("selections of this type are not supported");
  if (by == Type::F32)
    inst.run = isLong ? slct<uint64_t, float> : slct<uint32_t, float>;
  else
    inst.run = isLong ? slct<uint64_t, int32_t> : slct<uint32_t, int32_t>;
}

void fake_cuda::ptx::addCompareInstructions(DecodeTable &table) {
  table["setp"] = decodeSetp;
  table["set"] = decodeSet;
  table["selp"] = decodeSelp;
  table["slct"] = decodeSlct;
}
