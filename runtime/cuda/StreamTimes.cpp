//===- StreamTimes.cpp - How far streams are, and when --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See StreamTimes.h. Times are read while the host waits for the device anyway.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/StreamTimes.h"

#include "runtime/cuda/Status.h"
#include "runtime/host/Transfers.h"

#include <algorithm>
#include <cmath>

using namespace zrt;
using namespace zrt::cuda;

static CUevent makeEvent() {
  CUevent event = nullptr;
  checkCuda(cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  return event;
}

StreamTimes::StreamTimes(const Program &program)
    : program(program), beforeEvents(program.commands.size()),
      afterEvents(program.commands.size()),
      isFirst(program.commands.size(), false), cursors(program.numStreams),
      times(program.commands.size(), 0), waits(program.commands.size(), 0),
      latest(program.commands.size()) {
  startEvent = makeEvent();
  // By stream: whether a command of the part has been seen.
  std::vector<bool> seen(program.numStreams, false);
  for (size_t index = 0; index < program.commands.size(); ++index) {
    const Command &command = program.commands[index];
    if (index == program.microCommands)
      seen.assign(program.numStreams, false);
    isFirst[index] = !seen[command.stream];
    seen[command.stream] = true;
    afterEvents[index] = makeEvent();
    if (isFirst[index] || !command.wait.empty())
      beforeEvents[index] = makeEvent();
  }
}

StreamTimes::~StreamTimes() {
  for (const std::vector<CUevent> *events : {&beforeEvents, &afterEvents})
    for (CUevent event : *events)
      if (event)
        cuEventDestroy(event);
  if (startEvent)
    cuEventDestroy(startEvent);
}

void StreamTimes::begin(size_t first, size_t last, CUstream compute) {
  for (Cursor &cursor : cursors)
    cursor = {};
  for (size_t index = first; index < last; ++index)
    cursors[program.commands[index].stream].commands.push_back(index);
  for (Cursor &cursor : cursors)
    cursor.seenSince = Clock::now();
  checkCuda(cuEventRecord(startEvent, compute), "cuEventRecord");
}

void StreamTimes::recordBefore(size_t command, CUstream stream) {
  if (beforeEvents[command])
    checkCuda(cuEventRecord(beforeEvents[command], stream), "cuEventRecord");
}

void StreamTimes::recordAfter(size_t command, CUstream stream) {
  checkCuda(cuEventRecord(afterEvents[command], stream), "cuEventRecord");
}

int64_t StreamTimes::timeOf(CUevent event, size_t command) const {
  float ms = 0;
  CUresult status = cuEventElapsedTime(&ms, startEvent, event);
  if (status != CUDA_SUCCESS)
    throw CommandError(ZRT_ERROR_EXECUTION, command,
                       "cuEventElapsedTime: " + statusText(status));
  return std::llround(double(ms) * 1e6);
}

bool StreamTimes::isDone(size_t command) const {
  CUresult status = cuEventQuery(afterEvents[command]);
  if (status == CUDA_ERROR_NOT_READY)
    return false;
  // The device may have gone further than was seen.
  if (status != CUDA_SUCCESS)
    throw CommandError(ZRT_ERROR_EXECUTION, command,
                       "here or later the device failed: " +
                           statusText(status));
  return true;
}

/// Takes the times of the command that a stream has come past.
void StreamTimes::finish(Cursor &cursor) {
  size_t index = cursor.commands[cursor.done];
  Span &span = latest[index];
  span = {cursor.end, cursor.end, 0};
  if (beforeEvents[index])
    span.start = std::max(cursor.end, timeOf(beforeEvents[index], index));
  if (!program.commands[index].wait.empty())
    span.waited = std::max<int64_t>(0, span.start - cursor.end);
  span.end = std::max(span.start, timeOf(afterEvents[index], index));
  times[index] += span.end - span.start;
  waits[index] += span.waited;
  cursor.end = span.end;
  cursor.seenSince = Clock::now();
  ++cursor.done;
}

bool StreamTimes::advance() {
  // Another stream may be done with a command before compute begins.
  CUresult begun = cuEventQuery(startEvent);
  if (begun == CUDA_ERROR_NOT_READY)
    return false;
  checkCuda(begun, "the device failed: cuEventQuery");
  bool all = true;
  for (Cursor &cursor : cursors) {
    while (cursor.done < cursor.commands.size() &&
           isDone(cursor.commands[cursor.done]))
      finish(cursor);
    all = all && cursor.done == cursor.commands.size();
  }
  if (!all)
    return false;
  int64_t last = 0;
  for (const Cursor &cursor : cursors)
    last = std::max(last, cursor.end);
  tail += last - cursors[0].end;
  return true;
}

void StreamTimes::reset() {
  std::fill(times.begin(), times.end(), 0);
  std::fill(waits.begin(), waits.end(), 0);
  tail = 0;
}

void StreamTimes::forget() {
  reset();
  std::fill(latest.begin(), latest.end(), Span());
}

int64_t StreamTimes::exposed() const {
  int64_t time = tail;
  for (size_t index = 0; index < program.commands.size(); ++index) {
    const Command &command = program.commands[index];
    if (command.stream != 0)
      continue;
    time += waits[index];
    if (command.isCollective() || host::transferOf(program, command))
      time += times[index];
  }
  return time;
}
