//===- PtxWarp.cpp - Instructions among the lanes of a warp ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxLanes.h"

#include <algorithm>

using namespace fake_cuda::ptx;

/// A `.sync` instruction names the lanes that execute it together. Ended ones
/// do not count; here, all others of them must be at it.
static void checkMembers(Warp &warp, uint32_t slot, Mask mask) {
  const Mask *members = warp.lanes<Mask>(slot);
  Mask executing = mask;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!(executing >> lane & 1))
      continue;
    Mask wanted = members[lane] & warp.alive;
    if (!(wanted >> lane & 1))
      throw Fault(describeThread(*warp.block, warp.thread(lane)) +
                  " is not in its own mask of members");
    if (wanted & ~executing)
      throw Fault("lane " + std::to_string(__builtin_ctz(wanted & ~executing)) +
                  " is in the mask of members, but takes another branch than " +
                  describeThread(*warp.block, warp.thread(lane)));
  }
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

namespace {
enum Shuffle : uint8_t { Up, Down, Butterfly, Index };
} // namespace

/// The source lane, and whether it is in range (as the PTX manual has it).
static unsigned shuffleSource(Shuffle kind, unsigned lane, uint32_t b,
                              uint32_t c, bool &inRange) {
  b &= 31;
  uint32_t clamp = c & 31, segment = c >> 8 & 31;
  int last = (lane & segment) | (clamp & ~segment);
  int first = lane & segment;
  int source = kind == Up          ? int(lane) - int(b)
               : kind == Down      ? int(lane + b)
               : kind == Butterfly ? int(lane ^ b)
                                   : int(first | (b & ~segment));
  inRange = kind == Up ? source >= last : source <= last;
  return inRange ? source : lane;
}

static void shuffle(Warp &warp, const Inst &inst, Mask mask) {
  checkMembers(warp, inst.d, mask);
  const auto &operands = warp.code->lists[inst.imm];
  const uint32_t *a = warp.lanes<uint32_t>(inst.a);
  const uint32_t *b = warp.lanes<uint32_t>(inst.b);
  const uint32_t *c = warp.lanes<uint32_t>(inst.c);
  Mask ranges = 0;
  uint32_t made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    bool inRange = false;
    unsigned source =
        shuffleSource(Shuffle(inst.flags), lane, b[lane], c[lane], inRange);
    if ((mask >> lane & 1) && !(mask >> source & 1))
      throw Fault(describeThread(*warp.block, warp.thread(lane)) +
                  " reads from lane " + std::to_string(source) +
                  ", which does not take part");
    made[lane] = a[source];
    ranges |= inRange ? kLaneBits.bits[lane] : 0;
  }
  storeLanes(warp.lanes<uint32_t>(inst.dst), made, mask);
  if (!operands.empty())
    storePredicate(warp, operands[0], ranges, mask);
}

static void decodeShfl(Decoder &decoder, Inst &inst) {
  if (!decoder.take("sync"))
    decoder.fail("modifier '.sync' is missing");
  std::string_view kind = decoder.takeOne({"up", "down", "bfly", "idx"});
  if (kind.empty() || decoder.takeType() != Type::B32)
    decoder.fail("it needs .up, .down, .bfly or .idx, and type b32");
  inst.flags = kind == "up"     ? Up
               : kind == "down" ? Down
               : kind == "bfly" ? Butterfly
                                : Index;
  decoder.expectOperands(5);
  std::vector<uint32_t> inRange;
  const Operand &results = decoder.operand(0);
  if (results.kind == Operand::Pair) {
    inst.dst = decoder.result(results.parts[0], Type::B32);
    inRange.push_back(decoder.result(results.parts[1], Type::Pred));
  } else {
    inst.dst = decoder.result(0, Type::B32);
  }
  inst.imm = decoder.list(std::move(inRange));
  inst.a = decoder.value(1, Type::B32);
  inst.b = decoder.value(2, Type::B32);
  inst.c = decoder.value(3, Type::B32);
  inst.d = decoder.value(4, Type::B32);
  inst.run = shuffle;
}

//===----------------------------------------------------------------------===//
// Votes and matches
//===----------------------------------------------------------------------===//

namespace {
enum Vote : uint8_t { All, Any, Uniform, Ballot };
} // namespace

static void vote(Warp &warp, const Inst &inst, Mask mask) {
  checkMembers(warp, inst.b, mask);
  Mask yes = warp.predicate(inst.a) ^ (inst.count ? kAllLanes : 0);
  yes &= mask;
  if (inst.flags == Ballot)
    return eachLane<uint32_t>(warp, inst.dst, mask,
                              [&](unsigned) { return yes; });
  bool made = inst.flags == All   ? yes == mask
              : inst.flags == Any ? yes != 0
                                  : yes == mask || yes == 0;
  storePredicate(warp, inst.dst, made ? kAllLanes : 0, mask);
}

static void decodeVote(Decoder &decoder, Inst &inst) {
  if (!decoder.take("sync"))
    decoder.fail("modifier '.sync' is missing");
  std::string_view kind = decoder.takeOne({"all", "any", "uni", "ballot"});
  if (kind.empty())
    decoder.fail("it needs .all, .any, .uni or .ballot");
  inst.flags = kind == "all"   ? All
               : kind == "any" ? Any
               : kind == "uni" ? Uniform
                               : Ballot;
  Type type = decoder.takeType();
  if (type != (inst.flags == Ballot ? Type::B32 : Type::Pred))
    decoder.fail("a ballot is of type b32, another vote of type pred");
  decoder.expectOperands(3);
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, Type::Pred);
  inst.count = decoder.operand(1).negated;
  inst.b = decoder.value(2, Type::B32);
  inst.run = vote;
}

