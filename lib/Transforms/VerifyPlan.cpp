//===- VerifyPlan.cpp - Whether a program is safe to run ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See VerifyPlan.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Transforms/VerifyPlan.h"
#include "zero/Transforms/PlanOrder.h"

#include <map>

using namespace mlir;
using namespace mlir::zero;

namespace {
class PlanChecker {
public:
  explicit PlanChecker(plan::ProgramOp program)
      : program(program), order(program), lasting(findLastingBuffers(program)) {
  }

  LogicalResult checkPlacement();
  LogicalResult checkUses();
  LogicalResult checkMemory();
  LogicalResult checkFingerprint();

private:
  /// Who touched a buffer so far; positions, -1 for nobody.
  struct Uses {
    int64_t written = -1, released = -1;
    SmallVector<int64_t, 4> read; ///< by stream: the last since `written`
  };

  LogicalResult checkRead(Value value, int64_t position);
  LogicalResult checkWrite(Value value, int64_t position);
  LogicalResult requireOrder(plan::BufferOp buffer, int64_t first,
                             int64_t second);
  LogicalResult checkOverlaps(plan::ArenaOp arena,
                              ArrayRef<PlanLifetime> lifetimes);

  plan::CommandOpInterface at(int64_t position) const {
    return order.getCommands()[position].op;
  }

  plan::ProgramOp program;
  PlanOrder order;
  llvm::DenseSet<Operation *> lasting;
  llvm::DenseMap<Operation *, Uses> uses;
};
} // namespace

/// Which command is meant; not all have a location.
static std::string describe(plan::CommandOpInterface op, int64_t position) {
  return ("command " + Twine(position) + " ('" + op->getName().getStringRef() +
          "' on stream \"" + op.getStreamName() + "\")")
      .str();
}

/// The name that the program has for `buffer`, or its type.
static std::string describe(plan::BufferOp buffer) {
  for (Operation *user : buffer.getBuffer().getUsers())
    if (auto parameter = dyn_cast<plan::ParameterOp>(user))
      return "'" + parameter.getName().str() + "'";
  std::string text;
  llvm::raw_string_ostream(text)
      << "a buffer of type " << buffer.getBuffer().getType();
  return text;
}

//===----------------------------------------------------------------------===//
// Events and streams
//===----------------------------------------------------------------------===//

static LogicalResult checkEvents(plan::ProgramOp program) {
  llvm::DenseMap<Value, bool> awaited; // by event that was signalled
  llvm::DenseSet<Value> ended;         // those of the micro-batches before
  for (Operation &each : program.getBody().front()) {
    if (isa<plan::MicroBatchEndOp>(each))
      for (auto &[event, isAwaited] : awaited)
        ended.insert(event);
    auto op = dyn_cast<plan::CommandOpInterface>(each);
    if (!op)
      continue;
    for (Value event : op.getWaitEvents()) {
      if (ended.contains(event))
        return op->emitOpError("waits for an event of the micro-batches before "
                               "the last, which are done");
      auto entry = awaited.find(event);
      if (entry == awaited.end())
        return op->emitOpError("waits for an event that no command before it "
                               "signals");
      entry->second = true;
    }
    Value event = op.getSignalEvent();
    if (event && !awaited.try_emplace(event, false).second)
      return op->emitOpError("signals an event that a command before it "
                             "signals already");
  }
  for (auto event : program.getBody().getOps<plan::EventOp>()) {
    auto entry = awaited.find(event.getEvent());
    if (entry == awaited.end())
      return event.emitOpError("is signalled by no command");
    if (!entry->second)
      return event.emitOpError("is awaited by no command: a wait was lost");
  }
  return success();
}

/// Memory by program order is the true memory only if nothing runs ahead.
LogicalResult PlanChecker::checkPlacement() {
  int64_t reached = -1;
  for (auto [position, command] : llvm::enumerate(order.getCommands())) {
    if (command.stream == 0)
      reached = position;
    else if (reached >= 0 && !order.isBefore(reached, position))
      return at(position)->emitOpError()
             << "may begin before compute reaches it: it waits for no event "
                "that implies "
             << describe(at(reached), reached);
  }
  return success();
}

