//===- PtxAccess.h - Loads and stores of a warp ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the addresses of lanes into pointers of the process: each access is
// checked against its state space, for alignment and for races.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTXACCESS_H
#define ZERO_TEST_FAKECUDA_PTXACCESS_H

#include "test/fake-cuda/PtxDecode.h"

namespace fake_cuda::ptx {

/// Of Inst::flags, in instructions that access memory.
enum AccessFlags : uint8_t {
  kWrites = 1,
  kAtomic = 2,     // does not race with others of the kind
  kNarrowBase = 4, // the address has 32 bits
};

/// The address is in inst.a + inst.imm. Fills `pointers` of the lanes of
/// `mask`; throws Fault. True if the lanes lie one behind the other from
/// pointers[0] on, and all take part.
bool locateLanes(Warp &warp, const Inst &inst, Mask mask, uint32_t bytes,
                 char *pointers[kLanes]);

/// Decodes the state space and the operand in brackets.
void decodeAddress(Decoder &decoder, Inst &inst, const Operand &memory);
/// Takes the words that say how a load or store is ordered and cached.
void takeOrdering(Decoder &decoder, Inst &inst);

} // namespace fake_cuda::ptx

#endif // ZERO_TEST_FAKECUDA_PTXACCESS_H
