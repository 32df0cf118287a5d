//===- StepFlags.h - What a step computes -----------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The flags of zero-import that say how a training step is made. They are those
// of zero-run, whose parser reads them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_IMPORT_STEPFLAGS_H
#define ZERO_TOOLS_ZERO_IMPORT_STEPFLAGS_H

#include "zero/Autodiff/TrainStep.h"
#include "zero/Import/Import.h"

#include "llvm/Support/CommandLine.h"

#include <functional>

namespace zero_tools {

/// The group of these flags in --help.
extern llvm::cl::OptionCategory stepCategory;

/// The options of a step with the loss `loss`, which is empty where none is
/// made; flags go before what --config says. Gives `note` a line for each thing
/// in the config that is not as one might think. Throws std::runtime_error with
/// one line where flags or config make no sense.
mlir::train::TrainStepOptions
readStepFlags(const std::string &loss,
              const std::function<void(const std::string &)> &note);

/// The same for a model that computes gradients itself.
mlir::train::TrainStepOptions
readStepFlags(const mlir::zero::FoundTraining &found,
              const std::function<void(const std::string &)> &note);

/// The first flag of a step that was given; empty: none was.
std::string firstStepFlag();

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_IMPORT_STEPFLAGS_H
