//===- Rank.h - One rank of a session -------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The addresses of all operands are known when a session begins; a step is, on
// each stream, a loop over commands that are bound to them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_RANK_H
#define ZERO_RT_HOST_RANK_H

#include "runtime/comm/Collective.h"
#include "runtime/comm/Event.h"
#include "runtime/core/KernelLibrary.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Program.h"
#include "runtime/core/ProgramMemory.h"
#include "runtime/host/HostThreads.h"
#include "runtime/host/LibraryCall.h"
#include "runtime/io/DiskArena.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace zrt::host {

class FiniteCheck;

using Clock = std::chrono::steady_clock;

/// A collective command: one by group, and where each rank is.
struct GroupedCollective {
  /// Null where this process has no rank of a group.
  std::vector<std::unique_ptr<CollectiveCall>> groups;
  struct Place {
    uint32_t group, position;
  };
  std::vector<Place> places; // by rank
};

/// A part of the program that runs as one.
enum class Part {
  MicroBatch, ///< the commands of one of the micro-batches before the last
  Step        ///< the others
};

/// When a command last ran, in nanoseconds from the start of its part of the
/// program. Before `start` its stream stood waiting for events for `waited`.
struct Span {
  int64_t start = 0, end = 0, waited = 0;
};

/// What a session says about its ranks.
struct RankOptions {
  uint32_t threads = 1;     ///< of the whole session
  uint32_t hostThreads = 1; ///< of one rank, for launches on the host
  std::string offloadPath;  ///< folder of the disk arenas
  /// Where the arenas lie that others see; null entries, or none: the rank
  /// makes them.
  std::vector<uint8_t *> arenas;
  /// Of the compute stream, for others: command + 1, 0 between steps; or null.
  std::atomic<uint32_t> *place = nullptr;
};

/// One rank's memory, and the program's commands on its addresses.
class Rank {
public:
  /// Throws Error or IoError where there is no room.
  Rank(const Program &program, uint32_t rank, const RankOptions &options);

  uint32_t number() const { return rank; }

  /// Of a buffer that is not on disk.
  uint8_t *address(uint32_t buffer) const;
  /// Address of an operand's first element.
  uint8_t *address(const Operand &operand) const;

  // Buffers in any space, for the caller's thread between steps. Throw IoError.
  void read(uint32_t buffer, uint64_t offset, void *data, uint64_t bytes) const;
  void write(uint32_t buffer, uint64_t offset, const void *data,
             uint64_t bytes);
  /// The bytes from `offset` to the buffer's end become zeros.
  void clearFrom(uint32_t buffer, uint64_t offset);
  /// A buffer's bytes: where they are, or read from disk into `room`.
  const uint8_t *contents(uint32_t buffer, std::vector<uint8_t> &room) const;
  /// How the disk is reached; empty: the program has no disk arena.
  std::string diskAccess() const;

  /// Binds the commands to this rank's addresses. `collectives` is by command.
  void bind(const KernelLibrary &kernels,
            const std::vector<std::shared_ptr<const LibraryCall>> &calls,
            const std::vector<std::unique_ptr<GroupedCollective>> &collectives,
            uint64_t scratchBytes, const dnnl::engine &engine);

  /// Fills all memory that no parameter, constant or input holds with NaN.
  void poisonUnwritten();
  /// Executes a stream's commands of a part, one after the other, each once the
  /// events that it waits for are signalled. One thread for each stream; `run`
  /// is the same on all and differs from the last one's. With `checkSources` a
  /// collective beside compute fails where what it reads was written meanwhile.
  /// `finite` may be null.
  void run(uint32_t stream, Part part, uint32_t run, Clock::time_point begin,
           bool poisonReleased, bool checkSources, FiniteCheck *finite);
  /// Ends all waits for events, now and later.
  void abort();
  /// The command that a stream is at: where an exception comes from.
  size_t current(uint32_t stream) const { return streams[stream].current; }

  /// Counts the bytes of a buffer as touched outside of steps.
  void touch(uint32_t buffer) { touch(buffer, touchedBetween); }
  /// Highest byte touched, by arena; on the rank whose shard lies highest.
  std::vector<uint64_t> touched() const;

  // Times since the last reset, in nanoseconds; only between steps.
  void resetTimes();
  /// Of a command, without waiting for events.
  int64_t commandTime(size_t command) const { return times[command]; }
  /// The compute stream stood still: it waited for an event, was inside a
  /// collective or transfer of its own, or had ended before other streams.
  int64_t exposedTime() const;
  /// Adds how much longer than the compute stream others have run; after each
  /// part.
  void countTail();
  /// By command.
  const std::vector<Span> &lastSpans() const { return spans; }

private:
  /// A copy from or to disk.
  struct DiskCopy {
    uint32_t buffer; // on disk
    uint64_t offset, bytes;
    uint8_t *memory;
    bool write;
    bool toBlockEnd; // the rest of the last block is nobody's
  };
  struct BoundCommand {
    fb::Op op;
    Kernel kernel = nullptr;
    int64_t split = 0;
    bool host = false, transfer = false;
    std::optional<DiskCopy> disk;
    std::vector<void *> buffers; // of a kernel
    std::unique_ptr<BoundCall> call;
    std::optional<StridedCopy> copy;
    uint8_t *from = nullptr, *to = nullptr; // of a copy
    CollectiveCall *collective = nullptr;
    uint32_t position = 0;      // of this rank in the collective's group
    std::vector<uint32_t> uses; // buffers
  };
  /// What one thread works on.
  struct Stream {
    std::vector<size_t> commands;
    size_t microCommands = 0; // the first so many, of Part::MicroBatch
    size_t current = 0;
    MemoryBlock scratch;
    dnnl::stream library;
    std::vector<uint64_t> touchedEnd;
    int64_t end = 0; // of the last part, in nanoseconds from its start
  };
  void bindCommand(BoundCommand &bound, size_t index,
                   const KernelLibrary &kernels,
                   const std::shared_ptr<const LibraryCall> &call,
                   const GroupedCollective *collective,
                   const dnnl::engine &engine);
  void execute(BoundCommand &command, Stream &stream);
  void makeArenas(const RankOptions &options);
  DiskArena *diskOf(uint32_t buffer) const;
  DiskCopy bindDiskCopy(const Command &command) const;
  void run(const DiskCopy &copy) const;
  void poison(uint32_t arena, uint64_t begin, uint64_t end);
  void executeChecked(size_t index, Stream &stream);
  uint64_t hashSources(const Command &command) const;
  void touch(uint32_t buffer, std::vector<uint64_t> &touchedEnd);
  void bindCopy(const Command &command, BoundCommand &bound);

  const Program &program;
  const uint32_t rank;
  std::atomic<uint32_t> *const place;            // see RankOptions
  std::deque<MemoryBlock> blocks;                // arenas of this rank alone
  std::vector<uint8_t *> arenas;                 // null for disks
  std::vector<std::unique_ptr<DiskArena>> disks; // by arena
  std::unique_ptr<HostThreads> hostThreads;      // null: no launch has parts
  std::vector<BoundCommand> commands;
  std::vector<Stream> streams;
  std::deque<Event> events; // which do not move
  std::vector<uint64_t> touchedBetween;
  std::vector<int64_t> times, waits; // by command, summed over steps
  std::vector<Span> spans;
  int64_t tail = 0;
  std::vector<Hole> unwritten;
};

} // namespace zrt::host

#endif // ZERO_RT_HOST_RANK_H
