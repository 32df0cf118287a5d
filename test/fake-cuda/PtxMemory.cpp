//===- PtxMemory.cpp - ld, st and addresses -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxAccess.h"
#include "test/fake-cuda/PtxLanes.h"

#include <algorithm>
#include <type_traits>

using namespace fake_cuda::ptx;

/// T in memory, R in registers; T may be narrower.
template <typename T, typename R>
static void load(Warp &warp, const Inst &inst, Mask mask) {
  const auto &results = warp.code->lists[inst.b];
  char *from[kLanes];
  bool isDense =
      locateLanes(warp, inst, mask, sizeof(T) * results.size(), from);
  if (isDense && results.size() == 1 && sizeof(T) == sizeof(R)) {
    std::memcpy(warp.lanes<R>(results[0]), from[0], sizeof(R) * kLanes);
    return;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    R *to = warp.lanes<R>(results[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!(mask >> lane & 1))
        continue;
      T value;
      std::memcpy(&value, from[lane] + i * sizeof(T), sizeof value);
      to[lane] = static_cast<R>(value);
    }
  }
}

template <typename T, typename R>
static void store(Warp &warp, const Inst &inst, Mask mask) {
  const auto &sources = warp.code->lists[inst.b];
  char *to[kLanes];
  bool isDense = locateLanes(warp, inst, mask, sizeof(T) * sources.size(), to);
  if (isDense && sources.size() == 1 && sizeof(T) == sizeof(R)) {
    std::memcpy(to[0], warp.lanes<R>(sources[0]), sizeof(R) * kLanes);
    return;
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    const R *from = warp.lanes<R>(sources[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!(mask >> lane & 1))
        continue;
      T value = static_cast<T>(from[lane]);
      std::memcpy(to[lane] + i * sizeof(T), &value, sizeof value);
    }
  }
}

/// Of integers of the size and sign.
template <typename T>
static Handler transfer(Decoder &decoder, bool loads, unsigned registerBytes) {
  constexpr bool isSignedType = std::is_signed_v<T>;
  using R2 = std::conditional_t<isSignedType, int16_t, uint16_t>;
  using R4 = std::conditional_t<isSignedType, int32_t, uint32_t>;
  using R8 = std::conditional_t<isSignedType, int64_t, uint64_t>;
  if constexpr (sizeof(T) <= 2)
    if (registerBytes == 2)
      return loads ? load<T, R2> : store<T, R2>;
  if constexpr (sizeof(T) <= 4)
    if (registerBytes == 4)
      return loads ? load<T, R4> : store<T, R4>;
  if (registerBytes == 8)
    return loads ? load<T, R8> : store<T, R8>;
  decoder.fail("registers of this size are not supported");
}

static Handler transferOf(Decoder &decoder, Type type, bool loads,
                          unsigned registerBytes) {
  switch (bytesOf(type)) {
  case 1:
    return isSigned(type) ? transfer<int8_t>(decoder, loads, registerBytes)
                          : transfer<uint8_t>(decoder, loads, registerBytes);
  case 2:
    return isSigned(type) ? transfer<int16_t>(decoder, loads, registerBytes)
                          : transfer<uint16_t>(decoder, loads, registerBytes);
  case 4:
    return isSigned(type) ? transfer<int32_t>(decoder, loads, registerBytes)
                          : transfer<uint32_t>(decoder, loads, registerBytes);
  case 8:
    return transfer<uint64_t>(decoder, loads, registerBytes);
  default:
    decoder.fail("accesses of this type are not supported");
  }
}

