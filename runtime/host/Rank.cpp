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
#include "runtime/host/HostLaunch.h"
#include "runtime/host/Transfers.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

using namespace zrt;
using namespace zrt::host;

Rank::Rank(const Program &program, uint32_t rank, const RankOptions &options)
    : program(program), rank(rank), place(options.place),
      streams(program.numStreams), touchedBetween(program.arenas.size(), 0),
      times(program.commands.size(), 0), waits(program.commands.size(), 0),
      spans(program.commands.size()) {
  makeArenas(options);
  for (Stream &stream : streams)
    stream.touchedEnd.resize(program.arenas.size(), 0);
  for (uint32_t event = 0; event < program.numEvents; ++event)
    events.emplace_back(options.threads);
  for (const Command &command : program.commands)
    if (command.host && command.split && !hostThreads)
      hostThreads = std::make_unique<HostThreads>(options.hostThreads);
  unwritten = zrt::findUnwritten(program, rank);
}

void Rank::bindCopy(const Command &command, BoundCommand &bound) {
  const Operand &target = command.operands.back();
  const Buffer &buffer = program.buffers[target.buffer];
  static const uint64_t zero = 0;
  if (diskOf(target.buffer) || diskOf(command.operands[0].buffer)) {
    bound.disk = bindDiskCopy(command);
    return;
  }
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
  bound.split = command.split;
  bound.host = command.host;
  bound.transfer = transferOf(program, command).has_value();
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
    bound.collective = collective->groups[place.group].get();
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
    launchKernel(command.kernel, command.buffers.data(), command.split,
                 command.host ? hostThreads.get() : nullptr);
  else if (command.disk)
    run(*command.disk);
  else if (command.call)
    command.call->run(stream.library);
  else if (command.collective)
    command.collective->run(command.position);
  else
    command.copy->run(command.from, command.to);
}

static uint64_t addToHash(uint64_t hash, const uint8_t *data, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i)
    hash = (hash ^ data[i]) * 0x100000001b3u;
  return hash;
}

/// A hash (FNV-1a) of what a collective or a transfer reads of this rank's
/// memory and does not write.
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
    if (!inPlace)
      hash = addToHash(hash, address(piece.source),
                       elements * elementBytes(source.dtype));
  }
  if (command.op != fb::Op_Copy)
    return hash;
  const Operand &source = command.operands[0];
  if (!diskOf(source.buffer) && isContiguous(source.view))
    hash = addToHash(hash, address(source),
                     *elementCount(source.view.sizes) *
                         elementBytes(program.buffers[source.buffer].dtype));
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
  bool shown = place && number == 0;
  size_t next = isStep ? stream.microCommands : 0;
  size_t last = isStep ? stream.commands.size() : stream.microCommands;
  int64_t time = now();
  for (; next < last; ++next) {
    size_t index = stream.commands[next];
    stream.current = index;
    if (shown)
      place->store(uint32_t(index) + 1, std::memory_order_relaxed);
    const Command &command = program.commands[index];
    Span &span = spans[index];
    span.start = time;
    if (!command.wait.empty()) {
      for (uint32_t event : command.wait)
        events[event].wait(run);
      span.start = now();
    }
    span.waited = span.start - time;
    if (checkSources && number != 0 &&
        (command.isCollective() || commands[index].transfer))
      executeChecked(index, stream);
    else
      execute(commands[index], stream);
    if (finite)
      finite->scan(*this, rank, number, index);
    for (uint32_t buffer : commands[index].uses)
      touch(buffer, stream.touchedEnd);
    if (poisonReleased)
      for (uint32_t buffer : command.release) {
        const Buffer &released = program.buffers[buffer];
        poison(released.arena, released.begin(rank), released.end(rank));
      }
    span.end = time = now();
    if (command.signal >= 0)
      events[command.signal].signal(run);
    times[index] += span.end - span.start;
    waits[index] += span.waited;
  }
  if (shown)
    place->store(0, std::memory_order_relaxed);
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
    if (commands[index].collective || commands[index].transfer)
      time += times[index];
  }
  return time;
}
