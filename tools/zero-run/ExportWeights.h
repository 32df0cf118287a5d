//===- ExportWeights.h - Trained weights into an ONNX model -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What zero-run --save-onnx and zero-import --export have in common.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_EXPORTWEIGHTS_H
#define ZERO_TOOLS_ZERO_RUN_EXPORTWEIGHTS_H

#include <functional>
#include <string>
#include <vector>

namespace zero_tools {

struct ExportRequest {
  /// The model, and the weights by the names that zero-run saves them under or
  /// by other names of the same tensors.
  std::string model, weights;
  std::string output;
  /// What was given as --train and --freeze.
  std::vector<std::string> train, freeze;
};

/// Writes the model with these weights. Throws std::runtime_error with one
/// line.
void exportWeights(const ExportRequest &request,
                   const std::function<void(const std::string &)> &warn);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_EXPORTWEIGHTS_H
