//===- ConfigFile.h - zero-run --config -------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A DeepSpeed config as flags of zero-run that were not given.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_CONFIGFILE_H
#define ZERO_TOOLS_ZERO_RUN_CONFIGFILE_H

#include "RunOptions.h"

#include "zero/Config/DeepSpeed.h"

#include <functional>

namespace zero_tools {

/// What the options say, before or after a config.
mlir::zero::RunSettings settingsOf(const RunOptions &options);

/// Makes --lr and the rate of --lr-schedule one. Throws FlagError where they
/// differ.
void resolveRates(RunOptions &options);

/// Sets what the config says and the command line does not. Gives `note` a
/// line for each thing that is not as one might think. Throws
/// std::runtime_error with one line where a key is refused.
void applyConfig(RunOptions &options,
                 const std::function<void(const std::string &)> &note);

/// Prints what becomes of each key of the config, or, without one, the table of
/// all keys. False where a key is refused; throws std::runtime_error where the
/// flags and the config do not go together.
bool explainConfig(const RunOptions &options);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_CONFIGFILE_H
