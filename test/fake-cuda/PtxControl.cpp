//===- PtxControl.cpp - Branches, calls, barriers -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxLanes.h"

using namespace fake_cuda::ptx;

// Backward branches of all warps of a launch; some seconds of execution.
static constexpr uint64_t kMostLoops = uint64_t(1) << 28;

static void countLoop(Warp &warp, uint32_t target) {
  if (target <= warp.pc && ++warp.block->launch.loops > kMostLoops)
    throw Fault("the launch does not end: it has branched back " +
                std::to_string(kMostLoops) + " times");
}

//===----------------------------------------------------------------------===//
// Branches: the target is in imm, where the sides meet in d.
//===----------------------------------------------------------------------===//

static void branch(Warp &warp, const Inst &inst, Mask mask) {
  uint32_t target = inst.imm;
  countLoop(warp, target);
  if (mask == warp.active) {
    warp.pc = target;
    return;
  }
  if (inst.flags)
    throw Fault("threads of a warp differ, but the branch is said to be "
                "uniform");
  warp.diverge(target, mask, inst.d);
}

static void decodeBra(Decoder &decoder, Inst &inst) {
  inst.flags = decoder.take("uni");
  decoder.expectOperands(1);
  uint32_t target = decoder.labelOf(decoder.operand(0).name);
  inst.imm = target;
  decoder.flow() = {{target}, decoder.isGuarded()};
  inst.run = branch;
}

/// Several sides, one for each target that some lane takes.
static void branchByTable(Warp &warp, const Inst &inst, Mask mask) {
  const auto &targets = warp.code->lists[inst.imm];
  const uint32_t *index = warp.lanes<uint32_t>(inst.a);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if ((mask >> lane & 1) && index[lane] >= targets.size())
      throw Fault(describeThread(*warp.block, warp.thread(lane)) +
                  " takes branch " + std::to_string(index[lane]) + " of " +
                  std::to_string(targets.size()));
  Mask rest = mask;
  while (rest) {
    uint32_t choice = index[__builtin_ctz(rest)];
    Mask taken =
        rest & testLanes([&](unsigned i) { return index[i] == choice; });
    countLoop(warp, targets[choice]);
    rest &= ~taken;
    if (taken == warp.active) {
      warp.pc = targets[choice];
      return;
    }
    // The others wait as the other side; they then are the current one again.
    warp.diverge(targets[choice], taken, inst.d);
    if (rest)
      warp.swapSides();
  }
}

