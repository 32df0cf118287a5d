//===- PlanAllocate.cpp - Offsets and arena sizes -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Liveness of a program's buffers, and their places by the arena planner.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/Plan.h"
#include "zero/Lowering/Passes.h"
#include "zero/Schedule/ArenaPlanner.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::zero {
#define GEN_PASS_DEF_PLANALLOCATE
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

/// The buffer that `value` is, or is a view of.
static plan::BufferOp underlyingBuffer(Value value) {
  while (auto view = value.getDefiningOp<plan::ViewOp>())
    value = view.getSource();
  return value.getDefiningOp<plan::BufferOp>();
}

/// Kinds that keep their value from one step to the next, or are written by
/// the runtime outside the commands.
static bool livesForever(plan::Kind kind) {
  switch (kind) {
  case plan::Kind::Parameter:
  case plan::Kind::OptimizerState:
  case plan::Kind::Input:
  case plan::Kind::Constant:
  case plan::Kind::Persistent:
    return true;
  case plan::Kind::Gradient:
  case plan::Kind::Gathered:
  case plan::Kind::Activation:
    return false;
  }
  return true;
}

using LiveRanges = llvm::MapVector<plan::BufferOp, LiveRange>;

/// Lifetimes in positions of commands; a buffer without use takes no room in
/// time.
static LiveRanges computeLiveRanges(plan::ProgramOp program) {
  LiveRanges ranges;
  for (auto buffer : program.getBody().getOps<plan::BufferOp>())
    ranges[buffer] = {/*first=*/1, /*last=*/0, buffer.getBytes()};
  int64_t time = 0;
  auto use = [&](Value value, int64_t first, int64_t last) {
    LiveRange &range = ranges[underlyingBuffer(value)];
    bool fresh = range.last < range.first;
    range.first = fresh ? first : std::min(range.first, first);
    range.last = fresh ? last : std::max(range.last, last);
  };
  for (Operation &op : program.getBody().front()) {
    auto command = dyn_cast<plan::CommandOpInterface>(&op);
    if (!command)
      continue;
    for (Value value : command.getReadBuffers())
      use(value, time, time);
    for (Value value : command.getWrittenBuffers())
      use(value, time, time);
    ++time;
  }
  for (auto output : program.getBody().getOps<plan::OutputOp>())
    use(output.getBuffer(), 0, time);
  for (auto &[buffer, range] : ranges)
    if (livesForever(plan::BufferOp(buffer).getKind()))
      range = {0, time, range.bytes};
  return ranges;
}

/// Most bytes of gathered parameters alive at one time.
static int64_t gatheredWindow(const LiveRanges &all) {
  SmallVector<LiveRange> gathered;
  for (const auto &[buffer, range] : all)
    if (plan::BufferOp(buffer).getKind() == plan::Kind::Gathered)
      gathered.push_back(range);
  return maxLiveBytes(gathered);
}

namespace {
struct PlanAllocatePass : mlir::zero::impl::PlanAllocateBase<PlanAllocatePass> {
  using PlanAllocateBase::PlanAllocateBase;

  void runOnOperation() override {
    if (!llvm::isPowerOf2_64(alignment)) {
      getOperation().emitError()
          << "plan-allocate: alignment " << alignment.getValue()
          << " is not a power of two";
      return signalPassFailure();
    }
    LiveRanges all = computeLiveRanges(getOperation());
    for (auto arena : getOperation().getBody().getOps<plan::ArenaOp>())
      place(arena, all);
    getOperation().setWindow(gatheredWindow(all));
  }

  void place(plan::ArenaOp arena, LiveRanges &all) {
    SmallVector<plan::BufferOp> buffers;
    SmallVector<LiveRange> ranges;
    for (auto &[buffer, range] : all) {
      if (plan::BufferOp(buffer).getArena() != arena.getArena())
        continue;
      buffers.push_back(buffer);
      ranges.push_back(range);
    }
    ArenaPlan plan = planArena(ranges, alignment);
    for (auto [buffer, offset] : llvm::zip_equal(buffers, plan.offsets))
      buffer.setOffset(offset);
    arena.setBytes(plan.height);
    numBuffers += buffers.size();
    arena.emitRemark() << "arena of " << plan.height << " bytes for "
                       << buffers.size() << " buffers; lower bound "
                       << plan.lowerBound << " bytes";
  }
};
} // namespace
