//===- StepOptions.h - Settings of a run as options of its step -*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What settings mean to the passes that make the training step.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CONFIG_STEPOPTIONS_H
#define ZERO_CONFIG_STEPOPTIONS_H

#include "zero/Autodiff/TrainStep.h"
#include "zero/Config/DeepSpeed.h"

namespace mlir::zero {

/// The learning rate where nobody says one.
constexpr double kDefaultLearningRate = 1e-3;

/// Sets what `settings` says; the rest stays as it is.
void setStepOptions(const RunSettings &settings,
                    train::TrainStepOptions &options);

} // namespace mlir::zero

#endif // ZERO_CONFIG_STEPOPTIONS_H
