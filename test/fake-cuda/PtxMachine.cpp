//===- PtxMachine.cpp - Warps that execute decoded PTX --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxMachine.h"

#include <algorithm>

using namespace fake_cuda;
using namespace fake_cuda::ptx;

// What shared memory holds that no thread has written: as f32 and bf16 a NaN.
static constexpr unsigned char kUndefined = 0xFF;

std::string fake_cuda::ptx::describe(Dim dim) {
  return "(" + std::to_string(dim.x) + "," + std::to_string(dim.y) + "," +
         std::to_string(dim.z) + ")";
}

static Dim position(Dim extent, uint32_t index) {
  return {index % extent.x, index / extent.x % extent.y,
          index / extent.x / extent.y};
}

std::string fake_cuda::ptx::describeThread(const Block &block,
                                           uint32_t thread) {
  return "thread " + describe(position(block.launch.block, thread)) +
         " of block " + describe(block.id);
}

//===----------------------------------------------------------------------===//
// Special registers
//===----------------------------------------------------------------------===//

static const Launch &launchOf(const Warp &warp) { return warp.block->launch; }

static Dim threadOf(const Warp &warp, unsigned lane) {
  return position(warp.block->launch.block, warp.thread(lane));
}

const Special *fake_cuda::ptx::findSpecial(std::string_view name) {
  using W = const Warp &;
  using V = uint64_t;
  static const std::map<std::string_view, Special> specials = {
      {"%tid.x",
       {[](W w, unsigned l) -> V { return threadOf(w, l).x; }, false}},
      {"%tid.y",
       {[](W w, unsigned l) -> V { return threadOf(w, l).y; }, false}},
      {"%tid.z",
       {[](W w, unsigned l) -> V { return threadOf(w, l).z; }, false}},
      {"%ntid.x",
       {[](W w, unsigned) -> V { return launchOf(w).block.x; }, false}},
      {"%ntid.y",
       {[](W w, unsigned) -> V { return launchOf(w).block.y; }, false}},
      {"%ntid.z",
       {[](W w, unsigned) -> V { return launchOf(w).block.z; }, false}},
      {"%ctaid.x", {[](W w, unsigned) -> V { return w.block->id.x; }, true}},
      {"%ctaid.y", {[](W w, unsigned) -> V { return w.block->id.y; }, true}},
      {"%ctaid.z", {[](W w, unsigned) -> V { return w.block->id.z; }, true}},
      {"%nctaid.x",
       {[](W w, unsigned) -> V { return launchOf(w).grid.x; }, false}},
      {"%nctaid.y",
       {[](W w, unsigned) -> V { return launchOf(w).grid.y; }, false}},
      {"%nctaid.z",
       {[](W w, unsigned) -> V { return launchOf(w).grid.z; }, false}},
      {"%laneid", {[](W, unsigned l) -> V { return l; }, false}},
      {"%warpid", {[](W w, unsigned) -> V { return w.index; }, false}},
      {"%nwarpid",
       {[](W w, unsigned) -> V { return w.block->warps.size(); }, false}},
      {"%lanemask_eq", {[](W, unsigned l) -> V { return 1u << l; }, false}},
      {"%lanemask_lt",
       {[](W, unsigned l) -> V { return (1u << l) - 1; }, false}},
      {"%lanemask_le",
       {[](W, unsigned l) -> V { return (2u << l) - 1; }, false}},
      {"%lanemask_gt",
       {[](W, unsigned l) -> V { return ~((2u << l) - 1); }, false}},
      {"%lanemask_ge",
       {[](W, unsigned l) -> V { return ~((1u << l) - 1); }, false}},
      {"%dynamic_smem_size",
       {[](W w, unsigned) -> V { return launchOf(w).dynamicSharedBytes; },
        false}},
      {"%total_smem_size",
       {[](W w, unsigned) -> V { return launchOf(w).sharedBytes; }, false}},
  };
  auto found = specials.find(name);
  return found == specials.end() ? nullptr : &found->second;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

void Warp::start(Block &owner, uint32_t warpIndex) {
  block = &owner;
  index = warpIndex;
  uint32_t threads = std::min(owner.threads - index * kLanes, kLanes);
  alive = threads == kLanes ? kAllLanes : (1u << threads) - 1;
  status = Running;
  epoch = 0;
  const Code &entry = *owner.launch.entry;
  if (stack.empty()) {
    stackStride = entry.totalStackBytes;
    stack.resize(size_t(stackStride) * kLanes);
  }
  std::fill(stack.begin(), stack.end(), kUndefined);
  // After another block, the registers of the entry are there.
  if (!frames.empty()) {
    frames.resize(1);
    frames[0].sides.clear();
    code = &entry;
    banks[0] = frames[0].registers.data();
    banks[1] = const_cast<unsigned char *>(entry.constants.data());
    pc = 0;
    reconverge = kNone;
    fillPresets(true);
  } else {
    frames.push_back({&entry, {}, {}, 0, 0, kNone, 0, nullptr, 0});
    beginFrame(entry, 0);
  }
  active = alive;
}

/// Begins the frame that has been put on top.
void Warp::beginFrame(const Code &callee, uint32_t stackBase) {
  Frame &frame = frames.back();
  frame.stackBase = stackBase;
  frame.registers.resize(callee.registerBytes);
  code = &callee;
  banks[0] = frame.registers.data();
  banks[1] = const_cast<unsigned char *>(callee.constants.data());
  pc = 0;
  reconverge = kNone;
  fillPresets(false);
}

void Warp::fillPresets(bool varyingOnly) {
  for (const Preset &preset : code->presets) {
    if (varyingOnly && !(preset.special && preset.special->variesByBlock))
      continue;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      uint64_t value = preset.special ? preset.special->value(*this, lane)
                                      : frames.back().stackBase + preset.addend;
      std::memcpy(banks[0] + preset.slot + lane * preset.bytes, &value,
                  preset.bytes);
    }
  }
}

