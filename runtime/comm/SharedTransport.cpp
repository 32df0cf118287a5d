//===- SharedTransport.cpp - Data in memory that processes share ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See SharedTransport.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/SharedTransport.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace zrt;
using std::chrono::nanoseconds;

/// What one process writes for others at a time, outside of steps. Two halves
/// take turns where only two processes use it.
static constexpr uint64_t mailboxBytes = 1 << 20;

struct SharedTransport::Control {
  alignas(64) std::atomic<uint32_t> place; // see Transport::place
  alignas(64) uint8_t mailbox[mailboxBytes];
};

/// Bytes of the barriers of all collectives: for each stream and axes, of all
/// groups; and of those between all processes and between each and rank 0.
static uint64_t barrierBytes(const Program &program) {
  uint64_t bytes = BarrierState::bytes(program.ranks) +
                   program.ranks * BarrierState::bytes(2);
  std::set<std::pair<uint32_t, std::vector<uint32_t>>> seen;
  for (const Command &command : program.commands) {
    if (!command.isCollective() ||
        !seen.emplace(command.stream, command.axes).second)
      continue;
    uint32_t size = program.grid.groupSize(command.axes);
    bytes += program.ranks / size * BarrierState::bytes(size);
  }
  return bytes;
}

std::vector<uint64_t> SharedTransport::blocksOf(const Program &program) {
  std::vector<uint64_t> blocks = {sizeof(Control) + barrierBytes(program)};
  for (const Arena &arena : program.arenas)
    blocks.push_back(arena.space == fb::Space_Disk ? 0 : arena.bytes);
  return blocks;
}

SharedTransport::SharedTransport(zrt_group &group, const Program &program)
    : processes(*group.processes), group(group), program(program),
      memory(processes, blocksOf(program)),
      threads(program.ranks * program.numStreams) {
  auto *states = reinterpret_cast<uint8_t *>(&control(0) + 1);
  uint32_t rank = processes.rank();
  auto next = [&](uint32_t ranks, uint32_t position) {
    auto &state = *reinterpret_cast<BarrierState *>(states + taken);
    taken += BarrierState::bytes(ranks);
    return &barriers.emplace_back(state, ranks, position, threads);
  };
  all = next(program.ranks, rank);
  for (uint32_t from = 0; from < program.ranks; ++from) {
    everyone.push_back(from);
    withFirst.push_back(next(2, rank == 0 ? 0 : 1));
  }
  processes.describePlaces([this](uint32_t rank) {
    uint32_t place = control(rank).place.load();
    return place ? "at " + commandText(this->program, place - 1)
                 : std::string();
  });
}

SharedTransport::~SharedTransport() { processes.describePlaces(nullptr); }

SharedTransport::Control &SharedTransport::control(uint32_t rank) const {
  return *reinterpret_cast<Control *>(memory.block(rank, 0));
}

std::atomic<uint32_t> *SharedTransport::place() {
  return &control(processes.rank()).place;
}

void SharedTransport::abort() {
  for (Barrier &barrier : barriers)
    barrier.abort();
}

//===----------------------------------------------------------------------===//
// Collectives of the program
//===----------------------------------------------------------------------===//

namespace {
class SharedCollective : public CollectiveCall {
public:
  SharedCollective(const CollectiveRequest &request, Barrier &barrier,
                   nanoseconds limit, const SharedTransport &transport)
      : collective(request.command.op, request.command.average, request.pieces,
                   barrier, limit),
        group(request.group), limit(limit), transport(transport) {}

  void run(uint32_t position) override {
    try {
      collective.run(position);
    } catch (const TimedOut &timedOut) {
      transport.failLate(timedOut, group, limit);
    }
  }

private:
  Collective collective;
  const std::vector<uint32_t> group;
  const nanoseconds limit;
  const SharedTransport &transport;
};
} // namespace

/// The barrier of this process's group on the command's stream and axes. All
/// processes ask in the same order, so they find the same place for it.
Barrier &SharedTransport::barrierOf(const CollectiveRequest &request) {
  Barrier *&barrier =
      communicators[{request.command.stream, request.command.axes}];
  if (barrier)
    return *barrier;
  uint32_t size = request.group.size();
  uint64_t bytes = BarrierState::bytes(size);
  auto *states = reinterpret_cast<uint8_t *>(&control(0) + 1) + taken;
  taken += program.ranks / size * bytes;
  auto *state =
      reinterpret_cast<BarrierState *>(states + request.number * bytes);
  auto own =
      std::find(request.group.begin(), request.group.end(), processes.rank());
  barrier = &barriers.emplace_back(
      *state, size, uint32_t(own - request.group.begin()), threads);
  return *barrier;
}

std::unique_ptr<CollectiveCall>
SharedTransport::makeCollective(CollectiveRequest request) {
  nanoseconds limit = limitOf(group, request.command.plannedSeconds);
  Barrier &barrier = barrierOf(request);
  return std::make_unique<SharedCollective>(request, barrier, limit, *this);
}

void SharedTransport::failLate(const TimedOut &timedOut,
                               const std::vector<uint32_t> &group,
                               nanoseconds limit) const {
  std::string who;
  for (uint32_t position : timedOut.late) {
    uint32_t rank = group[position];
    uint32_t place = control(rank).place.load();
    who += (who.empty() ? "rank " : ", rank ") + std::to_string(rank) +
           (place ? " (at " + commandText(program, place - 1) + ")"
                  : std::string(" (not in the step)"));
  }
  throw Late(lateText(who, limit));
}

//===----------------------------------------------------------------------===//
// Data between steps
//===----------------------------------------------------------------------===//

void SharedTransport::meet(Barrier &barrier,
                           const std::vector<uint32_t> &group) {
  nanoseconds limit = limitOf(this->group, program.plannedSeconds);
  try {
    barrier.wait(limit);
  } catch (const TimedOut &timedOut) {
    failLate(timedOut, group, limit);
  }
}

void SharedTransport::allGather(const void *data, uint64_t bytes, void *all) {
  const auto *from = static_cast<const uint8_t *>(data);
  auto *to = static_cast<uint8_t *>(all);
  for (uint64_t done = 0; done < bytes; done += mailboxBytes) {
    uint64_t count = std::min(mailboxBytes, bytes - done);
    std::memcpy(control(processes.rank()).mailbox, from + done, count);
    meet(*this->all, everyone);
    for (uint32_t rank : everyone)
      std::memcpy(to + rank * bytes + done, control(rank).mailbox, count);
    meet(*this->all, everyone);
  }
}

void SharedTransport::toFirst(uint32_t from, void *data, uint64_t bytes) {
  uint32_t rank = processes.rank();
  if (from == 0 || (rank != 0 && rank != from))
    return;
  constexpr uint64_t half = mailboxBytes / 2;
  auto *at = static_cast<uint8_t *>(data);
  std::vector<uint32_t> pair = {0, from};
  uint8_t *mailbox = control(from).mailbox;
  // While rank 0 reads one half, the other is written.
  for (uint64_t done = 0; done < bytes; done += half) {
    uint64_t count = std::min(half, bytes - done);
    uint8_t *place = mailbox + done / half % 2 * half;
    if (rank == from)
      std::memcpy(place, at + done, count);
    meet(*withFirst[from], pair);
    if (rank == 0)
      std::memcpy(at + done, place, count);
  }
  meet(*withFirst[from], pair); // the mailbox is free
}
