//===- RematPass.cpp - train-remat ----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses one level of recomputation and makes it.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/OpWork.h"
#include "zero/Schedule/RematModule.h"

#include "dialects/Zero/Zero.h"

namespace mlir::zero {
#define GEN_PASS_DEF_TRAINREMATPASS
#include "zero/Schedule/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

namespace {
struct RematPass : zero::impl::TrainRematPassBase<RematPass> {
  using TrainRematPassBase::TrainRematPassBase;

  LogicalResult checkOptions();
  const RematLevel &choose(const RematLevels &levels);
  LogicalResult run();
  void runOnOperation() override {
    if (mode != RematMode::None && failed(run()))
      signalPassFailure();
  }
};
} // namespace

LogicalResult RematPass::checkOptions() {
  Location loc = getOperation().getLoc();
  if (stage < 0 || stage > 3)
    return emitError(loc) << "train-remat: stage " << stage.getValue()
                          << " does not exist; ZeRO stages are 0, 1, 2, 3";
  if (mode == RematMode::Budget && bytes < 1)
    return emitError(loc) << "train-remat: mode=budget needs bytes=N of at "
                             "least 1, got "
                          << bytes.getValue();
  return success();
}

const RematLevel &RematPass::choose(const RematLevels &levels) {
  if (mode == RematMode::Full)
    return levels.perLayer;
  if (mode == RematMode::Selective)
    return levels.levels[levels.selective];
  const RematLevel &level = levels.within(bytes);
  if (level.peakBytes > bytes)
    emitWarning(getOperation().getLoc())
        << "train-remat: the step's values need " << level.peakBytes
        << " bytes with all recomputation there is, more than the budget of "
        << bytes.getValue();
  return level;
}

LogicalResult RematPass::run() {
  if (failed(checkOptions()))
    return failure();
  FailureOr<Machine> found = findMachine(getOperation().getLoc(), machine);
  if (failed(found))
    return failure();
  CostModel cost(*found);
  FailureOr<RematLevels> levels = findRematLevels(getOperation(), cost, stage);
  if (failed(levels))
    return failure();
  FailureOr<int64_t> count =
      applyRematLevel(getOperation(), choose(*levels), cost, stage);
  if (failed(count))
    return failure();
  numRecomputed += *count;
  return success();
}
