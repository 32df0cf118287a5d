//===- InputValues.h - --value NAME=FILE ------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the constants that stand for inputs of an ONNX model.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_INPUTVALUES_H
#define ZERO_TOOLS_ZERO_RUN_INPUTVALUES_H

#include "zero/Import/Import.h"

namespace zero_tools {

/// For each name the tensor of that name in its file, safetensors or .npz; no
/// tensor for a name without a file.
/// Throws zrt::IoError.
std::map<std::string, mlir::zero::InputValue>
readValues(const std::map<std::string, std::string> &files);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_INPUTVALUES_H
