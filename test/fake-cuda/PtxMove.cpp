//===- PtxMove.cpp - Moves of registers -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxLanes.h"

using namespace fake_cuda::ptx;

template <typename T>
static void move(Warp &warp, const Inst &inst, Mask mask) {
  storeLanes(warp.lanes<T>(inst.dst), warp.lanes<T>(inst.a), mask);
}

static void movePredicate(Warp &warp, const Inst &inst, Mask mask) {
  storePredicate(warp, inst.dst, warp.predicate(inst.a), mask);
}

/// mov.b64 d, {a, b, ...}: the first operand is the lowest part.
static void packParts(Warp &warp, const Inst &inst, Mask mask) {
  const auto &parts = warp.code->lists[inst.imm];
  unsigned bytes = inst.flags, whole = bytes * parts.size();
  char *to = warp.lanes<char>(inst.dst);
  char made[kLanes * 16];
  for (size_t i = 0; i < parts.size(); ++i) {
    const char *from = warp.lanes<char>(parts[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(made + lane * whole + i * bytes, from + lane * bytes, bytes);
  }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (mask >> lane & 1)
      std::memcpy(to + lane * whole, made + lane * whole, whole);
}

static void unpackParts(Warp &warp, const Inst &inst, Mask mask) {
  const auto &parts = warp.code->lists[inst.imm];
  unsigned bytes = inst.flags, whole = bytes * parts.size();
  char from[kLanes * 16];
  std::memcpy(from, warp.lanes<char>(inst.a), kLanes * whole);
  for (size_t i = 0; i < parts.size(); ++i) {
    char *to = warp.lanes<char>(parts[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (mask >> lane & 1)
        std::memcpy(to + lane * bytes, from + lane * whole + i * bytes, bytes);
  }
}

static Type partOf(Decoder &decoder, Type whole, size_t count) {
  unsigned bytes = bytesOf(whole);
  if (count == 0 || bytes % count || bytes > 8)
    decoder.fail("its parts do not make up the whole");
  switch (bytes / count) {
  case 2:
    return Type::B16;
  case 4:
    return Type::B32;
  default:
    decoder.fail("parts of this size are not supported");
  }
}

static void decodeParts(Decoder &decoder, Inst &inst, Type type) {
  bool unpacks = decoder.operand(0).kind == Operand::Vector;
  const Operand &vector = decoder.operand(unpacks ? 0 : 1);
  Type part = partOf(decoder, type, vector.parts.size());
  std::vector<uint32_t> slots;
  for (const Operand &operand : vector.parts)
    slots.push_back(unpacks ? decoder.result(operand, part)
                            : decoder.value(operand, part));
  inst.imm = decoder.list(std::move(slots));
  inst.flags = bytesOf(part);
  if (unpacks)
    inst.a = decoder.value(1, type);
  else
    inst.dst = decoder.result(0, type);
  inst.run = unpacks ? unpackParts : packParts;
}

static void decodeMov(Decoder &decoder, Inst &inst) {
  Type type = decoder.takeType();
  decoder.expectOperands(2);
  if (decoder.operand(0).kind == Operand::Vector ||
      decoder.operand(1).kind == Operand::Vector)
    return decodeParts(decoder, inst, type);
  decodeOperands(decoder, inst, type, 1);
  if (type == Type::Pred)
    inst.run = movePredicate;
  else if (bytesOf(type) == 2)
    inst.run = move<uint16_t>;
  else if (bytesOf(type) == 4)
    inst.run = move<uint32_t>;
  else if (bytesOf(type) == 8)
    inst.run = move<uint64_t>;
  else
    decoder.fail("moves of this type are not supported");
}

/// Each four bits of c choose one of the eight bytes of b:a, or its sign.
static void permute(Warp &warp, const Inst &inst, Mask mask) {
  const uint32_t *a = warp.lanes<uint32_t>(inst.a);
  const uint32_t *b = warp.lanes<uint32_t>(inst.b);
  const uint32_t *c = warp.lanes<uint32_t>(inst.c);
  eachLane<uint32_t>(warp, inst.dst, mask, [&](unsigned i) {
    uint64_t bytes = uint64_t(b[i]) << 32 | a[i];
    uint32_t made = 0;
    for (unsigned to = 0; to < 4; ++to) {
      uint32_t choice = c[i] >> (4 * to) & 15;
      uint32_t byte = bytes >> (8 * (choice & 7)) & 0xFF;
      if (choice & 8)
        byte = byte & 0x80 ? 0xFF : 0;
      made |= byte << (8 * to);
    }
    return made;
  });
}

static void decodePrmt(Decoder &decoder, Inst &inst) {
  decodeOperands(decoder, inst, decoder.takeType(), 3);
  inst.run = permute;
}

void fake_cuda::ptx::addMoveInstructions(DecodeTable &table) {
  table["mov"] = decodeMov;
  table["prmt"] = decodePrmt;
}
