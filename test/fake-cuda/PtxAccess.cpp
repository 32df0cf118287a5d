//===- PtxAccess.cpp - Loads and stores of a warp -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxAccess.h"

#include <cinttypes>
#include <cstdio>

using namespace fake_cuda;
using namespace fake_cuda::ptx;

namespace {
/// One access of several lanes of a warp.
struct Request {
  Warp &warp;
  const Inst &inst;
  uint32_t bytes;

  bool writes() const { return inst.flags & kWrites; }
  const char *verb() const { return writes() ? "writes" : "reads"; }
  Accessor accessor(unsigned lane) const {
    const Block &block = *warp.block;
    return {block.index, warp.thread(lane), block.epoch,
            warp.epoch,  writes(),          (inst.flags & kAtomic) != 0};
  }
  std::string describe(unsigned lane, uint64_t address,
                       const char *space) const {
    char where[64];
    std::snprintf(where, sizeof where, " %s %u bytes at 0x%" PRIx64 " of ",
                  verb(), bytes, address);
    return describeThread(*warp.block, warp.thread(lane)) + where + space +
           " memory";
  }
};
} // namespace

[[noreturn]] static void failRace(const Request &request, unsigned lane,
                                  uint64_t address, const char *space,
                                  const Shadow::Conflict &conflict) {
  const Block &block = *request.warp.block;
  std::string what = request.describe(lane, address, space);
  if (conflict.what == Shadow::Conflict::NeverWritten)
    throw Fault(what + ", which no thread of the block has written");
  std::string other = "other threads";
  if (conflict.otherIsKnown) {
    Dim grid = block.launch.grid, extent = block.launch.block;
    uint32_t b = conflict.block, t = conflict.thread;
    other = "thread " +
            describe({t % extent.x, t / extent.x % extent.y,
                      t / extent.x / extent.y}) +
            " of block " +
            describe({b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y});
  }
  throw Fault("data race: " + what + ", which " + other +
              (conflict.otherWrote ? " wrote" : " read") +
              ", and no barrier is between the two");
}

/// `count` lanes from `lane` on, one behind the other in memory.
static void checkRace(const Request &request, Shadow &shadow, unsigned lane,
                      uint64_t address, unsigned count, const char *space) {
  Shadow::Conflict conflict =
      shadow.access(request.accessor(lane), address, request.bytes, count);
  if (conflict.what != Shadow::Conflict::None)
    failRace(request, lane + (conflict.address - address) / request.bytes,
             conflict.address / request.bytes * request.bytes, space, conflict);
}

/// Where the process finds device memory; of the allocations used last it is
/// known.
static char *findGlobal(Launch &launch, uint64_t address, uint64_t bytes,
                        std::string &error) {
  for (const Window &window : launch.windows) {
    uint64_t offset = address - window.begin;
    if (offset < window.bytes && bytes <= window.bytes - offset)
      return window.data + offset;
  }
  Window &window = launch.windows[launch.nextWindow++ % launch.windows.size()];
  if (!find(launch.device, address, bytes, window, error)) {
    window = Window();
    return nullptr;
  }
  return window.data + (address - window.begin);
}

static char *locateGlobal(const Request &request, unsigned lane,
                          uint64_t address, unsigned count) {
  Launch &launch = request.warp.block->launch;
  std::string error;
  if (address % request.bytes)
    throw Fault(request.describe(lane, address, "global") +
                ": the address is no multiple of the size");
  char *found =
      findGlobal(launch, address, uint64_t(request.bytes) * count, error);
  // Of a warp's access as a whole the first lane out of bounds is named.
  for (unsigned i = 0; !found && i < count; ++i, address += request.bytes)
    if (!findGlobal(launch, address, request.bytes, error))
      throw Fault(request.describe(lane + i, address, "global") + ": " + error);
  checkRace(request, launch.globals, lane, address, count, "global");
  return found;
}

static char *locateShared(const Request &request, unsigned lane,
                          uint64_t address, unsigned count) {
  Block &block = *request.warp.block;
  uint64_t bytes = uint64_t(request.bytes) * count;
  if (address > block.shared.size() || bytes > block.shared.size() - address)
    throw Fault(request.describe(lane, address, "shared") + ": it has " +
                std::to_string(block.shared.size()) + " bytes");
  if (address % request.bytes)
    throw Fault(request.describe(lane, address, "shared") +
                ": the address is no multiple of the size");
  checkRace(request, block.sharedShadow, lane, address, count, "shared");
  return reinterpret_cast<char *>(block.shared.data()) + address;
}

/// Memory with no other threads in it: `begin` of `size` bytes.
static char *locatePrivate(const Request &request, unsigned lane,
                           uint64_t address, const char *space,
                           const void *begin, uint64_t size) {
  if (address > size || request.bytes > size - address)
    throw Fault(request.describe(lane, address, space) + ": it has " +
                std::to_string(size) + " bytes");
  if (address % request.bytes)
    throw Fault(request.describe(lane, address, space) +
                ": the address is no multiple of the size");
  return static_cast<char *>(const_cast<void *>(begin)) + address;
}

