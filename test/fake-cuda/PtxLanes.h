//===- PtxLanes.h - Operations on 32 lanes at a time ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Handlers of instructions that compute lane by lane. All lanes are computed,
// into an array that overlaps with nothing, so that the host's compiler makes
// vector code of the loop; then the lanes of the mask are stored.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTXLANES_H
#define ZERO_TEST_FAKECUDA_PTXLANES_H

#include "test/fake-cuda/PtxDecode.h"

#include <utility>

namespace fake_cuda::ptx {

template <typename T>
inline void storeLanes(T *to, const T *made, Mask mask) {
  if (mask == kAllLanes) {
    std::memcpy(to, made, sizeof(T) * kLanes);
    return;
  }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    to[lane] = mask >> lane & 1 ? made[lane] : to[lane];
}

/// `compute` gives the value of a lane.
template <typename T, typename Fn>
inline void eachLane(Warp &warp, uint32_t dst, Mask mask, Fn compute) {
  alignas(64) T made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = compute(lane);
  storeLanes(warp.lanes<T>(dst), made, mask);
}

struct LaneBits {
  Mask bits[kLanes];
  constexpr LaneBits() : bits() {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      bits[lane] = Mask(1) << lane;
  }
};
inline constexpr LaneBits kLaneBits;

/// A mask of the lanes that `test` holds in.
template <typename Fn>
inline Mask testLanes(Fn test) {
  Mask made = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made |= test(lane) ? kLaneBits.bits[lane] : 0;
  return made;
}

inline void storePredicate(Warp &warp, uint32_t dst, Mask made, Mask mask) {
  Mask &to = warp.predicate(dst);
  to = (to & ~mask) | (made & mask);
}

template <typename Op, typename D, typename A>
void unary(Warp &warp, const Inst &inst, Mask mask) {
  const A *a = warp.lanes<A>(inst.a);
  eachLane<D>(warp, inst.dst, mask, [&](unsigned i) { return D(Op()(a[i])); });
}

template <typename Op, typename D, typename A, typename B = A>
void binary(Warp &warp, const Inst &inst, Mask mask) {
  const A *a = warp.lanes<A>(inst.a);
  const B *b = warp.lanes<B>(inst.b);
  eachLane<D>(warp, inst.dst, mask,
              [&](unsigned i) { return D(Op()(a[i], b[i])); });
}

template <typename Op, typename D, typename A, typename B = A, typename C = D>
void ternary(Warp &warp, const Inst &inst, Mask mask) {
  const A *a = warp.lanes<A>(inst.a);
  const B *b = warp.lanes<B>(inst.b);
  const C *c = warp.lanes<C>(inst.c);
  eachLane<D>(warp, inst.dst, mask,
              [&](unsigned i) { return D(Op()(a[i], b[i], c[i])); });
}

/// Operands of one type: destination and sources.
inline void decodeOperands(Decoder &decoder, Inst &inst, Type type,
                           unsigned sources) {
  decoder.expectOperands(sources + 1);
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, type);
  if (sources > 1)
    inst.b = decoder.value(2, type);
  if (sources > 2)
    inst.c = decoder.value(3, type);
}

template <typename To, typename From>
inline To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

} // namespace fake_cuda::ptx

#endif // ZERO_TEST_FAKECUDA_PTXLANES_H
