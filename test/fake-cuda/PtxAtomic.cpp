//===- PtxAtomic.cpp - atom and red ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lanes take effect one after the other, in order; the blocks of a launch
// do too, so that nothing else is between a load and its store.
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxAccess.h"
#include "test/fake-cuda/PtxHalf.h"
#include "test/fake-cuda/PtxLanes.h"

#include <algorithm>

using namespace fake_cuda;
using namespace fake_cuda::ptx;

namespace {
enum Operation : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor, Exch, Cas };
} // namespace

template <typename T>
static T applyInteger(Operation operation, T old, T b, T c) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  switch (operation) {
  case Add:
    return T(U(old) + U(b));
  case Min:
    return std::min(old, b);
  case Max:
    return std::max(old, b);
  case Inc:
    return old >= b ? T(0) : T(old + 1);
  case Dec:
    return old == 0 || old > b ? b : T(old - 1);
  case And:
    return old & b;
  case Or:
    return old | b;
  case Xor:
    return old ^ b;
  case Exch:
    return b;
  case Cas:
    return old == b ? c : old;
  }
  return old;
}

/// `Apply(operation, old, b, c)` gives what memory holds afterwards.
template <typename T, T (*Apply)(Operation, T, T, T)>
static void atomic(Warp &warp, const Inst &inst, Mask mask) {
  char *pointers[kLanes];
  locateLanes(warp, inst, mask, sizeof(T), pointers);
  const T *b = warp.lanes<T>(inst.b);
  const T *c = inst.c == kNone ? b : warp.lanes<T>(inst.c);
  T olds[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    std::memcpy(&olds[lane], pointers[lane], sizeof(T));
    T made = Apply(Operation(inst.count), olds[lane], b[lane], c[lane]);
    std::memcpy(pointers[lane], &made, sizeof(T));
  }
  if (inst.dst == kNone)
    return;
  T *to = warp.lanes<T>(inst.dst);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (mask >> lane & 1)
      to[lane] = olds[lane];
}

template <typename T>
static T addFloats(Operation, T old, T b, T) {
  return old + b;
}

template <typename H>
static H addHalves(Operation, H old, H b, H) {
  return H::round(old.widen() + b.widen());
}

template <typename H>
static uint32_t addPacked(Operation, uint32_t old, uint32_t b, uint32_t) {
  auto add = [](uint32_t x, uint32_t y) -> uint32_t {
    return H::round(H{uint16_t(x)}.widen() + H{uint16_t(y)}.widen()).bits;
  };
  return add(old >> 16, b >> 16) << 16 | add(old, b);
}

static Handler floatHandler(Type type) {
  switch (type) {
  case Type::F32:
    return atomic<float, addFloats<float>>;
  case Type::F64:
    return atomic<double, addFloats<double>>;
  case Type::F16:
    return atomic<F16, addHalves<F16>>;
  case Type::BF16:
    return atomic<BF16, addHalves<BF16>>;
  case Type::F16x2:
    return atomic<uint32_t, addPacked<F16>>;
  case Type::BF16x2:
    return atomic<uint32_t, addPacked<BF16>>;
  default:
    return nullptr;
  }
}

static Handler integerHandler(Type type) {
  switch (type) {
  case Type::B16:
    return atomic<uint16_t, applyInteger<uint16_t>>;
  case Type::B32:
  case Type::U32:
    return atomic<uint32_t, applyInteger<uint32_t>>;
  case Type::S32:
    return atomic<int32_t, applyInteger<int32_t>>;
  case Type::B64:
  case Type::U64:
    return atomic<uint64_t, applyInteger<uint64_t>>;
  case Type::S64:
    return atomic<int64_t, applyInteger<int64_t>>;
  default:
    return nullptr;
  }
}

static Operation takeOperation(Decoder &decoder) {
  const char *names[] = {"add", "min", "max", "inc",  "dec",
                         "and", "or",  "xor", "exch", "cas"};
  for (uint8_t i = 0; i < 10; ++i)
    if (decoder.take(names[i]))
      return Operation(i);
  decoder.fail("its operation is not known");
}

static void decodeAtomic(Decoder &decoder, Inst &inst, bool hasResult) {
  takeOrdering(decoder, inst);
  decoder.take("noftz");
  inst.flags |= kAtomic | kWrites;
  Operation operation = takeOperation(decoder);
  inst.count = operation;
  Type type = decoder.lastType();
  size_t at = hasResult ? 1 : 0;
  decoder.expectOperands(at + (operation == Cas ? 3 : 2));
  decodeAddress(decoder, inst, decoder.operand(at));
  decoder.takeType();
  if (hasResult)
    inst.dst = decoder.result(0, type);
  inst.b = decoder.value(at + 1, type);
  if (operation == Cas)
    inst.c = decoder.value(at + 2, type);
  inst.run = operation == Add && floatHandler(type) ? floatHandler(type)
                                                    : integerHandler(type);
  if (!inst.run)
    decoder.fail("atomic operations of this type are not supported");
}

void fake_cuda::ptx::addAtomicInstructions(DecodeTable &table) {
  table["atom"] = [](Decoder &d, Inst &i) { decodeAtomic(d, i, true); };
  table["red"] = [](Decoder &d, Inst &i) { decodeAtomic(d, i, false); };
}