static char *locateLane(const Request &request, unsigned lane,
                        uint64_t address) {
  const Launch &launch = request.warp.block->launch;
  Space space = request.inst.space;
  if (space == Space::Generic) {
    uint64_t window = address & ~(kWindowBytes - 1);
    space = window == kSharedWindow  ? Space::Shared
            : window == kLocalWindow ? Space::Local
            : window == kParamWindow ? Space::Param
                                     : Space::Global;
    if (space != Space::Global)
      address -= window;
  }
  switch (space) {
  case Space::Shared:
    return locateShared(request, lane, address, 1);
  case Space::Local:
    return locatePrivate(request, lane, address, "local",
                         request.warp.stackOf(lane), request.warp.stackStride);
  case Space::Param:
    return locatePrivate(request, lane, address, "param", launch.params,
                         launch.paramBytes);
  default:
    return locateGlobal(request, lane, address, 1);
  }
}

/// The same address in all lanes: two of them stand for all.
static void locateUniform(const Request &request, Mask mask, uint64_t address,
                          char *pointers[kLanes]) {
  unsigned first = __builtin_ctz(mask);
  unsigned last = kLanes - 1 - __builtin_clz(mask);
  char *found = locateLane(request, first, address);
  if (last != first && request.inst.space != Space::Local)
    found = locateLane(request, last, address);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    pointers[lane] = request.inst.space == Space::Local
                         ? found + (ptrdiff_t(lane) - first) *
                                       ptrdiff_t(request.warp.stackStride)
                         : found;
}

bool fake_cuda::ptx::locateLanes(Warp &warp, const Inst &inst, Mask mask,
                                 uint32_t bytes, char *pointers[kLanes]) {
  Request request{warp, inst, bytes};
  unsigned first = __builtin_ctz(mask);
  if ((mask & (mask - 1)) == 0) {
    uint64_t address =
        inst.flags & kNarrowBase
            ? uint32_t(warp.lanes<uint32_t>(inst.a)[first] + inst.imm)
            : warp.lanes<uint64_t>(inst.a)[first] + inst.imm;
    pointers[first] = locateLane(request, first, address);
    return false;
  }
  uint64_t addresses[kLanes];
  if (inst.flags & kNarrowBase) {
    const uint32_t *base = warp.lanes<uint32_t>(inst.a);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      addresses[lane] = uint32_t(base[lane] + inst.imm);
  } else {
    const uint64_t *base = warp.lanes<uint64_t>(inst.a);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      addresses[lane] = base[lane] + inst.imm;
  }
  uint64_t begin = addresses[first];
  uint64_t notDense = mask ^ kAllLanes, notUniform = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    notDense |= addresses[lane] ^ (begin + uint64_t(lane) * bytes);
  bool isDense = notDense == 0;
  bool isGlobal = inst.space == Space::Global ||
                  (inst.space == Space::Generic && begin >> 56 == 0);
  if (isDense && (isGlobal || inst.space == Space::Shared)) {
    char *found = isGlobal ? locateGlobal(request, 0, begin, kLanes)
                           : locateShared(request, 0, begin, kLanes);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      pointers[lane] = found + size_t(lane) * bytes;
    return true;
  }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    notUniform |= mask >> lane & 1 ? addresses[lane] ^ begin : 0;
  // Of a generic address only the lane itself knows what it means.
  if (notUniform == 0 && (inst.space != Space::Generic || isGlobal)) {
    locateUniform(request, mask, begin, pointers);
    return false;
  }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (mask >> lane & 1)
      pointers[lane] = locateLane(request, lane, addresses[lane]);
  return false;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

static Space takeSpace(Decoder &decoder) {
  if (!decoder.takeOne({"global"}).empty())
    return Space::Global;
  if (!decoder.takeOne({"shared", "shared::cta"}).empty())
    return Space::Shared;
  if (decoder.take("local"))
    return Space::Local;
  if (decoder.take("const"))
    return Space::Const;
  if (!decoder.takeOne({"param", "param::entry", "param::func"}).empty())
    return Space::Param;
  return Space::Generic;
}

void fake_cuda::ptx::decodeAddress(Decoder &decoder, Inst &inst,
                                   const Operand &memory) {
  inst.space = takeSpace(decoder);
  // Constants lie in global memory.
  if (inst.space == Space::Const)
    inst.space = Space::Global;
  unsigned bytes = 0;
  inst.a = decoder.base(memory, bytes, inst.imm);
  if (bytes == 4)
    inst.flags |= kNarrowBase;
  const Variable *variable = memory.parts[0].variable;
  if (variable && decoder.isOnStack(variable))
    inst.space = Space::Local;
  else if (variable && inst.space == Space::Generic)
    inst.space =
        variable->space == Space::Const ? Space::Global : variable->space;
}

void fake_cuda::ptx::takeOrdering(Decoder &decoder, Inst &inst) {
  if (!decoder.takeOne({"volatile", "relaxed", "acquire", "release", "acq_rel"})
           .empty())
    inst.flags |= kAtomic;
  decoder.ignore({"weak", "cta", "cluster", "gpu", "sys", "ca", "cg", "cs",
                  "lu", "cv", "wb", "wt", "unified"});
  decoder.ignorePrefix("L1::");
  decoder.ignorePrefix("L2::");
}
