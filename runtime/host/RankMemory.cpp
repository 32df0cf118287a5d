//===- RankMemory.cpp - One rank's memory in all spaces -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device and host arenas are blocks of memory, disk arenas are files.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/Rank.h"

#include "runtime/host/Transfers.h"
#include "runtime/io/Files.h"

#include <algorithm>
#include <cstring>

using namespace zrt;
using namespace zrt::host;

/// Every byte of this value makes a NaN of each floating type, and -1.
static constexpr int poisonByte = 0xFF;

static const char *purposeOf(fb::Space space) {
  return space == fb::Space_Host ? "the host memory of one rank"
                                 : "an arena of one rank";
}

void Rank::makeArenas(const RankOptions &options) {
  disks.resize(program.arenas.size());
  for (size_t index = 0; index < program.arenas.size(); ++index) {
    const Arena &arena = program.arenas[index];
    bool disk = arena.space == fb::Space_Disk;
    if (disk)
      disks[index] = std::make_unique<DiskArena>(
          options.offloadPath, arena.bytes,
          "disk space of rank " + std::to_string(rank));
    uint8_t *given =
        index < options.arenas.size() ? options.arenas[index] : nullptr;
    if (!disk && !given)
      given = blocks.emplace_back(arena.bytes, purposeOf(arena.space)).data();
    arenas.push_back(given);
  }
}

DiskArena *Rank::diskOf(uint32_t buffer) const {
  return disks[program.buffers[buffer].arena].get();
}

std::string Rank::diskAccess() const {
  for (const std::unique_ptr<DiskArena> &disk : disks)
    if (disk)
      return disk->access();
  return "";
}

uint8_t *Rank::address(uint32_t buffer) const {
  const Buffer &info = program.buffers[buffer];
  return arenas[info.arena] + info.begin(rank);
}

uint8_t *Rank::address(const Operand &operand) const {
  return address(operand.buffer) +
         operand.view.offset *
             elementBytes(program.buffers[operand.buffer].dtype);
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

/// Says which tensor an error of the disk is about.
template <typename Body>
static void naming(const Program &program, uint32_t buffer, Body body) {
  try {
    body();
  } catch (const IoError &error) {
    throw IoError("tensor " + tensorName(program, buffer), error.what());
  }
}

void Rank::read(uint32_t buffer, uint64_t offset, void *data,
                uint64_t bytes) const {
  if (DiskArena *disk = diskOf(buffer))
    return naming(program, buffer, [&] {
      disk->read(program.buffers[buffer].begin(rank) + offset, data, bytes);
    });
  copyBytes(data, address(buffer) + offset, bytes);
}

void Rank::write(uint32_t buffer, uint64_t offset, const void *data,
                 uint64_t bytes) {
  if (DiskArena *disk = diskOf(buffer))
    return naming(program, buffer, [&] {
      disk->write(program.buffers[buffer].begin(rank) + offset, data, bytes);
    });
  copyBytes(address(buffer) + offset, data, bytes);
}

void Rank::clearFrom(uint32_t buffer, uint64_t offset) {
  const Buffer &info = program.buffers[buffer];
  if (DiskArena *disk = diskOf(buffer))
    return naming(program, buffer, [&] {
      disk->fill(info.begin(rank) + offset, info.bytes - offset, 0);
    });
  clearBytes(address(buffer) + offset, info.bytes - offset);
}

const uint8_t *Rank::contents(uint32_t buffer,
                              std::vector<uint8_t> &room) const {
  if (!diskOf(buffer))
    return address(buffer);
  room.resize(program.buffers[buffer].bytes);
  read(buffer, 0, room.data(), room.size());
  return room.data();
}

Rank::DiskCopy Rank::bindDiskCopy(const Command &command) const {
  DiskCopy copy;
  copy.write = diskOf(command.operands[1].buffer) != nullptr;
  const Operand &onDisk = command.operands[copy.write ? 1 : 0];
  const Buffer &buffer = program.buffers[onDisk.buffer];
  uint64_t element = elementBytes(buffer.dtype);
  copy.buffer = onDisk.buffer;
  copy.offset = buffer.begin(rank) + onDisk.view.offset * element;
  copy.bytes = *elementCount(onDisk.view.sizes) * element;
  copy.memory = address(command.operands[copy.write ? 0 : 1]);
  // The plan gives every buffer on disk blocks of its own.
  copy.toBlockEnd = onDisk.view.offset == 0 &&
                    copy.bytes == *elementCount(buffer.shape) * element;
  return copy;
}

void Rank::run(const DiskCopy &copy) const {
  DiskArena &disk = *diskOf(copy.buffer);
  naming(program, copy.buffer, [&] {
    if (!copy.write)
      disk.read(copy.offset, copy.memory, copy.bytes);
    else if (copy.toBlockEnd)
      disk.writeToBlockEnd(copy.offset, copy.memory, copy.bytes);
    else
      disk.write(copy.offset, copy.memory, copy.bytes);
  });
}

//===----------------------------------------------------------------------===//
// What is touched, and what is not
//===----------------------------------------------------------------------===//

void Rank::touch(uint32_t buffer, std::vector<uint64_t> &touchedEnd) {
  const Buffer &info = program.buffers[buffer];
  uint64_t &end = touchedEnd[info.arena];
  // All ranks run the same commands, so this is known of the others too.
  end = std::max(end, info.end(info.shards - 1));
}

std::vector<uint64_t> Rank::touched() const {
  std::vector<uint64_t> most = touchedBetween;
  for (const Stream &stream : streams)
    for (size_t arena = 0; arena < most.size(); ++arena)
      most[arena] = std::max(most[arena], stream.touchedEnd[arena]);
  return most;
}

void Rank::poison(uint32_t arena, uint64_t begin, uint64_t end) {
  if (disks[arena])
    disks[arena]->fill(begin, end - begin, poisonByte);
  else
    std::memset(arenas[arena] + begin, poisonByte, end - begin);
}

void Rank::poisonUnwritten() {
  for (const Hole &hole : unwritten)
    poison(hole.arena, hole.begin, hole.end);
}
