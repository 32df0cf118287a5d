//===- InputBounds.h - What integers of an input are valid ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decompositions of operators that index compute with their indices, so that
// what is valid can no longer be read off the operations: the importer says it
// by the attribute of the input that the runtime checks before a step.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_INPUTBOUNDS_H
#define ZERO_LIB_IMPORT_INPUTBOUNDS_H

#include "mlir/IR/Value.h"

#include <optional>

namespace mlir::zero::onnx_import {

/// If `value` is an input of the graph, maybe cast or laid out anew, its
/// elements are from `lowest` to `highest`, or `ignored`.
void boundInput(Value value, int64_t lowest, int64_t highest,
                std::optional<int64_t> ignored = std::nullopt);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_INPUTBOUNDS_H