template <typename T>
static void match(Warp &warp, const Inst &inst, Mask mask) {
  checkMembers(warp, inst.b, mask);
  const T *a = warp.lanes<T>(inst.a);
  uint32_t made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = mask & testLanes([&](unsigned i) { return a[i] == a[lane]; });
  bool isAll = made[__builtin_ctz(mask)] == mask;
  if (inst.flags == All)
    std::fill(made, made + kLanes, isAll ? mask : 0);
  storeLanes(warp.lanes<uint32_t>(inst.dst), made, mask);
  if (inst.c != kNone)
    storePredicate(warp, inst.c, isAll ? kAllLanes : 0, mask);
}

static void decodeMatch(Decoder &decoder, Inst &inst) {
  inst.flags = decoder.takeOne({"any", "all"}) == "all" ? All : Any;
  if (!decoder.take("sync"))
    decoder.fail("modifier '.sync' is missing");
  Type type = decoder.takeType();
  decoder.expectOperands(3);
  const Operand &results = decoder.operand(0);
  if (results.kind == Operand::Pair) {
    inst.dst = decoder.result(results.parts[0], Type::B32);
    inst.c = decoder.result(results.parts[1], Type::Pred);
  } else {
    inst.dst = decoder.result(0, Type::B32);
  }
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, Type::B32);
  inst.run = bytesOf(type) == 8 ? match<uint64_t> : match<uint32_t>;
}

static void activeMask(Warp &warp, const Inst &inst, Mask mask) {
  eachLane<uint32_t>(warp, inst.dst, mask, [&](unsigned) { return mask; });
}

static void decodeActiveMask(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(1);
  inst.dst = decoder.result(0, decoder.takeType());
  inst.run = activeMask;
}

static void elect(Warp &warp, const Inst &inst, Mask mask) {
  checkMembers(warp, inst.a, mask);
  unsigned leader = __builtin_ctz(mask);
  eachLane<uint32_t>(warp, inst.dst, mask, [&](unsigned) { return leader; });
  storePredicate(warp, inst.c, kLaneBits.bits[leader], mask);
}

static void decodeElect(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(2);
  if (!decoder.take("sync") || decoder.operand(0).kind != Operand::Pair)
    decoder.fail("it needs .sync and a pair of results");
  inst.dst = decoder.result(decoder.operand(0).parts[0], Type::B32);
  inst.c = decoder.result(decoder.operand(0).parts[1], Type::Pred);
  inst.a = decoder.value(1, Type::B32);
  inst.run = elect;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

template <typename T, typename Fn>
static void reduceLanes(Warp &warp, const Inst &inst, Mask mask, Fn join) {
  const T *a = warp.lanes<T>(inst.a);
  T made = a[__builtin_ctz(mask)];
  for (unsigned lane = __builtin_ctz(mask) + 1; lane < kLanes; ++lane)
    if (mask >> lane & 1)
      made = join(made, a[lane]);
  eachLane<T>(warp, inst.dst, mask, [&](unsigned) { return made; });
}

template <typename T>
static void reduce(Warp &warp, const Inst &inst, Mask mask) {
  checkMembers(warp, inst.b, mask);
  switch (inst.flags) {
  case 0:
    return reduceLanes<T>(warp, inst, mask, [](T a, T b) {
      return T(uint32_t(a) + uint32_t(b));
    });
  case 1:
    return reduceLanes<T>(warp, inst, mask,
                          [](T a, T b) { return std::min(a, b); });
  case 2:
    return reduceLanes<T>(warp, inst, mask,
                          [](T a, T b) { return std::max(a, b); });
  case 3:
    return reduceLanes<T>(warp, inst, mask, [](T a, T b) { return a & b; });
  case 4:
    return reduceLanes<T>(warp, inst, mask, [](T a, T b) { return a | b; });
  default:
    return reduceLanes<T>(warp, inst, mask, [](T a, T b) { return a ^ b; });
  }
}

static void decodeRedux(Decoder &decoder, Inst &inst) {
  if (!decoder.take("sync"))
    decoder.fail("modifier '.sync' is missing");
  const char *names[] = {"add", "min", "max", "and", "or", "xor"};
  int found = -1;
  for (int i = 0; i < 6; ++i)
    if (decoder.take(names[i]))
      found = i;
  Type type = decoder.takeType();
  if (found < 0 ||
      (type != Type::S32 && type != Type::U32 && type != Type::B32))
    decoder.fail("reductions of this kind are not supported");
  inst.flags = found;
  decoder.expectOperands(3);
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, type);
  inst.b = decoder.value(2, Type::B32);
  inst.run = type == Type::S32 ? reduce<int32_t> : reduce<uint32_t>;
}

/// bar.warp.sync: orders the memory accesses of the lanes.
static void warpBarrier(Warp &warp, const Inst &inst, Mask mask) {
  checkMembers(warp, inst.a, mask);
  ++warp.epoch;
}

void fake_cuda::ptx::decodeWarpBarrier(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(1);
  inst.a = decoder.value(0, Type::B32);
  inst.run = warpBarrier;
}

void fake_cuda::ptx::addWarpInstructions(DecodeTable &table) {
  table["shfl"] = decodeShfl;
  table["vote"] = decodeVote;
  table["match"] = decodeMatch;
  table["activemask"] = decodeActiveMask;
  table["elect"] = decodeElect;
  table["redux"] = decodeRedux;
}
