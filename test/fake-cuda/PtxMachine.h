//===- PtxMachine.h - Warps that execute decoded PTX ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A register is an array of 32 lanes of 16, 32 or 64 bits; a predicate is one
// mask. A slot says where it lies: a byte offset in the registers of the frame
// or, with its lowest bit set, in the constants of the code: what an immediate
// stands for lies there once for each lane, so that every operand is an array.
//
// Divergence: each branch that lanes take in different ways pushes its two
// sides on the warp's stack, to be executed one after the other up to the
// branch's immediate post-dominator.
//
// Addresses: a state space's own begin at 0 (global: the device's). Generic
// addresses of the other spaces have a window each, where no device memory is.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTXMACHINE_H
#define ZERO_TEST_FAKECUDA_PTXMACHINE_H

#include "test/fake-cuda/Ptx.h"
#include "test/fake-cuda/PtxShadow.h"
#include "test/fake-cuda/PtxSyntax.h"

#include <cstring>

namespace fake_cuda::ptx {

constexpr unsigned kLanes = 32;
constexpr uint32_t kNone = ~0u;
using Mask = uint32_t;
constexpr Mask kAllLanes = ~0u;

constexpr uint64_t kWindowBytes = uint64_t(1) << 32;
constexpr uint64_t kSharedWindow = uint64_t(0xF1) << 56;
constexpr uint64_t kLocalWindow = uint64_t(0xF2) << 56;
constexpr uint64_t kParamWindow = uint64_t(0xF3) << 56;

/// What a kernel does wrong, without where.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Warp;
struct Inst;
using Handler = void (*)(Warp &, const Inst &, Mask);

struct Inst {
  Handler run = nullptr;
  const Instruction *source = nullptr;
  uint32_t guard = kNone;
  uint32_t dst = kNone, a = kNone, b = kNone, c = kNone, d = kNone;
  /// An offset, an index, a target: the handler's own.
  int64_t imm = 0;
  /// Elements of a vector.
  uint8_t count = 1;
  /// The handler's own.
  uint8_t flags = 0;
  bool guardNegated = false;
  Space space = Space::Generic;
};

/// A special register, as "%tid.x".
struct Special {
  uint64_t (*value)(const Warp &, unsigned lane);
  /// Of the blocks that a warp executes one after the other, each has another.
  bool variesByBlock;
};
/// Null: there is none of the name.
const Special *findSpecial(std::string_view name);

/// Registers with contents from the start: %tid.x, an address on the stack.
struct Preset {
  const Special *special = nullptr; // null: the frame's stack + addend
  uint32_t slot = 0;
  unsigned bytes = 4;
  uint64_t addend = 0;
};

struct Code;
/// A call instruction.
struct Call {
  const Code *callee = nullptr;
  /// Copies on the stack of a thread, at offsets in the frames of the two.
  struct Copy {
    uint32_t caller, callee, bytes;
  };
  std::vector<Copy> arguments, results;
};

/// A decoded function.
struct Code {
  const Function *function = nullptr;
  std::vector<Inst> insts;
  uint32_t registerBytes = 0;
  std::vector<unsigned char> constants;
  /// Vectors of slots, for instructions with many operands.
  std::vector<std::vector<uint32_t>> lists;
  std::vector<Call> calls;
  std::vector<Preset> presets;
  /// On a thread's stack: of this function, and with what it calls.
  uint32_t stackBytes = 0, totalStackBytes = 0;
  /// On the stack, in the order of the function.
  std::vector<uint32_t> paramOffsets, resultOffsets;
};

/// What all blocks of a launch share.
struct Launch {
  const Code *entry = nullptr;
  Dim grid, block;
  const char *params = nullptr;
  uint32_t paramBytes = 0;
  uint32_t sharedBytes = 0, dynamicSharedBytes = 0;
  int device = 0;
  /// What was accessed, and the allocations of the last accesses.
  Shadow globals{Shadow::Global};
  std::array<Window, 4> windows;
  unsigned nextWindow = 0;
  /// Backward branches so far: a loop that does not end is found by them.
  uint64_t loops = 0;
};

/// The block that is being executed; one after the other is.
struct Block {
  explicit Block(Launch &launch);

  Launch &launch;
  uint32_t index = 0;
  Dim id;
  uint32_t threads = 0;
  std::vector<unsigned char> shared;
  Shadow sharedShadow{Shadow::Shared};
  /// Counts the barriers of the block.
  uint32_t epoch = 0;
  std::vector<Warp> warps;
  /// Threads that passed `bar.arrive`, by barrier.
  std::array<uint32_t, 16> arrivals{};

  /// Runs all threads; throws Fault.
  void run(uint32_t blockIndex);

private:
  bool releaseBarriers();
  bool release(uint32_t barrier);
  [[noreturn]] void failStuck() const;
};

struct Warp {
  enum Status : uint8_t { Running, Waiting, Done };
  struct Side {
    uint32_t pc, reconverge;
    Mask mask;
  };
  struct Frame {
    const Code *code;
    std::vector<unsigned char> registers;
    std::vector<Side> sides; // beneath the current one
    uint32_t stackBase;
    // The caller's state, and the call.
    uint32_t pc, reconverge;
    Mask active;
    const Call *call;
    Mask callers;
  };

  unsigned char *banks[2] = {nullptr, nullptr};
  Block *block = nullptr;
  const Code *code = nullptr;
  /// The current side.
  uint32_t pc = 0, reconverge = kNone;
  Mask active = 0;
  /// Lanes with a thread that has not ended.
  Mask alive = 0;
  /// Lanes whose last add.cc or the like carried.
  Mask carry = 0;
  Status status = Running;
  uint32_t index = 0;
  /// Counts the warp's own barriers.
  uint32_t epoch = 0;
  std::vector<Frame> frames;
  /// Local memory, lane by lane.
  std::vector<unsigned char> stack;
  uint32_t stackStride = 0;
  /// The barrier it waits at: number, threads (0: all), and what to write.
  uint32_t barrier = 0, barrierThreads = 0;
  const Inst *barrierInst = nullptr;

  template <typename T>
  T *lanes(uint32_t slot) {
    return reinterpret_cast<T *>(banks[slot & 1] + (slot & ~1u));
  }
  Mask &predicate(uint32_t slot) { return *lanes<Mask>(slot); }
  uint32_t thread(unsigned lane) const { return index * kLanes + lane; }

  void start(Block &owner, uint32_t warpIndex);
  /// Runs until all lanes have ended or it waits.
  void run();
  void diverge(uint32_t target, Mask taken, uint32_t meet);
  /// Makes the side that waits on top the current one, and that wait.
  void swapSides();
  void enter(const Call &call, Mask mask);
  /// Lanes leave the frame (`ret`) or the kernel (`exit`).
  void leave(Mask mask, bool isExit);
  unsigned char *stackOf(unsigned lane) {
    return stack.data() + size_t(lane) * stackStride;
  }

private:
  void popSides();
  void beginFrame(const Code &callee, uint32_t stackBase);
  void fillPresets(bool varyingOnly);
  void popFrame();
};

/// "(1,0,0)", for messages.
std::string describe(Dim dim);
/// "thread (3,0,0) of block (0,0,0)".
std::string describeThread(const Block &block, uint32_t thread);

} // namespace fake_cuda::ptx

#endif // ZERO_TEST_FAKECUDA_PTXMACHINE_H
