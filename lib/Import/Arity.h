//===- Arity.h - How many inputs and outputs operators have -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ONNX's schemas say of the numbers of inputs and outputs.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_ARITY_H
#define ZERO_LIB_IMPORT_ARITY_H

#include "lib/Import/NodeReader.h"

namespace mlir::zero::onnx_import {

/// Fails with an error where `node`, no call of a function, has fewer or more
/// inputs or outputs than its operator. Operators of others have any number.
LogicalResult checkArity(NodeReader &node);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_ARITY_H