void Warp::enter(const Call &call, Mask mask) {
  uint32_t callerBase = frames.back().stackBase;
  uint32_t base = callerBase + code->stackBytes;
  for (const Call::Copy &copy : call.arguments)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(stackOf(lane) + base + copy.callee,
                  stackOf(lane) + callerBase + copy.caller, copy.bytes);
  frames.push_back(
      {call.callee, {}, {}, base, pc, reconverge, active, &call, mask});
  beginFrame(*call.callee, base);
  active = mask;
}

/// Back to the caller, with the results.
void Warp::popFrame() {
  Frame callee = std::move(frames.back());
  frames.pop_back();
  pc = callee.pc;
  reconverge = callee.reconverge;
  active = callee.active;
  Frame &caller = frames.back();
  code = caller.code;
  banks[0] = caller.registers.data();
  banks[1] = const_cast<unsigned char *>(code->constants.data());
  for (const Call::Copy &copy : callee.call->results)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (callee.callers >> lane & 1)
        std::memcpy(stackOf(lane) + caller.stackBase + copy.caller,
                    stackOf(lane) + callee.stackBase + copy.callee, copy.bytes);
}

void Warp::diverge(uint32_t target, Mask taken, uint32_t meet) {
  auto &sides = frames.back().sides;
  Mask rest = active & ~taken;
  // Otherwise what lies beneath continues there with all of them.
  if (meet != reconverge)
    sides.push_back({meet, reconverge, active});
  sides.push_back({pc, meet, rest});
  pc = target;
  reconverge = meet;
  active = taken;
}

void Warp::swapSides() {
  Side &other = frames.back().sides.back();
  Side current = {pc, reconverge, active};
  pc = other.pc;
  reconverge = other.reconverge;
  active = other.mask;
  other = current;
}

void Warp::popSides() {
  auto &sides = frames.back().sides;
  while ((active == 0 || pc == reconverge) && !sides.empty()) {
    pc = sides.back().pc;
    reconverge = sides.back().reconverge;
    active = sides.back().mask;
    sides.pop_back();
  }
}

