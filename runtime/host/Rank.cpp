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

#include "runtime/host/FiniteCheck.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

using namespace zrt;
using namespace zrt::host;

/// Every byte of this value makes a NaN of each floating type, and -1.
static constexpr int poisonByte = 0xFF;

Rank::Rank(const Program &program, uint32_t rank, uint32_t threads)
    : program(program), rank(rank), streams(program.numStreams),
      touchedBetween(program.arenas.size(), 0),
      times(program.commands.size(), 0), waits(program.commands.size(), 0),
      spans(program.commands.size()) {
  for (const Arena &arena : program.arenas)
    arenas.emplace_back(arena.bytes, "an arena of one rank");
  for (Stream &stream : streams)
    stream.touchedEnd.resize(program.arenas.size(), 0);
  for (uint32_t event = 0; event < program.numEvents; ++event)
    events.emplace_back(threads);
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

void Rank::touch(uint32_t buffer, std::vector<uint64_t> &touchedEnd) {
  const Buffer &info = program.buffers[buffer];
  uint64_t &end = touchedEnd[info.arena];
  end = std::max(end, info.end(rank));
}

std::vector<uint64_t> Rank::touched() const {
  std::vector<uint64_t> most = touchedBetween;
  for (const Stream &stream : streams)
    for (size_t arena = 0; arena < most.size(); ++arena)
      most[arena] = std::max(most[arena], stream.touchedEnd[arena]);
  return most;
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

void Rank::bindCommand(BoundCommand &bound, size_t index,
                       const KernelLibrary &kernels,
                       const std::shared_ptr<const LibraryCall> &call,
                       const GroupedCollective *collective,
                       const dnnl::engine &engine) {
  const Command &command = program.commands[index];
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
  } else if (call) {
    bound.call = std::make_unique<BoundCall>(
        call, std::move(addresses), streams[command.stream].scratch.data(),
        engine);
  } else if (collective) {
    GroupedCollective::Place place = collective->places[rank];
    bound.collective = &collective->groups[place.group];
    bound.position = place.position;
  } else {
    bindCopy(command, bound);
  }
}

void Rank::bind(
    const KernelLibrary &kernels,
    const std::vector<std::shared_ptr<const LibraryCall>> &calls,
    const std::vector<std::unique_ptr<GroupedCollective>> &collectives,
    uint64_t scratchBytes, const dnnl::engine &engine) {
  std::vector<bool> hasCalls(streams.size(), false);
  for (size_t index = 0; index < program.commands.size(); ++index) {
    uint32_t stream = program.commands[index].stream;
    streams[stream].commands.push_back(index);
    streams[stream].microCommands += index < program.microCommands;
    hasCalls[stream] = hasCalls[stream] || calls[index];
  }
  for (size_t stream = 0; stream < streams.size(); ++stream) {
    streams[stream].library = dnnl::stream(engine);
    if (hasCalls[stream])
      streams[stream].scratch =
          MemoryBlock(scratchBytes, "scratch of library calls");
  }
  commands.resize(program.commands.size());
  for (size_t index = 0; index < commands.size(); ++index)
    bindCommand(commands[index], index, kernels, calls[index],
                collectives[index].get(), engine);
}

void Rank::execute(BoundCommand &command, Stream &stream) {
  if (command.kernel)
    command.kernel(command.buffers.data());
  else if (command.call)
    command.call->run(stream.library);
  else if (command.collective)
    command.collective->run(command.position);
  else
    command.copy->run(command.from, command.to);
}

/// A hash (FNV-1a) of what a collective reads of this rank and does not write.
uint64_t Rank::hashSources(const Command &command) const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Piece &piece : command.pieces) {
    const Buffer &source = program.buffers[piece.source];
    const Buffer &target = program.buffers[piece.target];
    bool inPlace = source.arena == target.arena &&
                   source.begin(rank) < target.end(rank) &&
                   target.begin(rank) < source.end(rank);
    uint64_t elements =
        command.op == fb::Op_AllGather ? piece.chunk : piece.elements;
    uint64_t read = inPlace ? 0 : elements * elementBytes(source.dtype);
    const uint8_t *bytes = address(piece.source);
    for (uint64_t i = 0; i < read; ++i)
      hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  return hash;
}

void Rank::executeChecked(size_t index, Stream &stream) {
  const Command &command = program.commands[index];
  uint64_t before = hashSources(command);
  execute(commands[index], stream);
  if (hashSources(command) != before)
    throw std::runtime_error("what it reads was written while it ran");
}

void Rank::run(uint32_t number, Part part, uint32_t run,
               Clock::time_point begin, bool poisonReleased, bool checkSources,
               FiniteCheck *finite) {
  Stream &stream = streams[number];
  auto now = [&] {
    return std::chrono::nanoseconds(Clock::now() - begin).count();
  };
  bool isStep = part == Part::Step;
  size_t place = isStep ? stream.microCommands : 0;
  size_t last = isStep ? stream.commands.size() : stream.microCommands;
  int64_t time = now();
  for (; place < last; ++place) {
    size_t index = stream.commands[place];
    stream.current = index;
    const Command &command = program.commands[index];
    Span &span = spans[index];
    span.start = time;
    if (!command.wait.empty()) {
      for (uint32_t event : command.wait)
        events[event].wait(run);
      span.start = now();
    }
    span.waited = span.start - time;
    if (checkSources && number != 0 && command.isCollective())
      executeChecked(index, stream);
    else
      execute(commands[index], stream);
    if (finite)
      finite->scan(*this, rank, number, index);
    for (uint32_t buffer : commands[index].uses)
      touch(buffer, stream.touchedEnd);
    if (poisonReleased)
      for (uint32_t buffer : command.release)
        std::memset(address(buffer), poisonByte, program.buffers[buffer].bytes);
    span.end = time = now();
    if (command.signal >= 0)
      events[command.signal].signal(run);
    times[index] += span.end - span.start;
    waits[index] += span.waited;
  }
  stream.end = time;
}

void Rank::abort() {
  for (Event &event : events)
    event.abort();
}

void Rank::resetTimes() {
  std::fill(times.begin(), times.end(), 0);
  std::fill(waits.begin(), waits.end(), 0);
  tail = 0;
}

void Rank::countTail() {
  int64_t last = 0;
  for (const Stream &stream : streams)
    last = std::max(last, stream.end);
  tail += last - streams[0].end;
}

int64_t Rank::exposedTime() const {
  int64_t time = tail;
  for (size_t index : streams[0].commands) {
    time += waits[index];
    if (commands[index].collective)
      time += times[index];
  }
  return time;
}
