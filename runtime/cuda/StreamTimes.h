//===- StreamTimes.h - How far streams are, and when --------------*- C++
//-*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An event of the device behind each command of a rank, and one in front of
// those that wait or come first. From them the host sees how far each stream
// has come, and the times that zero-rt.h promises.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_STREAMTIMES_H
#define ZERO_RT_CUDA_STREAMTIMES_H

#include "runtime/core/Error.h"
#include "runtime/core/Program.h"

#include <chrono>
#include <cuda.h>
#include <optional>
#include <vector>

namespace zrt::cuda {

/// An error, and the command that it comes from.
class CommandError : public Error {
public:
  CommandError(zrt_status code, size_t command, const std::string &what)
      : Error(code, what), index(command) {}
  size_t command() const { return index; }

private:
  size_t index;
};

/// When a command ran, in nanoseconds from the start of its part of the
/// program. Before `start` its stream stood waiting for events for `waited`.
struct Span {
  int64_t start = 0, end = 0, waited = 0;
};

class StreamTimes {
public:
  using Clock = std::chrono::steady_clock;

  /// The context is current, here and in all functions that take streams.
  explicit StreamTimes(const Program &program);
  ~StreamTimes();
  StreamTimes(const StreamTimes &) = delete;
  StreamTimes &operator=(const StreamTimes &) = delete;

  /// What the waiters for a command wait for.
  CUevent after(size_t command) const { return afterEvents[command]; }

  /// A part begins: commands [first, last) will be enqueued.
  void begin(size_t first, size_t last, CUstream compute);
  void recordBefore(size_t command, CUstream stream);
  void recordAfter(size_t command, CUstream stream);

  /// Looks how far the streams have come; true when all are done. Throws
  /// CommandError once the device has failed.
  bool advance();
  /// A collective that has been under way for longer than `limit` of it says,
  /// in seconds.
  template <typename Limit>
  std::optional<size_t> overdue(Limit limit) const;

  // Since the last reset, in nanoseconds.
  void reset();
  /// The same for spans.
  void forget();
  int64_t commandTime(size_t command) const { return times[command]; }
  /// The compute stream stood still: it waited for an event, was inside a
  /// collective or transfer of its own, or had ended before other streams.
  int64_t exposed() const;
  /// By command; of the latest part that ran it.
  const std::vector<Span> &spans() const { return latest; }

private:
  /// The commands of one stream of the part that runs.
  struct Cursor {
    std::vector<size_t> commands;
    size_t done = 0;
    int64_t end = 0;             // of the last command that is done
    Clock::time_point seenSince; // the next one is what the stream is at
  };
  int64_t timeOf(CUevent event, size_t command) const;
  bool isDone(size_t command) const;
  void finish(Cursor &cursor);

  const Program &program;
  CUevent startEvent = nullptr;
  std::vector<CUevent> beforeEvents, afterEvents; // by command
  std::vector<bool> isFirst;                      // in its stream's part
  std::vector<Cursor> cursors;                    // by stream
  std::vector<int64_t> times, waits;              // by command
  std::vector<Span> latest;
  int64_t tail = 0;
};

template <typename Limit>
std::optional<size_t> StreamTimes::overdue(Limit limit) const {
  Clock::time_point now = Clock::now();
  for (const Cursor &cursor : cursors) {
    if (cursor.done == cursor.commands.size())
      continue;
    size_t command = cursor.commands[cursor.done];
    std::chrono::duration<double> since = now - cursor.seenSince;
    if (program.commands[command].isCollective() &&
        since.count() > limit(program.commands[command]))
      return command;
  }
  return std::nullopt;
}

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_STREAMTIMES_H
