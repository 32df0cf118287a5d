//===- RematModule.h - Recomputation in a module's steps --------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The choices of recomputation for a module that is not partitioned yet, for
// the pass `train-remat` and for compilers that try several.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_REMATMODULE_H
#define ZERO_SCHEDULE_REMATMODULE_H

#include "zero/Cost/CostModel.h"
#include "zero/Schedule/Passes.h"
#include "zero/Schedule/Remat.h"

namespace mlir::zero {

/// A choice for all step functions of a module.
struct RematLevel {
  int64_t peakBytes = 0;           ///< of the function that needs the most
  double seconds = 0;              ///< of computing again, all functions
  std::vector<RematPoint> choices; ///< by step function, in the module's order
};

/// The levels of a module, from no recomputation on, by falling memory. Where
/// there is an `@accumulate` beside `@step`, each has its own choice within the
/// same bytes.
struct RematLevels {
  std::vector<RematLevel> levels;
  size_t selective = 0; ///< as RematFront::selective
  RematLevel perLayer;  ///< see `rematPerLayer`

  /// Of `levels`: the first within `bytes`, else the last.
  const RematLevel &within(int64_t bytes) const;
};

/// The levels of `module`. `stage` is the ZeRO stage that it will be
/// partitioned for. Fails, with an error that has been emitted, where a step
/// cannot be understood or is partitioned already.
FailureOr<RematLevels> findRematLevels(ModuleOp module, const CostModel &cost,
                                       int64_t stage);

/// Makes the choices of `level` in `module`: the one that it was found for, or
/// a copy of it. Remarks of the category `train-remat` say what is computed
/// again. Returns the number of ops that are.
FailureOr<int64_t> applyRematLevel(ModuleOp module, const RematLevel &level,
                                   const CostModel &cost, int64_t stage);

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_REMATMODULE_H
