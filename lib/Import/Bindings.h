//===- Bindings.h - What is known of a binding ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the walk over the graph and the services it offers to handlers.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_BINDINGS_H
#define ZERO_LIB_IMPORT_BINDINGS_H

#include "lib/Import/GraphImporter.h"

namespace mlir::zero::onnx_import {

/// The shape a binding has without making it a value.
std::optional<SmallVector<int64_t>> shapeOfBinding(Binding &binding);

/// Whether a tensor of `shape` is one that the graph declares; a dimension
/// without a size there can have any.
bool fitsDeclared(ArrayRef<int64_t> shape,
                  const onnx::TypeProto_Tensor &declared);

/// Whether compute can use `elements` of a constant only through the weights
/// file.
bool staysInFile(const Param &param, int64_t elements);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_BINDINGS_H