/// What no rule above forbids is still another program than the ranks agreed
/// on: a collective elsewhere, a wait less.
LogicalResult PlanChecker::checkFingerprint() {
  std::optional<int64_t> expected = program.getOrder();
  int64_t found = fingerprintOrder(program, order);
  if (!expected || *expected == found)
    return success();
  return program.emitOpError()
         << "orders its commands otherwise than the program it was made as "
            "(fingerprint "
         << found << ", expected " << *expected
         << "): ranks may wait for each other forever; remove 'order' to run "
            "it as it is, on all ranks";
}

//===----------------------------------------------------------------------===//
// Uses of buffers
//===----------------------------------------------------------------------===//

LogicalResult PlanChecker::requireOrder(plan::BufferOp buffer, int64_t first,
                                        int64_t second) {
  if (first < 0 || first == second || order.isBefore(first, second))
    return success();
  return at(second)->emitOpError() << "uses " << describe(buffer) << " while "
                                   << describe(at(first), first)
                                   << " may still use it: no event orders them";
}

LogicalResult PlanChecker::checkRead(Value value, int64_t position) {
  plan::BufferOp buffer = getUnderlyingBuffer(value);
  Uses &seen = uses[buffer];
  if (seen.released >= 0)
    return at(position)->emitOpError()
           << "uses " << describe(buffer) << " after "
           << describe(at(seen.released), seen.released) << " released it";
  if (seen.written < 0 && !lasting.contains(buffer))
    return at(position)->emitOpError()
           << "reads " << describe(buffer) << ", which nothing has written";
  if (failed(requireOrder(buffer, seen.written, position)))
    return failure();
  seen.read.resize(order.getStreams().size(), -1);
  seen.read[order.getCommands()[position].stream] = position;
  return success();
}

LogicalResult PlanChecker::checkWrite(Value value, int64_t position) {
  plan::BufferOp buffer = getUnderlyingBuffer(value);
  Uses &seen = uses[buffer];
  if (seen.released >= 0)
    return checkRead(value, position);
  if (failed(requireOrder(buffer, seen.written, position)))
    return failure();
  for (int64_t read : seen.read)
    if (failed(requireOrder(buffer, read, position)))
      return failure();
  seen.read.clear();
  seen.written = position;
  return success();
}

/// What a command needs to have been written before: a kernel's results are
/// among its buffers too.
static SmallVector<Value> getValuesRead(plan::CommandOpInterface op) {
  SmallVector<Value> read = op.getReadBuffers();
  if (!isa<plan::LaunchOp, plan::CallOp>(op.getOperation()))
    return read;
  SmallVector<Value> written = op.getWrittenBuffers();
  llvm::erase_if(
      read, [&](Value value) { return llvm::is_contained(written, value); });
  return read;
}

