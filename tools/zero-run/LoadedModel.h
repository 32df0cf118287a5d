//===- LoadedModel.h - The program that a run executes ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan out of a file, or an .mlir or ONNX model that is compiled first.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_LOADEDMODEL_H
#define ZERO_TOOLS_ZERO_RUN_LOADEDMODEL_H

#include "RunGroup.h"
#include "RunOptions.h"
#include "TemporaryFolder.h"

#include "zero-rt/Session.h"

#include <optional>
#include <string>

namespace zero_tools {

/// A program, and what it needs beside itself.
struct LoadedModel {
  zrt::Program program;
  /// What was chosen to live outside device memory; empty: nothing was to be.
  std::string offloadChoice;
  /// Where the files with initial values are.
  std::string initFolder;
  std::optional<TemporaryFolder> temporary; // may be that folder
};

/// Loads or compiles the model. In a group process 0 compiles, and
/// all have its plan. Throws std::runtime_error.
void loadModel(const RunOptions &options, RunGroup *group, LoadedModel &model);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_LOADEDMODEL_H
