//===- Rank.cpp - One rank of a session -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Rank.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/Rank.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace zrt;
using namespace zrt::host;

/// Every byte of this value makes a NaN of each floating type, and -1.
static constexpr int poisonByte = 0xFF;

Rank::Rank(const Program &program, uint32_t rank)
    : nanoseconds(program.commands.size(), 0), program(program), rank(rank),
      touchedEnd(program.arenas.size(), 0) {
  for (const Arena &arena : program.arenas)
    arenas.emplace_back(arena.bytes, "an arena of one rank");
  findUnwritten();
}

uint8_t *Rank::address(uint32_t buffer) const {
  const Buffer &info = program.buffers[buffer];
  return arenas[info.arena].data() + info.begin(rank);
}

uint8_t *Rank::address(const Operand &operand) const {
  return address(operand.buffer) +
         operand.view.offset *
             elementBytes(program.buffers[operand.buffer].dtype);
}

void Rank::touch(uint32_t buffer) {
  const Buffer &info = program.buffers[buffer];
  uint64_t &end = touchedEnd[info.arena];
  end = std::max(end, info.end(rank));
}

void Rank::findUnwritten() {
  std::vector<uint32_t> held;
  for (const Parameter &parameter : program.parameters)
    held.push_back(parameter.buffer);
  for (const Input &input : program.inputs)
    held.push_back(input.buffer);
  for (const Constant &constant : program.constants)
    held.push_back(constant.buffer);
  for (uint32_t arena = 0; arena < arenas.size(); ++arena) {
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
}

void Rank::poisonUnwritten() {
  for (const Hole &hole : unwritten)
    std::memset(arenas[hole.arena].data() + hole.begin, poisonByte,
                hole.end - hole.begin);
}

void Rank::bindCopy(const Command &command, BoundCommand &bound) {
  const Operand &target = command.operands.back();
  const Buffer &buffer = program.buffers[target.buffer];
  static const uint64_t zero = 0;
  bound.to = address(target.buffer);
  if (command.op == fb::Op_Copy) {
    bound.from = address(command.operands[0].buffer);
    bound.copy.emplace(command.operands[0].view, target.view,
                       elementBytes(buffer.dtype));
    return;
  }
  // Zeros: one element, broadcast.
  View from = target.view;
  from.offset = 0;
  std::fill(from.strides.begin(), from.strides.end(), 0);
  bound.from = reinterpret_cast<uint8_t *>(const_cast<uint64_t *>(&zero));
  bound.copy.emplace(from, target.view, elementBytes(buffer.dtype));
}

void Rank::bind(const KernelLibrary &kernels,
                const std::vector<std::shared_ptr<const LibraryCall>> &calls,
                const std::vector<Collective> &collectives,
                uint64_t scratchBytes, const dnnl::engine &engine) {
  stream = dnnl::stream(engine);
  scratch = MemoryBlock(scratchBytes, "scratch of library calls");
  size_t nextCollective = 0;
  for (size_t index = 0; index < program.commands.size(); ++index) {
    const Command &command = program.commands[index];
    BoundCommand bound;
    bound.op = command.op;
    std::vector<uint8_t *> addresses;
    for (const Operand &operand : command.operands) {
      addresses.push_back(address(operand));
      bound.uses.push_back(operand.buffer);
    }
    for (const Piece &piece : command.pieces) {
      bound.uses.push_back(piece.source);
      bound.uses.push_back(piece.target);
    }
    if (command.op == fb::Op_Launch) {
      bound.kernel = kernels.find(command.callee);
      bound.buffers.assign(addresses.begin(), addresses.end());
    } else if (command.op == fb::Op_Call) {
      bound.call = std::make_unique<BoundCall>(
          calls[index], std::move(addresses), scratch.data(), engine);
    } else if (command.isCollective()) {
      bound.collective = &collectives[nextCollective++];
    } else {
      bindCopy(command, bound);
    }
    commands.push_back(std::move(bound));
  }
}

void Rank::execute(BoundCommand &command, Barrier &barrier) {
  if (command.kernel)
    command.kernel(command.buffers.data());
  else if (command.call)
    command.call->run(stream);
  else if (command.collective)
    command.collective->run(rank, barrier);
  else
    command.copy->run(command.from, command.to);
}

/// A gathered parameter lives from its gather to the release behind a command.
void Rank::countGathered(const Command &command) {
  auto bytes = [&](uint32_t buffer) {
    const Buffer &info = program.buffers[buffer];
    return info.kind == fb::Kind_Gathered ? info.bytes : 0;
  };
  if (command.op == fb::Op_AllGather)
    for (const Piece &piece : command.pieces)
      gathered += bytes(piece.target);
  mostGathered = std::max(mostGathered, gathered);
  for (uint32_t buffer : command.release)
    gathered -= std::min(gathered, bytes(buffer));
}

void Rank::run(Barrier &barrier, bool poisonReleased) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  gathered = 0;
  for (current = 0; current < commands.size(); ++current) {
    BoundCommand &command = commands[current];
    execute(command, barrier);
    for (uint32_t buffer : command.uses)
      touch(buffer);
    countGathered(program.commands[current]);
    if (poisonReleased)
      for (uint32_t buffer : program.commands[current].release)
        std::memset(address(buffer), poisonByte, program.buffers[buffer].bytes);
    Clock::time_point end = Clock::now();
    nanoseconds[current] +=
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin)
            .count();
    begin = end;
  }
}