LogicalResult PlanChecker::checkUses() {
  for (int64_t position = 0, e = order.getCommands().size(); position != e;
       ++position) {
    plan::CommandOpInterface op = at(position);
    for (Value value : getValuesRead(op))
      if (failed(checkRead(value, position)))
        return failure();
    if (auto release = dyn_cast<plan::ReleaseOp>(op.getOperation()))
      uses[getUnderlyingBuffer(release.getBuffer())].released = position;
    for (Value value : op.getWrittenBuffers())
      if (failed(checkWrite(value, position)))
        return failure();
  }
  for (auto output : program.getBody().getOps<plan::OutputOp>()) {
    plan::BufferOp buffer = getUnderlyingBuffer(output.getBuffer());
    if (uses[buffer].written < 0 && !lasting.contains(buffer))
      return output.emitOpError("is written by no command");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Sweeps over time with the byte ranges alive, which share none.
LogicalResult PlanChecker::checkOverlaps(plan::ArenaOp arena,
                                         ArrayRef<PlanLifetime> lifetimes) {
  SmallVector<const PlanLifetime *> byFirst, byLast;
  for (const PlanLifetime &life : lifetimes)
    if (plan::BufferOp buffer = life.buffer;
        buffer.getArena() == arena.getArena() && life.first <= life.last &&
        buffer.getOffset() && buffer.getBytes() > 0)
      byFirst.push_back(&life);
  byLast = byFirst;
  llvm::stable_sort(byFirst,
                    [](auto *a, auto *b) { return a->first < b->first; });
  llvm::stable_sort(byLast, [](auto *a, auto *b) { return a->last < b->last; });
  std::map<int64_t, plan::BufferOp> alive; // by offset
  auto expired = byLast.begin();
  for (const PlanLifetime *life : byFirst) {
    for (; (*expired)->last < life->first; ++expired)
      alive.erase(*plan::BufferOp((*expired)->buffer).getOffset());
    plan::BufferOp buffer = life->buffer;
    int64_t begin = *buffer.getOffset(), end = begin + buffer.getBytes();
    auto next = alive.lower_bound(begin);
    plan::BufferOp other;
    if (next != alive.end() && next->first < end)
      other = next->second;
    else if (next != alive.begin())
      if (auto [offset, before] = *std::prev(next);
          offset + plan::BufferOp(before).getBytes() > begin)
        other = before;
    if (other)
      return buffer.emitOpError()
             << "takes bytes [" << begin << ", " << end << ") while "
             << describe(other) << " at offset " << *other.getOffset()
             << " may still be in use; it is first used by "
             << (life->first < static_cast<int64_t>(order.getCommands().size())
                     ? describe(at(life->first), life->first)
                     : std::string("the output"));
    alive[begin] = buffer;
  }
  return success();
}

LogicalResult PlanChecker::checkMemory() {
  std::vector<PlanLifetime> lifetimes = computeLifetimes(program, order);
  for (auto arena : program.getBody().getOps<plan::ArenaOp>()) {
    bool isDevice = arena.getSpace() == plan::Space::Device;
    std::optional<int64_t> budget =
        isDevice ? program.getBudget() : arena.getBudget();
    std::optional<int64_t> bytes = arena.getBytes();
    if (budget && bytes && *bytes > *budget)
      return arena.emitOpError()
             << "takes " << *bytes << " bytes of "
             << stringifySpace(arena.getSpace()) << " memory, which is "
             << *bytes - *budget << " over the budget of " << *budget;
    if (failed(checkOverlaps(arena, lifetimes)))
      return failure();
  }
  return success();
}

/// Disks are read and written past the system's cache, in whole blocks.
static LogicalResult checkBlocks(plan::CopyOp copy) {
  plan::BufferOp buffers[] = {getUnderlyingBuffer(copy.getSource()),
                              getUnderlyingBuffer(copy.getTarget())};
  if (llvm::none_of(buffers, [](plan::BufferOp buffer) {
        return buffer.getSpace() == plan::Space::Disk;
      }))
    return success();
  for (plan::BufferOp buffer : buffers) {
    int64_t offset = buffer.getOffset().value_or(0);
    if (offset % plan::kDiskBlockBytes == 0 &&
        buffer.getBytes() % plan::kDiskBlockBytes == 0)
      continue;
    return copy.emitOpError()
           << "moves bytes [" << offset << ", " << offset + buffer.getBytes()
           << ") of " << stringifySpace(buffer.getSpace())
           << " memory between host and disk; expects multiples of "
           << plan::kDiskBlockBytes;
  }
  return success();
}

static LogicalResult checkDisk(plan::ProgramOp program) {
  for (auto copy : program.getBody().getOps<plan::CopyOp>())
    if (failed(checkBlocks(copy)))
      return failure();
  for (auto fill : program.getBody().getOps<plan::FillOp>())
    if (getUnderlyingBuffer(fill.getTarget()).getSpace() == plan::Space::Disk)
      return fill.emitOpError(
          "fills a buffer on disk, which only copies reach");
  return success();
}

LogicalResult mlir::zero::verifyPlan(plan::ProgramOp program) {
  if (failed(checkEvents(program)))
    return failure();
  PlanChecker checker(program);
  return failure(failed(checker.checkPlacement()) ||
                 failed(checker.checkUses()) || failed(checker.checkMemory()) ||
                 failed(checkDisk(program)) ||
                 failed(checker.checkFingerprint()));
}