void Warp::leave(Mask mask, bool isExit) {
  active &= ~mask;
  for (Side &side : frames.back().sides)
    side.mask &= ~mask;
  if (isExit || frames.size() == 1)
    alive &= ~mask;
  if (isExit) {
    for (Frame &frame : frames) {
      frame.active &= ~mask;
      for (Side &side : frame.sides)
        side.mask &= ~mask;
    }
  }
  while (active == 0) {
    popSides();
    if (active != 0)
      return;
    if (frames.size() == 1) {
      status = Done;
      return;
    }
    popFrame();
  }
}

void Warp::run() {
  const Inst *inst = nullptr;
  try {
    while (status == Running) {
      if (pc == reconverge)
        popSides();
      inst = &code->insts[pc++];
      Mask mask = active;
      if (inst->guard != kNone) {
        Mask guard = predicate(inst->guard);
        mask &= inst->guardNegated ? ~guard : guard;
        if (mask == 0)
          continue;
      }
      inst->run(*this, *inst, mask);
    }
  } catch (const Fault &fault) {
    const Instruction &source = *inst->source;
    throw Fault("PTX line " + std::to_string(source.line) + " '" +
                std::string(source.text) + "': " + fault.what());
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Block::Block(Launch &launch)
    : launch(launch), threads(launch.block.x * launch.block.y * launch.block.z),
      shared(launch.sharedBytes), warps((threads + kLanes - 1) / kLanes) {}

void Block::run(uint32_t blockIndex) {
  index = blockIndex;
  id = position(launch.grid, index);
  epoch = 0;
  arrivals.fill(0);
  std::fill(shared.begin(), shared.end(), kUndefined);
  for (size_t i = 0; i < warps.size(); ++i)
    warps[i].start(*this, i);
  do {
    for (Warp &warp : warps)
      if (warp.status == Warp::Running)
        warp.run();
  } while (releaseBarriers());
}

/// False once all threads have ended.
bool Block::releaseBarriers() {
  bool anyWaits = false, released = false;
  for (uint32_t barrier = 0; barrier < arrivals.size(); ++barrier)
    released |= release(barrier);
  for (const Warp &warp : warps)
    anyWaits |= warp.status == Warp::Waiting;
  if (anyWaits && !released)
    failStuck();
  return released;
}

/// Releases the warps that wait at a barrier, if it is complete.
bool Block::release(uint32_t barrier) {
  uint32_t living = 0, arrived = arrivals[barrier], wanted = 0, votes = 0;
  bool anyWaits = false;
  for (Warp &warp : warps) {
    living += __builtin_popcount(warp.alive);
    if (warp.status != Warp::Waiting || warp.barrier != barrier)
      continue;
    anyWaits = true;
    arrived += __builtin_popcount(warp.alive);
    wanted = std::max(wanted, warp.barrierThreads);
    if (warp.barrierInst->c != kNone)
      votes += __builtin_popcount(
          warp.alive & (warp.predicate(warp.barrierInst->c) ^
                        (warp.barrierInst->flags & 4 ? kAllLanes : 0)));
  }
  if (!anyWaits || arrived < (wanted ? wanted : living))
    return false;
  for (Warp &warp : warps) {
    if (warp.status != Warp::Waiting || warp.barrier != barrier)
      continue;
    warp.status = Warp::Running;
    const Inst &inst = *warp.barrierInst;
    // A reduction: 0 counts, 1: any, 2: all.
    if (inst.dst != kNone && (inst.flags & 3) == 0)
      for (unsigned lane = 0; lane < kLanes; ++lane)
        warp.lanes<uint32_t>(inst.dst)[lane] = votes;
    else if (inst.dst != kNone)
      warp.predicate(inst.dst) =
          ((inst.flags & 3) == 1 ? votes > 0 : votes >= arrived) ? kAllLanes
                                                                 : 0;
  }
  arrivals[barrier] = 0;
  ++epoch;
  return true;
}

void Block::failStuck() const {
  std::string states;
  for (const Warp &warp : warps)
    states += (states.empty() ? "warp " : ", warp ") +
              std::to_string(warp.index) +
              (warp.status == Warp::Waiting
                   ? " waits at barrier " + std::to_string(warp.barrier) +
                         " (PTX line " +
                         std::to_string(warp.barrierInst->source->line) + ")"
                   : " has ended");
  throw Fault("block " + describe(id) +
              ": threads wait at a barrier that others never reach: " + states);
}