static void decodeTransfer(Decoder &decoder, Inst &inst, bool loads) {
  takeOrdering(decoder, inst);
  decoder.take("nc");
  // A cache hint may follow.
  decoder.expectOperands(2, 3);
  decodeAddress(decoder, inst, decoder.operand(loads ? 1 : 0));
  if (!loads)
    inst.flags |= kWrites;
  if (!loads && inst.space == Space::Param)
    decoder.fail("parameters of an entry cannot be written");
  std::string_view lanes = decoder.takeOne({"v2", "v4", "v8"});
  Type type = decoder.takeType();
  const Operand &values = decoder.operand(loads ? 0 : 1);
  size_t count = lanes.empty() ? 1 : lanes[1] - '0';
  bool isVector = values.kind == Operand::Vector;
  if (isVector != !lanes.empty() || (isVector && values.parts.size() != count))
    decoder.fail("it needs " + std::to_string(count) + " values");
  // Their registers have one size.
  unsigned bytes = 0;
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < count; ++i) {
    const Operand &value = isVector ? values.parts[i] : values;
    bool isSink = value.kind == Operand::Sink;
    unsigned mine = 0;
    slots.push_back(isSink  ? decoder.scratch(8)
                    : loads ? decoder.wideResult(value, type, mine)
                            : decoder.wideValue(value, type, mine));
    if (!isSink && bytes && mine != bytes)
      decoder.fail("its registers differ in size");
    bytes = isSink ? bytes : std::max(mine, 1u);
  }
  // An immediate of one byte is stored from one of two.
  if (bytes <= 1 && !loads)
    for (size_t i = 0; i < count; ++i)
      slots[i] = decoder.value(isVector ? values.parts[i] : values, Type::B16);
  bytes = std::max({bytes, 2u, bytesOf(type)});
  inst.b = decoder.list(std::move(slots));
  inst.run = transferOf(decoder, type, loads, bytes);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

template <typename T>
static void addWindow(Warp &warp, const Inst &inst, Mask mask) {
  const T *a = warp.lanes<T>(inst.a);
  eachLane<T>(warp, inst.dst, mask,
              [&](unsigned i) { return T(a[i] + inst.imm); });
}

static uint64_t takeWindow(Decoder &decoder) {
  if (!decoder.takeOne({"global", "const"}).empty())
    return 0;
  if (!decoder.takeOne({"shared", "shared::cta"}).empty())
    return kSharedWindow;
  if (decoder.take("local"))
    return kLocalWindow;
  if (!decoder.takeOne({"param", "param::entry"}).empty())
    return kParamWindow;
  decoder.fail("its state space is not supported");
}

static void decodeCvta(Decoder &decoder, Inst &inst) {
  bool toSpace = decoder.take("to");
  uint64_t window = takeWindow(decoder);
  Type type = decoder.takeType();
  if (bytesOf(type) != 8)
    decoder.fail("generic addresses have 64 bits");
  decodeOperands(decoder, inst, type, 1);
  inst.imm = static_cast<int64_t>(toSpace ? 0 - window : window);
  inst.run = addWindow<uint64_t>;
}

static void isSpace(Warp &warp, const Inst &inst, Mask mask) {
  const uint64_t *a = warp.lanes<uint64_t>(inst.a);
  Mask made = testLanes([&](unsigned i) {
    return (a[i] & ~(kWindowBytes - 1)) == static_cast<uint64_t>(inst.imm);
  });
  // Global is what is in no window.
  if (inst.imm == 0)
    made = testLanes([&](unsigned i) { return a[i] >> 56 == 0; });
  storePredicate(warp, inst.dst, made, mask);
}

static void decodeIsSpace(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(2);
  inst.imm = static_cast<int64_t>(takeWindow(decoder));
  inst.dst = decoder.result(0, Type::Pred);
  inst.a = decoder.value(1, Type::B64);
  inst.run = isSpace;
}

static void doNothing(Warp &, const Inst &, Mask) {}

/// Hints change nothing that can be seen here.
static void decodePrefetch(Decoder &decoder, Inst &inst) {
  decoder.ignore({"global", "local", "L1", "L2"});
  decoder.ignorePrefix("L2::");
  inst.run = doNothing;
}

void fake_cuda::ptx::addMemoryInstructions(DecodeTable &table) {
  table["ld"] = [](Decoder &d, Inst &i) { decodeTransfer(d, i, true); };
  table["ldu"] = table["ld"];
  table["st"] = [](Decoder &d, Inst &i) { decodeTransfer(d, i, false); };
  table["cvta"] = decodeCvta;
  table["isspacep"] = decodeIsSpace;
  table["prefetch"] = decodePrefetch;
  table["prefetchu"] = decodePrefetch;
}
