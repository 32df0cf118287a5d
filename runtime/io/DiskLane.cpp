//===- DiskLane.cpp - One way between memory and a file -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See DiskLane.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DiskLane.h"

#include "runtime/io/Retry.h"
#include "runtime/io/ThreadQueue.h"

#include <algorithm>
#include <new>

using namespace zrt;

/// Threads in place of a queue. More gain nothing: each waits for the disk with
/// a piece of its own.
static constexpr unsigned maxThreads = 4;

DiskArena::Lane::Lane(FileSystem &system, const DiskArenaOptions &options,
                      bool write)
    : system(system), options(options), write(write) {
  ensureQueue();
}

void DiskArena::Lane::ensureQueue() {
  if (queue)
    return;
  reason = "not asked for";
  if (options.queue) {
    int64_t made =
        retrying([&] { return system.makeQueue(options.depth, queue); });
    reason = made < 0 ? std::strerror(int(-made)) : "";
  }
  unsigned threads = std::min(options.depth, maxThreads);
  if (!reason.empty())
    queue = std::make_unique<ThreadQueue>(system, threads);
  slots.resize(reason.empty() ? options.depth : threads);
}

void DiskArena::Lane::run(FileSystem::Handle file, const Steps &steps) {
  std::lock_guard<std::mutex> lock(mutex);
  ensureQueue();
  try {
    runAll(file, steps);
  } catch (...) {
    // Waits for what is under way: the caller may free its memory.
    queue.reset();
    throw;
  }
}

void DiskArena::Lane::runAll(FileSystem::Handle file, const Steps &steps) {
  std::vector<size_t> idle;
  for (size_t slot = slots.size(); slot-- > 0;)
    idle.push_back(slot);
  for (bool more = true;;) {
    while (more && !idle.empty()) {
      Slot &slot = slots[idle.back()];
      more = steps.next(slot.piece);
      if (!more)
        break;
      idle.pop_back();
      start(slot, file, steps);
    }
    if (idle.size() == slots.size())
      return;
    uint64_t tag = 0;
    int64_t result = 0;
    int64_t waited = retrying([&] { return queue->finish(tag, result); });
    if (waited < 0)
      steps.fail({}, errorText("waiting for the disk", waited));
    Slot &slot = slots[tag];
    if (advance(slot, result, steps))
      idle.push_back(tag);
    else
      begin(slot, file, steps);
  }
}

uint8_t *DiskArena::Lane::ownMemory(Slot &slot) {
  if (slot.ownBytes < slot.piece.bytes) {
    slot.own.reset(static_cast<uint8_t *>(
        std::aligned_alloc(blockBytes, slot.piece.bytes)));
    if (!slot.own)
      throw std::bad_alloc();
    slot.ownBytes = slot.piece.bytes;
  }
  return slot.own.get();
}

void DiskArena::Lane::start(Slot &slot, FileSystem::Handle file,
                            const Steps &steps) {
  slot.memory = slot.piece.isPlain() ? slot.piece.user : ownMemory(slot);
  slot.done = 0;
  slot.repeats = 0;
  if (write)
    steps.before(slot.piece, slot.memory);
  begin(slot, file, steps);
}

/// Begins what is left of a piece.
void DiskArena::Lane::begin(Slot &slot, FileSystem::Handle file,
                            const Steps &steps) {
  Transfer transfer{write,
                    file,
                    slot.memory + slot.done,
                    size_t(slot.piece.bytes - slot.done),
                    slot.piece.offset + slot.done,
                    uint64_t(&slot - slots.data())};
  int64_t begun = -EAGAIN;
  for (int i = 0; i < maxInterruptions && (begun == -EAGAIN || begun == -EINTR);
       ++i)
    begun = queue->begin(transfer);
  if (begun < 0)
    steps.fail(slot.piece, std::strerror(int(-begun)));
}

/// True when the piece is done; else the rest is to begin.
bool DiskArena::Lane::advance(Slot &slot, int64_t result, const Steps &steps) {
  bool again = result == -EINTR || result == -EAGAIN;
  if (result < 0 && !again)
    steps.fail(slot.piece, std::strerror(int(-result)));
  if (result == 0)
    steps.fail(slot.piece,
               write ? "nothing was written"
                     : "the file ends before, at byte " +
                           std::to_string(slot.piece.offset + slot.done));
  if (result > 0 && slot.done + uint64_t(result) >= slot.piece.bytes) {
    if (!write)
      steps.after(slot.piece, slot.memory);
    return true;
  }
  // Past the page cache only whole blocks can be asked for.
  uint64_t blocks = again ? 0 : uint64_t(result) / blockBytes * blockBytes;
  slot.done += blocks;
  if (!blocks && ++slot.repeats == maxInterruptions)
    steps.fail(slot.piece, "only a part of a block was transferred, again and "
                           "again");
  return false;
}