static void decodeBrx(Decoder &decoder, Inst &inst) {
  if (!decoder.take("idx"))
    decoder.fail("modifier '.idx' is missing");
  decoder.take("uni");
  decoder.expectOperands(2);
  inst.a = decoder.value(0, Type::U32);
  const auto *names = decoder.targetsOf(decoder.operand(1).name);
  if (!names)
    decoder.fail("there is no table '" + decoder.operand(1).name + "'");
  std::vector<uint32_t> targets;
  for (const std::string &name : *names)
    targets.push_back(decoder.labelOf(name));
  decoder.flow() = {targets, decoder.isGuarded()};
  inst.imm = decoder.list(std::move(targets));
  inst.run = branchByTable;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static void call(Warp &warp, const Inst &inst, Mask mask) {
  warp.enter(warp.code->calls[inst.imm], mask);
}

static std::vector<Call::Copy>
matchParameters(Decoder &decoder, const std::vector<Operand> &operands,
                const std::vector<std::unique_ptr<Variable>> &params,
                const std::vector<uint32_t> &offsets) {
  if (operands.size() != params.size())
    decoder.fail("the function has " + std::to_string(params.size()) +
                 " of these parameters");
  std::vector<Call::Copy> copies;
  for (size_t i = 0; i < params.size(); ++i) {
    const Variable *variable = operands[i].variable;
    if (!variable || !decoder.isOnStack(variable))
      decoder.fail("parameters are supported as .param variables only");
    if (variable->bytes != params[i]->bytes)
      decoder.fail("parameter '" + params[i]->name + "' has " +
                   std::to_string(params[i]->bytes) + " bytes");
    copies.push_back({decoder.stackOffset(variable), offsets[i],
                      static_cast<uint32_t>(variable->bytes)});
  }
  return copies;
}

static void decodeCall(Decoder &decoder, Inst &inst) {
  decoder.take("uni");
  size_t at = 0;
  std::vector<Operand> results, arguments;
  if (decoder.operand(0).kind == Operand::List)
    results = decoder.operand(at++).parts;
  const Function &callee = decoder.functionOf(decoder.operand(at++));
  if (at < decoder.operandCount() && decoder.operand(at).kind == Operand::List)
    arguments = decoder.operand(at++).parts;
  if (at != decoder.operandCount())
    decoder.fail("calls through a pointer are not supported");
  const Code &code = decoder.codeOf(callee);
  Call made;
  made.callee = &code;
  made.arguments =
      matchParameters(decoder, arguments, callee.params, code.paramOffsets);
  made.results =
      matchParameters(decoder, results, callee.results, code.resultOffsets);
  inst.imm = decoder.addCall(std::move(made));
  inst.run = call;
}

static void leave(Warp &warp, const Inst &inst, Mask mask) {
  warp.leave(mask, inst.flags);
}

static void decodeLeave(Decoder &decoder, Inst &inst) {
  decoder.take("uni");
  decoder.expectOperands(0);
  inst.flags = decoder.opcode() == "exit";
  decoder.flow().fallsThrough = decoder.isGuarded();
  inst.run = leave;
}

static void trap(Warp &warp, const Inst &, Mask mask) {
  throw Fault(describeThread(*warp.block, warp.thread(__builtin_ctz(mask))) +
              " traps");
}

static void decodeTrap(Decoder &decoder, Inst &inst) {
  decoder.expectOperands(0);
  decoder.flow().fallsThrough = decoder.isGuarded();
  inst.run = trap;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

static void barrier(Warp &warp, const Inst &inst, Mask mask) {
  if (mask != warp.alive)
    throw Fault("lane " + std::to_string(__builtin_ctz(warp.alive & ~mask)) +
                " of warp " + std::to_string(warp.index) + " in block " +
                describe(warp.block->id) +
                " is not at the barrier that others of its warp are at");
  unsigned first = __builtin_ctz(mask);
  uint32_t number = warp.lanes<uint32_t>(inst.a)[first];
  uint32_t threads = inst.b == kNone ? 0 : warp.lanes<uint32_t>(inst.b)[first];
  if (number >= warp.block->arrivals.size() || threads % kLanes != 0)
    throw Fault("barrier " + std::to_string(number) + " of " +
                std::to_string(threads) +
                " threads: a block has 16 barriers of whole warps");
  if (inst.count == 2) { // bar.arrive
    warp.block->arrivals[number] += kLanes;
    return;
  }
  warp.barrier = number;
  warp.barrierThreads = threads;
  warp.barrierInst = &inst;
  warp.status = Warp::Waiting;
}

static void decodeReduction(Decoder &decoder, Inst &inst) {
  std::string_view kind = decoder.takeOne({"popc", "and", "or"});
  if (kind.empty())
    decoder.fail("it needs .popc, .and or .or");
  Type type = decoder.takeType();
  if (type != (kind == "popc" ? Type::U32 : Type::Pred))
    decoder.fail(".popc is of type u32, the others of type pred");
  decoder.expectOperands(3, 4);
  size_t last = decoder.operandCount() - 1;
  inst.flags = kind == "popc" ? 0 : kind == "or" ? 1 : 2;
  if (decoder.operand(last).negated)
    inst.flags |= 4;
  inst.dst = decoder.result(0, type);
  inst.a = decoder.value(1, Type::U32);
  if (last == 3)
    inst.b = decoder.value(2, Type::U32);
  inst.c = decoder.value(last, Type::Pred);
}

static void decodeBarrier(Decoder &decoder, Inst &inst) {
  decoder.ignore({"cta", "aligned"});
  inst.run = barrier;
  bool isWarp = decoder.take("warp");
  std::string_view kind = decoder.takeOne({"sync", "arrive", "red"});
  if (isWarp && kind == "sync")
    return decodeWarpBarrier(decoder, inst);
  if (isWarp || kind.empty())
    decoder.fail("it needs .sync, .arrive or .red");
  if (kind == "red")
    return decodeReduction(decoder, inst);
  decoder.expectOperands(kind == "arrive" ? 2 : 1, 2);
  inst.count = kind == "arrive" ? 2 : 1;
  inst.a = decoder.value(0, Type::U32);
  if (decoder.operandCount() == 2)
    inst.b = decoder.value(1, Type::U32);
}

/// Blocks that hand on data by a fence and an atomic are not told apart from
/// those that race: there, races between blocks are not looked for.
static void fence(Warp &warp, const Inst &inst, Mask) {
  if (inst.flags)
    warp.block->launch.globals.ignoreBlocks();
}

static void decodeFence(Decoder &decoder, Inst &inst) {
  decoder.ignore({"sc", "acq_rel", "acquire", "release", "proxy", "alias",
                  "async", "global", "shared::cta"});
  std::string_view scope =
      decoder.takeOne({"gl", "sys", "gpu", "cluster", "cta"});
  inst.flags = scope != "cta";
  decoder.expectOperands(0);
  inst.run = fence;
}

static void doNothing(Warp &, const Inst &, Mask) {}

static void decodeNothing(Decoder &decoder, Inst &inst) {
  decoder.ignorePrefix("");
  inst.run = doNothing;
}

void fake_cuda::ptx::addControlInstructions(DecodeTable &table) {
  table["bra"] = decodeBra;
  table["brx"] = decodeBrx;
  table["call"] = decodeCall;
  table["ret"] = decodeLeave;
  table["exit"] = decodeLeave;
  table["trap"] = decodeTrap;
  table["brkpt"] = decodeTrap;
  table["bar"] = decodeBarrier;
  table["barrier"] = decodeBarrier;
  table["membar"] = decodeFence;
  table["fence"] = decodeFence;
  table["nanosleep"] = decodeNothing;
  table["pmevent"] = decodeNothing;
}
