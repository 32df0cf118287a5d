//===- PlanAllocate.cpp - Offsets and arena sizes -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Places of a program's buffers by the arena planner.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/Plan.h"
#include "zero/Lowering/Passes.h"
#include "zero/Schedule/ArenaPlanner.h"
#include "zero/Transforms/PlanOrder.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::zero {
#define GEN_PASS_DEF_PLANALLOCATE
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

static LiveRange rangeOf(PlanLifetime life) {
  return {life.first, life.last, life.buffer.getBytes()};
}

/// "host ", or nothing for the device.
static std::string spaceName(plan::Space space) {
  return space == plan::Space::Device ? ""
                                      : plan::stringifySpace(space).str() + " ";
}

/// Most bytes of gathered parameters alive at one time.
static int64_t gatheredWindow(ArrayRef<PlanLifetime> lifetimes) {
  SmallVector<LiveRange> gathered;
  for (const PlanLifetime &life : lifetimes)
    if (plan::BufferOp buffer = life.buffer;
        buffer.getKind() == plan::Kind::Gathered &&
        buffer.getSpace() == plan::Space::Device)
      gathered.push_back(rangeOf(life));
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
    std::vector<PlanLifetime> all =
        computeLifetimes(getOperation(), PlanOrder(getOperation()));
    for (auto arena : getOperation().getBody().getOps<plan::ArenaOp>())
      place(arena, all);
    getOperation().setWindow(gatheredWindow(all));
  }

  /// A disk's blocks begin at a multiple of their size, and so does host memory
  /// that they are copied from and to.
  int64_t alignmentOf(plan::ArenaOp arena) {
    bool hasDisk = llvm::any_of(
        getOperation().getBody().getOps<plan::ArenaOp>(),
        [](plan::ArenaOp op) { return op.getSpace() == plan::Space::Disk; });
    return hasDisk && arena.getSpace() != plan::Space::Device
               ? std::max<int64_t>(alignment, plan::kDiskBlockBytes)
               : alignment;
  }

  void place(plan::ArenaOp arena, ArrayRef<PlanLifetime> all) {
    SmallVector<plan::BufferOp> buffers;
    SmallVector<LiveRange> ranges;
    for (const PlanLifetime &life : all) {
      if (plan::BufferOp(life.buffer).getArena() != arena.getArena())
        continue;
      buffers.push_back(life.buffer);
      ranges.push_back(rangeOf(life));
    }
    ArenaPlan plan = planArena(ranges, alignmentOf(arena));
    for (auto [buffer, offset] : llvm::zip_equal(buffers, plan.offsets))
      buffer.setOffset(offset);
    arena.setBytes(plan.height);
    arena.setLowerBound(plan.lowerBound);
    numBuffers += buffers.size();
    arena.emitRemark() << spaceName(arena.getSpace()) << "arena of "
                       << plan.height << " bytes for " << buffers.size()
                       << " buffers; lower bound " << plan.lowerBound
                       << " bytes, gap "
                       << llvm::formatv("{0:F1}", plan.gap() * 100).str()
                       << " %";
  }
};
} // namespace
