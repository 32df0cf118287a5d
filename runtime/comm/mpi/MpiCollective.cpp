//===- MpiCollective.cpp - Collectives by messages ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See MpiCollective.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/MpiCollective.h"

#include "runtime/comm/Reduction.h"
#include "runtime/comm/Transport.h"
#include "runtime/core/Layout.h"
#include "runtime/core/Memory.h"

#include <algorithm>

using namespace zrt;
using namespace zrt::mpi;

/// Large enough that a message costs little beside its bytes, small enough that
/// what is added up is still in the cache.
static constexpr uint64_t mostSliceBytes = 256 << 10;
/// What MPI sends without asking: then an all_reduce is one message to each.
static constexpr uint64_t smallBytes = 2 << 10;
static constexpr int reduceTag = 0, gatherTag = 1;

static ElementRange wholeOf(const CollectivePiece &piece, uint32_t) {
  return {0, piece.elements};
}

static uint64_t sliceBytesFor(uint64_t ranks) {
  // The room for messages does not grow with the ranks.
  uint64_t share = (4 * mostSliceBytes) / std::max<uint64_t>(ranks, 1);
  return std::clamp<uint64_t>(share, 16 << 10, mostSliceBytes);
}

MpiCollective::MpiCollective(fb::Op op, bool average,
                             std::vector<CollectivePiece> made,
                             uint32_t position, std::vector<uint32_t> group,
                             std::shared_ptr<Communicator> messages,
                             const std::atomic<bool> &aborted,
                             std::chrono::nanoseconds limit, uint32_t threads)
    : op(op), average(average), pieces(std::move(made)), position(position),
      ranks(std::move(group)), communicator(std::move(messages)),
      aborted(aborted), limit(limit), threads(threads),
      atOnce(op == fb::Op_AllReduce && isSmall(pieces, smallBytes)) {
  RangeOf rangeOf = op != fb::Op_AllReduce ? chunkOf
                    : atOnce               ? wholeOf
                                           : partOf;
  for (uint32_t of = 0; of < ranks.size(); ++of) {
    slices.push_back(cut(pieces, rangeOf, of, sliceBytesFor(ranks.size())));
    for (const Slice &slice : slices.back())
      messageRoom = std::max(messageRoom, (slice.bytes + 63) / 64 * 64);
  }
  if (op != fb::Op_AllGather)
    makeReduceLanes();
  if (op != fb::Op_ReduceScatter && !atOnce)
    makeGatherLanes();
  uint64_t lanes = 2 * (ranks.size() - 1);
  std::vector<uint8_t> &room = communicator->room;
  room.resize(std::max(room.size(), lanes * laneDepth * messageRoom));
}

//===----------------------------------------------------------------------===//
// Where things are
//===----------------------------------------------------------------------===//

/// A span in this rank's copy of the whole.
uint8_t *MpiCollective::targetOf(const SliceSpan &span) const {
  const CollectivePiece &piece = pieces[span.piece];
  uint64_t at = span.range.begin;
  if (op == fb::Op_ReduceScatter) // which has only its chunk of it
    at -= position * piece.chunk;
  return piece.targets[position] + at * elementBytes(piece.type);
}

const uint8_t *MpiCollective::wholeSourceOf(const SliceSpan &span) const {
  const CollectivePiece &piece = pieces[span.piece];
  return piece.sources[position] + span.range.begin * elementBytes(piece.type);
}

/// A span of what this rank gives to all: its chunk, or what it has added up.
const uint8_t *MpiCollective::ownPartOf(const SliceSpan &span) const {
  const CollectivePiece &piece = pieces[span.piece];
  if (op == fb::Op_AllReduce)
    return targetOf(span);
  uint64_t at = span.range.begin - position * piece.chunk;
  return piece.sources[position] + at * elementBytes(piece.type);
}

uint8_t *MpiCollective::roomOf(size_t lane, size_t slice) const {
  size_t index = lane * laneDepth + slice % laneDepth;
  return communicator->room.data() + index * messageRoom;
}

static uint64_t bytesOf(const CollectivePiece &piece, const SliceSpan &span) {
  return (span.range.end - span.range.begin) * elementBytes(piece.type);
}

/// A slice as it is sent: where it is, or copied together.
uint8_t *MpiCollective::packed(const Slice &slice, uint8_t *room,
                               bool whole) const {
  auto from = [&](const SliceSpan &span) {
    return whole ? wholeSourceOf(span) : ownPartOf(span);
  };
  if (!slice.isPacked()) // MPI does not write what it sends
    return const_cast<uint8_t *>(from(slice.spans[0]));
  for (const SliceSpan &span : slice.spans)
    copyBytes(room + span.offset, from(span),
              bytesOf(pieces[span.piece], span));
  return room;
}

