//===- CommandOrder.cpp - Streams and events of commands ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See CommandOrder.h.
//
//===----------------------------------------------------------------------===//

#include "CommandOrder.h"

using namespace mlir;
using namespace mlir::zero;

static int32_t at(ArrayRef<int32_t> clock, int32_t stream) {
  return stream < static_cast<int32_t>(clock.size()) ? clock[stream] : 0;
}

static void join(SmallVectorImpl<int32_t> &clock, ArrayRef<int32_t> other) {
  if (clock.size() < other.size())
    clock.resize(other.size());
  for (auto [mine, theirs] : llvm::zip(clock, other))
    mine = std::max(mine, theirs);
}

CommandOrder::CommandOrder(OpBuilder declarations)
    : declarations(declarations), clocks(1) {
  streams[plan::kComputeStream] = 0;
}

Value CommandOrder::getEvent(plan::CommandOpInterface command) {
  if (Value event = command.getSignalEvent())
    return event;
  auto event =
      plan::EventOp::create(declarations, command.getLoc(),
                            plan::EventType::get(declarations.getContext()));
  command.setSignalEvent(event.getEvent());
  return event.getEvent();
}

/// Issues `command` behind `needed`, waiting for those of them that neither
/// its stream nor another one implies.
CommandOrder::Issued CommandOrder::issue(plan::CommandOpInterface command,
                                         int32_t stream,
                                         SmallVector<Issued> needed) {
  Clock &clock = clocks[stream];
  auto isDone = [](const Issued &one, ArrayRef<int32_t> clock) {
    return at(one.after, one.stream) <= at(clock, one.stream);
  };
  llvm::erase_if(needed, [&](const Issued &one) { return isDone(one, clock); });
  for (const Issued &one : needed) {
    bool implied = llvm::any_of(needed, [&](const Issued &other) {
      return other.command != one.command && isDone(one, other.after);
    });
    if (!implied)
      command.addWaitEvent(getEvent(one.command));
  }
  for (const Issued &one : needed)
    join(clock, one.after);
  clock.resize(std::max<size_t>(clock.size(), stream + 1));
  ++clock[stream];
  return {command, stream, clock};
}

void CommandOrder::compute(plan::CommandOpInterface command) {
  SmallVector<Issued> needed;
  for (auto &[stream, last] : awaited)
    needed.push_back(last);
  awaited.clear();
  lastCompute = issue(command, 0, std::move(needed));
}

void CommandOrder::start(plan::CommandOpInterface command, StringRef stream) {
  auto [entry, isNew] = streams.try_emplace(stream, streams.size());
  if (isNew)
    clocks.emplace_back();
  SmallVector<Issued> needed;
  if (lastCompute)
    needed.push_back(*lastCompute);
  for (auto &[stream, last] : awaited)
    needed.push_back(last);
  command.setStreamName(stream);
  started[command] = issue(command, entry->second, std::move(needed));
}

void CommandOrder::wait(plan::CommandOpInterface command) {
  const Issued &issued = started.find(command)->second;
  // A stream's last command implies those before it.
  auto [entry, isNew] = awaited.try_emplace(issued.stream, issued);
  if (at(entry->second.after, issued.stream) < at(issued.after, issued.stream))
    entry->second = issued;
}

void CommandOrder::barrier() {
  Clock all;
  for (const Clock &clock : clocks)
    join(all, clock);
  clocks.assign(clocks.size(), all);
  lastCompute.reset();
  awaited.clear();
  started.clear();
}
