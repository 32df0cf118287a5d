//===- RematStep.h - A step function as a remat graph -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a step function to the graph on which recomputation is chosen, and from
// a choice back to the function.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_REMATSTEP_H
#define ZERO_LIB_SCHEDULE_REMATSTEP_H

#include "zero/Cost/CostModel.h"
#include "zero/Schedule/Remat.h"
#include "zero/Transforms/StepUtils.h"

namespace mlir::zero {

/// A step function of one block, and its graph.
struct RematStep {
  StepPhases phases;
  RematGraph graph;
  std::vector<Operation *> steps;             ///< of the function, in order
  std::vector<Operation *> ops;               ///< by node
  llvm::DenseMap<Operation *, int32_t> nodes; ///< those of `ops`
  std::vector<std::string> layers;            ///< by layer, its unit
};

/// Gradients leave memory when they are complete if `stage` is 2 or 3.
RematStep buildRematStep(StepPhases phases, SymbolTable &symbols,
                         const CostModel &cost, int64_t stage);

/// Copies what `point` computes again to the backward pass, and lets the
/// backward pass read the copies. `step` is used up.
void applyRemat(RematStep &step, const RematPoint &point);

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_REMATSTEP_H