void MpiCollective::unpack(const Slice &slice, const uint8_t *room) const {
  for (const SliceSpan &span : slice.spans)
    copyBytes(targetOf(span), room + span.offset,
              bytesOf(pieces[span.piece], span));
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// The other positions, each rank's beginning behind itself, so that not all
/// send to one.
static std::vector<uint32_t> peersOf(uint32_t position, size_t ranks) {
  std::vector<uint32_t> peers;
  for (size_t step = 1; step < ranks; ++step)
    peers.push_back(uint32_t((position + step) % ranks));
  return peers;
}

/// Every rank sends its values of the part that a peer adds up.
void MpiCollective::makeReduceLanes() {
  size_t number = 0;
  for (uint32_t peer : peersOf(position, ranks.size())) {
    Lane in(peer, /*sends=*/false, slices[position]);
    in.place = [this, number](size_t slice) { return roomOf(number, slice); };
    // A message's room is free once it is added up.
    in.allowed = [this] { return reduced + laneDepth; };
    // What is reduced in place must have been sent.
    if (!atOnce)
      in.done = [this](size_t) { reduceArrived(); };
    ++number;
    Lane out(peer, /*sends=*/true, slices[peer]);
    out.place = [this, number, peer](size_t slice) {
      return packed(slices[peer][slice], roomOf(number, slice), true);
    };
    ++number;
    reduceLanes.push_back(std::move(in));
    reduceLanes.push_back(std::move(out));
  }
}

/// Every rank sends its part to all.
void MpiCollective::makeGatherLanes() {
  size_t number = 0;
  for (uint32_t peer : peersOf(position, ranks.size())) {
    Lane in(peer, /*sends=*/false, slices[peer]);
    in.place = [this, number, peer](size_t index) {
      const Slice &slice = slices[peer][index];
      return slice.isPacked() ? roomOf(number, index)
                              : targetOf(slice.spans[0]);
    };
    in.done = [this, number, peer](size_t index) {
      const Slice &slice = slices[peer][index];
      if (slice.isPacked())
        unpack(slice, roomOf(number, index));
    };
    ++number;
    Lane out(peer, /*sends=*/true, slices[position]);
    out.place = [this, number](size_t slice) {
      return packed(slices[position][slice], roomOf(number, slice), false);
    };
    ++number;
    gatherLanes.push_back(std::move(in));
    gatherLanes.push_back(std::move(out));
  }
}

void MpiCollective::move(std::vector<Lane> &lanes, int tag,
                         const std::function<void()> &meanwhile) {
  std::vector<uint32_t> late =
      exchange(communicator->handle, tag, lanes,
               Waiting(aborted, limit, threads), meanwhile);
  std::string who;
  for (uint32_t at : late)
    who += (who.empty() ? "rank " : ", rank ") + std::to_string(ranks[at]);
  if (!who.empty())
    throw Late(lateText(who, limit));
}

//===----------------------------------------------------------------------===//
// What this rank adds up and copies
//===----------------------------------------------------------------------===//

/// Adds up the slices that all peers have sent.
void MpiCollective::reduceArrived() {
  size_t arrived = slices[position].size();
  for (const Lane &lane : reduceLanes)
    if (!lane.sends)
      arrived = std::min(arrived, lane.finished);
  for (; reduced < arrived; ++reduced)
    reduceSlice(reduced);
}

void MpiCollective::reduceSlice(size_t index) const {
  std::vector<const uint8_t *> addresses(ranks.size());
  for (const SliceSpan &span : slices[position][index].spans) {
    const CollectivePiece &piece = pieces[span.piece];
    addresses[position] = wholeSourceOf(span);
    // One rank on its own storage has nothing to do.
    if (ranks.size() == 1 && addresses[0] == targetOf(span))
      continue;
    for (size_t lane = 0; lane < reduceLanes.size(); lane += 2)
      addresses[reduceLanes[lane].peer] = roomOf(lane, index) + span.offset;
    reduce(
        {piece.type, addresses.data(), addresses.size(), piece.inner, average},
        0, span.range.end - span.range.begin, targetOf(span));
  }
}

void MpiCollective::copyOwnChunks() const {
  for (const Slice &slice : slices[position])
    for (const SliceSpan &span : slice.spans)
      if (targetOf(span) != ownPartOf(span))
        copyBytes(targetOf(span), ownPartOf(span),
                  bytesOf(pieces[span.piece], span));
}

/// Behind the last elements of a tensor, in chunks of ranks.
void MpiCollective::clearPadding() const {
  for (const CollectivePiece &piece : pieces) {
    uint64_t size = elementBytes(piece.type);
    uint32_t begin = op == fb::Op_AllGather ? 0 : position;
    uint32_t end = op == fb::Op_AllGather ? uint32_t(ranks.size()) : begin + 1;
    for (uint32_t of = begin; of < end; ++of) {
      ElementRange chunk = chunkOf(piece, of);
      uint64_t held = (chunk.end - chunk.begin) * size;
      uint8_t *to = piece.targets[position] + (of - begin) * piece.chunk * size;
      clearBytes(to + held, piece.chunk * size - held);
    }
  }
}

void MpiCollective::run(uint32_t) {
  if (op != fb::Op_AllGather) {
    reduced = 0;
    move(reduceLanes, reduceTag, {});
    reduceArrived(); // what is left
  }
  if (op == fb::Op_AllGather)
    move(gatherLanes, gatherTag, [this] {
      copyOwnChunks();
      clearPadding();
    });
  else if (op == fb::Op_AllReduce && !atOnce)
    move(gatherLanes, gatherTag, {});
  else if (op == fb::Op_ReduceScatter)
    clearPadding();
}
