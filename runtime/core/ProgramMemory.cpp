//===- ProgramMemory.cpp - Memory of a program over its commands ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ProgramMemory.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/ProgramMemory.h"

#include <algorithm>

using namespace zrt;

namespace {
/// Commands at which a buffer is alive; none if first > last.
struct Lifetime {
  size_t first = SIZE_MAX, last = 0;

  void include(size_t from, size_t to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
};

/// The address space of an arena, cut where any buffer begins or ends: bytes of
/// a piece count once, for the first kind that has a buffer there.
class Storage {
public:
  void add(uint64_t begin, uint64_t end) {
    cuts.push_back(begin);
    cuts.push_back(end);
  }
  void finish() {
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    buffers.resize(cuts.size());
  }
  /// A buffer of a kind begins (+1) or ends (-1) to live.
  void change(uint64_t begin, uint64_t end, fb::Kind kind, int by,
              KindBytes &bytes) {
    size_t piece =
        std::lower_bound(cuts.begin(), cuts.end(), begin) - cuts.begin();
    for (; cuts[piece] < end; ++piece) {
      uint64_t size = cuts[piece + 1] - cuts[piece];
      count(buffers[piece], -size, bytes);
      buffers[piece][kind] += by;
      count(buffers[piece], size, bytes);
    }
  }

private:
  using Counts = std::array<int32_t, fb::Kind_MAX + 1>;
  static void count(const Counts &alive, uint64_t size, KindBytes &bytes) {
    for (size_t kind = 0; kind < alive.size(); ++kind)
      if (alive[kind]) {
        bytes[kind] += size;
        return;
      }
  }
  std::vector<uint64_t> cuts;
  std::vector<Counts> buffers; // by piece
};
} // namespace

/// By command: the last one at which what it uses is still held.
static std::vector<size_t> holdEnds(const Program &program) {
  size_t count = program.commands.size();
  std::vector<size_t> waiter(program.numEvents, SIZE_MAX), ends(count);
  for (size_t index = count; index-- > 0;)
    for (uint32_t event : program.commands[index].wait)
      waiter[event] = index;
  for (size_t index = count; index-- > 0;) {
    const Command &command = program.commands[index];
    ends[index] = index;
    if (command.stream == 0)
      continue;
    size_t by = command.signal < 0 ? SIZE_MAX : waiter[command.signal];
    if (by == SIZE_MAX) // the end of the step or micro-batch waits for it
      ends[index] =
          (index < program.microCommands ? program.microCommands : count) - 1;
    else // another stream's waiter is itself held
      ends[index] = program.commands[by].stream == 0 ? std::max(index, by - 1)
                                                     : std::max(by, ends[by]);
  }
  return ends;
}

static std::vector<Lifetime> lifetimes(const Program &program) {
  std::vector<Lifetime> result(program.buffers.size());
  std::vector<size_t> ends = holdEnds(program);
  for (size_t index = 0; index < program.commands.size(); ++index) {
    const Command &command = program.commands[index];
    for (const Operand &operand : command.operands)
      result[operand.buffer].include(index, ends[index]);
    for (const Piece &piece : command.pieces) {
      result[piece.source].include(index, ends[index]);
      result[piece.target].include(index, ends[index]);
    }
  }
  auto resident = [&](uint32_t buffer) { result[buffer].include(0, SIZE_MAX); };
  for (const Parameter &parameter : program.parameters)
    resident(parameter.buffer);
  for (const Input &input : program.inputs)
    resident(input.buffer);
  for (const Constant &constant : program.constants)
    resident(constant.buffer);
  for (const Output &output : program.outputs)
    result[output.buffer].last = SIZE_MAX;
  return result;
}

std::vector<KindBytes> zrt::memoryByCommand(const Program &program,
                                            fb::Space space) {
  std::vector<Storage> arenas(program.arenas.size());
  std::vector<Lifetime> lives = lifetimes(program);
  size_t count = program.commands.size();
  std::vector<std::vector<uint32_t>> begins(count), ends(count);
  for (uint32_t index = 0; index < lives.size(); ++index) {
    const Buffer &buffer = program.buffers[index];
    const Lifetime &life = lives[index];
    bool inSpace = program.arenas[buffer.arena].space == space;
    if (!inSpace || !buffer.bytes || life.first >= count)
      continue;
    arenas[buffer.arena].add(buffer.begin(0), buffer.end(0));
    begins[life.first].push_back(index);
    if (life.last < count)
      ends[life.last].push_back(index);
  }
  for (Storage &arena : arenas)
    arena.finish();
  KindBytes now = {};
  auto change = [&](uint32_t index, int by) {
    const Buffer &buffer = program.buffers[index];
    arenas[buffer.arena].change(buffer.begin(0), buffer.end(0), buffer.kind, by,
                                now);
  };
  std::vector<KindBytes> result;
  for (size_t command = 0; command < count; ++command) {
    for (uint32_t index : begins[command])
      change(index, 1);
    result.push_back(now);
    for (uint32_t index : ends[command])
      change(index, -1);
  }
  return result;
}

uint64_t zrt::gatheredPeak(const Program &program) {
  auto bytes = [&](uint32_t index) {
    const Buffer &buffer = program.buffers[index];
    bool device = program.arenas[buffer.arena].space == fb::Space_Device;
    return device && buffer.kind == fb::Kind_Gathered ? buffer.bytes : 0;
  };
  uint64_t gathered = 0, most = 0;
  for (size_t index = 0; index < program.commands.size(); ++index) {
    const Command &command = program.commands[index];
    if (index == program.microCommands)
      gathered = 0;
    if (command.op == fb::Op_AllGather)
      for (const Piece &piece : command.pieces)
        gathered += bytes(piece.target);
    if (command.op == fb::Op_Copy) // a chunk that stays of it
      gathered += bytes(command.operands.back().buffer);
    most = std::max(most, gathered);
    for (uint32_t buffer : command.release)
      gathered -= std::min(gathered, bytes(buffer));
  }
  return most;
}

std::vector<Hole> zrt::findUnwritten(const Program &program, uint32_t rank) {
  std::vector<Hole> unwritten;
  std::vector<uint32_t> held;
  for (const Parameter &parameter : program.parameters)
    held.push_back(parameter.buffer);
  for (const Input &input : program.inputs)
    held.push_back(input.buffer);
  for (const Constant &constant : program.constants)
    held.push_back(constant.buffer);
  for (uint32_t arena = 0; arena < program.arenas.size(); ++arena) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (uint32_t index : held)
      if (program.buffers[index].arena == arena)
        ranges.emplace_back(program.buffers[index].begin(rank),
                            program.buffers[index].end(rank));
    uint64_t end = program.arenas[arena].bytes;
    ranges.emplace_back(end, end);
    std::sort(ranges.begin(), ranges.end());
    uint64_t reach = 0;
    for (auto [begin, rangeEnd] : ranges) {
      if (begin > reach)
        unwritten.push_back({arena, reach, begin});
      reach = std::max(reach, rangeEnd);
    }
  }
  return unwritten;
}
