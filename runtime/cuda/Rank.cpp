//===- Rank.cpp - One rank of a session, on a GPU -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Running a part of the program; RankWork.cpp prepares the commands.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Rank.h"

#include "runtime/comm/Futex.h"
#include "runtime/cuda/Status.h"

#include <algorithm>
#include <nvtx3/nvToolsExt.h>

using namespace zrt;
using namespace zrt::cuda;

namespace {
/// What a profiler shows while commands are enqueued.
struct ProfilerRange {
  explicit ProfilerRange(const std::string &name) {
    nvtxRangePushA(name.c_str());
  }
  ~ProfilerRange() { nvtxRangePop(); }
};
} // namespace

/// The commands of a part: [first, second).
std::pair<size_t, size_t> Rank::range(Part part) const {
  if (part == Part::MicroBatch)
    return {0, program.microCommands};
  return {program.microCommands, program.commands.size()};
}

double Rank::limitOf(double plannedSeconds) const {
  return std::max(options.timeoutMinSeconds,
                  options.timeoutFactor * plannedSeconds);
}

void Rank::enqueueCommand(size_t index, bool timed) {
  const Command &command = program.commands[index];
  CUstream stream = streams[command.stream].stream;
  position = index;
  ProfilerRange named(names[index]);
  for (uint32_t event : command.wait)
    checkCuda(cuStreamWaitEvent(stream, streamTimes->after(signaler[event]), 0),
              "cuStreamWaitEvent");
  if (timed)
    streamTimes->recordBefore(index, stream);
  works[index]->enqueue(stream);
  for (const std::unique_ptr<Work> &poison : poisons[index])
    poison->enqueue(stream);
  if (timed || command.signal >= 0)
    streamTimes->recordAfter(index, stream);
}

void Rank::enqueue(Part part, bool timed) {
  auto [first, last] = range(part);
  for (size_t index = first; index < last; ++index)
    enqueueCommand(index, timed);
}

/// Throws if this rank cannot go on for reasons beside the device's own.
void Rank::checkOthers() const {
  cancel.check();
  if (hostFailure.failed())
    throw CommandError(ZRT_ERROR_EXECUTION, hostFailure.command(),
                       hostFailure.what());
  communicators->checkAsync();
}

void Rank::runTimed(Part part) {
  auto [first, last] = range(part);
  streamTimes->begin(first, last, streams[0].stream);
  enqueue(part, /*timed=*/true);
  auto limit = [&](const Command &command) {
    return limitOf(command.plannedSeconds);
  };
  PollPause pause;
  while (!streamTimes->advance()) {
    checkOthers();
    if (std::optional<size_t> late = streamTimes->overdue(limit))
      throw CommandError(
          ZRT_ERROR_EXECUTION, *late,
          "has not ended after " +
              std::to_string(int64_t(limit(program.commands[*late]))) +
              " s: another rank hangs, or is much slower than planned");
    pause();
  }
}

void Rank::capture(Part part) {
  std::vector<CUstream> others;
  for (size_t stream = 1; stream < streams.size(); ++stream)
    if (streams[stream].used[size_t(part)])
      others.push_back(streams[stream].stream);
  graphs[size_t(part)] = std::make_unique<Graph>(
      streams[0].stream, others, [&] { enqueue(part, /*timed=*/false); });
}

void Rank::runGraph(Part part) {
  using Clock = std::chrono::steady_clock;
  if (!graphs[size_t(part)])
    capture(part);
  Graph &graph = *graphs[size_t(part)];
  position = range(part).first;
  graph.launch(streams[0].stream);
  double limit = limitOf(program.plannedSeconds);
  Clock::time_point begin = Clock::now();
  PollPause pause;
  while (!graph.isDone()) {
    checkOthers();
    std::chrono::duration<double> since = Clock::now() - begin;
    if (communicators->any() && since.count() > limit)
      throw CommandError(ZRT_ERROR_EXECUTION, position,
                         "the step that begins here has not ended after " +
                             std::to_string(int64_t(limit)) +
                             " s: another rank hangs, or is much slower than "
                             "planned");
    pause();
  }
}

/// Nothing is captured at the first time: libraries load their code then.
void Rank::run(Part part) {
  bool &before = ranBefore[size_t(part)];
  position = range(part).first;
  try {
    // What was copied between parts is on its way on this stream.
    checkCuda(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    if (options.poison) {
      arenas.poisonUnwritten();
      checkCuda(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    }
    if (options.graph && before)
      runGraph(part);
    else
      runTimed(part);
    checkOthers();
  } catch (const CommandError &) {
    throw;
  } catch (const Aborted &) {
    throw;
  } catch (const Error &error) {
    throw CommandError(error.code(), position, error.what());
  } catch (const std::exception &error) {
    throw CommandError(ZRT_ERROR_EXECUTION, position, error.what());
  }
  // In graphs no command is timed: times of the first run alone would mislead.
  if (options.graph)
    streamTimes->forget();
  before = true;
  touchAll(part);
}

void Rank::touchAll(Part part) {
  auto [first, last] = range(part);
  for (size_t index = first; index < last; ++index) {
    for (const Operand &operand : program.commands[index].operands)
      arenas.touch(operand.buffer);
    for (const Piece &piece : program.commands[index].pieces) {
      arenas.touch(piece.source);
      arenas.touch(piece.target);
    }
  }
}

void Rank::abort() noexcept {
  if (communicators)
    communicators->abort();
}

void Rank::broadcast(CUdeviceptr data, uint64_t bytes, uint32_t root) {
  CUstream stream = streams[0].stream;
  // What was copied there is on its way on this stream.
  checkCuda(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  communicators->broadcast(data, bytes, root, stream);
  CUresult status = CUDA_ERROR_NOT_READY;
  PollPause pause;
  while ((status = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
    checkOthers();
    pause();
  }
  checkCuda(status, "cuStreamQuery");
}
